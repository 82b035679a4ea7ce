// Which file is looked at, and where its bytes come from. What draws it is loaded with the first look.
import { html, signal } from "./lib.js";
import { here } from "./state.js";
import { talk } from "./talk.js";

export const looked = signal(null); // {name, raw, about, page(n)}: the addresses of a file; null for none
const drawn = signal(null); // the module that draws it

/** The agent whose files are meant: that of the conversation which is open, '' for the first one. */
export const agentHere = () => talk.value.session.split("/")[0];

/** A file of the workspace of the agent that one talks with here. */
export function workspaceFile(path) {
  const query = `agent=${encodeURIComponent(agentHere())}&path=${encodeURIComponent(path)}`;
  return {
    name: path.split("/").at(-1),
    path,
    raw: `/api/files/raw?${query}`,
    about: `/api/files/preview?${query}`,
    page: (n) => `/api/files/page?${query}&page=${n}`,
  };
}

/** A file that a message or a result of this conversation names; null where its bytes are not here. */
export function sentFile(part) {
  if (!part.blob) return null;
  const name =
    part.name ||
    (part.type === "audio" ? "voice message" : part.type === "image" ? "picture" : "file");
  const query = `session=${encodeURIComponent(here.value.name)}&name=${encodeURIComponent(name)}`;
  const at = `/api/blobs/${part.blob}`;
  return {
    name,
    path: "",
    raw: `${at}?${query}`,
    about: `${at}/preview?${query}`,
    page: (n) => `${at}/page?session=${encodeURIComponent(here.value.name)}&page=${n}`,
  };
}

const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;
export const isPicture = (part) =>
  Boolean(part.blob) &&
  (part.type === "image" || (part.type === "file" && PICTURE.test(part.mime)));

/** Look at a file. */
export async function look(file) {
  looked.value = file;
  drawn.value ??= await import("./preview-dialog.js");
}

/** What is looked at, on top of all else. */
export function Preview() {
  if (!looked.value || !drawn.value) return null;
  return html`<${drawn.value.Dialog} key=${looked.value.about} file=${looked.value} />`;
}
