// Ctrl+K: everything by its name.

import { finding } from "./find.js";
import { PAGES } from "./house.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { moreSessions, sessions } from "./list.js";
import { More, usePages } from "./more.js";
import {
  chooseTheme,
  developer,
  go,
  here,
  hrefOf,
  palette,
  panel,
  sought,
  theme,
} from "./state.js";
import { stop, talk, toEnd } from "./talk.js";

function commands() {
  const toggle = (id) => () => {
    panel.value = panel.value === id ? "" : id;
  };
  const inTalk = here.value.place === "talk" && here.value.name;
  return [
    ["New conversation", () => go("")],
    talk.value.open && ["Stop what runs", stop],
    here.value.place === "talk" && ["Files", toggle("files")],
    inTalk && [
      "Find in this conversation",
      () => {
        finding.value = true;
      },
    ],
    inTalk && [
      "To the beginning of this conversation",
      () => {
        sought.value = { name: here.value.name, n: 1 };
      },
    ],
    inTalk && [
      "To the end of this conversation",
      () => {
        toEnd.value += 1;
      },
    ],
    inTalk && ["Options of this conversation", toggle("options")],
    inTalk && developer.value && ["Trace", toggle("trace")],
    inTalk && developer.value && ["Slider over this conversation", toggle("time")],
    [
      developer.value ? "Simple view" : "Developer view",
      () => {
        developer.value = !developer.value;
      },
    ],
    [
      theme.value === "dark" ? "Light colours" : "Dark colours",
      () => chooseTheme(theme.value === "dark" ? "light" : "dark"),
    ],
    ...PAGES.map(([id, label]) => [
      `Settings: ${label}`,
      () => {
        location.hash = `#/house/${id}`;
      },
    ]),
  ].filter(Boolean);
}

const WAIT_MS = 120;
const read = ({ sessions: rows, more }) => ({ rows, next: more });

/** The conversations with these words in their title: `{rows, more}`. Without words, all. */
function useTitles(query) {
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query.trim()), WAIT_MS);
    return () => clearTimeout(timer);
  }, [query]);
  const found = usePages(
    asked && `/api/sessions?limit=30&brief=true&title=${encodeURIComponent(asked)}`,
    read,
  );
  return query.trim()
    ? { ...found, rows: found.rows ?? [] }
    : { rows: sessions.value ?? [], more: moreSessions.value };
}

export function Palette() {
  const box = useRef(),
    list = useRef(),
    [query, setQuery] = useState(""),
    [chosen, setChosen] = useState(0),
    titles = useTitles(query);
  useLayoutEffect(() => {
    // before the next key is pressed
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const named = commands().filter(([label]) =>
    words.every((word) => label.toLowerCase().includes(word)),
  );
  const found = [
    ...named,
    ...titles.rows.map((one) => [
      one.title || "Untitled",
      () => {
        location.hash = hrefOf(one.name);
      },
      one.key,
    ]),
  ];
  const run = (entry) => {
    palette.value = false;
    entry?.[1]();
  };
  const key = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setChosen(
        (chosen + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(1, found.length),
      );
    }
    if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  };
  useLayoutEffect(() => {
    // what is chosen by the arrows is in sight; not scrollIntoView: that moves the whole page too
    const area = list.current,
      row = document.getElementById(`found-${chosen}`),
      top = row && row.offsetTop - area.offsetTop;
    if (
      row &&
      (top < area.scrollTop || top + row.offsetHeight > area.scrollTop + area.clientHeight)
    )
      area.scrollTop = top - area.clientHeight / 2;
  }, [chosen]);
  return html`<dialog class="palette" ref=${box} aria-label="Commands" onCancel=${(event) => {
    event.preventDefault();
    palette.value = false;
  }} onClick=${(event) => {
    if (event.target === box.current) palette.value = false;
  }}>
    <input class="input" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${`found-${chosen}`} aria-label="Find a command or a conversation" placeholder="Find a command or a conversation" value=${query} onInput=${(
      event,
    ) => {
      setQuery(event.target.value);
      setChosen(0);
    }} onKeyDown=${key} />
    <div class="found-list" ref=${list} tabindex="0" role="group" aria-label="What was found"><ul id="found" role="listbox" aria-label="Found">${found.map((entry, i) => html`<li key=${entry[2] ?? entry[0]} id=${`found-${i}`} role="option" aria-selected=${String(i === chosen)} onClick=${() => run(entry)} onMouseMove=${() => setChosen(i)}><span class="cut grow">${entry[0]}</span>${entry[2] && html`<span class="tiny muted">conversation</span>`}</li>`)}
      ${!found.length && html`<li role="option" aria-selected="false" aria-disabled="true" class="muted">Nothing is called that</li>`}</ul>
    ${titles.more && html`<${More} key=${found.length} more=${titles.more} label="More conversations" />`}</div>
  </dialog>`;
}
