// What was chosen for a conversation that has not begun: it goes with its first message.

import { signal } from "./lib.js";

export const newOptions = signal({});

/** What was chosen for the conversation that begins now; null: nothing. */
export function takeNewOptions() {
  const chosen = newOptions.value;
  newOptions.value = {};
  return Object.keys(chosen).length ? chosen : null;
}
