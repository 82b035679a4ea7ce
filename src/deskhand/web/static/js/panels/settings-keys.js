// The keys of the configuration: their groups, what is known of each, and values as people write
// them.

import { capitalize } from "../format.js";
import { language, t, tData } from "../language.js";
import { KEYS } from "./keys.js";
import { nameMode } from "./policy-names.js";

/** The groups, each with the beginnings of its keys. The longest beginning decides. */
export const GROUPS = [
  {
    title: t("Models and cost"),
    note: t("Which models answer, how they think, and how much they may use."),
    begins: [
      "defaults.models",
      "defaults.thinking",
      "defaults.temperature",
      "defaults.steps",
      "defaults.tokens",
      "defaults.output_tokens",
      "defaults.context_ratio",
      "defaults.cheap_model",
      "defaults.compact_model",
      "defaults.compact_temperature",
      "defaults.prompt",
      "defaults.preset",
      "budgets",
      "providers",
      "image_gen",
      "show_usage",
    ],
  },
  {
    title: t("What it may do"),
    note: t("Permissions, tools, the web, commands, sub-agents, and what can be undone."),
    begins: [
      "permission_mode",
      "policy",
      "defaults",
      "web_search",
      "web_fetch",
      "egress",
      "processes",
      "undo",
      "subagents",
      "machine_rounds",
      "mcp",
      "remote_agents",
      "plugins",
      "desktop",
    ],
  },
  {
    title: t("Channels and people"),
    note: t("Where people reach it, who they are, and voice messages."),
    begins: [
      "channels",
      "bindings",
      "roles",
      "reject_response",
      "web.sign_in",
      "speech",
      "defaults.voice",
    ],
  },
  {
    title: t("Memory and jobs"),
    note: t("What it remembers and learns, what it does by itself, and long work."),
    begins: ["memory", "reflection", "skills_review", "jobs", "heartbeat", "deep_work"],
  },
  {
    title: t("This machine"),
    note: t("Time zone, address of the page, storage, backups and logs."),
    begins: [
      "timezone",
      "web",
      "store",
      "backup",
      "log_level",
      "traces",
      "defaults.workspace",
      "defaults.on_server",
      "skills_folder",
      "env_file",
      "server_drives",
      "agent_server",
      "start_s",
      "compat",
    ],
  },
];
/** Headings within a group, by the section. */
const HEADINGS = {
  "": t("General"),
  agent_server: t("Agent server"),
  agents: t("Agent"),
  backup: t("Backup"),
  budgets: t("Budget"),
  channels: t("Channel"),
  deep_work: t("Deep work"),
  defaults: t("All agents"),
  desktop: t("Desktop"),
  egress: t("Network of commands"),
  heartbeat: t("Heartbeat"),
  image_gen: t("Pictures"),
  jobs: t("Jobs"),
  mcp: t("MCP server"),
  memory: t("Memory"),
  processes: t("Background commands"),
  providers: t("Provider"),
  reflection: t("Reflection"),
  remote_agents: t("Agent elsewhere"),
  roles: t("Role"),
  skills_review: t("Proposed skills"),
  speech: t("Speech"),
  subagents: t("Sub-agents"),
  terminal: t("Terminal"),
  traces: t("Traces"),
  undo: t("Undo"),
  web: t("The page and the API"),
  "web.sign_in": t("Sign-in"),
  web_fetch: t("Reading web pages"),
  web_search: t("Searching the web"),
};
/** Sections that hold only from the next start on. */
const RESTART = ["web", "channels", "compat"];
/** What the server shows in the place of a secret. */
export const HIDDEN = "[secret]";

export const readValue = (config, key) =>
  key.split(".").reduce((value, part) => value?.[part], config);

/** All keys of the configuration. */
export const ALL_KEYS = Object.keys(KEYS);

/** These keys, each with a NAME in it once for each name that the configuration has. */
export const expandKeys = (keys, config) => keys.flatMap((key) => fillNames(key, config));

function fillNames(key, config) {
  const at = key.indexOf(".NAME.");
  if (at < 0) return [key];
  const section = key.slice(0, at);
  const names = Object.keys(readValue(config, section) ?? {});
  // A limit for everything can be set before there is any other.
  if (section === "budgets" && !names.includes("all")) names.push("all");
  return names.flatMap((name) => fillNames(key.replace("NAME", name), config));
}

/** A key as the documents have it: with NAME, and what agents inherit under `defaults`. */
function plainKey(key) {
  const parts = key.split(".");
  if (parts[0] === "agents") return ["defaults", ...parts.slice(2)].join(".");
  if (KEYS[key]) return key;
  const named = [parts[0], "NAME", ...parts.slice(2)];
  if (parts.length === 5) named[3] = "NAME";
  return named.join(".");
}

/** What is known of a key: `{without, does, type, choices, restart}`, in English. */
export function describeKey(key) {
  const [without, does, type] = KEYS[plainKey(key)] ?? ["", "", "text"];
  const free = /^(integer|number|list|text|entries)/.test(type);
  return {
    without: key.startsWith("agents.") ? "as for all agents" : without,
    does,
    type,
    choices: free ? null : type.split(/, | or /),
    restart: RESTART.includes(key.split(".")[0]),
  };
}

/** What holds where the key is not set, as it is shown. */
export const nameDefault = ({ key, without }) =>
  key.startsWith("agents.") ? t("as for all agents") : tData(nameChoice(key, without));

/** A value that can be chosen, as it is shown: a permission mode has a name beside its id. */
export const nameChoice = (key, choice) =>
  key.endsWith("permission_mode") && nameMode(choice) !== choice
    ? `${nameMode(choice)} (${choice})`
    : choice;

export function findGroup(key) {
  for (let begin = plainKey(key); begin; begin = begin.slice(0, begin.lastIndexOf("."))) {
    const found = GROUPS.find((group) => group.begins.includes(begin));
    if (found) return found;
    if (!begin.includes(".")) break;
  }
  return GROUPS.at(-1);
}

/** What stands above the keys of a section: `Agent careful`, `Channel mine`, `Backup`. */
export function nameSection(key) {
  const parts = key.split(".");
  if (parts.length === 1) return HEADINGS[""];
  const [section, name] = parts;
  if (section === "budgets" && name === "all") return t("Budget for everything");
  const heading =
    HEADINGS[`${section}.${name}`] ?? HEADINGS[section] ?? capitalize(section.replaceAll("_", " "));
  const named = section === "agents" || plainKey(key).startsWith(`${section}.NAME.`);
  return named ? `${heading} ${name}` : heading;
}

/** A value as it is typed: a list of words with commas, anything else that is no text as JSON. */
export function formatSetting(value) {
  if (value === undefined || value === HIDDEN) return "";
  if (typeof value === "string") return value;
  const words = Array.isArray(value) && value.length > 0 && value.every((one) => isPlain(one));
  return words ? value.join(", ") : JSON.stringify(value);
}

const isPlain = (one) => typeof one === "string" && one !== "" && !/[,[\]{}]|^\s|\s$/.test(one);

/** What was typed, as the type of its key has it; null for nothing, which is the default. */
export function parseSetting(text, type) {
  const typed = text.trim();
  if (typed === "") return null;
  if (type === "true or false") return typed === "true" || (typed === "false" ? false : typed);
  if (/^(integer|number)/.test(type)) return Number.isNaN(Number(typed)) ? typed : Number(typed);
  if (/^[[{]/.test(typed)) {
    try {
      return JSON.parse(typed);
    } catch {
      return typed; // the server says what is wrong with it
    }
  }
  return type.startsWith("list") ? typed.split(",").map((one) => one.trim()) : typed;
}

/** What is wrong with what was typed, where that shows without the server; '' for nothing. */
export function checkTyped(text, type) {
  const number = Number(text);
  if (text.trim() === "") return "";
  if (type.startsWith("integer") && !Number.isInteger(number)) return t("Write a whole number.");
  if (type.startsWith("number") && Number.isNaN(number)) return t("Write a number, such as 0.5.");
  return "";
}

/** What the server says of a value, without the names of the file and the key before it. */
export const plainProblem = (message) => message.replace(/^'[^']*': ('[^']*': )?/, "");

/** A type in words; '' for one that needs none. */
export function nameType(type) {
  if (type === "list of entries") return t("a list in JSON");
  if (type.startsWith("list")) return t("several with commas between them");
  const [name, bounds] = type.split(", "); // "integer, ≥ 1 and ≤ 86,400"
  if (name !== "integer" && name !== "number") return "";
  const kind = name === "integer" ? t("a whole number") : t("a number");
  if (!bounds) return kind;
  const [low, high] = bounds.split(" and ").map(formatBound);
  return high ? t("{kind}, {low} and {high}", { kind, low, high }) : `${kind}, ${low}`;
}

/** `≥ 86,400` as numbers are written in the reader's language. */
const formatBound = (bound) =>
  bound.replace(/\d+(,\d+)+/, (digits) =>
    Number(digits.replaceAll(",", "")).toLocaleString(language),
  );

/** Whether a value is set that is not the default. */
export function isChanged(value, without) {
  if (value === undefined) return false;
  return JSON.stringify(value) !== without && formatSetting(value) !== without;
}
