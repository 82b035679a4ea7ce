// Diffs, drawn the same everywhere, with invisible characters written out.

import { sessionPath } from "./api.js";
import { t, tCount, tServer } from "./language.js";
import { html } from "./lib.js";
import { useFetch } from "./panels/parts.js";
import { route } from "./state.js";

const UNSEEN = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|(?! )\p{Zs}/gu;
const EDITS = new Set([
  "write_file",
  "edit_file",
  "create_file",
  "patch_file",
  "str_replace",
  "apply_patch",
]);

/** Whether this tool changes one file, by whatever name it was called. */
export const isEdit = (name) => EDITS.has(name);

/** The text with everything in it that cannot be seen, or that turns others round, written out. */
export const escapeInvisible = (text) =>
  String(text).replace(UNSEEN, (char) => `\\u${char.codePointAt(0).toString(16).padStart(4, "0")}`);

export const displayPath = (path) =>
  escapeInvisible(path).replace(/[\n\t]/g, (char) => (char === "\n" ? "\\n" : "\\t"));

/** A unified diff, without the lines that name its file. */
export function Diff({ text }) {
  if (!text) return null;
  const lines = text.split("\n");
  const headed = lines.length > 2 && lines[0].startsWith("--- ") && lines[1].startsWith("+++ ");
  return html`
    <pre class="diff" tabindex="0">
      ${lines.slice(headed ? 2 : 0).map(
        (line, i) => html`
            <span key=${i} class=${chooseLineClass(line)}>${escapeInvisible(line) || " "}</span>
          `,
      )}
    </pre>
  `;
}

function chooseLineClass(line) {
  if (line.startsWith("+")) return "plus";
  if (line.startsWith("-")) return "minus";
  return /^(?:@@|…|\\ )/.test(line) ? "at" : null;
}

const DID = { made: t("made"), changed: t("changed"), removed: t("removed") };
const WOULD = {
  made: t("would be made"),
  changed: t("would be changed"),
  removed: t("would be removed"),
};

/** What a change did to each file, with its diff, or with why there is none. */
export function FileChanges({ diff, would = false }) {
  return html`
    <ul class="changes">
      ${diff.files.map(
        (file) => html`
          <li key=${file.place}>
            <p>
              <code>${displayPath(file.place)}</code>${" "}
              <span class="muted">${(would ? WOULD : DID)[file.did]}</span>
              ${drawTally(file.diff)}
            </p>
            ${file.why && html`<p class="small muted">${escapeInvisible(tServer(file.why))}</p>`}
            <${Diff} text=${file.diff} />
          </li>
        `,
      )}
      ${diff.more > 0 && html`<li class="muted">${tCount(diff.more, "and {count} more file", "and {count} more files")}</li>`}
    </ul>
  `;
}

/** How many lines are added and removed, where the diff shows all of them. */
function drawTally(text) {
  if (/\n… [\d,]+ more lines$/.test(text)) return null;
  const body = text.split("\n").slice(2);
  const plus = body.filter((line) => line.startsWith("+")).length;
  const minus = body.filter((line) => line.startsWith("-")).length;
  return plus || minus
    ? html`
        ${" "}
        <span class="tally">
          <span class="plus">+${plus}</span> <span class="minus">−${minus}</span>
        </span>
      `
    : null;
}

/** The address of what a call changed, or would change; without `n` the latest of that id. */
const diffPath = (name, callId, number = 0) =>
  sessionPath(name, `/diff?n=${number}&call=${encodeURIComponent(callId)}`);

/** What a call changed: from the journal of undo. Where that has it no more, what was asked for. */
export function CallDiff({ item }) {
  const found = useFetch(diffPath(route.value.name, item.callId, item.n));
  if (found.data?.files.length) return html`<${FileChanges} diff=${found.data} />`;
  if (found.data === undefined && !found.error)
    return html`
      <p class="small muted">
        <span class="spin"></span>
        <span class="sr">${t("One moment")}</span>
      </p>
    `;
  const asked = isEdit(item.name) ? formatEdit(item.args ?? {}) : "";
  return asked && html`<h4>${t("What was asked for")}</h4><${Diff} text=${asked} />`;
}

/** What a call that waits for approval would change now. `children(known)` is drawn below. */
export function ProposedDiff({ name = route.value.name, call, callId, children }) {
  const found = useFetch(diffPath(name, callId, call?.n));
  const known = found.data && !found.data.done && found.data.files.length > 0;
  return html`
    ${
      known &&
      html`
        <div class="asked" role="group" aria-label=${t("Changes it would make")}>
          <h4>${t("Changes it would make to the current file")}</h4>
          <${FileChanges} diff=${found.data} would />
        </div>
      `
    }
    ${children?.(Boolean(known))}
  `;
}

/** The arguments of an edit as lines that come and go. */
export function formatEdit({ patch, diff, edits, content, old_str: old, new_str: fresh }) {
  const given = patch ?? diff;
  if (typeof given === "string" && given) return given;
  let all = [];
  if (Array.isArray(edits)) all = edits;
  else if (typeof old === "string") all = [{ old, new: fresh }];
  if (!all.length) return prefixLines("+", content).join("\n");
  return all
    .map((edit) =>
      ["@@", ...prefixLines("-", edit?.old), ...prefixLines("+", edit?.new)].join("\n"),
    )
    .join("\n");
}

function prefixLines(sign, text) {
  if (typeof text !== "string" || !text) return [];
  const lines = text.replace(/\n$/, "").split("\n");
  return lines.map((line) => sign + line);
}
