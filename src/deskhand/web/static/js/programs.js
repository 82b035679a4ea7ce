// The programs of small models: what they change, what came of them, and the question before a run.

import { Diff, displayPath, escapeInvisible } from "./diff.js";
import { capitalize, formatList } from "./format.js";
import { t, tCount, tRich, tServer } from "./language.js";
import { html } from "./lib.js";
import { developer } from "./state.js";

export const RUN = "run_program";
export const REHEARSE = "rehearse_program";
export const SURVEY = "survey_files";
/** What is done to one or more files, and what was: by the kind of the change. */
const WORDS = {
  new: [
    (count, values) => tCount(count, "make {path}", "make {count} files", values),
    (count, values) => tCount(count, "made {path}", "made {count} files", values),
  ],
  changed: [
    (count, values) => tCount(count, "change {path}", "change {count} files", values),
    (count, values) => tCount(count, "changed {path}", "changed {count} files", values),
  ],
  deleted: [
    (count, values) => tCount(count, "delete {path}", "delete {count} files", values),
    (count, values) => tCount(count, "deleted {path}", "deleted {count} files", values),
  ],
  moved: [
    (count, values) => tCount(count, "move {path} to {target}", "move {count} files", values),
    (count, values) => tCount(count, "moved {path} to {target}", "moved {count} files", values),
  ],
  folder: [
    (count, values) => tCount(count, "make the folder {path}", "make {count} folders", values),
    (count, values) => tCount(count, "made the folder {path}", "made {count} folders", values),
  ],
};

const isText = (value) => value === undefined || typeof value === "string";
const isChange = (one) =>
  typeof one?.path === "string" &&
  Object.hasOwn(WORDS, one.kind) &&
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
  if (!changes.length) return past ? t("changed nothing") : t("change nothing");
  const kinds = [...new Set(changes.map((one) => one.kind))];
  const described = kinds.map((kind) => {
    const alike = changes.filter((one) => one.kind === kind);
    return describeKind(kind, alike, past ? 1 : 0);
  });
  return described.join(", ");
}

function describeKind(kind, alike, tense) {
  const [{ path, to = "" }] = alike;
  const values = { path: displayPath(path), target: displayPath(to) };
  return WORDS[kind][tense](alike.length, values);
}

/** The outcome of a rehearsal, on one line. */
export function describeOutcome(came) {
  if (came.stopped) return t("stopped: {reason}", { reason: came.stopped });
  if (came.failed) return t("failed: {reason}", { reason: came.failed });
  if (came.needs) return t("needs {tool} first", { tool: came.needs.tool });
  const tools = formatList([...new Set(came.calls.map((call) => call.tool))]);
  if (came.changes.length) {
    const changes = describeChanges(came.changes);
    return tools
      ? t("would {changes}, and use {tools}", { changes, tools })
      : t("would {changes}", { changes });
  }
  if (tools) return t("would use {tools}", { tools });
  const said = came.said.split("\n").find((line) => line.trim());
  return said ? t("says {said}", { said: said.trim() }) : t("comes to nothing");
}

/** What such a call does or did, on one line; null for a call of another tool. */
export function lineOf(item, status, text) {
  if (item.name === SURVEY) return describeSurvey(status);
  if (item.name === REHEARSE) return describeRehearsal(status, text);
  const run = item.name === RUN && parseRun(item.args);
  return run ? capitalize(describeChanges(run.changes, status === "ok")) : null;
}

function describeSurvey(status) {
  if (status === "ok") return t("Looked at the files");
  return status === "running" ? t("Looking at the files") : t("Look at the files");
}

/** What a rehearsal does or did; `last`: as the last of several, behind their number. */
export function describeRehearsal(status, text, last = false) {
  if (status !== "ok")
    return status === "running" ? t("Rehearsing a program") : t("Rehearse a program");
  const came = parseOutcome(text);
  if (!came) return t("Rehearsed");
  const outcome = describeOutcome(came);
  return last ? t("the last {outcome}", { outcome }) : t("Rehearsed: {outcome}", { outcome });
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
          <h4>${t("What it said")}</h4>
          ${
            said
              ? html`<pre tabindex="0">${escapeInvisible(said)}</pre>`
              : html`<p class="small muted">${t("Nothing")}</p>`
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
            <h4>${t("What came of it")}</h4>
            ${
              raw
                ? html`<p class="small muted">${t("Too long to show")}</p>`
                : html`<pre tabindex="0">${escapeInvisible(text)}</pre>`
            }
          `
    }
    ${typeof item.args?.program === "string" && html`<${Program} text=${item.args.program} />`}
    ${
      raw &&
      developer.value &&
      html`<h4>${t("Result")}</h4><pre tabindex="0">${escapeInvisible(text)}</pre>`
    }
  `;
}

function RehearsalOutcome({ came }) {
  const used = came.calls;
  return html`
    <h4>${t("What came of it on a copy")}</h4>
    ${
      came.stopped &&
      html`
        <p class="small">
          ${t("It stopped: {reason}", { reason: escapeInvisible(came.stopped) })}
        </p>
      `
    }
    ${
      came.failed &&
      html`
        <p class="small">
          ${t("It failed: {reason}", { reason: escapeInvisible(came.failed) })}
        </p>
      `
    }
    ${
      came.needs &&
      html`
        <p class="small">
          ${t("It needs the answer of {tool} to go on.", { tool: came.needs.tool })}
        </p>
      `
    }
    ${came.said && html`<pre tabindex="0">${escapeInvisible(came.said)}</pre>`}
    ${
      used.length > 0 &&
      html`
        <ul class="changes">
          ${used.map(
            (call, i) => html`
              <li key=${i}>
                ${t("Would use {tool}", { tool: call.tool })}
                ${call.words && `: ${escapeInvisible(call.words)}`}
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
      html`<p class="small muted">${t("It would change nothing.")}</p>`
    }
    ${
      came.read.length > 0 &&
      html`
        <p class="small muted">
          ${t("Read {paths}", { paths: came.read.map(displayPath).join(", ") })}
        </p>
      `
    }
  `;
}

export function Program({ text }) {
  return html`
    <h4>${t("The program")}</h4>
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
                would
                  ? t("Would {changes}", { changes: describeChanges([one]) })
                  : capitalize(describeChanges([one], past))
              }
              ${one.loses && html` <strong class="loses">${escapeInvisible(tServer(one.loses))}</strong>`}
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
    <div class="asked" role="group" aria-label=${t("What it would do")}>
      ${
        lost.length > 0 &&
        html`
          <h4>${t("This would be lost")}</h4>
          <ul class="changes">
            ${lost.map(
              (one, i) => html`
                <li key=${i}>
                  <p>
                    ${tRich("It {loss}", {
                      loss: html`<strong class="loses">${escapeInvisible(tServer(one.loses))}</strong>`,
                    })}
                  </p>
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
                <summary>
                  ${t("It would also {changes}", { changes: describeChanges(rest) })}
                </summary>
                <${Changes} changes=${rest} would />
              </details>
            `
          : html`<${Changes} changes=${rest} would />`)
      }
      ${!run.changes.length && html`<p class="small">${t("It would change nothing.")}</p>`}
      <details class="spelled">
        <summary>${t("The program")}</summary>
        <pre class="program" tabindex="0"><code>${escapeInvisible(run.program)}</code></pre>
      </details>
      <details class="spelled">
        <summary>${t("Exact call")}</summary>
        <pre tabindex="0" aria-label=${t("The exact call")}>
          ${escapeInvisible(`${call.name} ${JSON.stringify(call.args)}`)}
        </pre>
      </details>
    </div>
  `;
}
