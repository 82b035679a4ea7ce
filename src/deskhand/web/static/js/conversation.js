// The conversation in the middle: its header, its turns, and the field to write in.

import { Ask } from "./asks.js";
import { Composer } from "./composer.js";
import { DrawerButton } from "./drawer-button.js";
import { Find, finding } from "./find.js";
import { countOpen } from "./first-steps.js";
import { allText } from "./fold-items.js";
import { Icon, IconButton } from "./icons.js";
import { t, tCount, tData, tRich } from "./language.js";
import { html, useEffect, useState } from "./lib.js";
import { currentSession } from "./list.js";
import { newOptions } from "./new-options.js";
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
        ${speaking.value.playing ? t("Reading the answer aloud") : t("Preparing to read the answer aloud")}
      </span>
      <button type="button" class="btn little" onClick=${stopSpeaking}>
        <${Icon} name="stop" />${t("Stop reading")}
      </button>
    </div>
  `;
}

const NARROW = matchMedia("(max-width: 480px)");
const ALWAYS_SHOWN = ["files", "options"]; // the others are in the menu where there is no room

function ConversationHead() {
  const { name } = route.value;
  const state = talk.value;
  const first = state.turns.find((turn) => turn.items[0]?.kind === "user")?.items[0];
  const firstText = (state.first <= 1 && first && allText(first)) || unsentMessages.value[0]?.text;
  const title =
    state.title ||
    currentSession.value?.title ||
    (name ? firstText?.slice(0, 80) || t("Untitled") : t("New conversation"));
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
    ["files", "files", t("Files")],
    ["check", "tasks", t("Tasks")],
    ["branch", "branches", t("Branches")],
    ["screen", "screen", t("Screen")],
    ["tune", "options", t("Options of this conversation")],
    ...(developer.value
      ? [
          ["trace", "trace", t("Trace")],
          ["time", "time", t("Slider over this conversation")],
        ]
      : []),
  ];
  const panelMenu = {
    label: t("Show"),
    icon: "right",
    items: panels
      .filter(([, id]) => !ALWAYS_SHOWN.includes(id))
      .map(([icon, id, label]) => ({ icon, label, run: togglePanel(id) })),
  };
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
                  aria-label=${t("Title")}
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
                    label=${t("Rename this conversation")}
                    onClick=${() => setEditing(true)}
                  />
                `
              }
              <span class="grow"></span>
            `
      }
      <div class="row tight" role="group" aria-label=${t("Panels")}>
        ${
          name &&
          html`
            <${IconButton}
              name="search"
              label=${t("Find in this conversation")}
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
              label=${t("What to do with this conversation")}
              aria-haspopup="menu"
              onClick=${(event) =>
                openSessionMenu(
                  event.currentTarget,
                  { name, title, ...currentSession.value },
                  NARROW.matches ? [panelMenu] : [],
                )}
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
                class=${`ib ${ALWAYS_SHOWN.includes(id) ? "" : "in-menu"}`}
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
      <h2>${t("This conversation cannot be shown")}</h2>
      <p>${missingReason.value}</p>
      <a class="btn" href="#/">${t("Start a new conversation")}</a>
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
        html`<p class="small muted">${tCount(asks.length - 1, "{count} more to answer after this", "{count} more to answer after this")}</p>`
      }
    </div>
  `;
}

const EXAMPLES = [
  [t("Look around"), t("What is in my workspace? Tell me in five lines what you see.")],
  [
    t("Write something down"),
    t("Make a file packing.md with a packing list for three days of hiking."),
  ],
  [t("See what it can do"), t("What can you do?")],
];

const greet = (name) =>
  !name || name === "owner" // nobody has said what they are called
    ? t("What should we do?")
    : t("What should we do, {name}?", { name });

function FirstVisit() {
  const asked = useFetch(hasScope("admin") ? "/api/setup" : "");
  const setup = asked.data;
  const known = setup || asked.error || !hasScope("admin");
  const own = setup?.demo && setup.examples.map((text) => [tData(text), text]);
  const stepsLeft = setup && !setup.demo ? countOpen(setup.done) : 0;
  const place = route.value;
  useEffect(() => {
    if (setup) asked.reload();
  }, [place]); // a model may have been chosen meanwhile
  if (!known) return null; // drawn at once as it stays, so that nothing moves
  return html`
    <div class="empty first">
      <img src="/icon.svg" alt="" width="44" height="44" />
      <h2 class="welcome">${greet(setup?.person || currentUser.value.user)}</h2>
      ${newOptions.value.folder && html`<p>${t("In the folder {folder}", { folder: newOptions.value.folder })}</p>`}
      <p class="muted">
        ${t(
          "Deskhand works on this machine with files and commands. It asks before it does what cannot be undone.",
        )}
      </p>
      ${
        setup?.demo &&
        html`
          <p class="note warn">
            <span>
              ${tRich("No model is chosen yet, so a script answers. {link}; it takes a minute.", {
                link: html`<a href="#/settings/setup">${t("Choose a model")}</a>`,
              })}
            </span>
          </p>
        `
      }
      ${
        stepsLeft > 0 &&
        html`
          <p class="small">
            <a href="#/settings/setup">
              ${tCount(stepsLeft, "{count} first step is left", "{count} first steps are left")}
            </a>
          </p>
        `
      }
      <ul class="examples">
        ${(own?.length ? own : EXAMPLES).slice(0, 3).map(
          ([title, text]) => html`
            <li key=${title}>
              <button type="button" onClick=${() => sendMessage(text, [], "steer")}>
                <strong>${title}</strong>
                ${!setup?.demo && html`<span>${text}</span>`}
              </button>
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}
