// The agent's files: look around, read, take away, bring in.
import { html, useRef, useState } from "../lib.js";
import { call } from "../api.js";
import { announce, attempt, may } from "../state.js";
import { bytes, moment } from "../format.js";
import { Icon, IconButton } from "../icons.js";
import { Markdown } from "../text.js";
import { Loaded, None, useAsk } from "./parts.js";

const query = (path) => `path=${encodeURIComponent(path)}`;
const raw = (path) => `/api/files/raw?${query(path)}`;

export function Files() {
  const [folder, setFolder] = useState("."), [shown, setShown] = useState(""), [over, setOver] = useState(false), picker = useRef();
  const found = useAsk(`/api/files?${query(folder)}`);
  const bring = async (files) => {
    const form = new FormData();
    for (const file of files) form.append("files", file);
    const answer = await attempt(() => call("POST", `/api/files?subdir=${encodeURIComponent(folder === "." ? "" : folder)}`, form));
    if (answer) { announce(`Uploaded ${answer.uploaded.join(", ")}`); found.again(); }
  };
  if (shown) return html`<${Preview} path=${shown} back=${() => setShown("")} />`;
  const parts = folder === "." ? [] : folder.split("/");
  const drop = (event) => { event.preventDefault(); setOver(false); if (event.dataTransfer.files.length && may("chat")) bring([...event.dataTransfer.files]); };
  return html`<div class=${`drop ${over ? "over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <div class="row crumbs"><nav class="grow cut" aria-label="Folder"><button type="button" class="link" onClick=${() => setFolder(".")}>workspace</button>${parts.map((part, i) => html`<span class="muted"> / </span><button type="button" class="link" onClick=${() => setFolder(parts.slice(0, i + 1).join("/"))}>${part}</button>`)}</nav>
      ${may("chat") && html`<input type="file" multiple hidden ref=${picker} aria-label="Files to upload" onChange=${(event) => { bring([...event.target.files]); event.target.value = ""; }} /><${IconButton} name="upload" little label="Upload files into this folder" onClick=${() => picker.current.click()} />`}
      <${IconButton} name="retry" little label="Look again" onClick=${found.again} /></div>
    <${Loaded} of=${found} what="files">${(entries) => (entries.length
      ? html`<ul class="list">${[...entries].sort((a, b) => (a.kind === "folder" ? 0 : 1) - (b.kind === "folder" ? 0 : 1) || a.name.localeCompare(b.name)).map((one) => html`<li key=${one.path}><button type="button" class="entry" title=${`${one.path} · ${moment(one.modified_at)}`} onClick=${() => (one.kind === "folder" ? setFolder(one.path) : setShown(one.path))}><${Icon} name=${one.kind === "folder" ? "files" : "file"} /><span class="cut grow">${one.name}</span>${one.kind !== "folder" && html`<span class="tiny muted">${bytes(one.size)}</span>`}</button></li>`)}</ul>`
      : html`<${None}>This folder is empty. Drop files here, or ask Deskhand to make some.<//>`)}<//>
  </div>`;
}

function Preview({ path, back }) {
  const found = useAsk(`/api/files/preview?${query(path)}`), [source, setSource] = useState(false);
  const name = path.split("/").at(-1);
  return html`<div class="stack"><div class="row"><button type="button" class="btn little" onClick=${back}>Back</button><strong class="cut grow" title=${path}>${name}</strong><a class="ib little" href=${raw(path)} download=${name} aria-label=${`Download ${name}`} title="Download"><${Icon} name="download" /></a></div>
    <${Loaded} of=${found} what="a preview">${(file) => {
      if (file.binary || file.content === null) return html`<${None}>${bytes(file.size)} that are no text. Download it to see it.<//>`;
      const markdown = file.language === "markdown" || /\.md$/i.test(file.name);
      return html`${markdown && html`<div class="row"><button type="button" class="btn little" aria-pressed=${String(source)} onClick=${() => setSource(!source)}>${source ? "As a page" : "As it is written"}</button></div>`}
        ${markdown && !source ? html`<${Markdown} text=${file.content} />` : html`<pre class="as-is plain" tabindex="0">${file.content}</pre>`}
        ${file.truncated && html`<p class="small muted">Only the beginning is shown. Download it for all ${bytes(file.size)}.</p>`}`;
    }}<//></div>`;
}
