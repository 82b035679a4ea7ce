// The programs of small models: what they change, what came of them, and the question before a run.

import { Diff, displayPath, escapeInvisible } from "./diff.js";
import { capitalize } from "./format.js";
import { html } from "./lib.js";
import { developer } from "./state.js";

export const RUN = "run_program";
export const REHEARSE = "rehearse_program";
export const SURVEY = "survey_files";
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

/** The arguments of a run, or null where they are something else. */
export function parseRun(args) {
  const { program, changes = [] } = args ?? {};
  if (typeof program !== "string" || !Array.isArray(changes)) return null;
  return changes.every(isChange) ? { program, changes } : null;
}

/** The outcome of a rehearsal, or null where the text is something else. */
export function parseOutcome(text) {
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
    const words = [came.said, came.stopped, came.failed];
    const lists = [came.changes, came.calls, came.read];
    if (!words.every(isText) || !lists.every(Array.isArray)) return null;
    return came.changes.every(isChange) && came.calls.every(Boolean) ? came : null;
  } catch {
    return null;
  }
}

/** `changed notes.txt`, `made 2 files, deleted old.txt`; `past` where it is done. */
export function describeChanges(changes, past = false) {
  if (!changes.length) return past ? "changed nothing" : "change nothing";
  const kinds = [...new Set(changes.map((one) => one.kind))];
  const described = kinds.map((kind) => {
    const alike = changes.filter((one) => one.kind === kind);
    return describeKind(kind, alike, past ? 1 : 0);
  });
  return described.join(", ");
}

function describeKind(kind, [first, ...more], tense) {
  const verb = VERBS[kind][tense];
  if (more.length) return `${verb} ${more.length + 1} ${kind === "folder" ? "folders" : "files"}`;
  const what = `${kind === "folder" ? "the folder " : ""}${displayPath(first.path)}`;
  return `${verb} ${what}${first.to ? ` to ${displayPath(first.to)}` : ""}`;
}

/** The outcome of a rehearsal, on one line. */
export function describeOutcome(came) {
  if (came.stopped) return `stopped: ${came.stopped}`;
  if (came.failed) return `failed: ${came.failed}`;
  if (came.needs) return `needs ${came.needs.tool} first`;
  const used = [...new Set(came.calls.map((call) => call.tool))].join(" and ");
  if (came.changes.length)
    return `would ${describeChanges(came.changes)}${used ? `, and use ${used}` : ""}`;
  if (used) return `would use ${used}`;
  const said = came.said.split("\n").find((line) => line.trim());
  return said ? `says ${said.trim()}` : "comes to nothing";
}

/** What such a call does or did, on one line; null for a call of another tool. */
export function lineOf(item, status, text) {
  if (item.name === SURVEY) return describeSurvey(status);
  if (item.name === REHEARSE) return describeRehearsal(status, text);
  const run = item.name === RUN && parseRun(item.args);
  return run ? capitalize(describeChanges(run.changes, status === "ok")) : null;
}

function describeSurvey(status) {
  if (status === "ok") return "Looked at the files";
  return status === "running" ? "Looking at the files" : "Look at the files";
}

function describeRehearsal(status, text) {
  if (status !== "ok") return status === "running" ? "Rehearsing a program" : "Rehearse a program";
  const came = parseOutcome(text);
  return came ? `Rehearsed: ${describeOutcome(came)}` : "Rehearsed";
}

/** What such a call shows when it is opened. */
export function ProgramDetails({ item, status, text }) {
  if (item.name === RUN) {
    const { program, changes } = parseRun(item.args);
    const said = text === "[no output]" ? "" : text;
    return html`
      <${Changes} changes=${changes} past=${status === "ok"} />
      ${
        text &&
        html`
          <h4>What it said</h4>
          ${
            said
              ? html`<pre tabindex="0">${escapeInvisible(said)}</pre>`
              : html`<p class="small muted">Nothing</p>`
          }
        `
      }
      <${Program} text=${program} />
    `;
  }
  const came = parseOutcome(text);
  const raw = text.startsWith("{");
  return html`
    ${
      came
        ? html`<${RehearsalOutcome} came=${came} />`
        : text &&
          html`
            <h4>What came of it</h4>
            ${
              raw
                ? html`<p class="small muted">Too long to show</p>`
                : html`<pre tabindex="0">${escapeInvisible(text)}</pre>`
            }
          `
    }
    ${typeof item.args?.program === "string" && html`<${Program} text=${item.args.program} />`}
    ${
      raw &&
      developer.value &&
      html`<h4>Result</h4><pre tabindex="0">${escapeInvisible(text)}</pre>`
    }
  `;
}

function RehearsalOutcome({ came }) {
  const used = came.calls;
  return html`
    <h4>What came of it on a copy</h4>
    ${came.stopped && html`<p class="small">It stopped: ${escapeInvisible(came.stopped)}</p>`}
    ${came.failed && html`<p class="small">It failed: ${escapeInvisible(came.failed)}</p>`}
    ${came.needs && html`<p class="small">It needs the answer of ${came.needs.tool} to go on.</p>`}
    ${came.said && html`<pre tabindex="0">${escapeInvisible(came.said)}</pre>`}
    ${
      used.length > 0 &&
      html`
        <ul class="changes">
          ${used.map(
            (call, i) => html`
              <li key=${i}>
                Would use ${call.tool}${call.words ? `: ${escapeInvisible(call.words)}` : ""}
              </li>
            `,
          )}
        </ul>
      `
    }
    ${came.changes.length > 0 && html`<${Changes} changes=${came.changes} would />`}
    ${
      !came.changes.length &&
      !used.length &&
      !came.stopped &&
      !came.failed &&
      html`<p class="small muted">It would change nothing.</p>`
    }
    ${
      came.read.length > 0 &&
      html`<p class="small muted">Read ${came.read.map(displayPath).join(", ")}</p>`
    }
  `;
}

export function Program({ text }) {
  return html`
    <h4>The program</h4>
    <pre class="program" tabindex="0"><code>${escapeInvisible(text)}</code></pre>
  `;
}

/** Each change in words, with what is lost by it, over its diff. */
export function Changes({ changes, past = false, would = false }) {
  return html`
    <ul class="changes">
      ${changes.map(
        (one, i) => html`
          <li key=${i}>
            <p>
              ${
                would ? `Would ${describeChanges([one])}` : capitalize(describeChanges([one], past))
              }
              ${one.loses && html` <strong class="loses">${escapeInvisible(one.loses)}</strong>`}
            </p>
            <${Diff} text=${one.diff ?? ""} />
          </li>
        `,
      )}
    </ul>
  `;
}

/** The question before a run: what is lost, what else changes, the program and the exact call. */
export function RunApproval({ call, run }) {
  const lost = run.changes.filter((one) => one.loses);
  const rest = run.changes.filter((one) => !one.loses);
  return html`
    <div class="asked" role="group" aria-label="What it would do">
      ${
        lost.length > 0 &&
        html`
          <h4>This would be lost</h4>
          <ul class="changes">
            ${lost.map(
              (one, i) => html`
                <li key=${i}>
                  <p>It <strong class="loses">${escapeInvisible(one.loses)}</strong></p>
                  <${Diff} text=${one.diff ?? ""} />
                </li>
              `,
            )}
          </ul>
        `
      }
      ${
        rest.length > 0 &&
        (lost.length
          ? html`
              <details class="spelled">
                <summary>It would also ${describeChanges(rest)}</summary>
                <${Changes} changes=${rest} would />
              </details>
            `
          : html`<${Changes} changes=${rest} would />`)
      }
      ${!run.changes.length && html`<p class="small">It would change nothing.</p>`}
      <details class="spelled">
        <summary>The program</summary>
        <pre class="program" tabindex="0"><code>${escapeInvisible(run.program)}</code></pre>
      </details>
      <details class="spelled">
        <summary>Exact call</summary>
        <pre tabindex="0" aria-label="The exact call">
          ${escapeInvisible(`${call.name} ${JSON.stringify(call.args)}`)}
        </pre>
      </details>
    </div>
  `;
}
