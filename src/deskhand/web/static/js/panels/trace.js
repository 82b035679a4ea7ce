// Each call of a model or a tool, how long it took, and the raw events.

import { sessionPath } from "../api.js";
import { ChoiceGroup } from "../choice-group.js";
import { formatCount, formatDuration, formatTime } from "../format.js";
import { t } from "../language.js";
import { html, useState } from "../lib.js";
import { fetchEvents } from "../log.js";
import { More } from "../more.js";
import { route } from "../state.js";
import { getLoadedEvents, talk } from "../talk.js";
import { Empty, Loaded, useFetch } from "./parts.js";

const TABS = [
  ["all", t("All")],
  ["llm_call", t("Model calls")],
  ["tool_call", t("Tools")],
  ["agent_run", t("Turns")],
  ["events", t("Events")],
];
const KINDS = { agent_run: t("turn"), llm_call: t("model"), tool_call: t("tool") };

export function Trace() {
  const [tab, setTab] = useState("all");
  return html`
    <div class="stack">
      <${ChoiceGroup}
        role="tab"
        class="tabs"
        aria-label=${t("What to show")}
        choices=${TABS}
        chosen=${tab}
        choose=${setTab}
      />
      ${tab === "events" ? html`<${Events} />` : html`<${Spans} kind=${tab} />`}
    </div>
  `;
}

function Spans({ kind }) {
  const { turns, open } = talk.value;
  const settled = `${turns.length}.${open}`; // asked again when a turn begins or ends
  const found = useFetch(`${sessionPath(route.value.name, "/trace")}?_=${settled}`);
  return html`
    <${Loaded} result=${found} what=${t("traces")}>
      ${(spans) => {
        const isWanted = (span) =>
          kind === "all" ? span.kind !== "agent_run" : span.kind === kind;
        const shown = spans.filter(isWanted);
        const longest = Math.max(0.001, ...shown.map((span) => span.took_s));
        if (!shown.length) return html`<${Empty}>${t("No calls yet.")}<//>`;
        return html`
          <ol class="spans">
            ${shown.map(
              (span, i) =>
                html`<li key=${`${span.n}.${i}`}><${Span} span=${span} longest=${longest} /></li>`,
            )}
          </ol>
        `;
      }}
    <//>
  `;
}

function Span({ span, longest }) {
  const tokens = span.input_tokens + span.output_tokens;
  const succeeded = ["ok", "stop", "calls", "done"].includes(span.status);
  const bodies = [
    ["llm_request", span.llm_request ?? span.request],
    ["llm_response", span.llm_response ?? span.response],
  ].filter(([, body]) => body);
  return html`
    <details class="span">
      <summary>
        <span class=${`tag ${span.kind === "llm_call" ? "good" : ""}`}>${KINDS[span.kind]}</span>
        <span class="cut grow">${span.name}</span>
        ${!succeeded && html`<span class="tag bad">${span.status}</span>`}
        ${tokens > 0 && html`<span class="tiny muted">${formatCount(tokens)}</span>`}
        <span class="tiny muted num">${formatDuration(span.took_s)}</span>
        <span
          class="bar"
          aria-hidden="true"
          style=${{ width: `${Math.max(1, (100 * span.took_s) / longest)}%` }}
        ></span>
      </summary>
      <dl class="facts">
        <dt>${t("Event")}</dt>
        <dd>${span.n}</dd>
        <dt>${t("Ended")}</dt>
        <dd>${formatTime(span.at)}</dd>
        <dt>${t("Status")}</dt>
        <dd>${span.status}</dd>
        ${
          tokens > 0 &&
          html`
            <dt>${t("Tokens")}</dt>
            <dd>
              ${t("{read} read, {cached} of them cached, {written} written", {
                read: span.input_tokens,
                cached: span.cached_tokens,
                written: span.output_tokens,
              })}
            </dd>
          `
        }
      </dl>
      ${span.detail && html`<pre tabindex="0">${span.detail}</pre>`}
      ${span.preview && html`<h4>${t("Result")}</h4><pre tabindex="0">${span.preview}</pre>`}
      ${bodies.map(
        ([name, body]) => html`
          <h4 key=${name}>${name}</h4>
          <pre tabindex="0">${typeof body === "string" ? body : JSON.stringify(body, null, 2)}</pre>
        `,
      )}
    </details>
  `;
}

const PAGE = 100;

function Events() {
  const [before, setBefore] = useState([]);
  const last = talk.value.n ? getLoadedEvents() : [];
  const from = last[0]?.n ?? 1;
  const all = [
    ...(before.at(-1)?.n >= from - 1 ? before.filter((recorded) => recorded.n < from) : []),
    ...last,
  ];
  const first = all[0]?.n ?? 1;
  const loadEarlier = async () => {
    const found = await fetchEvents(route.value.name, Math.max(0, first - 1 - PAGE), first - 1);
    setBefore([...found, ...all]);
  };
  return html`
    <div>
      ${first > 1 && html`<${More} key=${first} more=${loadEarlier} label=${t("Show earlier")} />`}
      <ol class="spans">
        ${all.map(
          (recorded) => html`
            <li key=${recorded.n}>
              <details class="span">
                <summary>
                  <span class="tiny muted num">${recorded.n}</span>
                  <span class="cut grow">${recorded.event.type}</span>
                  <span class="tiny muted">${formatTime(recorded.at)}</span>
                </summary>
                <${RawEvent} recorded=${recorded} />
              </details>
            </li>
          `,
        )}
      </ol>
    </div>
  `;
}

function RawEvent({ recorded }) {
  const [open, setOpen] = useState(false);
  return html`
    <div ref=${(box) =>
      box?.parentElement.addEventListener("toggle", () => setOpen(true), { once: true })}>
      ${open && html`<pre tabindex="0">${JSON.stringify(recorded.event, null, 2)}</pre>`}
    </div>
  `;
}
