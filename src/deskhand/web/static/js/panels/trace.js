// Each call of a model or a tool, how long it took, and the raw events.

import { at } from "../api.js";
import { clock, count, took } from "../format.js";
import { html, useState } from "../lib.js";
import { part } from "../log.js";
import { More } from "../more.js";
import { here } from "../state.js";
import { rawEvents, talk } from "../talk.js";
import { Loaded, None, useAsk } from "./parts.js";

const TABS = [
  ["all", "All"],
  ["llm_call", "Model calls"],
  ["tool_call", "Tools"],
  ["agent_run", "Turns"],
  ["events", "Events"],
];
const KINDS = { agent_run: "turn", llm_call: "model", tool_call: "tool" };

export function Trace() {
  const [tab, setTab] = useState("all");
  return html`<div class="stack"><div class="tabs" role="tablist" aria-label="What to show">${TABS.map(([id, label]) => html`<button key=${id} type="button" role="tab" aria-selected=${String(tab === id)} onClick=${() => setTab(id)}>${label}</button>`)}</div>
    ${tab === "events" ? html`<${Events} />` : html`<${Spans} kind=${tab} />`}</div>`;
}

function Spans({ kind }) {
  const { turns, open } = talk.value,
    settled = `${turns.length}.${open}`; // asked again when a turn begins or ends
  const found = useAsk(`${at(here.value.name, "/trace")}?_=${settled}`);
  return html`<${Loaded} of=${found} what="traces">${(spans) => {
    const wanted = (span) => (kind === "all" ? span.kind !== "agent_run" : span.kind === kind);
    const shown = spans.filter(wanted),
      longest = Math.max(0.001, ...shown.map((span) => span.took_s));
    if (!shown.length) return html`<${None}>Nothing was called yet.<//>`;
    return html`<ol class="spans">${shown.map((span, i) => html`<li key=${`${span.n}.${i}`}><${Span} span=${span} longest=${longest} /></li>`)}</ol>`;
  }}<//>`;
}

function Span({ span, longest }) {
  const tokens = span.input_tokens + span.output_tokens,
    ok = ["ok", "stop", "calls", "done"].includes(span.status);
  const bodies = [
    ["llm_request", span.llm_request ?? span.request],
    ["llm_response", span.llm_response ?? span.response],
  ].filter(([, body]) => body);
  return html`<details class="span"><summary><span class=${`tag ${span.kind === "llm_call" ? "good" : ""}`}>${KINDS[span.kind]}</span><span class="cut grow">${span.name}</span>${!ok && html`<span class="tag bad">${span.status}</span>`}${tokens > 0 && html`<span class="tiny muted">${count(tokens)}</span>`}<span class="tiny muted num">${took(span.took_s)}</span>
    <span class="bar" aria-hidden="true" style=${{ width: `${Math.max(1, (100 * span.took_s) / longest)}%` }}></span></summary>
    <dl class="facts"><dt>Event</dt><dd>${span.n}</dd><dt>Ended</dt><dd>${clock(span.at)}</dd><dt>Status</dt><dd>${span.status}</dd>${tokens > 0 && html`<dt>Tokens</dt><dd>${span.input_tokens} read, ${span.cached_tokens} of them cached, ${span.output_tokens} written</dd>`}</dl>
    ${span.detail && html`<pre tabindex="0">${span.detail}</pre>`}${span.preview && html`<h4>Result</h4><pre tabindex="0">${span.preview}</pre>`}${bodies.map(([name, body]) => html`<h4 key=${name}>${name}</h4><pre tabindex="0">${typeof body === "string" ? body : JSON.stringify(body, null, 2)}</pre>`)}</details>`;
}

const PAGE = 100;

function Events() {
  const [before, setBefore] = useState([]),
    last = talk.value.n ? rawEvents() : [],
    from = last[0]?.n ?? 1;
  const all = [
      ...(before.at(-1)?.n >= from - 1 ? before.filter(({ n }) => n < from) : []),
      ...last,
    ],
    first = all[0]?.n ?? 1;
  const earlier = async () => {
    const found = await part(here.value.name, Math.max(0, first - 1 - PAGE), first - 1);
    setBefore([...found, ...all]);
  };
  return html`<div>${first > 1 && html`<${More} key=${first} more=${earlier} label="Show earlier" />`}
    <ol class="spans">${all.map((recorded) => html`<li key=${recorded.n}><details class="span"><summary><span class="tiny muted num">${recorded.n}</span><span class="cut grow">${recorded.event.type}</span><span class="tiny muted">${clock(recorded.at)}</span></summary><${Raw} recorded=${recorded} /></details></li>`)}</ol></div>`;
}

function Raw({ recorded }) {
  const [open, setOpen] = useState(false);
  return html`<div ref=${(box) => box?.parentElement.addEventListener("toggle", () => setOpen(true), { once: true })}>${open && html`<pre tabindex="0">${JSON.stringify(recorded.event, null, 2)}</pre>`}</div>`;
}
