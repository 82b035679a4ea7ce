// What was used and what it cost: by day, by model, agent and person, and in which conversations.

import { formatCount, formatMoney } from "../format.js";
import { t, tCount } from "../language.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { hasScope } from "../state.js";
import { ChartTable, DayChart, ShareChart } from "./charts.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";
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
import { Conversations } from "./usage-conversations.js";

const DAY_MS = 86_400_000;
const CHART_DAYS = 30;
const RECENT = "/api/usage?range=30d";
/** Each with what is said when nothing was used in that time. */
const RANGES = [
  ["today", t("Today"), t("No model was called today.")],
  ["7d", t("7 days"), t("No model was called in the last 7 days.")],
  ["30d", t("30 days"), t("No model was called in the last 30 days.")],
  ["all", t("All"), t("No model was called so far.")],
];
const UNITS = [
  ["money", t("Cost")],
  ["tokens", t("Tokens")],
];
/** What is shown by share: the part of the answer, the filter of the request, and its words. */
const SHARES = [
  ["models", "model", { title: t("By model"), table: t("Usage by model"), compare: compareModels }],
  ["agents", "agent", { title: t("By agent"), table: t("Usage by agent"), compare: compareAgents }],
  [
    "people",
    "person",
    { title: t("By person"), table: t("Usage by person"), compare: comparePeople },
  ],
];

export function Usage() {
  const found = useFetch(RECENT);
  return html`
    <${Loaded} result=${found} what=${t("usage")}>${(recent) => html`<${Report} recent=${recent} />`}<//>
  `;
}

function Report({ recent }) {
  const [unit, setUnit] = useState(recent.total.known_cost > 0 ? "money" : "tokens");
  const [range, setRange] = useState("30d");
  const [picked, setPicked] = useState(null);
  const other = useFetch(range === "30d" ? "" : `/api/usage?range=${range}`);
  const detail =
    range === "30d" ? { data: recent } : { ...other, data: other.stale ? undefined : other.data };
  const [, , nothing] = RANGES.find(([id]) => id === range);
  const setPeriod = (id) => {
    setRange(id);
    setPicked(null);
  };
  if (!recent.total.api_calls && range === "30d")
    return html`
      <div class="none">
        <p>
          ${t(
            "No model was called in the last 30 days. After the first message you see here what each model, agent and person uses and costs, what the month will come to, and which conversations are the dearest.",
          )}
        </p>
        <button type="button" class="btn little" onClick=${() => setPeriod("all")}>
          ${t("Look further back")}
        </button>
      </div>
    `;
  return html`
    <div class="stack wide">
      <${Section}
        title=${t("This month")}
        action=${html`
          <${Choice} label=${t("What the charts show")} options=${UNITS} chosen=${unit} choose=${setUnit} />
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
        title=${t("What it was used for")}
        action=${html`
          <${Choice} label=${t("Time")} options=${RANGES} chosen=${range} choose=${setPeriod} />
        `}
      >
        <${Loaded} result=${detail} what=${t("usage")}>
          ${(data) => html`
            <${Detail}
              data=${data}
              unit=${unit}
              range=${range}
              nothing=${nothing}
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
  if (amountOf(month, unit) <= amountOf(used, unit))
    return [t("{amount} so far this month.", { amount: now }), ""];
  return [
    t("{amount} so far this month,", { amount: now }),
    month.pace_days === 1
      ? t("about {amount} by the end of the month, at the pace of today.", { amount: later })
      : tCount(
          month.pace_days,
          "about {amount} by the end of the month, at the pace of the last {count} day.",
          "about {amount} by the end of the month, at the pace of the last {count} days.",
          { amount: later },
        ),
  ];
}

const describeUnpriced = (count) =>
  tCount(count, "Plus {count} call of unknown price.", "Plus {count} calls of unknown price.");

function Month({ month, unit }) {
  const [now, later] = describeMonth(month, unit);
  return html`
    <p class="forecast">
      <strong>${now}</strong> ${later}
      ${
        unit === "money" &&
        month.so_far.unpriced_calls > 0 &&
        ` ${describeUnpriced(month.so_far.unpriced_calls)}`
      }
      ${
        hasScope("admin") &&
        html`
          ${" "}
          <a href="#/settings/settings" onClick=${() => findSetting("budgets.all")}>${t("Set a limit")}</a>
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
      text: day ? formatSum(day, unit) : t("nothing"),
    };
  });
}

const describeTop = ({ label: day, text: amount }, unit) =>
  unit === "money"
    ? t("The dearest day was {day} with {amount}.", { day, amount })
    : t("The busiest day was {day} with {amount}.", { day, amount });

function ByDay({ days, total, unit, pick }) {
  const all = fillDays(days, unit);
  const top = all.reduce((one, two) => (two.value > one.value ? two : one));
  const summary = [
    t("{amount} in the last 30 days.", { amount: formatSum(total, unit) }),
    top.value > 0 && describeTop(top, unit),
  ]
    .filter(Boolean)
    .join(" ");
  return html`
    <figure class="chart" aria-label=${t("By day")}>
      <figcaption class="small muted">${summary}</figcaption>
      <${DayChart}
        days=${all}
        summary=${summary}
        formatValue=${(value) => formatScale(value, unit)}
        pick=${(day) => day.api_calls && pick(day)}
      />
      <${ChartTable}
        name=${t("Usage by day")}
        rows=${all.filter((day) => day.api_calls).reverse()}
        columns=${[
          [
            t("Day"),
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
  [t("Tokens read"), (row) => formatCount(row.prompt_tokens)],
  [t("Written"), (row) => formatCount(row.completion_tokens)],
  [t("Calls"), (row) => formatCount(row.api_calls)],
  [t("Cost"), formatCost],
];

// ------------------------------------------------------------------ what it was used for

function Detail({ data, unit, range, nothing, picked, setPicked }) {
  const { total } = data;
  const heading = useRef();
  useEffect(() => {
    if (!picked) return;
    heading.current?.scrollIntoView({ block: "start" });
    heading.current?.focus({ preventScroll: true });
  }, [picked]);
  if (!total.api_calls) return html`<${Empty}>${nothing}<//>`;
  const unknown = data.models.filter((row) => row.unpriced_calls).map((row) => row.id);
  return html`
    <dl class="figures">
      <div>
        <dt>${t("Cost")}</dt>
        <dd>${formatMoney(total.known_cost)}</dd>
        ${total.unpriced_calls > 0 && html`<dd class="small muted">${formatUnpriced(total)}</dd>`}
      </div>
      <div>
        <dt>${t("Tokens")}</dt>
        <dd>${formatCount(total.total_tokens)}</dd>
        <dd class="small muted">
          ${t("{read} read, {written} written", { read: formatCount(total.prompt_tokens), written: formatCount(total.completion_tokens) })}
        </dd>
      </div>
      <div>
        <dt>${t("Model calls")}</dt>
        <dd>${formatCount(total.api_calls)}</dd>
      </div>
    </dl>
    ${
      unknown.length > 0 &&
      html`
        <p class="small muted">${describeUnknown(unknown)}</p>
      `
    }
    ${SHARES.filter(([part]) => data[part]?.length).map(
      ([part, kind, words]) => html`
        <${Shares}
          key=${part}
          words=${words}
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

/** The models without a price, the first five by name. */
function describeUnknown(unknown) {
  const models = unknown.slice(0, 5).join(", ");
  if (unknown.length <= 5) return t("The price of {models} is not known.", { models });
  return t("The price of {models} and {count} more is not known.", {
    models,
    count: unknown.length - 5,
  });
}

/** Whose usage it is: a person, several who write in one chat, or nobody. */
const nameShare = (kind, id) =>
  id || (kind === "person" ? t("Nobody in particular") : t("No name"));

function Shares({ words, kind, rows, unit, pick, picked }) {
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
      ? t("Everything: {name}.", { name: first.name })
      : words.compare(shown.length, { name: first.name, amount: first.text });
  return html`
    <figure class="chart" aria-label=${words.title}>
      <h4>${words.title}</h4>
      <figcaption class="small muted">${summary}</figcaption>
      <${ShareChart} rows=${shown} pick=${pick} picked=${picked} />
      <${ChartTable}
        name=${words.table}
        rows=${shown}
        columns=${[[t("Name"), (row) => row.name], ...AMOUNTS]}
      />
    </figure>
  `;
}

function compareModels(count, values) {
  return tCount(
    count,
    "{name} comes first with {amount}, of {count} model.",
    "{name} comes first with {amount}, of {count} models.",
    values,
  );
}

function compareAgents(count, values) {
  return tCount(
    count,
    "{name} comes first with {amount}, of {count} agent.",
    "{name} comes first with {amount}, of {count} agents.",
    values,
  );
}

function comparePeople(count, values) {
  return tCount(
    count,
    "{name} comes first with {amount}, of {count} person.",
    "{name} comes first with {amount}, of {count} people.",
    values,
  );
}

/** `$3.30 (86%) plus 10 calls of unknown price` */
function formatShare(row, unit, total) {
  const percent = total > 0 ? Math.round((100 * amountOf(row, unit)) / total) : 0;
  if (!percent) return formatSum(row, unit);
  if (unit === "tokens")
    return t("{amount} ({percent}%)", { amount: formatTokens(row.total_tokens), percent });
  const known = t("{amount} ({percent}%)", { amount: formatMoney(row.known_cost), percent });
  return [known, formatUnpriced(row)].filter(Boolean).join(" ");
}
