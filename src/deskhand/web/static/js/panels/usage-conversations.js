// In which conversations it was used, the dearest first.

import { formatCount, formatMoney } from "../format.js";
import { t, tCount } from "../language.js";
import { html } from "../lib.js";
import { isSubagentName, sessionHref } from "../state.js";
import { Empty, Loaded, useFetch, useSomeRows } from "./parts.js";
import { formatSum, sortByValue } from "./usage-amounts.js";

export function Conversations({ data, unit, range, picked, heading, showAll }) {
  const query = picked ? `&${picked.kind}=${encodeURIComponent(picked.id)}` : "";
  const found = useFetch(picked ? `/api/usage?range=${range}${query}` : "");
  const waits = picked && found.stale;
  const result = picked ? { ...found, data: waits ? undefined : found.data } : { data };
  return html`
    <section class="section" aria-label=${t("The dearest conversations")}>
      <header>
        <div>
          <h4 tabindex="-1" ref=${heading}>${askWhy(result.data?.total, unit, picked)}</h4>
          <p class="small muted">
            ${t(
              "The dearest conversations come first. Each call reads the whole conversation again, so a long one costs more with every answer.",
            )}
          </p>
        </div>
        ${
          picked &&
          html`<button type="button" class="btn little" onClick=${showAll}>${t("Show all")}</button>`
        }
      </header>
      <${Loaded} result=${result} what=${t("usage")}>
        ${(found) => html`
          <${Dearest} key=${query} rows=${sortByValue(found.sessions, "money")} unit=${unit} />
        `}
      <//>
    </section>
  `;
}

/** `Why did anthropic/claude cost $1.20?` */
function askWhy(total, unit, picked) {
  const cost = total?.known_cost ?? 0;
  if (unit === "tokens" || cost < 0.01)
    return picked
      ? t("What were the tokens of {name} used for?", { name: picked.name })
      : t("What were they used for?");
  const amount = formatMoney(cost);
  return picked
    ? t("Why did {name} cost {amount}?", { name: picked.name, amount })
    : t("Why did this cost {amount}?", { amount });
}

function Dearest({ rows, unit }) {
  const [shown, more] = useSomeRows(rows, 10, 50);
  if (!rows.length) return html`<${Empty}>${t("No conversation used anything.")}<//>`;
  return html`
    <ul class="rows">
      ${shown.map(
        (row) => html`
          <li key=${row.session_id}>
            <span class="grow">
              <span>
                <a href=${sessionHref(row.session_id)}>${row.preview || t("Untitled")}</a>
                ${isSubagentName(row.session_id) && html`${" "}<span class="tag">${t("sub-agent")}</span>`}
              </span>
              <span class="small muted">${describeCalls(row)}</span>
            </span>
            <span class="num">${formatSum(row, unit)}</span>
          </li>
        `,
      )}
    </ul>
    ${more}
  `;
}

function describeCalls(row) {
  return tCount(
    row.api_calls,
    "{count} call, reading {read} tokens; {written} written",
    "{count} calls, each reading about {read} tokens; {written} written",
    {
      read: formatCount(Math.round(row.prompt_tokens / Math.max(1, row.api_calls))),
      written: formatCount(row.completion_tokens),
    },
  );
}
