// A message that a person wrote, with its editor, and one that is not in the log yet.

import { rewindSession } from "./actions.js";
import { Attachments } from "./attachment.js";
import { allText, heardText } from "./fold-items.js";
import { formatDateTime, formatTime } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { t } from "./language.js";
import { html, useState } from "./lib.js";
import { resendMessages } from "./sending.js";
import { discardMessage } from "./sent-messages.js";
import { announce, currentUser, hasScope } from "./state.js";
import { talk } from "./talk.js";
import { copyText } from "./text.js";

/** Who wrote it, and on which channel where that is not this page. */
function describeSender({ by: name, channel }) {
  if (!channel || channel === "web") return name;
  return name ? t("{name} on {channel}", { name, channel }) : t("on {channel}", { channel });
}

export function UserMessage({ item, turn }) {
  const [editing, setEditing] = useState(false);
  const first = turn.items[0] === item;
  const foreign =
    (item.by && item.by !== currentUser.value.user) || (item.channel && item.channel !== "web");
  if (editing)
    return html`<${Editor} item=${item} turn=${turn} close=${() => setEditing(false)} />`;
  return html`
    <div class="said-by-me">
      ${
        foreign &&
        html`
          <p class="tiny muted">
            ${describeSender(item)}
          </p>
        `
      }
      <div class="bubble">
        ${item.parts.length > 0 && html`<${Attachments} parts=${item.parts} />`}
        ${item.text && html`<p class="pre" dir="auto">${item.text}</p>`}
      </div>
      <div class="acts" role="group" aria-label=${t("What to do with this message")}>
        ${item.edited && html`<span class="tiny muted">${t("edited")}</span>`}
        ${item.deleted && html`<span class="tiny muted">${t("deleted by its sender")}</span>`}
        ${item.emoji && html`<span>${item.emoji}</span>`}
        <time
          class="tiny muted"
          datetime=${new Date(item.at * 1000).toISOString()}
          title=${formatDateTime(item.at)}
        >
          ${formatTime(item.at)}
        </time>
        <${IconButton}
          name="copy"
          little
          label=${t("Copy this message")}
          onClick=${() => copyText(allText(item))}
        />
        ${
          first &&
          hasScope("chat") &&
          !turn.undone &&
          turn.reason !== "kept" &&
          html`
            <${IconButton}
              name="edit"
              little
              label=${t("Edit and send again")}
              onClick=${() => setEditing(true)}
            />
          `
        }
      </div>
    </div>
  `;
}

function Editor({ item, turn, close }) {
  const resend = async (event) => {
    event.preventDefault();
    const text = new FormData(event.target.form ?? event.target).get("text").trim();
    if (text && (await rewindSession(turn.first - 1, { text })) !== undefined) {
      close();
      announce(t("Sent again"));
    }
  };
  const handleKey = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
    if (event.key === "Enter" && !event.shiftKey) resend(event);
  };
  return html`
    <form class="editor" onSubmit=${resend}>
      <textarea
        name="text"
        rows="3"
        aria-label=${t("Your message")}
        defaultValue=${item.text || heardText(item)}
        onKeyDown=${handleKey}
        ref=${(field) => field?.focus()}
      ></textarea>
      <p class="tiny muted grow">
        ${t(
          "What followed is undone: it stays in the log, and the agent goes on from here. Files stay as they are.",
        )}
      </p>
      <div class="row">
        <button type="submit" class="btn main little">${t("Send again")}</button>
        <button type="button" class="btn little" onClick=${close}>${t("Cancel")}</button>
      </div>
    </form>
  `;
}

function describeWait(message) {
  if (!message.inbox) return t("Not sent yet");
  return talk.value.open ? t("Queued") : t("Received");
}

/** A message that is not in the log yet. */
export function UnsentMessage({ message }) {
  const state = message.failed || describeWait(message);
  return html`
    <div class="said-by-me waiting">
      <div class="bubble">
        ${
          message.files.length > 0 &&
          html`
            <ul class="attached">
              ${message.files.map(
                (file) => html`
                  <li key=${file.blob}>
                    <span class="chip">
                      <${Icon} name=${file.spoken ? "mic" : "file"} />
                      ${file.spoken ? t("Voice message") : file.name}
                    </span>
                  </li>
                `,
              )}
            </ul>
          `
        }
        ${message.text && html`<p class="pre">${message.text}</p>`}
      </div>
      <div class="acts shown">
        <span
          class=${`tiny ${message.failed ? "failed" : "muted"}`}
          role=${message.failed ? "alert" : null}
        >
          ${state}
        </span>
        ${
          message.failed &&
          html`
            <button
              type="button"
              class="btn little"
              onClick=${() => {
                message.failed = "";
                resendMessages();
              }}
            >
              ${t("Send again")}
            </button>
          `
        }
        ${
          !message.inbox &&
          html`
            <button
              type="button"
              class="btn little quiet"
              onClick=${() => discardMessage(message.id)}
            >
              ${t("Discard")}
            </button>
          `
        }
      </div>
    </div>
  `;
}
