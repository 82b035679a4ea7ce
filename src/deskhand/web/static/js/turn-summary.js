// One line on what a turn did, from its calls.

import { capitalize } from "./format.js";

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

const OTHERWISE_TOLD = new Set(["shell", "think", "ask_user", "run_program", "rehearse_program"]);

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
    said.push(`read ${read.length === 1 ? baseName(read[0]) : plural(read.length, "file")}`);
  if (looked) said.push(`looked around ${looked === 1 ? "once" : `${looked} times`}`);
  if (rehearsed) said.push(`rehearsed ${plural(rehearsed, "program")}`);
  if (changed.length > 2) said.push(`changed ${plural(changed.length, "file")}`);
  else if (changed.length) said.push(`changed ${changed.map(baseName).join(" and ")}`);
  if (ran) said.push(`ran ${plural(ran, "command")}`);
  for (const [name, times] of Object.entries(others))
    said.push(`used ${name}${times > 1 ? ` ${times} times` : ""}`);
  if (failed) said.push(`${plural(failed, "call")} failed`);
  if (denied) said.push(`${plural(denied, "call")} not allowed`);
  return capitalize(said.join(", "));
}

const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

function baseName(path) {
  return String(path).split("/").at(-1);
}
