// Ctrl+K: everything by its name.
import { html, useEffect, useRef, useState } from "./lib.js";
import { chooseTheme, developer, go, here, hrefOf, palette, panel, sessions, theme } from "./state.js";
import { stop, talk } from "./talk.js";
import { PAGES } from "./house.js";

function commands() {
  const toggle = (id) => () => { panel.value = panel.value === id ? "" : id; };
  const inTalk = here.value.place === "talk" && here.value.name;
  return [
    ["New conversation", () => go("")],
    talk.value.open && ["Stop what runs", stop],
    here.value.place === "talk" && ["Files", toggle("files")],
    inTalk && ["Options of this conversation", toggle("options")],
    inTalk && developer.value && ["Trace", toggle("trace")],
    inTalk && developer.value && ["Slider over this conversation", toggle("time")],
    [developer.value ? "Simple view" : "Developer view", () => { developer.value = !developer.value; }],
    [theme.value === "dark" ? "Light colours" : "Dark colours", () => chooseTheme(theme.value === "dark" ? "light" : "dark")],
    ...PAGES.map(([id, label]) => [`Settings: ${label}`, () => { location.hash = `#/house/${id}`; }]),
    ...(sessions.value ?? []).map((one) => [one.title || "Untitled", () => { location.hash = hrefOf(one.name); }, "conversation"]),
  ].filter(Boolean);
}

export function Palette() {
  const box = useRef(), [query, setQuery] = useState(""), [chosen, setChosen] = useState(0);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands().filter(([label]) => words.every((word) => label.toLowerCase().includes(word))).slice(0, 12);
  const run = (entry) => { palette.value = false; entry?.[1](); };
  const key = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); setChosen((chosen + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(1, found.length)); }
    if (event.key === "Enter") { event.preventDefault(); run(found[chosen]); }
  };
  return html`<dialog class="palette" ref=${box} aria-label="Commands" onCancel=${(event) => { event.preventDefault(); palette.value = false; }} onClick=${(event) => { if (event.target === box.current) palette.value = false; }}>
    <input class="input" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${`found-${chosen}`} aria-label="Find a command or a conversation" placeholder="Find a command or a conversation" value=${query} onInput=${(event) => { setQuery(event.target.value); setChosen(0); }} onKeyDown=${key} />
    <ul id="found" role="listbox" aria-label="Found">${found.map((entry, i) => html`<li key=${i} id=${`found-${i}`} role="option" aria-selected=${String(i === chosen)} onClick=${() => run(entry)} onMouseMove=${() => setChosen(i)}><span class="cut grow">${entry[0]}</span>${entry[2] && html`<span class="tiny muted">${entry[2]}</span>`}</li>`)}
      ${!found.length && html`<li role="option" aria-selected="false" aria-disabled="true" class="muted">Nothing is called that</li>`}</ul>
  </dialog>`;
}
