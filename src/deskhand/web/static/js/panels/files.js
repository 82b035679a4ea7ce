// The agent's files: look around, read, take away, bring in. And those of this conversation.

import { call } from "../api.js";
import { formatBytes, formatDateTime } from "../format.js";
import { Icon, IconButton } from "../icons.js";
import { t } from "../language.js";
import { html, useRef, useState } from "../lib.js";
import { currentAgent, fileQuery, openPreview, workspaceFile } from "../preview.js";
import { announce, attempt, hasScope, route } from "../state.js";
import { Gallery } from "./gallery.js";
import { Empty, Loaded, Rows, useFetch } from "./parts.js";

const VIEWS = { workspace: t("Workspace"), made: t("Made here") };

export function Files() {
  const [view, setView] = useState("workspace");
  return html`
    ${
      route.value.name &&
      html`
        <div class="tabs file-views" role="group" aria-label=${t("Which files")}>
          ${Object.entries(VIEWS).map(
            ([name, words]) => html`
              <button
                type="button"
                key=${name}
                aria-pressed=${String(name === view)}
                onClick=${() => setView(name)}
              >
                ${words}
              </button>
            `,
          )}
        </div>
      `
    }
    ${view === "made" && route.value.name ? html`<${Gallery} />` : html`<${Workspace} />`}
  `;
}

function Workspace() {
  const [folder, setFolder] = useState(".");
  const [over, setOver] = useState(false);
  const picker = useRef();
  const found = useFetch(`/api/files?${fileQuery(folder)}`);
  const uploadFiles = async (files) => {
    const form = new FormData();
    for (const file of files) form.append("files", file);
    const agent = encodeURIComponent(currentAgent());
    const subdir = encodeURIComponent(folder === "." ? "" : folder);
    const answer = await attempt(() =>
      call("POST", `/api/files?agent=${agent}&subdir=${subdir}`, form),
    );
    if (answer) {
      announce(t("Uploaded {names}", { names: answer.uploaded.join(", ") }));
      found.reload();
    }
  };
  const parts = folder === "." ? [] : folder.split("/");
  const dropFiles = (event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer.files.length && hasScope("chat"))
      uploadFiles([...event.dataTransfer.files]);
  };
  return html`
    <div
      class=${`drop ${over ? "over" : ""}`}
      onDragOver=${(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave=${() => setOver(false)}
      onDrop=${dropFiles}
    >
      <div class="row crumbs">
        <nav class="grow cut" aria-label=${t("Folder")}>
          <button type="button" class="link" onClick=${() => setFolder(".")}>
            ${t("workspace")}
          </button>
          ${parts.map(
            (part, i) => html`
              <span class="muted"> / </span>
              <button
                type="button"
                class="link"
                onClick=${() => setFolder(parts.slice(0, i + 1).join("/"))}
              >
                ${part}
              </button>
            `,
          )}
        </nav>
        ${
          hasScope("chat") &&
          html`
            <input
              type="file"
              multiple
              hidden
              ref=${picker}
              aria-label=${t("Files to upload")}
              onChange=${(event) => {
                uploadFiles([...event.target.files]);
                event.target.value = "";
              }}
            />
            <${IconButton}
              name="upload"
              little
              label=${t("Upload files into this folder")}
              onClick=${() => picker.current.click()}
            />
          `
        }
        <${IconButton} name="retry" little label=${t("Refresh")} onClick=${found.reload} />
      </div>
      <${Loaded} result=${found} what=${t("files")}>
        ${(entries) =>
          entries.length
            ? html`
                <${Rows}
                  class="list"
                  rows=${entries.toSorted(compareEntries)}
                  draw=${(one) => drawEntry(one, setFolder)}
                />
              `
            : html`
                <${Empty}>
                  <span>
                    ${t(
                      "This folder is empty. What you put here, Deskhand can read, and what it makes is kept here.",
                    )}
                  </span>
                  ${
                    hasScope("chat") &&
                    html`
                      <button
                        type="button"
                        class="btn little"
                        onClick=${() => picker.current.click()}
                      >
                        ${t("Upload files")}
                      </button>
                    `
                  }
                <//>
              `}
      <//>
    </div>
  `;
}

/** Folders first, then by name. */
function compareEntries(one, other) {
  const byKind = (one.kind === "folder" ? 0 : 1) - (other.kind === "folder" ? 0 : 1);
  return byKind || one.name.localeCompare(other.name);
}

function drawEntry(one, setFolder) {
  return html`
    <li key=${one.path}>
      <button
        type="button"
        class="entry"
        title=${one.modified_at ? `${one.path} · ${formatDateTime(one.modified_at)}` : one.path}
        onClick=${() =>
          one.kind === "folder" ? setFolder(one.path) : openPreview(workspaceFile(one.path))}
      >
        <${Icon} name=${one.kind === "folder" ? "files" : "file"} />
        <span class="cut grow">
          ${one.shown}
          ${one.note && html` <span class="tiny muted">${one.note}</span>`}
        </span>
        ${one.kind !== "folder" && html`<span class="tiny muted">${formatBytes(one.size)}</span>`}
      </button>
    </li>
  `;
}
