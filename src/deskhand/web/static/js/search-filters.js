// Filters of the search: words such as `from:me` in its field, and the buttons that write them there.

import { get } from "./api.js";
import { Icon } from "./icons.js";
import { html, signal, useEffect } from "./lib.js";
import { openMenu } from "./menu.js";
import { promptText } from "./prompt.js";

const FILTER = /^(from|after|before|agent|archived):(.*)$/i;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const SPEAKERS = [
  ["", "Anybody"],
  ["me", "Me"],
  ["agent", "The agent"],
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
    problem = `No day is left between after:${found.after} and before:${found.before}.`;
  return { words: words.join(" "), ...found, problem };
}

/** Why this filter cannot be understood, in words; "" where it can. */
function findProblem(key, value, agents) {
  if (key === "from")
    return ["me", "agent"].includes(value)
      ? ""
      : `Write from:me or from:agent, not “from:${value}”.`;
  if (key === "archived")
    return ["yes", "no"].includes(value) ? "" : `Write archived:yes or archived:no.`;
  if (key === "agent")
    return !agents.length || agents.includes(value)
      ? ""
      : `There is no agent “${value}”. Choose one of: ${agents.join(", ")}.`;
  return startOfDay(value) === null
    ? `“${value}” is not a date. Write ${key}:${formatDay(new Date())}, for example.`
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
    ["", "Any time"],
    [formatDay(now), "Today"],
    [formatDay(new Date(year, month, day - 6)), "This week", "Today and the 6 days before"],
    [formatDay(new Date(year, month, 1)), "This month"],
  ];
}

/** The time that is searched, as its button calls it. */
function nameTime({ after, before }) {
  const span = listSpans().find(([begins]) => begins === after);
  if (!before) return span ? span[1] : `Since ${showDay(after)}`;
  return after ? `${showDay(after)} to ${showDay(before)}` : `Before ${showDay(before)}`;
}

function showDay(text) {
  const start = startOfDay(text);
  if (start === null) return text;
  return new Date(start * 1000).toLocaleDateString(undefined, { dateStyle: "medium" });
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
    <div class="filters" role="group" aria-label="Filters of the search">
      <${Filter}
        what="Who said it"
        value=${SPEAKERS.find(([id]) => id === wanted.from)?.[1] ?? wanted.from}
        active=${wanted.from}
        items=${SPEAKERS.map(([id, label]) => ({
          label,
          checked: id === wanted.from,
          run: () => set({ from: id }),
        }))}
      />
      <${Filter}
        what="When"
        value=${nameTime(wanted)}
        active=${wanted.after || wanted.before}
        items=${listTimes(wanted, set)}
      />
      ${
        (agents.length > 1 || wanted.agent) &&
        html`
          <${Filter}
            what="Which agent"
            value=${wanted.agent || "Any agent"}
            active=${wanted.agent}
            items=${["", ...agents].map((name) => ({
              label: name || "Any agent",
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
        ${isWithArchived && html`<${Icon} name="check" />`}Also archived
      </button>
      <p class="tiny muted">
        You can also type from:me, after:${listSpans()[3][0]}, before:… or agent:NAME.
      </p>
    </div>
  `;
}

function listTimes({ after, before }, set) {
  const ask = async (title, key) => {
    const day = await promptText({ title, label: "Date", type: "date", button: "Search" });
    if (day) set({ [key]: day });
  };
  return [
    ...listSpans().map(([begins, label, note]) => ({
      label,
      note,
      checked: !before && begins === after,
      run: () => set({ after: begins, before: "" }),
    })),
    { label: "Since a date …", run: () => ask("What was said since", "after") },
    { label: "Before a date …", run: () => ask("What was said before", "before") },
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
