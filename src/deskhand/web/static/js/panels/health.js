// How each part is doing: what happened last, not a flag.
import { html, useEffect } from "../lib.js";
import { health, may } from "../state.js";
import { moment } from "../format.js";
import { Loaded, None, Section, useAsk } from "./parts.js";

const TONES = { ok: "good", starting: "", degraded: "warn", down: "bad" };

export function Health() {
  const found = useAsk("/health"), status = useAsk("/api/status"), checks = useAsk(may("admin") ? "/api/setup/checks" : "");
  useEffect(() => { if (found.data) health.value = found.data; }, [found.data]);
  return html`<div class="stack wide">
    <${Section} title="Components" action=${html`<button type="button" class="btn little" onClick=${() => { found.again(); checks.again(); }}>Look again</button>`}><${Loaded} of=${found} what="health">${(data) => (data.components.length ? html`<ul class="rows">${data.components.map((one) => html`<li key=${one.name}><span class="grow"><strong>${one.name}</strong><span class="small muted">${[one.detail, one.last_success_at ? `worked last ${moment(one.last_success_at)}` : "", one.restarts ? `started again ${one.restarts}×` : ""].filter(Boolean).join(" · ")}</span>${one.last_error && html`<span class="small failed">${one.last_error}${one.last_error_at ? ` (${moment(one.last_error_at)})` : ""}</span>`}</span><span class=${`tag ${TONES[one.state]}`}>${one.state}</span></li>`)}</ul>` : html`<${None}>Nothing has been reported yet.<//>`)}<//><//>
    ${may("admin") && html`<${Section} title="Examination" note="The same as deskhand doctor in a terminal."><${Loaded} of=${checks} what="the examination">${(all) => html`<ul class="rows">${all.map((one, i) => html`<li key=${i}><span class="grow"><strong>${one.name}</strong><span class="small muted">${one.text}</span>${one.remedy && html`<span class="small">To do: <code>${one.remedy}</code></span>`}</span><span class=${`tag ${{ ok: "good", good: "good", warn: "warn", warning: "warn", bad: "bad", error: "bad" }[one.level] ?? ""}`}>${one.level}</span></li>`)}</ul>`}<//><//>`}
    <${Section} title="About"><${Loaded} of=${status} what="the status">${(data) => html`<dl class="facts"><dt>Version</dt><dd>${found.data?.version || data.version || "–"}</dd><dt>Model</dt><dd>${data.provider ? `${data.provider}/${data.model}` : data.model || "none"}</dd><dt>Agents</dt><dd>${data.agents.join(", ")}</dd><dt>Conversations</dt><dd>${data.sessions}</dd><dt>Running since</dt><dd>${moment(data.started_at)}</dd></dl>`}<//><//>
  </div>`;
}
