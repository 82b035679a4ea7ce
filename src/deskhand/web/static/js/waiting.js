// The messages that wait in the open conversation: nobody has read them yet, so they can be changed.

import { call, get, sessionPath } from "./api.js";
import { IconButton } from "./icons.js";
import { t } from "./language.js";
import { computed, effect, html, signal } from "./lib.js";
import { sendMessage } from "./sending.js";
import { sentMessages } from "./sent-messages.js";
import { announce, hasScope, online, route, showError } from "./state.js";
import { talk } from "./talk.js";

/** The messages of this conversation that the server has and nobody has read, in their order. */
export const waiting = signal([]);
let openName = "";

async function loadWaiting() {
  const { name } = route.value;
  if (!name) return;
  try {
    const found = await get(sessionPath(name, "/waiting"));
    const { seen } = talk.peek();
    if (route.value.name === name)
      waiting.value = found.filter((one) => !seen.includes(one.inbox_id));
  } catch {
    /* a conversation that has not begun has none */
  }
}

// They are asked for when a conversation is busy, and when one was sent to it meanwhile.
const occasion = computed(() => {
  const { name } = route.value;
  if (!name || !talk.value.open || !online.value) return "";
  const sent = sentMessages.value.filter((one) => one.name === name && one.inbox);
  return [name, ...sent.map((one) => one.inbox)].join(" ");
});
effect(() => {
  if (route.value.name !== openName) {
    openName = route.value.name;
    waiting.value = [];
  }
  if (occasion.value) loadWaiting();
});

// What was read, or taken back, waits no more.
effect(() => {
  const { seen } = talk.value;
  const left = waiting.peek().filter((one) => !seen.includes(one.inbox_id));
  if (left.length < waiting.peek().length) waiting.value = left;
});

/** Take a message back. Gives whether nobody has read it. */
async function takeBack(one) {
  const { name } = route.value;
  try {
    await call("DELETE", sessionPath(name, `/waiting/${one.inbox_id}`));
  } catch (error) {
    showError(error);
    return false;
  }
  waiting.value = waiting.value.filter((other) => other.inbox_id !== one.inbox_id);
  sentMessages.value = sentMessages.value.filter((other) => other.inbox !== one.inbox_id);
  announce(t("Taken back"));
  return true;
}

/** Send these anew, in this order: each is taken back first, and dropped where it was read. */
async function sendAnew(messages) {
  const { name } = route.value;
  const kept = [];
  for (const one of messages) if (await takeBack(one)) kept.push(one);
  for (const one of kept) sendMessage(one.text, one.files, one.when, name);
}

/** `edit(message)` puts a message back into the field. */
export function WaitingMessages({ edit }) {
  const all = waiting.value;
  if (!all.length || !hasScope("chat")) return null;
  return html`
    <section class="waiting-list" aria-label=${t("Messages that wait")}>
      <ol>
        ${all.map(
          (one, i) => html`
            <li key=${one.inbox_id}>
              <span class="grow cut" title=${one.text}>
                ${one.text || one.files.map((file) => file.name).join(", ")}
              </span>
              <span class="tiny muted">
                ${one.when === "queue" ? t("after this") : t("at the next step")}
              </span>
              ${
                one.when === "queue" &&
                html`
                  <${IconButton}
                    name="now"
                    little
                    label=${t("Do not wait: it reads this at its next step")}
                    onClick=${() => sendAnew([{ ...one, when: "steer" }])}
                  />
                `
              }
              ${
                i > 0 &&
                html`
                  <${IconButton}
                    name="up"
                    little
                    label=${t("Move up")}
                    onClick=${() => sendAnew([all[i - 1], ...all.slice(i + 1)])}
                  />
                `
              }
              <${IconButton}
                name="edit"
                little
                label=${t("Change this message")}
                onClick=${async () => (await takeBack(one)) && edit(one)}
              />
              <${IconButton}
                name="close"
                little
                label=${t("Take this message back")}
                onClick=${() => takeBack(one)}
              />
            </li>
          `,
        )}
      </ol>
    </section>
  `;
}
