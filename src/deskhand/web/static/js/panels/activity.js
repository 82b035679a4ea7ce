// What agents do, in all conversations at once.

import { brief, clock, day, moment, took } from "../format.js";
import { html, useEffect } from "../lib.js";
import { activity, busy } from "../list.js";
import { More, usePages } from "../more.js";
import { hrefOf } from "../state.js";
import { Loaded, None, Section } from "./parts.js";

const read = ({ events, more }) => ({ rows: events.toReversed(), next: more });
const same = (one, other) =>
  one.tool_call_id === other.tool_call_id &&
  one.type === other.type &&
  one.session_id === other.session_id;

export function Activity() {
  const found = usePages("/api/activity?limit=60", read),
    { value } = activity,
    running = busy.value;
  useEffect(() => {
    if (found.rows) found.renew(same);
  }, [value]);
  return html`<div class="stack wide">
    <${Section} title="Now">${running.length ? html`<ul class="rows">${running.map((one) => html`<li key=${one.key}><span class=${`dot ${value[one.key] === "asking" ? "asks" : "runs"}`}></span><a class="grow cut" href=${hrefOf(one.name)}>${one.title || "Untitled"}</a><span class="tag">${value[one.key] === "asking" ? "waits for an answer" : "running"}</span></li>`)}</ul>` : html`<${None}>Nothing runs.<//>`}<//>
    <${Section} title="Tools used" note="The latest first."><${Loaded} of=${{ data: found.rows ?? undefined, error: found.error }} what="activity">${(rows) => (rows.length ? html`<ul class="rows">${calls(rows).map((one) => html`<li key=${`${one.session_id} ${one.tool_call_id}`}><span class="tiny muted num">${day(one.timestamp) === "Today" ? clock(one.timestamp) : moment(one.timestamp)}</span><span class="grow"><strong>${one.tool}</strong><span class="small muted cut">${brief(one.input, 160) || one.result_preview}</span></span>${one.type === "tool_result" ? html`<span class=${`tag ${one.success ? "good" : "bad"}`}>${one.success ? "done" : "failed"}${one.duration_ms ? ` · ${took(one.duration_ms / 1000)}` : ""}</span>` : html`<span class="tag">called</span>`}<a class="small" href=${hrefOf(one.session_id)}>open</a></li>`)}</ul>${found.more && html`<${More} key=${found.next} more=${found.more} label="Show earlier calls" />`}` : html`<${None}>No tool was used yet.<//>`)}<//><//>
  </div>`;
}

/** A call and what came of it are one line. The latest first. */
function calls(lines) {
  const found = new Map();
  for (const line of lines) {
    const key = `${line.session_id} ${line.tool_call_id}`;
    found.set(key, { ...line, ...found.get(key), input: found.get(key)?.input ?? line.input });
  }
  return [...found.values()];
}
