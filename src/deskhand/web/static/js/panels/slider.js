// A slider over the session: what the model saw, what it had cost and why the policy decided as it did, at any event.

import { at } from "../api.js";
import { count, many, money } from "../format.js";
import { html, useEffect, useState } from "../lib.js";
import { here, may } from "../state.js";
import { branch, rewind, talk } from "../talk.js";
import { Loaded, None, useAsk } from "./parts.js";

const TABS = [
  ["context", "Context"],
  ["prompt", "Prompt"],
  ["decisions", "Decisions"],
  ["cost", "Cost"],
];

export function Slider() {
  const last = talk.value.n,
    [chosen, setChosen] = useState(null),
    [asked, setAsked] = useState(last),
    [tab, setTab] = useState("context");
  const n = Math.min(chosen ?? last, last);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(n), 120);
    return () => clearTimeout(timer);
  }, [n]);
  const found = useAsk(last ? `${at(here.value.name, "/state")}?n=${Math.min(asked, last)}` : "");
  const ends = talk.value.turns
    .filter((turn) => turn.end !== null && turn.last <= last)
    .map((turn) => turn.last);
  const known = found.data?.n === n ? found.data : null,
    settled = known?.rest;
  return html`<div class="stack">
    <label class="field"><span>Event <output>${n}</output> of ${last}</span><input type="range" min="1" max=${Math.max(1, last)} value=${n} aria-valuetext=${`event ${n} of ${last}`} onInput=${(event) => setChosen(Number(event.target.value))} list="ends" /></label>
    <datalist id="ends">${ends.map((end) => html`<option key=${end} value=${end}></option>`)}</datalist>
    <div class="row"><button type="button" class="btn little" disabled=${!known?.turn_before} onClick=${() => setChosen(known.turn_before)}>Turn before</button><button type="button" class="btn little" disabled=${!known?.turn_after} onClick=${() => setChosen(known.turn_after)}>Turn after</button></div>
    ${may("chat") && html`<div class="row"><button type="button" class="btn little" disabled=${!settled} onClick=${() => branch(n)}>Branch from here</button><button type="button" class="btn little" disabled=${!settled || n === last} onClick=${() => rewind(n)}>Undo to here</button></div>`}
    ${found.data?.rest === false && html`<p class="tiny muted">In the midst of a turn: to branch or undo, go to the end of one.</p>`}
    <div class="tabs" role="tablist" aria-label="What to show">${TABS.map(([id, label]) => html`<button key=${id} type="button" role="tab" aria-selected=${String(tab === id)} onClick=${() => setTab(id)}>${label}</button>`)}</div>
    <${Loaded} of=${found} what="the state at an event">${(state) => html`<${Shown} tab=${tab} state=${state} />`}<//>
  </div>`;
}

function Shown({ tab, state }) {
  if (tab === "cost")
    return html`<dl class="facts">${Object.entries(state.usage ?? {}).map(([name, value]) => html`<dt key=${name}>${name.replaceAll("_", " ")}</dt><dd>${name === "cost" ? money(value) : typeof value === "number" ? count(value) : JSON.stringify(value)}</dd>`)}</dl>`;
  if (tab === "decisions")
    return state.decisions?.length
      ? html`<ol class="spans">${state.decisions.map((one, i) => html`<li key=${i} class="decision"><span class="row"><span class="tiny muted num">${one.n}</span><strong class="grow cut">${one.tool}</strong><span class=${`tag ${one.verdict === "allowed" ? "good" : one.verdict === "asked" ? "warn" : "bad"}`}>${one.verdict}</span></span><span class="small muted">${one.reason || "nothing speaks against it"}</span></li>`)}</ol>`
      : html`<${None}>No call had to be judged up to here.<//>`;
  if (tab === "prompt")
    return (state.prompt ?? []).length
      ? state.prompt.map(
          (block, i) =>
            html`<details class="span" key=${i} open=${i === 0}><summary><span class="cut grow">${block.trimStart().split("\n")[0].replace(/^#+ /, "") || `Block ${i + 1}`}</span><span class="tiny muted">${many(block.length, "character")}</span></summary><pre tabindex="0">${block}</pre></details>`,
        )
      : html`<${None}>There was no prompt yet.<//>`;
  return (state.context ?? []).length
    ? html`<ol class="spans">${state.context.map((one, i) => html`<li key=${i}><details class="span"><summary><span class="tiny muted num">${one.n}</span><span class="tag">${one.role}</span><span class="cut grow">${one.text}</span></summary><pre tabindex="0">${one.text}</pre></details></li>`)}</ol>`
    : html`<${None}>The model had seen nothing yet.<//>`;
}
