// The pane with a file: how it looks, its source, its versions, and a field to edit it.

import { formatBytes } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { t } from "./language.js";
import { html, useEffect, useRef, useState } from "./lib.js";
import { Loaded, useFetch } from "./panels/parts.js";
import { beside, closePreview } from "./preview.js";
import { Body, FRAMED, Source } from "./preview-body.js";
import { Editor } from "./preview-editor.js";
import { DrawnDocument } from "./preview-pages.js";
import { Versions } from "./preview-versions.js";
import { hasScope, route } from "./state.js";
import { talk } from "./talk.js";

const KINDS = {
  text: t("Text"),
  markdown: "Markdown",
  table: t("Table"),
  picture: t("Picture"),
  pdf: "PDF",
};
const FRAMED_KINDS = { page: t("Page"), component: t("Component") };
const describeKind = (view) => FRAMED_KINDS[FRAMED[view.language]] ?? KINDS[view.kind];
const VIEWS = {
  pages: t("Pages"),
  text: t("Text"),
  preview: t("Preview"),
  source: t("Source"),
  versions: t("Versions"),
  edit: t("Edit"),
};

/** Whether it is shown in a frame: a page, a component, or a drawing, whose text is there too. */
export const isFramed = (view) =>
  Object.hasOwn(FRAMED, view.language) || (view.kind === "picture" && Boolean(view.content));

/** The views that there are of a file. */
function listViews(file, view) {
  if (view.drawable) return ["pages", "text", file.versions && "versions"].filter(Boolean);
  const written = view.kind === "text" || view.kind === "markdown" || view.kind === "table";
  const drawn = isFramed(view) || !written || view.kind !== "text";
  const editable = written && Boolean(view.digest);
  return [
    drawn && "preview",
    (written || isFramed(view)) && "source",
    file.versions && "versions",
    editable && file.path && hasScope("chat") && "edit",
  ].filter(Boolean);
}

export function Pane({ file }) {
  const found = useFetch(file.about);
  const [chosen, setChosen] = useState("");
  const [large, setLarge] = useState(false);
  const view = file.view ?? found.data;
  const views = view ? listViews(file, view) : [];
  const shown = chosen || (file.at?.line && views.includes("source") ? "source" : views[0]);
  const { open, turns } = talk.value;
  useEffect(() => {
    if (!open && view && shown !== "edit") found.reload(); // the agent may have changed it
  }, [open, turns.length]); // a short turn begins and ends between two frames
  const drawn = view?.drawable && shown === "pages";
  const kind = drawn
    ? "of-pdf"
    : shown === "preview" && view && !isFramed(view)
      ? `of-${view.kind}`
      : "";
  const Place = beside.value && !large && route.value.place === "talk" ? Aside : Dialog;
  return html`
    <${Place} file=${file} kind=${kind}>
      <header class="preview-head">
        <h2 class="cut" title=${file.path || file.name}>${file.name}</h2>
        <span class="small muted cut grow">
          ${view && [describeKind(view), formatBytes(view.size)].filter(Boolean).join(" · ")}
        </span>
        ${
          beside.value &&
          html`
            <${IconButton}
              name=${large ? "shrink" : "expand"}
              label=${large ? t("Show it beside the conversation") : t("Enlarge")}
              onClick=${() => setLarge(!large)}
            />
          `
        }
        <a
          class="ib"
          href=${file.raw}
          download=${file.name}
          aria-label=${t("Download {name}", { name: file.name })}
          title=${t("Download")}
        >
          <${Icon} name="download" />
        </a>
        <${IconButton} name="close" label=${t("Close the preview")} onClick=${closePreview} />
      </header>
      ${
        views.length > 1 &&
        html`
          <div class="preview-views" role="group" aria-label=${t("View")}>
            ${views.map(
              (name) => html`
                <button
                  type="button"
                  key=${name}
                  aria-pressed=${String(name === shown)}
                  onClick=${() => setChosen(name)}
                >
                  ${VIEWS[name]}
                </button>
              `,
            )}
          </div>
        `
      }
      <div class="preview-body" tabindex="0" role="group" aria-label=${t("What is in it")}>
        ${
          found.error?.status === 404
            ? html`<p class="none">${t("{name} is not there any more.", { name: file.name })}</p>`
            : html`
                <${Loaded} result=${view ? { data: view } : found} what=${t("this file")}>
                  ${(data) => html`
                    <${View}
                      key=${shown}
                      name=${shown}
                      view=${data}
                      file=${file}
                      renew=${() => {
                        found.reload();
                        setChosen("");
                      }}
                    />
                  `}
                <//>
              `
        }
      </div>
    <//>
  `;
}

function View({ name, view, file, renew }) {
  if (name === "pages") return html`<${DrawnDocument} file=${file} />`;
  if (name === "source") return html`<${Source} view=${view} file=${file} />`;
  if (name === "versions") return html`<${Versions} file=${file} changed=${renew} />`;
  if (name === "edit") return html`<${Editor} view=${view} file=${file} saved=${renew} />`;
  return html`<${Body} view=${view} file=${file} framed=${isFramed(view)} />`;
}

/** Beside the conversation, which can be used meanwhile. */
function Aside({ file, kind, children }) {
  const box = useRef();
  useFocus(() => box.current.focus({ preventScroll: true }));
  const handleKey = (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    closePreview();
  };
  return html`
    <aside
      class=${`panel preview ${kind}`}
      ref=${box}
      tabindex="-1"
      aria-label=${t("Preview of {name}", { name: file.name })}
      onKeyDown=${handleKey}
    >
      ${children}
    </aside>
  `;
}

/** On top of the page: on a narrow screen, and where it is enlarged. */
function Dialog({ file, kind, children }) {
  const box = useRef();
  useFocus(() => box.current.showModal());
  const handleKey = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation(); // the panel beneath stays open
    closePreview();
  };
  return html`
    <dialog
      class=${`preview ${kind}`}
      ref=${box}
      aria-label=${t("Preview of {name}", { name: file.name })}
      onKeyDown=${handleKey}
      onCancel=${(event) => {
        event.preventDefault();
        closePreview();
      }}
      onClick=${(event) => {
        if (event.target === box.current) closePreview();
      }}
    >
      ${children}
    </dialog>
  `;
}

/** Take the focus when it opens, and give it back when it closes. */
function useFocus(take) {
  useEffect(() => {
    const before = document.activeElement;
    take();
    return () => before?.isConnected && before.focus?.();
  }, []);
}
