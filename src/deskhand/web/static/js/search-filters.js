// Filters of the search: words such as `from:me` in its field, and the buttons that write them there.

import { get } from "./api.js";
import { Icon } from "./icons.js";
import { locale, t } from "./language.js";
import { html, signal, useEffect } from "./lib.js";
import { openMenu } from "./menu.js";
import { promptText } from "./prompt.js";

const FILTER = /^(from|after|before|agent|archived):(.*)$/i;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const SPEAKERS = [
  ["", t("Anybody")],
  ["me", t("Me")],
  ["agent", t("The agent")],
];

/** The names of the agents that this person may know; empty until they are loaded. */
const agentNames = signal([]);

async function loadAgentNames() {
  try {
    agentNames.value = (await get("/api/agents")).map((agent) => agent.name);
  } catch {
    /* any name is taken, and finds what there is */
  }
}

/**
 * What is searched for: `words` without the filters among them, the filters, and the `problem` where
 * one cannot be understood. Dates are texts such as 2026-11-01; "" means no such filter.
 */
export function parseSearch(text, agents = agentNames.value) {
  const found = { from: "", after: "", before: "", agent: "", archived: "" };
  const words = [];
  let problem = "";
  for (const part of text.split(/\s+/).filter(Boolean)) {
    const [, name, value] = FILTER.exec(part) ?? [];
    if (name === undefined) {
      words.push(part);
      continue;
    }
    const key = name.toLowerCase();
    const given = key === "agent" ? value : value.toLowerCase();
    const wrong = findProblem(key, given, agents);
    found[key] = wrong ? "" : given;
    problem ||= wrong;
  }
  if (!problem && found.after && found.before && found.after >= found.before)
    problem = t("No day is left between after:{after} and before:{before}.", {
      after: found.after,
      before: found.before,
    });
  return { words: words.join(" "), ...found, problem };
}

/** Why this filter cannot be understood, in words; "" where it can. */
function findProblem(key, value, agents) {
  if (key === "from")
    return ["me", "agent"].includes(value)
      ? ""
      : t("Write from:me or from:agent, not “from:{value}”.", { value });
  if (key === "archived")
    return ["yes", "no"].includes(value) ? "" : t("Write archived:yes or archived:no.");
  if (key === "agent")
    return !agents.length || agents.includes(value)
      ? ""
      : t("There is no agent “{name}”. Choose one of: {names}.", {
          name: value,
          names: agents.join(", "),
        });
  return startOfDay(value) === null
    ? t("“{value}” is not a date. Write {example}, for example.", {
        value,
        example: `${key}:${formatDay(new Date())}`,
      })
    : "";
}

/** When this day begins, in seconds since the epoch; null where there is no such day. */
function startOfDay(text) {
  const [, year, month, day] = (DATE.exec(text) ?? []).map(Number);
  const date = new Date(year, month - 1, day);
  if (Number.isNaN(date.getTime()) || date.getMonth() !== month - 1) return null;
  return Math.max(0, date.getTime() / 1000);
}

/** The filters as the API takes them. */
export function filterParameters({ from, after, before, agent, archived }) {
  const given = new URLSearchParams();
  if (from) given.set("by", from);
  if (after) given.set("since", startOfDay(after));
  if (before) given.set("until", startOfDay(before));
  if (agent) given.set("agent", agent);
  if (archived === "no") given.set("archived", "false");
  return given.size ? `&${given}` : "";
}

/** The text of the field with these filters instead of those that it has by these names. */
function writeFilters(text, filters) {
  const kept = text
    .split(/\s+/)
    .filter((part) => part && !(FILTER.exec(part)?.[1].toLowerCase() in filters));
  const added = Object.entries(filters)
    .filter(([, value]) => value)
    .map(([key, value]) => `${key}:${value}`);
  return [...kept, ...added].join(" ");
}

const formatDay = (date) =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part) => String(part).padStart(2, "0"))
    .join("-");

/** The spans of time that have a name, by the day on which they begin. */
function listSpans() {
  const now = new Date();
  const [year, month, day] = [now.getFullYear(), now.getMonth(), now.getDate()];
  return [
    ["", t("Any time")],
    [formatDay(now), t("Today")],
    [formatDay(new Date(year, month, day - 6)), t("This week"), t("Today and the 6 days before")],
    [formatDay(new Date(year, month, 1)), t("This month")],
  ];
}

/** The time that is searched, as its button calls it. */
function nameTime({ after, before }) {
  const span = listSpans().find(([begins]) => begins === after);
  if (!before) return span ? span[1] : t("Since {date}", { date: showDay(after) });
  return after
    ? t("{from} to {until}", { from: showDay(after), until: showDay(before) })
    : t("Before {date}", { date: showDay(before) });
}

function showDay(text) {
  const start = startOfDay(text);
  if (start === null) return text;
  return new Date(start * 1000).toLocaleDateString(locale, { dateStyle: "medium" });
}

/** The buttons below the field; `write(text)` replaces what stands in it. */
export function SearchFilters({ text, write }) {
  useEffect(() => {
    loadAgentNames();
  }, []);
  const agents = agentNames.value;
  const wanted = parseSearch(text);
  const set = (filters) => write(writeFilters(text, filters));
  const isWithArchived = wanted.archived !== "no";
  return html`
    <div class="filters" role="group" aria-label=${t("Filters of the search")}>
      <${Filter}
        what=${t("Who said it")}
        value=${SPEAKERS.find(([id]) => id === wanted.from)?.[1] ?? wanted.from}
        active=${wanted.from}
        items=${SPEAKERS.map(([id, label]) => ({
          label,
          checked: id === wanted.from,
          run: () => set({ from: id }),
        }))}
      />
      <${Filter}
        what=${t("When")}
        value=${nameTime(wanted)}
        active=${wanted.after || wanted.before}
        items=${listTimes(wanted, set)}
      />
      ${
        (agents.length > 1 || wanted.agent) &&
        html`
          <${Filter}
            what=${t("Which agent")}
            value=${wanted.agent || t("Any agent")}
            active=${wanted.agent}
            items=${["", ...agents].map((name) => ({
              label: name || t("Any agent"),
              checked: name === wanted.agent,
              run: () => set({ agent: name }),
            }))}
          />
        `
      }
      <button
        type="button"
        class=${`filter ${isWithArchived ? "" : "off"}`}
        aria-pressed=${String(isWithArchived)}
        onClick=${() => set({ archived: isWithArchived ? "no" : "" })}
      >
        ${isWithArchived && html`<${Icon} name="check" />`}${t("Also archived")}
      </button>
      <p class="tiny muted">
        ${t("You can also type from:me, after:{date}, before:… or agent:NAME.", {
          date: listSpans()[3][0],
        })}
      </p>
    </div>
  `;
}

function listTimes({ after, before }, set) {
  const ask = async (title, key) => {
    const day = await promptText({ title, label: t("Date"), type: "date", button: t("Search") });
    if (day) set({ [key]: day });
  };
  return [
    ...listSpans().map(([begins, label, note]) => ({
      label,
      note,
      checked: !before && begins === after,
      run: () => set({ after: begins, before: "" }),
    })),
    { label: t("Since a date …"), run: () => ask(t("What was said since"), "after") },
    { label: t("Before a date …"), run: () => ask(t("What was said before"), "before") },
  ];
}

function Filter({ what, value, active, items }) {
  return html`
    <button
      type="button"
      class=${`filter ${active ? "active" : ""}`}
      aria-haspopup="menu"
      aria-label=${`${what}: ${value}`}
      onClick=${(event) => openMenu(event.currentTarget, what, items)}
    >
      <span class="cut">${value}</span><${Icon} name="down" />
    </button>
  `;
}
