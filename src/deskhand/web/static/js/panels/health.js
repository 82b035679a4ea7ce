// Whether Deskhand works, in a sentence; what is wrong; and, folded, how each part is doing.

import { formatDateTime, pluralize } from "../format.js";
import { html, useEffect } from "../lib.js";
import { hasScope, health } from "../state.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";

const TONES = { ok: "good", starting: "", degraded: "warn", down: "bad" };
const WORDS = {
  ok: "is working",
  starting: "is starting",
  degraded: "is partly working",
  down: "is not working",
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
  const found = useFetch("/health");
  const status = useFetch("/api/status");
  const checks = useFetch(hasScope("admin") ? "/api/setup/checks" : "");
  useEffect(() => {
    if (found.data) health.value = found.data;
  }, [found.data]);
  const reloadButton = html`
    <button
      type="button"
      class="btn little"
      onClick=${() => {
        found.reload();
        checks.reload();
      }}
    >
      Refresh
    </button>
  `;
  return html`
    <div class="stack wide">
      <${Section} title="Now" action=${reloadButton}>
        <${Loaded} result=${found} what="health">
          ${(data) => html`<${HealthState} data=${data} />`}
        <//>
      <//>
      ${
        hasScope("admin") &&
        html`
          <${Section} title="Checks" note="The same as deskhand doctor in a terminal.">
            <${Loaded} result=${checks} what="the checks">
              ${(all) => html`<${Checks} all=${all} />`}
            <//>
          <//>
        `
      }
      <${Section} title="About">
        <${Loaded} result=${status} what="the status">
          ${(data) => html`
            <dl class="facts">
              <dt>Version</dt>
              <dd>${found.data?.version || data.version || "–"}</dd>
              <dt>Model</dt>
              <dd>${data.provider ? `${data.provider}/${data.model}` : data.model || "none"}</dd>
              <dt>Agents</dt>
              <dd>${data.agents.join(", ")}</dd>
              <dt>Conversations</dt>
              <dd>${data.sessions}</dd>
              <dt>Running since</dt>
              <dd>${formatDateTime(data.started_at)}</dd>
            </dl>
          `}
        <//>
      <//>
    </div>
  `;
}

function HealthState({ data }) {
  const parts = data.components;
  const wrong = parts.filter(isWrong);
  return html`
    <p>
      <strong>Deskhand ${WORDS[data.status] ?? data.status}.</strong>
      ${!wrong.length && " Nothing is wrong."}
    </p>
    ${wrong.length > 0 && html`<${Parts} parts=${wrong} />`}
    ${
      parts.length > 0 &&
      html`
        <details>
          <summary class="small">${pluralize(parts.length, "part")}, one by one</summary>
          <${Parts} parts=${parts} />
        </details>
      `
    }
  `;
}

const Parts = ({ parts }) => html`
  <ul class="rows">
    ${parts.map(
      (one) => html`
        <li key=${one.name}>
          <span class="grow">
            <strong>${one.name}</strong>
            <span class="small muted">
              ${[
                one.detail,
                one.last_success_at ? `last worked ${formatDateTime(one.last_success_at)}` : "",
                one.restarts ? `restarted ${one.restarts}×` : "",
              ]
                .filter(Boolean)
                .join(" · ")}
            </span>
            ${
              one.last_error &&
              html`
                <span class="small failed">
                  ${one.last_error}
                  ${one.last_error_at ? ` (${formatDateTime(one.last_error_at)})` : ""}
                </span>
              `
            }
          </span>
          <span class=${`tag ${TONES[one.state]}`}>${one.state}</span>
        </li>
      `,
    )}
  </ul>
`;

/** What wants something done; what is well is folded. */
function Checks({ all }) {
  const open = all.filter((one) => LEVELS[one.level] !== "good");
  const passed = all.filter((one) => LEVELS[one.level] === "good");
  const listChecks = (ones) => html`
    <ul class="rows">
      ${ones.map(
        (one, i) => html`
          <li key=${i}>
            <span class="grow">
              <strong>${one.name}</strong>
              <span class="small muted">${one.text}</span>
              ${one.remedy && html`<span class="small">To do: <code>${one.remedy}</code></span>`}
            </span>
            <span class=${`tag ${LEVELS[one.level] ?? ""}`}>${one.level}</span>
          </li>
        `,
      )}
    </ul>
  `;
  return html`
    ${open.length ? listChecks(open) : html`<${Empty}>Nothing to fix.<//>`}
    ${
      passed.length > 0 &&
      html`
        <details>
          <summary class="small">${pluralize(passed.length, "check")} passed</summary>
          ${listChecks(passed)}
        </details>
      `
    }
  `;
}
