// What a call would do, in plain words: for the question about it. The exact bytes stand below.

import { t } from "./language.js";

const MAX_CHARS = 60;
// Control and format characters, among them those that hide text or turn its direction.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A value as it is shown within a sentence: short, and without characters that nobody sees. */
export function quote(value) {
  const text = String(value ?? "").replace(UNSEEN, "�");
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS - 1)}…` : text;
}

function hostOf(address) {
  try {
    return quote(new URL(address).host);
  } catch {
    return quote(address);
  }
}

/** The program that a command begins with; empty where that is not plain to see. */
function programOf(command) {
  const [first = ""] = String(command ?? "")
    .trim()
    .split(/\s+/);
  return /^[\w./+-]+$/.test(first) ? quote(first.split("/").at(-1)) : "";
}

const runCommand = ({ command }) => {
  const program = programOf(command);
  return program ? t("run a command that begins with {program}", { program }) : t("run a command");
};

const WORDS = {
  write_file: ({ path, mode }) =>
    mode === "append"
      ? t("add to the file {path}", { path: quote(path) })
      : t("write the file {path}", { path: quote(path) }),
  edit_file: ({ path }) =>
    path ? t("change the file {path}", { path: quote(path) }) : t("change files"),
  delete_file: ({ path }) => t("delete {path}", { path: quote(path) }),
  move_file: ({ path }) => t("move {path}", { path: quote(path) }),
  read_file: ({ path }) => t("read the file {path}", { path: quote(path) }),
  shell: runCommand,
  background_run: runCommand,
  request_host: ({ host }) => t("let its commands reach {host}", { host: quote(host) }),
  web_fetch: ({ url }) => t("open a page of {host}", { host: hostOf(url) }),
  web_search: ({ query }) => t("search the web for “{query}”", { query: quote(query) }),
  send_message: ({ channel }) =>
    channel ? t("send a message by {channel}", { channel: quote(channel) }) : t("send a message"),
  send_file: ({ path }) => t("send the file {path}", { path: quote(path) }),
  image_gen: () => t("have a picture made by a provider"),
  remote_agent: ({ name }) =>
    name ? t("ask the agent {name} elsewhere", { name: quote(name) }) : t("ask another agent"),
  run_skill: ({ skill, secrets }) =>
    secrets?.length
      ? t("let the skill {skill} use these secrets: {secrets}", {
          skill: quote(skill),
          secrets: quote([].concat(secrets).join(", ")),
        })
      : t("run a command of the skill {skill}", { skill: quote(skill) }),
  manage_users: () => t("change who may use Deskhand"),
  channel: ({ name }) =>
    name ? t("switch the channel {name}", { name: quote(name) }) : t("switch a channel"),
  control_center: () => t("switch what it may control on this machine"),
  restart: () => t("restart Deskhand"),
  undo_change: () => t("undo a change of files"),
  forget_memory: () => t("forget something that it remembers"),
  save_memory: () => t("remember something"),
  kv_set: ({ key }) => t("keep a value under {key}", { key: quote(key) }),
  kv_delete: ({ key }) => t("delete the value under {key}", { key: quote(key) }),
  mcp: () => t("change its MCP servers"),
  cron: () => t("change your jobs"),
  exit_plan_mode: () => t("follow its plan"),
};

/** What this call of a tool would do, as in “Allow it to …?”. */
export function describeCall({ name, args }) {
  const known = WORDS[name];
  if (known) return known(typeof args === "object" && args ? args : {});
  return t("use {tool}", { tool: quote(name).replaceAll("_", " ") });
}
