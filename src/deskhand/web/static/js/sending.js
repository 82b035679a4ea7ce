// Sending messages: they are kept until the server has them, and sent under one id however often.

import { newId, post, sessionPath } from "./api.js";
import { takeNewOptions } from "./new-options.js";
import { changeSentMessage, sentMessages, setSentMessages, spokenIds } from "./sent-messages.js";
import { isSubagentName, online, openSession, route, updateSession } from "./state.js";
import { reconnectStream, scrollToEndRequests, showBegunSession } from "./talk.js";

/** Send a message. It is stored until the server has it, and sent under one id however often. */
export async function sendMessage(text, files, when, name = route.value.name) {
  const wanted = name || `chat-${newId()}`;
  const message = { id: newId("m-"), name: wanted, text, files, when, at: Date.now() / 1000 };
  if (!name) message.options = takeNewOptions();
  if (files.some((file) => file.spoken)) spokenIds.add(message.id);
  setSentMessages([...sentMessages.value, message]);
  scrollToEndRequests.value += 1;
  if (!name && !route.value.name) openSession(wanted);
  await submitMessage(message);
}

async function submitMessage(message) {
  try {
    if (message.options) await updateSession(message.name, message.options);
    const { name: known, inbox_id: inbox } = await post(sessionPath(message.name, "/messages"), {
      text: message.text,
      files: message.files,
      when: message.when,
      id: message.id,
    });
    online.value = true;
    if (isSubagentName(known))
      return setSentMessages(sentMessages.value.filter((other) => other.id !== message.id));
    changeSentMessage(message, { inbox, name: known, failed: "" });
    if (route.value.name === message.name && known !== message.name) openSession(known);
    if (route.value.name === known) showBegunSession(known);
  } catch (error) {
    changeSentMessage(message, { failed: error.status === 0 ? "" : error.message });
    if (error.status === 0) {
      clearTimeout(resendTimer);
      resendTimer = setTimeout(resendMessages, RESEND_MS);
    }
  }
}

const RESEND_MS = 2000;
let sending = false;
let resendTimer = 0;

/** Send what could not be sent before, in its order. */
export async function resendMessages() {
  if (sending) return;
  sending = true;
  for (const message of sentMessages.value.filter((one) => !one.inbox && !one.failed)) {
    await submitMessage(message);
    if (!online.value) break;
  }
  sending = false;
}

/** Connect and send at once, without waiting for the next try. */
export function reconnectNow() {
  reconnectStream();
  resendMessages();
}
