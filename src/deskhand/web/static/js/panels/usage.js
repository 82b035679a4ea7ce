// What was used and what it cost.

import { formatCount, formatMoney } from "../format.js";
import { html, useState } from "../lib.js";
import { sessionHref } from "../state.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";

const RANGES = [
  ["today", "Today"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["all", "All"],
];

export function Usage() {
  const [range, setRange] = useState("7d");
  const found = useFetch(`/api/usage?range=${range}`);
  return html`
    <div class="stack wide">
      <div class="tabs" role="tablist" aria-label="Time">
        ${RANGES.map(
          ([id, label]) => html`
            <button
              key=${id}
              type="button"
              role="tab"
              aria-selected=${String(id === range)}
              onClick=${() => setRange(id)}
            >
              ${label}
            </button>
          `,
        )}
      </div>
      <${Loaded} result=${found} what="usage">${(data) => html`<${UsageReport} data=${data} />`}<//>
    </div>
  `;
}

function UsageReport({ data }) {
  const { total } = data;
  const days = data.days ?? [];
  const most = Math.max(1, ...days.map((day) => day.total_tokens ?? 0));
  if (!total?.api_calls) return html`<${Empty}>Nothing was used in this time.<//>`;
  return html`
    <dl class="figures">
      <div>
        <dt>Tokens</dt>
        <dd>${formatCount(total.total_tokens)}</dd>
      </div>
      <div>
        <dt>Read</dt>
        <dd>${formatCount(total.prompt_tokens)}</dd>
      </div>
      <div>
        <dt>Written</dt>
        <dd>${formatCount(total.completion_tokens)}</dd>
      </div>
      <div>
        <dt>Model calls</dt>
        <dd>${formatCount(total.api_calls)}</dd>
      </div>
      <div>
        <dt>Cost</dt>
        <dd>
          ${
            total.cost == null && total.known_cost
              ? `${formatMoney(total.known_cost)}+`
              : formatMoney(total.cost)
          }
        </dd>
      </div>
    </dl>
    ${
      total.cost == null &&
      html`
        <p class="small muted">
          The price of${" "}
          ${data.models
            .filter((row) => row.cost == null)
            .map((row) => row.id)
            .join(", ")}${" "}
          is not known${total.known_cost ? ": what they cost comes on top" : ""}.
        </p>
      `
    }
    ${
      days.length > 1 &&
      html`
        <${Section} title="By day">
          <ol class="bars">
            ${days.map(
              (day) => html`
                <li key=${day.id} title=${`${day.id}: ${formatCount(day.total_tokens)} tokens`}>
                  <span class="sr">${day.id}: ${formatCount(day.total_tokens)} tokens</span>
                  <span
                    class="bar"
                    style=${{ height: `${Math.max(2, (100 * (day.total_tokens ?? 0)) / most)}%` }}
                  ></span>
                </li>
              `,
            )}
          </ol>
        <//>
      `
    }
    <${Section} title="By model">
      <${UsageTable} rows=${data.models ?? []} name=${(row) => row.id} />
    <//>
    <${Section} title="By conversation">
      <${UsageTable}
        rows=${(data.sessions ?? []).slice(0, 30)}
        name=${(row) =>
          html`<a href=${sessionHref(row.session_id)}>${row.preview || "Untitled"}</a>`}
      />
    <//>
  `;
}

function UsageTable({ rows, name }) {
  if (!rows.length) return html`<${Empty}>Nothing.<//>`;
  return html`
    <div class="table">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Tokens</th>
            <th scope="col">Calls</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row, i) => html`
              <tr key=${i}>
                <th scope="row">${name(row) || "Without a name"}</th>
                <td>${formatCount(row.total_tokens)}</td>
                <td>${formatCount(row.api_calls)}</td>
                <td>${formatMoney(row.cost)}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}
