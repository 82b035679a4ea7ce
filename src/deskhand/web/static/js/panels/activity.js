// What agents do, in all conversations at once.
import { html, useEffect } from "../lib.js";
import { activity, hrefOf, sessions } from "../state.js";
import { brief, clock, took } from "../format.js";
import { Loaded, None, Section, useAsk } from "./parts.js";

export function Activity() {
  const found = useAsk("/api/activity?limit=100"), { value } = activity;
  useEffect(() => { found.again(); }, [value, sessions.value]);
  const running = (sessions.value ?? []).filter((one) => value[one.key]);
  return html`<div class="stack wide">
    <${Section} title="Now">${running.length ? html`<ul class="rows">${running.map((one) => html`<li key=${one.key}><span class=${`dot ${value[one.key] === "asking" ? "asks" : "runs"}`}></span><a class="grow cut" href=${hrefOf(one.name)}>${one.title || "Untitled"}</a><span class="tag">${value[one.key] === "asking" ? "waits for an answer" : "running"}</span></li>`)}</ul>` : html`<${None}>Nothing runs.<//>`}<//>
    <${Section} title="Tools used" note="The latest first."><${Loaded} of=${found} what="activity">${(data) => (data.events.length ? html`<ul class="rows">${latest(data.events).map((one, i) => html`<li key=${`${one.tool_call_id}.${one.type}.${i}`}><span class="tiny muted num">${clock(one.timestamp)}</span><span class="grow"><strong>${one.tool}</strong><span class="small muted cut">${brief(one.input, 160) || one.result_preview}</span></span>${one.type === "tool_result" ? html`<span class=${`tag ${one.success ? "good" : "bad"}`}>${one.success ? "done" : "failed"}${one.duration_ms ? ` · ${took(one.duration_ms / 1000)}` : ""}</span>` : html`<span class="tag">called</span>`}<a class="small" href=${hrefOf(one.session_id)}>open</a></li>`)}</ul>` : html`<${None}>No tool was used yet.<//>`)}<//><//>
  </div>`;
}

/** A call and what came of it are one line. */
function latest(lines) {
  const calls = new Map();
  for (const line of lines) calls.set(line.tool_call_id, { ...calls.get(line.tool_call_id), ...line });
  return [...calls.values()].reverse();
}
