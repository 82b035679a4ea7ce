// The conversation in the middle: its header, its turns, and the field to write in.

import { Ask } from "./asks.js";
import { Composer } from "./composer.js";
import { DrawerButton } from "./drawer-button.js";
import { Find, finding } from "./find.js";
import { allText } from "./fold-items.js";
import { Icon, IconButton } from "./icons.js";
import { html, useEffect, useState } from "./lib.js";
import { currentSession } from "./list.js";
import { useFetch } from "./panels/parts.js";
import { sendMessage } from "./sending.js";
import { openSessionMenu } from "./session-row.js";
import { attempt, currentUser, developer, hasScope, panel, route, updateSession } from "./state.js";
import { missingReason, talk, unsentMessages } from "./talk.js";
import { Log } from "./turns.js";
import { speaking, stopSpeaking } from "./voice.js";

export function Conversation() {
  const { name } = route.value;
  const state = talk.value;
  const empty = !state.turns.length && !unsentMessages.value.length;
  return html`
    <div class="talk">
      <${ConversationHead} />
      ${finding.value && name && html`<${Find} key=${`find ${name}`} />`}
      ${
        missingReason.value
          ? html`<${MissingConversation} />`
          : html`<${Log} key=${name} empty=${empty} first=${empty && html`<${FirstVisit} />`} />`
      }
      ${
        !missingReason.value &&
        html`
          <div class="dock">
            ${state.asks.length > 0 && html`<${Asks} />`}
            ${speaking.value && html`<${SpeakingBar} />`}
            <${Composer} key=${name} />
          </div>
        `
      }
    </div>
  `;
}

function SpeakingBar() {
  return html`
    <div class="speaking-bar">
      <${Icon} name="speaker" />
      <span class="grow">
        ${speaking.value.playing ? "Reading the answer aloud" : "Preparing to read the answer aloud"}
      </span>
      <button type="button" class="btn little" onClick=${stopSpeaking}>
        <${Icon} name="stop" />Stop reading
      </button>
    </div>
  `;
}

function ConversationHead() {
  const { name } = route.value;
  const state = talk.value;
  const first = state.turns.find((turn) => turn.items[0]?.kind === "user")?.items[0];
  const firstText = (state.first <= 1 && first && allText(first)) || unsentMessages.value[0]?.text;
  const title =
    state.title ||
    currentSession.value?.title ||
    (name ? firstText?.slice(0, 80) || "Untitled" : "New conversation");
  const [editing, setEditing] = useState(false);
  const saveTitle = (event) => {
    event.preventDefault();
    const value = new FormData(event.target).get("title").trim();
    setEditing(false);
    if (value && value !== title) attempt(() => updateSession(name, { title: value }));
  };
  const togglePanel = (wanted) => () => {
    panel.value = panel.value === wanted ? "" : wanted;
  };
  const panels = [
    ["files", "files", "Files"],
    ["check", "tasks", "Tasks"],
    ["tune", "options", "Options of this conversation"],
    ...(developer.value
      ? [
          ["trace", "trace", "Trace"],
          ["time", "time", "Slider over this conversation"],
        ]
      : []),
  ];
  return html`
    <header class="head">
      <${DrawerButton} />
      ${
        editing
          ? html`
              <form class="grow" onSubmit=${saveTitle}>
                <input
                  class="input"
                  name="title"
                  aria-label="Title"
                  maxlength="80"
                  value=${title}
                  ref=${(field) => field?.select()}
                  onBlur=${(event) => event.target.form?.requestSubmit()}
                  onKeyDown=${(event) => {
                    if (event.key === "Escape") {
                      event.preventDefault();
                      event.stopPropagation();
                      setEditing(false);
                    }
                  }}
                />
              </form>
            `
          : html`
              <h1 class="title cut">${title}</h1>
              ${
                name &&
                html`
                  <${IconButton}
                    name="edit"
                    little
                    label="Rename this conversation"
                    onClick=${() => setEditing(true)}
                  />
                `
              }
              <span class="grow"></span>
            `
      }
      <div class="row tight" role="group" aria-label="Panels">
        ${
          name &&
          html`
            <${IconButton}
              name="search"
              label="Find in this conversation"
              aria-pressed=${String(finding.value)}
              onClick=${() => {
                finding.value = !finding.value;
              }}
            />
          `
        }
        ${
          name &&
          hasScope("chat") &&
          html`
            <${IconButton}
              name="more"
              label="What to do with this conversation"
              aria-haspopup="menu"
              onClick=${(event) =>
                openSessionMenu(event.currentTarget, { name, title, ...currentSession.value })}
            />
          `
        }
        ${panels
          .filter(([, id]) => name || id === "files" || id === "options")
          .map(
            ([icon, id, label]) => html`
              <${IconButton}
                key=${id}
                name=${icon}
                label=${label}
                aria-pressed=${String(panel.value === id)}
                onClick=${togglePanel(id)}
              />
            `,
          )}
      </div>
    </header>
  `;
}

function MissingConversation() {
  return html`
    <div class="empty">
      <h2>This conversation cannot be shown</h2>
      <p>${missingReason.value}</p>
      <a class="btn" href="#/">Start a new conversation</a>
    </div>
  `;
}

function Asks() {
  const { asks } = talk.value;
  return html`
    <div class="asks">
      ${asks.slice(0, 1).map((ask) => html`<${Ask} key=${ask.id} ask=${ask} open />`)}
      ${
        asks.length > 1 &&
        html`<p class="small muted">${asks.length - 1} more to answer after this</p>`
      }
    </div>
  `;
}

const EXAMPLES = [
  ["Look around", "What is in my workspace? Tell me in five lines what you see."],
  ["Write something down", "Make a file packing.md with a packing list for three days of hiking."],
  ["See what it can do", "What can you do?"],
];

function FirstVisit() {
  const asked = useFetch(hasScope("admin") ? "/api/setup" : "");
  const setup = asked.data;
  const known = setup || asked.error || !hasScope("admin");
  const own = setup?.demo && setup.examples.map((text) => [text]);
  const place = route.value;
  useEffect(() => {
    if (setup) asked.reload();
  }, [place]); // a model may have been chosen meanwhile
  return html`
    <div class="empty first">
      <img src="/icon.svg" alt="" width="44" height="44" />
      <h2 class="welcome">What should we do, ${setup?.person || currentUser.value.user}?</h2>
      <p class="muted">
        ${
          "Deskhand works on this machine with files and commands. It asks before it does what " +
          "cannot be undone."
        }
      </p>
      ${
        setup?.demo &&
        html`
          <p class="note warn">
            <span>
              No model is chosen yet, so a script answers.${" "}
              <a href="#/settings/setup">Choose a model</a>; it takes a minute.
            </span>
          </p>
        `
      }
      <ul class="examples">
        ${
          known &&
          (own?.length ? own : EXAMPLES).slice(0, 3).map(
            ([title, text]) => html`
                <li key=${title}>
                  <button type="button" onClick=${() => sendMessage(text ?? title, [], "steer")}>
                    <strong>${title}</strong>
                    ${text && html`<span>${text}</span>`}
                  </button>
                </li>
              `,
          )
        }
      </ul>
    </div>
  `;
}
