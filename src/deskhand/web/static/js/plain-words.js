// What a call would do, in plain words: for the question about it. The exact bytes stand below.

const MAX_CHARS = 60;
// Control and format characters, among them those that hide text or turn its direction.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A value as it is shown within a sentence: short, and without characters that nobody sees. */
function quote(value) {
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
  return program ? `run a command that begins with ${program}` : "run a command";
};

const WORDS = {
  write_file: ({ path, mode }) =>
    mode === "append" ? `add to the file ${quote(path)}` : `write the file ${quote(path)}`,
  edit_file: ({ path }) => (path ? `change the file ${quote(path)}` : "change files"),
  delete_file: ({ path }) => `delete ${quote(path)}`,
  move_file: ({ path }) => `move ${quote(path)}`,
  read_file: ({ path }) => `read the file ${quote(path)}`,
  shell: runCommand,
  background_run: runCommand,
  request_host: ({ host }) => `let its commands reach ${quote(host)}`,
  web_fetch: ({ url }) => `open a page of ${hostOf(url)}`,
  web_search: ({ query }) => `search the web for “${quote(query)}”`,
  send_message: ({ channel }) =>
    channel ? `send a message by ${quote(channel)}` : "send a message",
  send_file: ({ path }) => `send the file ${quote(path)}`,
  image_gen: () => "have a picture made by a provider",
  remote_agent: ({ name }) =>
    name ? `ask the agent ${quote(name)} elsewhere` : "ask another agent",
  run_skill: ({ skill }) => `run a command of the skill ${quote(skill)}`,
  manage_users: () => "change who may use Deskhand",
  channel: ({ name }) => (name ? `switch the channel ${quote(name)}` : "switch a channel"),
  control_center: () => "switch what it may control on this machine",
  restart: () => "restart Deskhand",
  undo_change: () => "undo a change of files",
  forget_memory: () => "forget something that it remembers",
  save_memory: () => "remember something",
  kv_set: ({ key }) => `keep a value under ${quote(key)}`,
  kv_delete: ({ key }) => `delete the value under ${quote(key)}`,
  mcp: () => "change its MCP servers",
  cron: () => "change your jobs",
};

/** What this call of a tool would do, as in “Allow it to …?”. */
export function describeCall({ name, args }) {
  const known = WORDS[name];
  if (known) return known(typeof args === "object" && args ? args : {});
  return `use ${quote(name).replaceAll("_", " ")}`;
}
