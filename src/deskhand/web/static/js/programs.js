// The programs of small models: what they change and came to in words, and what a yes to one means.

import { Diff, named, visible } from "./diff.js";
import { html } from "./lib.js";
import { developer } from "./state.js";

export const RUN = "run_program",
  REHEARSE = "rehearse_program",
  SURVEY = "survey_files";
const VERBS = {
  new: ["make", "made"],
  changed: ["change", "changed"],
  deleted: ["delete", "deleted"],
  moved: ["move", "moved"],
  folder: ["make", "made"],
};

const isText = (value) => value === undefined || typeof value === "string";
const isChange = (one) =>
  typeof one?.path === "string" &&
  Object.hasOwn(VERBS, one.kind) &&
  [one.diff, one.to, one.loses].every(isText);

/** The arguments of a run, or null where they are not such. */
export function runOf(args) {
  const { program, changes = [] } = args ?? {};
  return typeof program === "string" && Array.isArray(changes) && changes.every(isChange)
    ? { program, changes }
    : null;
}

/** What a rehearsal came to, or null where its result says something else. */
export function cameOf(text) {
  try {
    const came = {
      said: "",
      stopped: "",
      failed: "",
      changes: [],
      calls: [],
      read: [],
      needs: null,
      ...JSON.parse(text),
    };
    const words = [came.said, came.stopped, came.failed],
      lists = [came.changes, came.calls, came.read];
    return words.every(isText) &&
      lists.every(Array.isArray) &&
      came.changes.every(isChange) &&
      came.calls.every(Boolean)
      ? came
      : null;
  } catch {
    return null;
  }
}

/** `changed notes.txt`, `made 2 files, deleted old.txt`; `past` where it is done. */
export function changeWords(changes, past = false) {
  const kinds = [...new Set(changes.map((one) => one.kind))];
  return (
    kinds
      .map((kind) =>
        alike(
          kind,
          changes.filter((one) => one.kind === kind),
          past ? 1 : 0,
        ),
      )
      .join(", ") || (past ? "changed nothing" : "change nothing")
  );
}

function alike(kind, [first, ...more], tense) {
  const verb = VERBS[kind][tense],
    thing = kind === "folder" ? "folder" : "file";
  if (more.length) return `${verb} ${more.length + 1} ${thing}s`;
  return `${verb} ${kind === "folder" ? "the folder " : ""}${named(first.path)}${first.to ? ` to ${named(first.to)}` : ""}`;
}

/** What a rehearsal showed, on one line. */
export function outcome(came) {
  if (came.stopped || came.failed)
    return `${came.stopped ? "stopped" : "failed"}: ${came.stopped || came.failed}`;
  if (came.needs) return `needs ${came.needs.tool} first`;
  const used = [...new Set(came.calls.map((call) => call.tool))].join(" and ");
  if (came.changes.length)
    return `would ${changeWords(came.changes)}${used ? `, and use ${used}` : ""}`;
  const said = came.said.split("\n").find((line) => line.trim());
  return used ? `would use ${used}` : said ? `says ${said.trim()}` : "comes to nothing";
}

/** The line of such a call, or null where it is another: what it does, or did. */
export function lineOf(item, status, text) {
  const over = status === "ok",
    running = status === "running";
  if (item.name === SURVEY)
    return over ? "Looked at the files" : running ? "Looking at the files" : "Look at the files";
  if (item.name === REHEARSE) {
    const came = over && cameOf(text);
    return came
      ? `Rehearsed: ${outcome(came)}`
      : over
        ? "Rehearsed"
        : running
          ? "Rehearsing a program"
          : "Rehearse a program";
  }
  const run = item.name === RUN && runOf(item.args);
  return run ? capital(changeWords(run.changes, over)) : null;
}

export const capital = (text) => text && text[0].toUpperCase() + text.slice(1);

/** What such a call shows when it is opened. */
export function Opened({ item, status, text }) {
  if (item.name === RUN) {
    const { program, changes } = runOf(item.args),
      said = text === "[no output]" ? "" : text;
    return html`<${Changes} changes=${changes} past=${status === "ok"} />
      ${text && html`<h4>What it said</h4>${said ? html`<pre tabindex="0">${visible(said)}</pre>` : html`<p class="small muted">Nothing</p>`}`}
      <${Program} text=${program} />`;
  }
  const came = cameOf(text),
    raw = text.startsWith("{");
  return html`${came ? html`<${Came} came=${came} />` : text && html`<h4>What came of it</h4>${raw ? html`<p class="small muted">More than can be shown here</p>` : html`<pre tabindex="0">${visible(text)}</pre>`}`}
    ${typeof item.args?.program === "string" && html`<${Program} text=${item.args.program} />`}
    ${raw && developer.value && html`<h4>Result</h4><pre tabindex="0">${visible(text)}</pre>`}`;
}

function Came({ came }) {
  const used = came.calls;
  return html`<h4>What came of it on a copy</h4>
    ${came.stopped && html`<p class="small">It stopped: ${visible(came.stopped)}</p>`}
    ${came.failed && html`<p class="small">It did not work: ${visible(came.failed)}</p>`}
    ${came.needs && html`<p class="small">It needs the answer of ${came.needs.tool} to go on.</p>`}
    ${came.said && html`<pre tabindex="0">${visible(came.said)}</pre>`}
    ${used.length > 0 && html`<ul class="changes">${used.map((call, i) => html`<li key=${i}>Would use ${call.tool}${call.words ? `: ${visible(call.words)}` : ""}</li>`)}</ul>`}
    ${came.changes.length > 0 && html`<${Changes} changes=${came.changes} would />`}
    ${!came.changes.length && !used.length && !came.stopped && !came.failed && html`<p class="small muted">It would change nothing.</p>`}
    ${came.read.length > 0 && html`<p class="small muted">Read ${came.read.map(named).join(", ")}</p>`}`;
}

export function Program({ text }) {
  return html`<h4>The program</h4><pre class="program" tabindex="0"><code>${visible(text)}</code></pre>`;
}

/** Each change in words, with what is lost by it, over its diff. */
export function Changes({ changes, past = false, would = false }) {
  return html`<ul class="changes">${changes.map((one, i) => html`<li key=${i}><p>${would ? `Would ${changeWords([one])}` : capital(changeWords([one], past))}${one.loses && html` <strong class="loses">${visible(one.loses)}</strong>`}</p><${Diff} text=${one.diff ?? ""} /></li>`)}</ul>`;
}

/** What is asked about a run: what is lost with the diffs of that, what else it does, the program, and the very call. */
export function Asked({ call, run }) {
  const lost = run.changes.filter((one) => one.loses),
    rest = run.changes.filter((one) => !one.loses);
  return html`<div class="asked" role="group" aria-label="What it would do">
    ${lost.length > 0 && html`<h4>This would be lost</h4><ul class="changes">${lost.map((one, i) => html`<li key=${i}><p>It <strong class="loses">${visible(one.loses)}</strong></p><${Diff} text=${one.diff ?? ""} /></li>`)}</ul>`}
    ${rest.length > 0 && (lost.length ? html`<details class="spelled"><summary>It would also ${changeWords(rest)}</summary><${Changes} changes=${rest} would /></details>` : html`<${Changes} changes=${rest} would />`)}
    ${!run.changes.length && html`<p class="small">It would change nothing.</p>`}
    <details class="spelled"><summary>The program</summary><pre class="program" tabindex="0"><code>${visible(run.program)}</code></pre></details>
    <details class="spelled"><summary>Exactly this</summary><pre tabindex="0" aria-label="Exactly this would be done">${visible(`${call.name} ${JSON.stringify(call.args)}`)}</pre></details></div>`;
}
