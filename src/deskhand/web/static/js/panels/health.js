// Whether Deskhand works, in a sentence; what is wrong; and, folded, how each part is doing.

import { many, moment } from "../format.js";
import { html, useEffect } from "../lib.js";
import { health, may } from "../state.js";
import { Loaded, None, Section, useAsk } from "./parts.js";

const TONES = { ok: "good", starting: "", degraded: "warn", down: "bad" };
const WORDS = {
  ok: "works",
  starting: "is starting",
  degraded: "works, but not all of it",
  down: "does not work",
};
const LEVELS = {
  ok: "good",
  good: "good",
  warn: "warn",
  warning: "warn",
  bad: "bad",
  error: "bad",
};
const isWrong = (one) => one.state === "degraded" || one.state === "down";

export function Health() {
  const found = useAsk("/health"),
    status = useAsk("/api/status"),
    checks = useAsk(may("admin") ? "/api/setup/checks" : "");
  useEffect(() => {
    if (found.data) health.value = found.data;
  }, [found.data]);
  const look = html`<button type="button" class="btn little" onClick=${() => {
    found.again();
    checks.again();
  }}>Look again</button>`;
  return html`<div class="stack wide">
    <${Section} title="Now" action=${look}><${Loaded} of=${found} what="health">${(data) => html`<${State} data=${data} />`}<//><//>
    ${may("admin") && html`<${Section} title="Checks" note="The same as deskhand doctor in a terminal."><${Loaded} of=${checks} what="the checks">${(all) => html`<${Checks} all=${all} />`}<//><//>`}
    <${Section} title="About"><${Loaded} of=${status} what="the status">${(data) => html`<dl class="facts"><dt>Version</dt><dd>${found.data?.version || data.version || "–"}</dd><dt>Model</dt><dd>${data.provider ? `${data.provider}/${data.model}` : data.model || "none"}</dd><dt>Agents</dt><dd>${data.agents.join(", ")}</dd><dt>Conversations</dt><dd>${data.sessions}</dd><dt>Running since</dt><dd>${moment(data.started_at)}</dd></dl>`}<//><//>
  </div>`;
}

function State({ data }) {
  const parts = data.components,
    wrong = parts.filter(isWrong);
  return html`<p><strong>Deskhand ${WORDS[data.status] ?? data.status}.</strong>${!wrong.length && " Nothing is wrong."}</p>
    ${wrong.length > 0 && html`<${Parts} parts=${wrong} />`}
    ${parts.length > 0 && html`<details><summary class="small">${many(parts.length, "part")}, one by one</summary><${Parts} parts=${parts} /></details>`}`;
}

const Parts = ({ parts }) =>
  html`<ul class="rows">${parts.map((one) => html`<li key=${one.name}><span class="grow"><strong>${one.name}</strong><span class="small muted">${[one.detail, one.last_success_at ? `worked last ${moment(one.last_success_at)}` : "", one.restarts ? `started again ${one.restarts}×` : ""].filter(Boolean).join(" · ")}</span>${one.last_error && html`<span class="small failed">${one.last_error}${one.last_error_at ? ` (${moment(one.last_error_at)})` : ""}</span>`}</span><span class=${`tag ${TONES[one.state]}`}>${one.state}</span></li>`)}</ul>`;

/** What wants something done; what is well is folded. */
function Checks({ all }) {
  const open = all.filter((one) => LEVELS[one.level] !== "good"),
    well = all.filter((one) => LEVELS[one.level] === "good");
  const list = (ones) =>
    html`<ul class="rows">${ones.map((one, i) => html`<li key=${i}><span class="grow"><strong>${one.name}</strong><span class="small muted">${one.text}</span>${one.remedy && html`<span class="small">To do: <code>${one.remedy}</code></span>`}</span><span class=${`tag ${LEVELS[one.level] ?? ""}`}>${one.level}</span></li>`)}</ul>`;
  return html`${open.length ? list(open) : html`<${None}>Nothing is left to do.<//>`}
    ${well.length > 0 && html`<details><summary class="small">${many(well.length, "check")} passed</summary>${list(well)}</details>`}`;
}
