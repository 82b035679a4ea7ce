// The command palette (Ctrl+K): commands, settings and conversations by name.

import { stopTurn } from "./actions.js";
import { finding } from "./find.js";
import { t } from "./language.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { moreSessions, pinnedSessions, sessions } from "./list.js";
import { Modal } from "./modal.js";
import { More, usePages } from "./more.js";
import { PAGES } from "./settings-pages.js";
import {
  developer,
  openSession,
  palette,
  panel,
  route,
  searchTarget,
  sessionHref,
  setTheme,
  theme,
} from "./state.js";
import { scrollToEndRequests, talk } from "./talk.js";

function listCommands() {
  const togglePanel = (id) => () => {
    panel.value = panel.value === id ? "" : id;
  };
  const inTalk = route.value.place === "talk" && route.value.name;
  return [
    [t("New conversation"), () => openSession("")],
    talk.value.open && [t("Stop what runs"), stopTurn],
    route.value.place === "talk" && [t("Files"), togglePanel("files")],
    inTalk && [
      t("Find in this conversation"),
      () => {
        finding.value = true;
      },
    ],
    inTalk && [
      t("To the beginning of this conversation"),
      () => {
        searchTarget.value = { name: route.value.name, n: 1 };
      },
    ],
    inTalk && [
      t("To the end of this conversation"),
      () => {
        scrollToEndRequests.value += 1;
      },
    ],
    inTalk && [t("Screen"), togglePanel("screen")],
    inTalk && [t("Options of this conversation"), togglePanel("options")],
    inTalk && developer.value && [t("Trace"), togglePanel("trace")],
    inTalk && developer.value && [t("Slider over this conversation"), togglePanel("time")],
    [
      developer.value ? t("Simple view") : t("Developer view"),
      () => {
        developer.value = !developer.value;
      },
    ],
    [
      theme.value === "dark" ? t("Light colours") : t("Dark colours"),
      () => setTheme(theme.value === "dark" ? "light" : "dark"),
    ],
    ...PAGES.map(([id, label]) => [
      t("Settings: {label}", { label }),
      () => {
        location.hash = `#/settings/${id}`;
      },
    ]),
  ].filter(Boolean);
}

const WAIT_MS = 120;
const readPage = ({ sessions: rows, more }) => ({ rows, next: more });

/**
 * The conversations with these words in their title: `{rows, more, waits}`. Without words, all.
 * `waits`: the rows of these words are not here yet.
 */
function useTitles(query) {
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query.trim()), WAIT_MS);
    return () => clearTimeout(timer);
  }, [query]);
  const found = usePages(
    asked && `/api/sessions?limit=30&brief=true&title=${encodeURIComponent(asked)}`,
    readPage,
  );
  const wanted = query.trim();
  const waits = wanted !== asked || (!found.rows && !found.error);
  return wanted
    ? { ...found, rows: found.rows ?? [], waits }
    : { rows: [...pinnedSessions.value, ...(sessions.value ?? [])], more: moreSessions.value };
}

/** How many of the words stand only within a word of this label: those are listed last. */
const rankLabel = (label, words) => {
  const begins = ` ${label.toLowerCase()}`;
  return words.filter((word) => !begins.includes(` ${word}`)).length;
};

export function Palette() {
  const list = useRef();
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const [entered, setEntered] = useState(false);
  const titles = useTitles(query);
  const close = () => {
    palette.value = false;
  };
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const named = listCommands()
    .filter(([label]) => words.every((word) => label.toLowerCase().includes(word)))
    .sort(([one], [other]) => rankLabel(one, words) - rankLabel(other, words));
  const found = [
    ...named,
    ...titles.rows.map((one) => [
      one.title || t("Untitled"),
      () => {
        location.hash = sessionHref(one.name);
      },
      one.key,
    ]),
  ];
  const runEntry = (entry) => {
    palette.value = false;
    entry[1]();
  };
  const handleKey = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setChosen(
        (chosen + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(1, found.length),
      );
    }
    if (event.key === "Enter") {
      event.preventDefault();
      setEntered(true);
    }
  };
  const entry = found[chosen];
  const isSettled = chosen < named.length || !titles.waits;
  useLayoutEffect(() => {
    if (entered && isSettled && entry) runEntry(entry);
    if (isSettled) setEntered(false);
  }, [entered, isSettled]);
  useLayoutEffect(() => {
    const area = list.current; // not scrollIntoView: that moves the whole page too
    const row = document.getElementById(`found-${chosen}`);
    const top = row && row.offsetTop - area.offsetTop;
    if (
      row &&
      (top < area.scrollTop || top + row.offsetHeight > area.scrollTop + area.clientHeight)
    )
      area.scrollTop = top - area.clientHeight / 2;
  }, [chosen]);
  return html`
    <${Modal} class="palette" label=${t("Commands")} close=${close}>
      <input
        class="input"
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant=${`found-${chosen}`}
        aria-label=${t("Find a command or a conversation")}
        placeholder=${t("Find a command or a conversation")}
        value=${query}
        onInput=${(event) => {
          setQuery(event.target.value);
          setChosen(0);
          setEntered(false);
        }}
        onKeyDown=${handleKey}
      />
      <div
        class="found-list"
        ref=${list}
        tabindex="0"
        role="group"
        aria-label=${t("What was found")}
      >
        <ul id="found" role="listbox" aria-label=${t("Found")}>
          ${found.map(
            (entry, i) => html`
              <li
                key=${entry[2] ?? entry[0]}
                id=${`found-${i}`}
                role="option"
                aria-selected=${String(i === chosen)}
                onClick=${() => runEntry(entry)}
                onMouseMove=${() => setChosen(i)}
              >
                <span class="cut grow">${entry[0]}</span>
                ${entry[2] && html`<span class="tiny muted">${t("conversation")}</span>`}
              </li>
            `,
          )}
          ${
            !found.length &&
            html`
              <li role="option" aria-selected="false" aria-disabled="true" class="muted">
                ${titles.waits ? t("One moment …") : t("No matches")}
              </li>
            `
          }
        </ul>
        ${
          titles.more &&
          html`<${More} key=${found.length} more=${titles.more} label=${t("More conversations")} />`
        }
      </div>
    <//>
  `;
}
