// Which file is previewed, and the addresses of its bytes. The pane is loaded on its first use.
import { t } from "./language.js";
import { loadStyles } from "./lazy-component.js";
import { effect, html, signal } from "./lib.js";
import { route } from "./state.js";
import { talk } from "./talk.js";

/**
 * The file that is previewed, or null: `{name, path, raw, about, page(n)}` with its addresses, or
 * `{name, path: "", raw, view}` for what stands in an answer. `at` is the place in it: `{line,
 * last}` or `{page}`.
 */
export const previewedFile = signal(null);
const paneModule = signal(null); // the module that draws it

const wideScreen = matchMedia("(min-width: 1101px)");
/** Whether there is room for the pane beside the conversation; else it is a dialog. */
export const beside = signal(wideScreen.matches);
wideScreen.addEventListener("change", () => {
  beside.value = wideScreen.matches;
});

/** The agent of the open conversation, whose files are shown; '' for the first agent. */
export const currentAgent = () => talk.value.session.split("/")[0];

export const fileQuery = (path) =>
  `agent=${encodeURIComponent(currentAgent())}&path=${encodeURIComponent(path)}`;

/** A file in the workspace of this agent. */
export function workspaceFile(path, at = null) {
  const query = fileQuery(path);
  return {
    name: path.split("/").at(-1),
    path,
    at,
    raw: `/api/files/raw?${query}`,
    about: `/api/files/preview?${query}`,
    page: (number) => `/api/files/page?${query}&page=${number}`,
    words: `/api/files/words?${query}`,
    pages: `/api/files/pages?${query}`,
    versions: `/api/files/versions?${query}`,
    version: (number) => `/api/files/version?${query}&n=${number}`,
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
  if (part.type === "image") return t("picture");
  if (part.type !== "audio") return t("file");
  return `${t("voice message")}${SOUND_ENDINGS[part.mime?.split(";")[0]] ?? ""}`;
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
    words: `${blobPath}/words?${query}`,
    pages: `${blobPath}/pages?${query}`,
  };
}

const TEXT_TYPES = { html: "text/html", jsx: "text/plain", tsx: "text/plain" };

/**
 * A page, a component or a drawing that stands in an answer; a `still` one is shown as a picture, as
 * it is.
 */
export function answerFile(name, text, language, still = false) {
  const type = TEXT_TYPES[language] ?? "image/svg+xml";
  const content = still ? null : text;
  const kind = TEXT_TYPES[language] ? "text" : "picture";
  return {
    name,
    path: "",
    still,
    raw: `data:${type};charset=utf-8,${encodeURIComponent(text)}`,
    view: { name, content, kind, language, size: text.length, truncated: false },
  };
}

const PICTURE = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;
export const isPicture = (part) =>
  Boolean(part.blob) &&
  (part.type === "image" || (part.type === "file" && PICTURE.test(part.mime)));

/** Open the preview of a file. */
export async function openPreview(file) {
  previewedFile.value = file;
  const [module] = await Promise.all([import("./preview-pane.js"), loadStyles("preview")]);
  paneModule.value = module;
}

export function closePreview() {
  previewedFile.value = null;
}

let shownFor = route.peek();
effect(() => {
  if (route.value.name !== shownFor.name || route.value.place !== shownFor.place) closePreview();
  shownFor = route.value;
});

/** The preview: beside the conversation, or on top of the page. */
export function Preview() {
  const file = previewedFile.value;
  if (!file || !paneModule.value) return null;
  return html`<${paneModule.value.Pane} key=${file.about ?? file.raw} file=${file} />`;
}
