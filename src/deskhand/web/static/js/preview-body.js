// What is seen of a file: a page or a drawing in its frame, Markdown, a table, a picture, the pages
// of a PDF, or its text.

import { formatBytes } from "./format.js";
import { Icon } from "./icons.js";
import { locale, t, tCount, tData } from "./language.js";
import { html, useLayoutEffect, useRef, useState } from "./lib.js";
import { Loaded } from "./panels/parts.js";
import { Frame, useWholeText } from "./preview-frame.js";
import { Pages } from "./preview-pages.js";
import { compareCells } from "./tables.js";
import { Markdown } from "./text.js";

/** What is shown in a frame, by its language. Other texts that are shown there are drawings. */
export const FRAMED = { html: "page", jsx: "component", tsx: "component" };

export function Body({ view, file, framed }) {
  if (framed) return html`<${Framed} view=${view} file=${file} />`;
  if (view.kind === "picture")
    return html`
      <img class=${file.still ? "whole still" : "whole"} src=${file.raw} alt=${file.name} />
    `;
  if (view.kind === "pdf") return html`<${Pages} view=${view} file=${file} />`;
  if (view.kind === "none") return html`<${NoPreview} view=${view} file=${file} />`;
  if (view.kind === "table") return html`<${Table} view=${view} />`;
  const base = file.path.includes("/") ? file.path.slice(0, file.path.lastIndexOf("/") + 1) : "";
  return html`
    ${view.why && html`<p class="small muted">${tData(view.why)}</p>`}
    <${Markdown} text=${view.content} base=${base} />
    <${Truncated} view=${view} />
  `;
}

/** A page or a drawing. All of it is needed, of which a preview has only the beginning. */
function Framed({ view, file }) {
  const whole = useWholeText(view, file);
  return html`
    <${Loaded} result=${whole} what=${t("this file")}>
      ${(text) => html`
        <${Frame} text=${text} name=${file.name} kind=${FRAMED[view.language] ?? "drawing"} />
      `}
    <//>
  `;
}

/** The text as it is written; code is drawn like code in an answer. */
export function Source({ view, file }) {
  return html`
    <${Text} view=${view} at=${file.at} />
    <${Truncated} view=${view} />
  `;
}

function Truncated({ view }) {
  if (!view.truncated) return null;
  return html`
    <p class="small muted">
      ${t("Only the beginning is shown. Download it for all {size}.", {
        size: formatBytes(view.size),
      })}
    </p>
  `;
}

function Text({ view, at }) {
  const box = useRef();
  useLayoutEffect(() => {
    if (at?.line) markLines(box.current, at);
  }, [view.content, at]);
  if (!view.content) return html`<p class="none">${t("The file is empty.")}</p>`;
  if (!at?.line && (view.language === "text" || view.language === "csv"))
    return html`<pre class="as-is plain" tabindex="0">${view.content}</pre>`;
  const fence = "`".repeat(
    Math.max(3, ...(view.content.match(/`+/g) ?? []).map((run) => run.length + 1)),
  );
  return html`
    <div class="source" ref=${box}>
      <${Markdown} text=${`${fence}${view.language}\n${view.content}\n${fence}`} />
    </div>
  `;
}

/** Mark the lines to which a source leads, and show them. */
function markLines(box, { line, last }) {
  const pre = box?.querySelector("pre");
  if (!pre) return;
  const style = getComputedStyle(pre);
  const height = Number.parseFloat(style.lineHeight);
  const mark = Object.assign(document.createElement("div"), { className: "line-mark" });
  mark.style.top = `${Number.parseFloat(style.paddingTop) + (line - 1) * height}px`;
  mark.style.height = `${(last - line + 1) * height}px`;
  pre.querySelector(".line-mark")?.remove();
  pre.append(mark);
  mark.scrollIntoView({ block: "center" });
}

function NoPreview({ view, file }) {
  return html`
    <div class="empty">
      <p>${t("No preview.")}${view.why && ` ${tData(view.why)}`}</p>
      <a class="btn" href=${file.raw} download=${file.name}>
        <${Icon} name="download" />${t("Download {size}", { size: formatBytes(view.size) })}
      </a>
    </div>
  `;
}

/** `more_rows` is null where nobody counted them. */
function describeHiddenRows(more, shown) {
  if (more === null)
    return t(
      "The rest is not shown: these are the first {shown}. Download the file for all of it.",
      { shown },
    );
  if (!more) return "";
  return tCount(
    more,
    "{count} more row is not shown: these are the first {shown}. Download the file for all of it.",
    "{count} more rows are not shown: these are the first {shown}. Download the file for all of it.",
    { count: more.toLocaleString(locale), shown },
  );
}

function Table({ view }) {
  const [order, setOrder] = useState({ column: -1, down: false });
  const [head = [], ...rows] = view.rows;
  const more = describeHiddenRows(view.more_rows, view.rows.length);
  const { column, down } = order;
  const sorted =
    column < 0
      ? rows
      : rows.toSorted((one, other) => compareCells(one[column], other[column]) * (down ? -1 : 1));
  const sortBy = (index) =>
    setOrder(column === index && down ? { column: -1 } : { column: index, down: column === index });
  const direction = down ? "descending" : "ascending";
  return html`
    <div class="sheet" tabindex="0" role="group" aria-label=${t("Table")}>
      <table>
        <thead>
          <tr>
            ${head.map(
              (cell, i) => html`
                <th key=${i} scope="col" aria-sort=${i === column ? direction : null}>
                  <button type="button" class="sort" onClick=${() => sortBy(i)}>${cell}</button>
                </th>
              `,
            )}
          </tr>
        </thead>
        <tbody>
          ${sorted.map(
            (row, i) => html`
              <tr key=${i}>
                ${head.map((_cell, j) => html`<td key=${j}>${row[j] ?? ""}</td>`)}
                ${row.slice(head.length).map((cell, j) => html`<td key=${`x${j}`}>${cell}</td>`)}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
    ${more && html`<p class="small muted">${more}</p>`}
  `;
}
