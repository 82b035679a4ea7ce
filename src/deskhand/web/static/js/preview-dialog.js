// The preview of a file: text, Markdown, a table, a picture, or the pages of a PDF.

import { formatBytes, formatCount } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { html, useEffect, useRef, useState } from "./lib.js";
import { Loaded, useFetch } from "./panels/parts.js";
import { previewedFile } from "./preview.js";
import { Markdown } from "./text.js";

const KINDS = {
  text: "Text",
  markdown: "Markdown",
  table: "Table",
  picture: "Picture",
  pdf: "PDF",
};

export function Dialog({ file }) {
  const box = useRef();
  const found = useFetch(file.about);
  const [source, setSource] = useState(false);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.isConnected && before.focus?.();
  }, []);
  const closePreview = () => {
    previewedFile.value = null;
  };
  const handleKey = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation(); // the panel beneath stays open
    closePreview();
  };
  const view = found.data;
  const both = view?.kind === "markdown" || view?.kind === "table";
  return html`
    <dialog
      class=${`preview ${view?.kind ?? ""}`}
      ref=${box}
      aria-label=${`Preview of ${file.name}`}
      onKeyDown=${handleKey}
      onCancel=${(event) => {
        event.preventDefault();
        closePreview();
      }}
      onClick=${(event) => {
        if (event.target === box.current) closePreview();
      }}
    >
      <header class="preview-head">
        <h2 class="cut grow" title=${file.path || file.name}>${file.name}</h2>
        ${
          view &&
          html`
            <span class="small muted">
              ${[KINDS[view.kind], formatBytes(view.size)].filter(Boolean).join(" · ")}
            </span>
          `
        }
        ${
          both &&
          html`
            <button
              type="button"
              class="btn little"
              aria-pressed=${String(source)}
              onClick=${() => setSource(!source)}
            >
              As text
            </button>
          `
        }
        <a
          class="ib"
          href=${file.raw}
          download=${file.name}
          aria-label=${`Download ${file.name}`}
          title="Download"
        >
          <${Icon} name="download" />
        </a>
        <${IconButton} name="close" label="Close the preview" onClick=${closePreview} />
      </header>
      <div class="preview-body" tabindex="0" role="group" aria-label="What is in it">
        ${
          found.error?.status === 404
            ? html`<p class="none">${file.name} is not there any more.</p>`
            : html`
                <${Loaded} result=${found} what="this file">
                  ${(data) => html`<${Body} view=${data} file=${file} source=${source} />`}
                <//>
              `
        }
      </div>
    </dialog>
  `;
}

function Body({ view, file, source }) {
  if (view.kind === "picture") return html`<img class="whole" src=${file.raw} alt=${file.name} />`;
  if (view.kind === "pdf") return html`<${Pages} view=${view} file=${file} />`;
  if (view.kind === "none") return html`<${NoPreview} view=${view} file=${file} />`;
  if (view.kind === "table" && !source) return html`<${Table} view=${view} />`;
  const base = file.path.includes("/") ? file.path.slice(0, file.path.lastIndexOf("/") + 1) : "";
  return html`
    ${
      view.kind === "markdown" && !source
        ? html`<${Markdown} text=${view.content} base=${base} />`
        : html`<${Text} view=${view} />`
    }
    ${
      view.truncated &&
      html`
        <p class="small muted">
          Only the beginning is shown. Download it for all ${formatBytes(view.size)}.
        </p>
      `
    }
  `;
}

/** Code is drawn like code in an answer. */
function Text({ view }) {
  if (!view.content) return html`<p class="none">The file is empty.</p>`;
  if (view.language === "text" || view.language === "csv")
    return html`<pre class="as-is plain" tabindex="0">${view.content}</pre>`;
  const fence = "`".repeat(
    Math.max(3, ...(view.content.match(/`+/g) ?? []).map((run) => run.length + 1)),
  );
  return html`<${Markdown} text=${`${fence}${view.language}\n${view.content}\n${fence}`} />`;
}

function NoPreview({ view, file }) {
  return html`
    <div class="empty">
      <p>No preview.${view.why ? ` ${view.why}` : ""}</p>
      <a class="btn" href=${file.raw} download=${file.name}>
        <${Icon} name="download" />Download ${formatBytes(view.size)}
      </a>
    </div>
  `;
}

/** `more_rows` is null where nobody counted them. */
function describeHiddenRows(more) {
  if (more === null) return "The rest is not shown";
  return more ? `${more.toLocaleString()} more rows are not shown` : "";
}

function Table({ view }) {
  const [head = [], ...rows] = view.rows;
  const more = describeHiddenRows(view.more_rows);
  return html`
    <div class="sheet" tabindex="0" role="group" aria-label="Table">
      <table>
        <thead>
          <tr>${head.map((cell, i) => html`<th key=${i} scope="col">${cell}</th>`)}</tr>
        </thead>
        <tbody>
          ${rows.map(
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
    ${
      more &&
      html`
        <p class="small muted">
          ${more}: these are the first ${view.rows.length}. Download the file for all of it.
        </p>
      `
    }
  `;
}

function Pages({ view, file }) {
  const total = view.page_count;
  return html`
    <ol class="pdf-pages">
      ${view.pages.map(
        ([width, height], i) => html`
          <li key=${i}>
            <img
              src=${file.page(i + 1)}
              alt=${`Page ${i + 1} of ${total}`}
              width=${Math.round(width)}
              height=${Math.round(height)}
              loading="lazy"
            />
          </li>
        `,
      )}
    </ol>
    ${
      total > view.pages.length &&
      html`
        <p class="small muted">
          These are the first ${view.pages.length} of ${formatCount(total)}${" "}
          pages. Download the file for all of them.
        </p>
      `
    }
  `;
}
