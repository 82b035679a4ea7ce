// Diffs: drawn the same wherever something changes, with everything in them that cannot be seen written out.

import { at } from "./api.js";
import { many } from "./format.js";
import { html } from "./lib.js";
import { useAsk } from "./panels/parts.js";
import { here } from "./state.js";

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
export const visible = (text) =>
  String(text).replace(UNSEEN, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

export const named = (path) =>
  visible(path).replace(/[\n\t]/g, (c) => (c === "\n" ? "\\n" : "\\t"));

/** A unified diff, without the lines that name its file. */
export function Diff({ text }) {
  if (!text) return null;
  const lines = text.split("\n"),
    headed = lines.length > 2 && lines[0].startsWith("--- ") && lines[1].startsWith("+++ ");
  return html`<pre class="diff" tabindex="0">${lines.slice(headed ? 2 : 0).map((line, i) => html`<span key=${i} class=${tone(line)}>${visible(line) || " "}</span>`)}</pre>`;
}

const tone = (line) =>
  line.startsWith("+")
    ? "plus"
    : line.startsWith("-")
      ? "minus"
      : /^(?:@@|…|\\ )/.test(line)
        ? "at"
        : null;

/** What a change did to each file, with its diff, or with why there is none. */
export function Files({ of, would = false }) {
  return html`<ul class="changes">${of.files.map(
    (
      file,
    ) => html`<li key=${file.place}><p><code>${named(file.place)}</code> <span class="muted">${would ? { made: "would be made", changed: "would be changed", removed: "would be removed" }[file.did] : file.did}</span>${lines(file.diff)}</p>
      ${file.why && html`<p class="small muted">${visible(file.why)}</p>`}<${Diff} text=${file.diff} /></li>`,
  )}
    ${of.more > 0 && html`<li class="muted">and ${many(of.more, "more file")}</li>`}</ul>`;
}

/** How many lines come and go, where the diff shows them all. */
function lines(text) {
  if (/\n… [\d,]+ more lines$/.test(text)) return null;
  const body = text.split("\n").slice(2),
    plus = body.filter((line) => line.startsWith("+")).length,
    minus = body.filter((line) => line.startsWith("-")).length;
  return plus || minus
    ? html` <span class="tally"><span class="plus">+${plus}</span> <span class="minus">−${minus}</span></span>`
    : null;
}

/** The address of what a call changed, or would change; without `n` the latest of that id. */
const diffOf = (name, callId, n = 0) => at(name, `/diff?n=${n}&call=${encodeURIComponent(callId)}`);

/** What a call changed: from the journal of undo. Where that has it no more, what was asked for. */
export function CallDiff({ item }) {
  const found = useAsk(diffOf(here.value.name, item.callId, item.n));
  if (found.data?.files.length) return html`<${Files} of=${found.data} />`;
  if (found.data === undefined && !found.error)
    return html`<p class="small muted"><span class="spin"></span><span class="sr">One moment</span></p>`;
  const asked = isEdit(item.name) ? askedFor(item.args ?? {}) : "";
  return asked && html`<h4>What was asked for</h4><${Diff} text=${asked} />`;
}

/** What a call that waits for a yes would change, as the file is now. `children` is what stands there where nobody knows. */
export function Proposed({ name = here.value.name, call, callId, children }) {
  const found = useAsk(diffOf(name, callId, call?.n)),
    known = found.data && !found.data.done && found.data.files.length > 0;
  return html`${known && html`<div class="asked" role="group" aria-label="What it would change"><h4>What it would change, as the file is now</h4><${Files} of=${found.data} would /></div>`}${children?.(Boolean(known))}`;
}

/** The arguments of an edit as lines that come and go. */
export function askedFor({ patch, diff, edits, content, old_str: old, new_str: fresh }) {
  const given = patch ?? diff;
  if (typeof given === "string" && given) return given;
  const all = Array.isArray(edits) ? edits : typeof old === "string" ? [{ old, new: fresh }] : [];
  const signed = (sign, text) =>
    typeof text === "string" && text
      ? text
          .replace(/\n$/, "")
          .split("\n")
          .map((line) => sign + line)
      : [];
  if (!all.length) return signed("+", content).join("\n");
  return all
    .map((edit) => ["@@", ...signed("-", edit?.old), ...signed("+", edit?.new)].join("\n"))
    .join("\n");
}
