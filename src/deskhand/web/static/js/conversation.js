// The conversation in the middle: its head, what was said and done, and the field to write in.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { attempt, change, developer, drawer, here, may, me, panel, session, sought } from "./state.js";
import { loading, missing, talk, toEnd, unsent } from "./talk.js";
import { Composer, compose } from "./composer.js";
import { Turn, Undone, Waiting } from "./turn.js";
import { Ask } from "./asks.js";
import { IconButton } from "./icons.js";
import { useAsk } from "./panels/parts.js";

const SHOWN = 30;

export function Conversation() {
  const { name } = here.value, state = talk.value;
  const empty = !state.turns.length && !unsent.value.length;
  return html`<div class="talk">
    <${Head} />
    ${missing.value ? html`<${Missing} />` : html`<${Log} key=${name} empty=${empty} />`}
    ${!missing.value && html`<div class="dock">${state.asks.length > 0 && html`<${Asks} />`}<${Composer} key=${name} /></div>`}
  </div>`;
}

function Head() {
  const { name } = here.value, state = talk.value;
  const begun = state.turns.find((turn) => turn.items[0]?.kind === "user")?.items[0].text ?? unsent.value[0]?.text;
  const title = state.title || session.value?.title || (name ? begun?.slice(0, 80) || "Untitled" : "New conversation");
  const [editing, setEditing] = useState(false);
  const save = (event) => {
    event.preventDefault();
    const value = new FormData(event.target).get("title").trim();
    setEditing(false);
    if (value && value !== title) attempt(() => change(name, { title: value }));
  };
  const toggle = (wanted) => () => { panel.value = panel.value === wanted ? "" : wanted; };
  const sides = [["files", "files", "Files"], ["check", "tasks", "Tasks"], ["tune", "options", "Options of this conversation"], ...(developer.value ? [["trace", "trace", "Trace"], ["time", "time", "Slider over this conversation"]] : [])];
  return html`<header class="head">
    <${IconButton} name="menu" label="Show the conversations" class="ib only-narrow" onClick=${() => { drawer.value = true; }} />
    ${editing
      ? html`<form class="grow" onSubmit=${save}><input class="input" name="title" aria-label="Title" maxlength="80" value=${title} ref=${(field) => field?.select()} onBlur=${(event) => event.target.form?.requestSubmit()} onKeyDown=${(event) => { if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); setEditing(false); } }} /></form>`
      : html`<h1 class="title cut">${title}</h1>${name && html`<${IconButton} name="edit" little label="Rename this conversation" onClick=${() => setEditing(true)} />`}<span class="grow"></span>`}
    ${state.model && html`<span class="tag only-wide" title="The model that answered last">${state.model}</span>`}
    <div class="row tight" role="group" aria-label="Panels">${sides.filter(([, id]) => name || id === "files" || id === "options").map(([icon, id, label]) => html`<${IconButton} key=${id} name=${icon} label=${label} aria-pressed=${String(panel.value === id)} onClick=${toggle(id)} />`)}</div>
  </header>`;
}

function Missing() {
  return html`<div class="empty"><h2>This conversation cannot be shown</h2><p>${missing.value}</p><a class="btn" href="#/">Begin a new one</a></div>`;
}

function Asks() {
  const { asks } = talk.value;
  return html`<div class="asks">${asks.slice(0, 1).map((ask) => html`<${Ask} key=${ask.id} ask=${ask} open />`)}${asks.length > 1 && html`<p class="small muted">${asks.length - 1} more to answer after this</p>`}</div>`;
}

const EXAMPLES = [
  ["Look around", "What is in my workspace? Tell me in five lines what you see."],
  ["Write something down", "Make a file packing.md with a packing list for three days of hiking."],
  ["Put me in the picture", "What can you do on this machine, and what would you ask me about first?"],
];

function FirstVisit() {
  const asked = useAsk(may("admin") ? "/api/setup" : ""), setup = asked.data, known = setup || asked.error || !may("admin"), own = setup?.examples?.map((text) => [text]);
  return html`<div class="empty first">
    <img src="/icon.svg" alt="" width="44" height="44" />
    <h2 class="welcome">What shall we do, ${setup?.person || me.value.user}?</h2>
    <p class="muted">Deskhand works on this machine with files and commands. It asks before it does what cannot be undone.</p>
    ${setup?.demo && html`<p class="note warn">No model is chosen yet, so a script answers. <a href="#/house/setup">Choose one</a>: it takes a minute.</p>`}
    <ul class="examples">${known && (own?.length ? own : EXAMPLES).slice(0, 3).map(([title, text]) => html`<li key=${title}><button type="button" onClick=${() => compose(text ?? title)}><strong>${title}</strong>${text && html`<span>${text}</span>`}</button></li>`)}</ul>
  </div>`;
}

/** What was said, the end of it in sight as long as one does not scroll away. */
function Log({ empty }) {
  const state = talk.value, box = useRef(), [shown, setShown] = useState(SHOWN), [away, setAway] = useState(false), stuck = useRef(true), held = useRef(null), tall = useRef(0);
  const [floor, setFloor] = useState(Infinity), { turns } = state, from = floor === Infinity ? Math.max(0, turns.length - shown) : floor, to = floor === Infinity ? turns.length : floor + shown;
  const aim = useRef(null); // the first event of the turn that was searched for, until the person scrolls
  const free = () => { aim.current = null; };
  const aimed = () => { // not scrollIntoView: that moves the whole page too
    const area = box.current, turn = aim.current !== null && area?.querySelector(`[data-first="${aim.current}"]`);
    if (turn) area.scrollTop += turn.getBoundingClientRect().top - area.getBoundingClientRect().top;
  };
  const down = () => { free(); stuck.current = true; setFloor(Infinity); box.current.scrollTop = box.current.scrollHeight; setAway(false); };
  useLayoutEffect(() => {
    const area = box.current;
    if (!area) return;
    if (held.current !== null) { area.scrollTop = area.scrollHeight - held.current; held.current = null; } else if (stuck.current) area.scrollTop = area.scrollHeight;
    else aimed(); // more of the conversation has come, or a turn has got its real height
  });
  useEffect(() => {
    const watched = new ResizeObserver(() => { if (stuck.current && box.current) box.current.scrollTop = box.current.scrollHeight; else aimed(); });
    watched.observe(box.current.firstElementChild);
    watched.observe(box.current);
    return () => watched.disconnect();
  }, []);
  useLayoutEffect(() => { if (box.current) down(); }, [toEnd.value]);
  useLayoutEffect(() => { // what was searched for comes into sight
    const { name, n } = sought.value ?? {}, i = name === here.value.name ? turns.findIndex((turn) => turn.first <= n && n <= turn.last) : -1;
    if (i < 0) return;
    if (i < floor || i >= to) { setFloor(Math.max(0, Math.min(i - 2, turns.length - shown))); return; } // stays, whatever else comes
    sought.value = null;
    stuck.current = false;
    aim.current = turns[i].first;
    aimed();
  });
  const scrolled = () => {
    const area = box.current;
    if (!area) return;
    const grew = area.scrollHeight !== tall.current;
    tall.current = area.scrollHeight;
    if (grew && stuck.current) { area.scrollTop = area.scrollHeight; return; } // it was not the person who scrolled
    const end = area.scrollHeight - area.scrollTop - area.clientHeight < 60;
    stuck.current = end && floor === Infinity; // what was searched for stays in sight, whatever comes
    setAway(!end);
  };
  const earlier = () => { free(); held.current = box.current.scrollHeight - box.current.scrollTop; stuck.current = false; setShown(shown + SHOWN); if (floor !== Infinity) setFloor(Math.max(0, floor - SHOWN)); };
  return html`<div class="scroll" ref=${box} onScroll=${scrolled} onWheel=${free} onPointerDown=${free} onTouchMove=${free} onKeyDown=${free} tabindex="0" role="region" aria-label="Conversation">
    <div class="log">
      ${empty && (loading.value ? html`<div class="empty" aria-busy="true"><span class="spin"></span></div>` : html`<${FirstVisit} />`)}
      ${state.branch && html`<p class="divider"><span>A branch of <a href=${`#/c/${encodeURIComponent(nameOf(state.branch.of))}`}>another conversation</a>, from event ${state.branch.n}</span></p>`}
      ${from > 0 && html`<button type="button" class="btn little earlier" onClick=${earlier}>Show earlier (${from} more)</button>`}
      ${grouped(turns, from, to).map((group) => (group.undone ? html`<${Undone} key=${`u${group.turns[0].id}`} turns=${group.turns} />` : html`<${Held} key=${group.turn.id} turn=${group.turn} last=${group.turn === turns.at(-1)} />`))}
      ${to < turns.length && html`<button type="button" class="btn little earlier" onClick=${() => setShown(shown + SHOWN)}>Show later (${turns.length - to} more)</button>`}
      ${unsent.value.map((message) => html`<${Waiting} key=${message.id} message=${message} />`)}
    </div>
    ${(away || to < turns.length) && html`<button type="button" class="btn to-end" onClick=${down}>To the end</button>`}
  </div>`;
}

const nameOf = (key) => key.replace("/", "~").replaceAll("/", "~1");

/** A turn that has not changed is not drawn again. */
function Held({ turn, last }) {
  const open = last && turn.end === null, { live, outputs, results, status } = talk.value;
  const now = open ? { live, outputs, results, status } : null;
  return useMemo(() => html`<${Turn} turn=${turn} last=${last} now=${now} />`, [turn, last, ...(open ? [live, outputs, results, status] : [null, null, null, null])]);
}

/** Turns one after the other; those undone side by side are one group. */
function grouped(turns, from, to) {
  const groups = [];
  for (const turn of turns.slice(from, to)) {
    if (!turn.undone) groups.push({ turn });
    else if (groups.at(-1)?.undone) groups.at(-1).turns.push(turn);
    else groups.push({ undone: true, turns: [turn] });
  }
  return groups;
}
