// What was used and what it cost: by day, by model, agent and person, and in which conversations.

import { capitalize, formatCount, formatMoney, pluralize } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { hasScope, isSubagentName, sessionHref } from "../state.js";
import { ChartTable, DayChart, ShareChart } from "./charts.js";
import { Empty, Loaded, Section, useFetch, useSomeRows } from "./parts.js";
import { findSetting } from "./settings.js";
import {
  amountOf,
  formatCost,
  formatDay,
  formatScale,
  formatSum,
  formatTokens,
  formatUnpriced,
  sortByValue,
} from "./usage-amounts.js";

const DAY_MS = 86_400_000;
const CHART_DAYS = 30;
const RECENT = "/api/usage?range=30d";
const RANGES = [
  ["today", "Today", "today"],
  ["7d", "7 days", "in the last 7 days"],
  ["30d", "30 days", "in the last 30 days"],
  ["all", "All", "so far"],
];
const UNITS = [
  ["money", "Cost"],
  ["tokens", "Tokens"],
];
/** What is shown by share: the part of the answer, the filter of the request, and its title. */
const SHARES = [
  ["models", "model", "By model"],
  ["agents", "agent", "By agent"],
  ["people", "person", "By person"],
];

export function Usage() {
  const found = useFetch(RECENT);
  return html`
    <${Loaded} result=${found} what="usage">${(recent) => html`<${Report} recent=${recent} />`}<//>
  `;
}

function Report({ recent }) {
  const [unit, setUnit] = useState(recent.total.known_cost > 0 ? "money" : "tokens");
  const [range, setRange] = useState("30d");
  const [picked, setPicked] = useState(null);
  const other = useFetch(range === "30d" ? "" : `/api/usage?range=${range}`);
  const detail =
    range === "30d" ? { data: recent } : { ...other, data: other.stale ? undefined : other.data };
  const [, , period] = RANGES.find(([id]) => id === range);
  const setPeriod = (id) => {
    setRange(id);
    setPicked(null);
  };
  if (!recent.total.api_calls && range === "30d")
    return html`
      <div class="none">
        <p>
          ${
            "No model was called in the last 30 days. After the first message you see here what " +
            "each model, agent and person uses and costs, what the month will come to, and which " +
            "conversations are the dearest."
          }
        </p>
        <button type="button" class="btn little" onClick=${() => setPeriod("all")}>
          Look further back
        </button>
      </div>
    `;
  return html`
    <div class="stack wide">
      <${Section}
        title="This month"
        action=${html`
          <${Choice} label="What the charts show" options=${UNITS} chosen=${unit} choose=${setUnit} />
        `}
      >
        <${Month} month=${recent.month} unit=${unit} />
        <${ByDay}
          days=${recent.days}
          total=${recent.total}
          unit=${unit}
          pick=${(day) => {
            setRange("30d");
            setPicked({ kind: "day", id: day.id, name: day.label });
          }}
        />
      <//>
      <${Section}
        title="What it was used for"
        action=${html`
          <${Choice} label="Time" options=${RANGES} chosen=${range} choose=${setPeriod} />
        `}
      >
        <${Loaded} result=${detail} what="usage">
          ${(data) => html`
            <${Detail}
              data=${data}
              unit=${unit}
              range=${range}
              period=${period}
              picked=${picked}
              setPicked=${setPicked}
            />
          `}
        <//>
      <//>
    </div>
  `;
}

function Choice({ label, options, chosen, choose }) {
  return html`
    <div class="tabs" role="group" aria-label=${label}>
      ${options.map(
        ([id, name]) => html`
          <button
            key=${id}
            type="button"
            aria-pressed=${String(id === chosen)}
            onClick=${() => choose(id)}
          >
            ${name}
          </button>
        `,
      )}
    </div>
  `;
}

// ------------------------------------------------------------------ amounts in words

function describeMonth(month, unit) {
  const { so_far: used } = month;
  const now = unit === "money" ? formatMoney(used.known_cost) : formatTokens(used.total_tokens);
  const later = unit === "money" ? formatMoney(month.known_cost) : formatTokens(month.total_tokens);
  const pace = month.pace_days === 1 ? "today" : `the last ${month.pace_days} days`;
  if (amountOf(month, unit) <= amountOf(used, unit)) return [`${now} so far this month.`, ""];
  return [
    `${now} so far this month,`,
    `about ${later} by the end of the month, at the pace of ${pace}.`,
  ];
}

function Month({ month, unit }) {
  const [now, later] = describeMonth(month, unit);
  return html`
    <p class="forecast">
      <strong>${now}</strong> ${later}
      ${
        unit === "money" &&
        month.so_far.unpriced_calls > 0 &&
        ` ${capitalize(formatUnpriced(month.so_far))}.`
      }
      ${
        hasScope("admin") &&
        html`
          ${" "}
          <a href="#/settings/settings" onClick=${() => findSetting("budgets.all")}>Set a limit</a>
        `
      }
    </p>
  `;
}

/** All of the last 30 days (UTC), also those without a call. */
function fillDays(days, unit) {
  const known = new Map(days.map((day) => [day.id, day]));
  const last = Math.max(Date.now(), ...days.map((day) => Date.parse(day.id)));
  return Array.from({ length: CHART_DAYS }, (_, i) => {
    const id = new Date(last - (CHART_DAYS - 1 - i) * DAY_MS).toISOString().slice(0, 10);
    const day = known.get(id);
    const value = day ? amountOf(day, unit) : 0;
    return {
      ...day,
      id,
      value,
      label: formatDay(id),
      text: day ? formatSum(day, unit) : "nothing",
    };
  });
}

function ByDay({ days, total, unit, pick }) {
  const all = fillDays(days, unit);
  const top = all.reduce((one, two) => (two.value > one.value ? two : one));
  const dearest = unit === "money" ? "dearest" : "busiest";
  const summary =
    `${formatSum(total, unit)} in the last 30 days.` +
    (top.value > 0 ? ` The ${dearest} day was ${top.label} with ${top.text}.` : "");
  return html`
    <figure class="chart" aria-label="By day">
      <figcaption class="small muted">${summary}</figcaption>
      <${DayChart}
        days=${all}
        summary=${summary}
        formatValue=${(value) => formatScale(value, unit)}
        pick=${(day) => day.api_calls && pick(day)}
      />
      <${ChartTable}
        name="Usage by day"
        rows=${all.filter((day) => day.api_calls).reverse()}
        columns=${[
          [
            "Day",
            (day) => html`
              <button type="button" class="link" onClick=${() => pick(day)}>${day.label}</button>
            `,
          ],
          ...AMOUNTS,
        ]}
      />
    </figure>
  `;
}

const AMOUNTS = [
  ["Tokens read", (row) => formatCount(row.prompt_tokens)],
  ["Written", (row) => formatCount(row.completion_tokens)],
  ["Calls", (row) => formatCount(row.api_calls)],
  ["Cost", formatCost],
];

// ------------------------------------------------------------------ what it was used for

function Detail({ data, unit, range, period, picked, setPicked }) {
  const { total } = data;
  const heading = useRef();
  useEffect(() => {
    if (!picked) return;
    heading.current?.scrollIntoView({ block: "start" });
    heading.current?.focus({ preventScroll: true });
  }, [picked]);
  if (!total.api_calls) return html`<${Empty}>No model was called ${period}.<//>`;
  const unknown = data.models.filter((row) => row.unpriced_calls).map((row) => row.id);
  return html`
    <dl class="figures">
      <div>
        <dt>Cost</dt>
        <dd>${formatMoney(total.known_cost)}</dd>
        ${total.unpriced_calls > 0 && html`<dd class="small muted">${formatUnpriced(total)}</dd>`}
      </div>
      <div>
        <dt>Tokens</dt>
        <dd>${formatCount(total.total_tokens)}</dd>
        <dd class="small muted">
          ${formatCount(total.prompt_tokens)} read, ${formatCount(total.completion_tokens)} written
        </dd>
      </div>
      <div>
        <dt>Model calls</dt>
        <dd>${formatCount(total.api_calls)}</dd>
      </div>
    </dl>
    ${
      unknown.length > 0 &&
      html`
        <p class="small muted">
          The price of ${unknown.slice(0, 5).join(", ")}
          ${unknown.length > 5 && ` and ${unknown.length - 5} more`} is not known.
        </p>
      `
    }
    ${SHARES.filter(([part]) => data[part]?.length).map(
      ([part, kind, title]) => html`
        <${Shares}
          key=${part}
          title=${title}
          kind=${kind}
          rows=${data[part]}
          unit=${unit}
          picked=${picked?.kind === kind ? picked.id : ""}
          pick=${(row) => setPicked({ kind, id: row.id, name: row.name })}
        />
      `,
    )}
    <${Conversations}
      data=${data}
      unit=${unit}
      range=${range}
      picked=${picked}
      heading=${heading}
      showAll=${() => setPicked(null)}
    />
  `;
}

/** Whose usage it is: a person, several who write in one chat, or nobody. */
const nameShare = (kind, id) => id || (kind === "person" ? "Nobody in particular" : "No name");

function Shares({ title, kind, rows, unit, pick, picked }) {
  const total = rows.reduce((sum, row) => sum + amountOf(row, unit), 0);
  const shown = sortByValue(rows, unit).map((row) => ({
    ...row,
    name: nameShare(kind, row.id),
    value: amountOf(row, unit),
    text: formatShare(row, unit, total),
  }));
  const [first] = shown;
  const summary =
    shown.length === 1
      ? `Everything: ${first.name}.`
      : `${first.name} comes first with ${first.text}, of ${pluralize(shown.length, kind, kind === "person" ? "people" : `${kind}s`)}.`;
  return html`
    <figure class="chart" aria-label=${title}>
      <h4>${title}</h4>
      <figcaption class="small muted">${summary}</figcaption>
      <${ShareChart} rows=${shown} pick=${pick} picked=${picked} />
      <${ChartTable}
        name=${`Usage ${title.toLowerCase()}`}
        rows=${shown}
        columns=${[["Name", (row) => row.name], ...AMOUNTS]}
      />
    </figure>
  `;
}

/** `$3.30 (86%) plus 10 calls of unknown price` */
function formatShare(row, unit, total) {
  const percent = total > 0 ? Math.round((100 * amountOf(row, unit)) / total) : 0;
  if (!percent) return formatSum(row, unit);
  if (unit === "tokens") return `${formatTokens(row.total_tokens)} (${percent}%)`;
  return `${formatMoney(row.known_cost)} (${percent}%) ${formatUnpriced(row)}`.trim();
}

// ------------------------------------------------------------------ conversations

function Conversations({ data, unit, range, picked, heading, showAll }) {
  const query = picked ? `&${picked.kind}=${encodeURIComponent(picked.id)}` : "";
  const found = useFetch(picked ? `/api/usage?range=${range}${query}` : "");
  const waits = picked && found.stale;
  const result = picked ? { ...found, data: waits ? undefined : found.data } : { data };
  return html`
    <section class="section" aria-label="The dearest conversations">
      <header>
        <div>
          <h4 tabindex="-1" ref=${heading}>${askWhy(result.data?.total, unit, picked)}</h4>
          <p class="small muted">
            ${
              "The dearest conversations come first. Each call reads the whole conversation " +
              "again, so a long one costs more with every answer."
            }
          </p>
        </div>
        ${
          picked &&
          html`<button type="button" class="btn little" onClick=${showAll}>Show all</button>`
        }
      </header>
      <${Loaded} result=${result} what="usage">
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
    return picked ? `What were the tokens of ${picked.name} used for?` : "What were they used for?";
  return `Why did ${picked?.name ?? "this"} cost ${formatMoney(cost)}?`;
}

function Dearest({ rows, unit }) {
  const [shown, more] = useSomeRows(rows, 10, 50);
  if (!rows.length) return html`<${Empty}>No conversation used anything.<//>`;
  return html`
    <ul class="rows">
      ${shown.map(
        (row) => html`
          <li key=${row.session_id}>
            <span class="grow">
              <span>
                <a href=${sessionHref(row.session_id)}>${row.preview || "Untitled"}</a>
                ${isSubagentName(row.session_id) && html`${" "}<span class="tag">sub-agent</span>`}
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
  const calls = pluralize(row.api_calls, "call");
  const each = formatCount(Math.round(row.prompt_tokens / Math.max(1, row.api_calls)));
  const read = row.api_calls === 1 ? `reading ${each} tokens` : `each reading about ${each} tokens`;
  return `${calls}, ${read}; ${formatCount(row.completion_tokens)} written`;
}
