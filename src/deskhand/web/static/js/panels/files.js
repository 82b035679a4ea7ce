// The agent's files: look around, read, take away, bring in.

import { call } from "../api.js";
import { bytes, moment } from "../format.js";
import { Icon, IconButton } from "../icons.js";
import { html, useRef, useState } from "../lib.js";
import { agentHere, look, workspaceFile } from "../preview.js";
import { announce, attempt, may } from "../state.js";
import { Loaded, None, useAsk } from "./parts.js";

const query = (path) => `agent=${encodeURIComponent(agentHere())}&path=${encodeURIComponent(path)}`;

export function Files() {
  const [folder, setFolder] = useState("."),
    [over, setOver] = useState(false),
    picker = useRef();
  const found = useAsk(`/api/files?${query(folder)}`);
  const bring = async (files) => {
    const form = new FormData();
    for (const file of files) form.append("files", file);
    const answer = await attempt(() =>
      call(
        "POST",
        `/api/files?agent=${encodeURIComponent(agentHere())}&subdir=${encodeURIComponent(folder === "." ? "" : folder)}`,
        form,
      ),
    );
    if (answer) {
      announce(`Uploaded ${answer.uploaded.join(", ")}`);
      found.again();
    }
  };
  const parts = folder === "." ? [] : folder.split("/");
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer.files.length && may("chat")) bring([...event.dataTransfer.files]);
  };
  return html`<div class=${`drop ${over ? "over" : ""}`} onDragOver=${(event) => {
    event.preventDefault();
    setOver(true);
  }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <div class="row crumbs"><nav class="grow cut" aria-label="Folder"><button type="button" class="link" onClick=${() => setFolder(".")}>workspace</button>${parts.map((part, i) => html`<span class="muted"> / </span><button type="button" class="link" onClick=${() => setFolder(parts.slice(0, i + 1).join("/"))}>${part}</button>`)}</nav>
      ${
        may("chat") &&
        html`<input type="file" multiple hidden ref=${picker} aria-label="Files to upload" onChange=${(
          event,
        ) => {
          bring([...event.target.files]);
          event.target.value = "";
        }} /><${IconButton} name="upload" little label="Upload files into this folder" onClick=${() => picker.current.click()} />`
      }
      <${IconButton} name="retry" little label="Look again" onClick=${found.again} /></div>
    <${Loaded} of=${found} what="files">${(entries) =>
      entries.length
        ? html`<ul class="list">${[...entries].sort((a, b) => (a.kind === "folder" ? 0 : 1) - (b.kind === "folder" ? 0 : 1) || a.name.localeCompare(b.name)).map((one) => html`<li key=${one.path}><button type="button" class="entry" title=${one.modified_at ? `${one.path} · ${moment(one.modified_at)}` : one.path} onClick=${() => (one.kind === "folder" ? setFolder(one.path) : look(workspaceFile(one.path)))}><${Icon} name=${one.kind === "folder" ? "files" : "file"} /><span class="cut grow">${one.shown}${one.note && html` <span class="tiny muted">${one.note}</span>`}</span>${one.kind !== "folder" && html`<span class="tiny muted">${bytes(one.size)}</span>`}</button></li>`)}</ul>`
        : html`<${None}>This folder is empty. Drop files here, or ask Deskhand to make some.<//>`}<//>
  </div>`;
}
