// A slider over the session: what the model saw, the cost and the policy's decisions at any event.

import { branchSession, rewindSession } from "../actions.js";
import { sessionPath } from "../api.js";
import { ChoiceGroup } from "../choice-group.js";
import { formatCount, formatMoney } from "../format.js";
import { t, tCount, tRich, tServer } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { hasScope, route } from "../state.js";
import { talk } from "../talk.js";
import { Empty, Loaded, useFetch } from "./parts.js";

const TABS = [
  ["context", t("Context")],
  ["prompt", t("Prompt")],
  ["decisions", t("Decisions")],
  ["cost", t("Cost")],
];

/** What was decided about a call, and how it looks. */
const VERDICTS = {
  allowed: [t("allowed"), "good"],
  asked: [t("asked"), "warn"],
  denied: [t("denied"), "bad"],
};
const AMOUNTS = {
  input_tokens: t("input tokens"),
  output_tokens: t("output tokens"),
  cached_tokens: t("cached tokens"),
  cache_write_tokens: t("cache write tokens"),
  cost: t("cost"),
};

export function Slider() {
  const last = talk.value.n;
  const [chosen, setChosen] = useState(null);
  const [asked, setAsked] = useState(last);
  const [tab, setTab] = useState("context");
  const chosenEvent = Math.min(chosen ?? last, last);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(chosenEvent), 120);
    return () => clearTimeout(timer);
  }, [chosenEvent]);
  const found = useFetch(
    last ? `${sessionPath(route.value.name, "/state")}?n=${Math.min(asked, last)}` : "",
  );
  const ends = talk.value.turns
    .filter((turn) => turn.end !== null && turn.last <= last)
    .map((turn) => turn.last);
  const known = found.data?.n === chosenEvent ? found.data : null;
  const settled = known?.rest;
  return html`
    <div class="stack">
      <label class="field">
        <span>
          ${tRich("Event {event} of {last}", {
            event: html`<output>${chosenEvent}</output>`,
            last,
          })}
        </span>
        <input
          type="range"
          min="1"
          max=${Math.max(1, last)}
          value=${chosenEvent}
          aria-valuetext=${t("event {event} of {last}", { event: chosenEvent, last })}
          onInput=${(event) => setChosen(Number(event.target.value))}
          list="ends"
        />
      </label>
      <datalist id="ends">
        ${ends.map((end) => html`<option key=${end} value=${end}></option>`)}
      </datalist>
      <div class="row">
        <button
          type="button"
          class="btn little"
          disabled=${!known?.turn_before}
          onClick=${() => setChosen(known.turn_before)}
        >
          ${t("Turn before")}
        </button>
        <button
          type="button"
          class="btn little"
          disabled=${!known?.turn_after}
          onClick=${() => setChosen(known.turn_after)}
        >
          ${t("Turn after")}
        </button>
      </div>
      ${
        hasScope("chat") &&
        html`
          <div class="row">
            <button
              type="button"
              class="btn little"
              disabled=${!settled}
              onClick=${() => branchSession(chosenEvent)}
            >
              ${t("Branch from here")}
            </button>
            <button
              type="button"
              class="btn little"
              disabled=${!settled || chosenEvent === last}
              onClick=${() => rewindSession(chosenEvent)}
            >
              ${t("Undo to here")}
            </button>
          </div>
        `
      }
      ${
        found.data?.rest === false &&
        html`
          <p class="tiny muted">${t("In the middle of a turn: to branch or undo, go to the end of one.")}</p>
        `
      }
      <${ChoiceGroup}
        role="tab"
        class="tabs"
        aria-label=${t("What to show")}
        choices=${TABS}
        chosen=${tab}
        choose=${setTab}
      />
      <${Loaded} result=${found} what=${t("the state at an event")}>
        ${(state) => html`<${StateTab} tab=${tab} state=${state} />`}
      <//>
    </div>
  `;
}

function formatUsage(name, value) {
  if (name === "cost") return formatMoney(value);
  return typeof value === "number" ? formatCount(value) : JSON.stringify(value);
}

function Verdict({ id }) {
  const [words, tone] = VERDICTS[id] ?? [id, "bad"];
  return html`<span class=${`tag ${tone}`}>${words}</span>`;
}

function StateTab({ tab, state }) {
  if (tab === "cost")
    return html`
      <dl class="facts">
        ${Object.entries(state.usage ?? {}).map(
          ([name, value]) => html`
            <dt key=${name}>${AMOUNTS[name] ?? name.replaceAll("_", " ")}</dt>
            <dd>${formatUsage(name, value)}</dd>
          `,
        )}
      </dl>
    `;
  if (tab === "decisions")
    return state.decisions?.length
      ? html`
          <ol class="spans">
            ${state.decisions.map(
              (one, i) => html`
                <li key=${i} class="decision">
                  <span class="row">
                    <span class="tiny muted num">${one.n}</span>
                    <strong class="grow cut">${one.tool}</strong>
                    <${Verdict} id=${one.verdict} />
                  </span>
                  <span class="small muted">${tServer(one.reason) || t("no rule is against it")}</span>
                </li>
              `,
            )}
          </ol>
        `
      : html`<${Empty}>${t("No decisions up to this event.")}<//>`;
  if (tab === "prompt")
    return (state.prompt ?? []).length
      ? state.prompt.map(
          (block, i) => html`
            <details class="span" key=${i} open=${i === 0}>
              <summary>
                <span class="cut grow">
                  ${block.trimStart().split("\n")[0].replace(/^#+ /, "") || t("Block {number}", { number: i + 1 })}
                </span>
                <span class="tiny muted">${tCount(block.length, "{count} character", "{count} characters")}</span>
              </summary>
              <pre tabindex="0">${block}</pre>
            </details>
          `,
        )
      : html`<${Empty}>${t("No prompt yet.")}<//>`;
  return (state.context ?? []).length
    ? html`
        <ol class="spans">
          ${state.context.map(
            (one, i) => html`
              <li key=${i}>
                <details class="span">
                  <summary>
                    <span class="tiny muted num">${one.n}</span>
                    <span class="tag">${one.role}</span>
                    <span class="cut grow">${one.text}</span>
                  </summary>
                  <pre tabindex="0">${one.text}</pre>
                </details>
              </li>
            `,
          )}
        </ol>
      `
    : html`<${Empty}>${t("The model has seen nothing yet.")}<//>`;
}
