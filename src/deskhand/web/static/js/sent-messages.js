// The messages that were written in this page and are not in the log yet.

import { signal } from "./lib.js";
import { loadUnsent, storeUnsent } from "./storage.js";

export const sentMessages = signal(loadUnsent());

/** The ids of messages that were spoken into this page. */
export const spokenIds = new Set();

/** Those that the server does not have yet are stored, for when this page is closed. */
export function setSentMessages(messages) {
  sentMessages.value = messages;
  storeUnsent(messages.filter((message) => !message.inbox));
}

export function changeSentMessage({ id }, change) {
  const changed = (other) => (other.id === id ? { ...other, ...change } : other);
  setSentMessages(sentMessages.value.map(changed));
}

export function discardMessage(id) {
  setSentMessages(sentMessages.value.filter((message) => message.id !== id));
}
