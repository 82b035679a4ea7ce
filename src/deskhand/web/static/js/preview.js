// Which file is previewed, and the addresses of its bytes. The dialog is loaded on its first use.
import { html, signal } from "./lib.js";
import { route } from "./state.js";
import { talk } from "./talk.js";

/** The file that is previewed, with its addresses: `{name, raw, about, page(n)}`, or null. */
export const previewedFile = signal(null);
const dialogModule = signal(null); // the module that draws it

/** The agent of the open conversation, whose files are shown; '' for the first agent. */
export const currentAgent = () => talk.value.session.split("/")[0];

/** A file in the workspace of this agent. */
export function workspaceFile(path) {
  const query = `agent=${encodeURIComponent(currentAgent())}&path=${encodeURIComponent(path)}`;
  return {
    name: path.split("/").at(-1),
    path,
    raw: `/api/files/raw?${query}`,
    about: `/api/files/preview?${query}`,
    page: (number) => `/api/files/page?${query}&page=${number}`,
  };
}

const SOUND_ENDINGS = {
  "audio/ogg": ".ogg",
  "audio/webm": ".webm",
  "audio/mp4": ".m4a",
  "audio/mpeg": ".mp3",
  "audio/wav": ".wav",
  "audio/x-wav": ".wav",
};

/** What a file without a name is called when it is downloaded. */
function nameOf(part) {
  if (part.type === "image") return "picture";
  if (part.type !== "audio") return "file";
  return `voice message${SOUND_ENDINGS[part.mime?.split(";")[0]] ?? ""}`;
}

/** A file that a message or a result of this conversation names; null where its bytes are gone. */
export function sentFile(part) {
  if (!part.blob) return null;
  const name = part.name || nameOf(part);
  const session = encodeURIComponent(route.value.name);
  const query = `session=${session}&name=${encodeURIComponent(name)}`;
  const blobPath = `/api/blobs/${part.blob}`;
  return {
    name,
    path: "",
    raw: `${blobPath}?${query}`,
    about: `${blobPath}/preview?${query}`,
    page: (number) =>
      `${blobPath}/page?session=${encodeURIComponent(route.value.name)}&page=${number}`,
  };
}

const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;
export const isPicture = (part) =>
  Boolean(part.blob) &&
  (part.type === "image" || (part.type === "file" && PICTURE.test(part.mime)));

/** Open the preview of a file. */
export async function openPreview(file) {
  previewedFile.value = file;
  dialogModule.value ??= await import("./preview-dialog.js");
}

/** The preview, on top of the page. */
export function Preview() {
  if (!previewedFile.value || !dialogModule.value) return null;
  return html`
    <${dialogModule.value.Dialog} key=${previewedFile.value.about} file=${previewedFile.value} />
  `;
}
