// One line on what a turn did, from its calls.

import { capitalize } from "./format.js";
import { t, tCount } from "./language.js";

const READS = new Set([
  "read_file",
  "list_files",
  "search_files",
  "list_symbols",
  "find_references",
  "read_output",
  "survey_files",
]);

const WRITES = new Set(["write_file", "edit_file"]);

const OTHERWISE_TOLD = new Set([
  "shell",
  "think",
  "ask_user",
  "send_file",
  "exit_plan_mode",
  "run_program",
  "rehearse_program",
]);

/** One sentence on what a turn did, from its calls and nothing else. '' where it called no tool. */
export function summarizeTurn(turn) {
  const calls = turn.items.filter((item) => item.kind === "tool");
  const done = calls.filter((call) => call.status === "ok");
  const files = (names) =>
    [
      ...new Set(done.filter((call) => names.has(call.name)).map((call) => call.args?.path ?? "")),
    ].filter(Boolean);
  const byPrograms = done
    .filter((call) => call.name === "run_program")
    .flatMap((call) => call.args?.changes ?? [])
    .map((one) => one?.to || one?.path)
    .filter(Boolean);
  const read = files(new Set(["read_file"]));
  const changed = [...new Set([...files(WRITES), ...byPrograms])];
  const sent = files(new Set(["send_file"]));
  const rehearsed = done.filter((call) => call.name === "rehearse_program").length;
  const looked = done.filter((call) => READS.has(call.name) && call.name !== "read_file").length;
  const ran = calls.filter((call) => call.name === "shell" && call.status !== "denied").length;
  const others = {};
  for (const call of done)
    if (!READS.has(call.name) && !WRITES.has(call.name) && !OTHERWISE_TOLD.has(call.name))
      others[call.name] = (others[call.name] ?? 0) + 1;
  const denied = calls.filter((call) => call.status === "denied").length;
  const failed = calls.filter((call) => call.status === "error" && call.name !== "shell").length;
  const said = [];
  if (read.length)
    said.push(
      tCount(read.length, "read {path}", "read {count} files", { path: baseName(read[0]) }),
    );
  if (looked) said.push(tCount(looked, "looked around once", "looked around {count} times"));
  if (rehearsed)
    said.push(tCount(rehearsed, "rehearsed {count} program", "rehearsed {count} programs"));
  if (changed.length) said.push(describeChanged(changed));
  if (sent.length)
    said.push(
      tCount(sent.length, "sent {path}", "sent {count} files", { path: baseName(sent[0]) }),
    );
  if (ran) said.push(tCount(ran, "ran {count} command", "ran {count} commands"));
  for (const [name, times] of Object.entries(others))
    said.push(tCount(times, "used {name}", "used {name} {count} times", { name }));
  if (failed) said.push(tCount(failed, "{count} call failed", "{count} calls failed"));
  if (denied) said.push(tCount(denied, "{count} call not allowed", "{count} calls not allowed"));
  return capitalize(said.join(", "));
}

function describeChanged(files) {
  const [path, other] = files.map(baseName);
  if (files.length === 2) return t("changed {path} and {other}", { path, other });
  return tCount(files.length, "changed {path}", "changed {count} files", { path });
}

function baseName(path) {
  return String(path).split("/").at(-1);
}
