// Files that are to go with the next message: how they come, and how they are shown until then.

import { call } from "./api.js";
import { formatBytes } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { t } from "./language.js";
import { html, signal } from "./lib.js";
import { announce, showError } from "./state.js";

/** `{key, name, size, mime, blob?, thumb?, problem?, retry?, spoken?}` */
export const files = signal([]);
export const dropping = signal(false);

/** Whether all of them are here, apart from those that cannot be sent. */
export const areUploaded = () => files.value.every((file) => file.blob || file.problem);

/** Those that are here, as a message names them. */
export const listUploaded = () =>
  files.value
    .filter((file) => file.blob)
    .map(({ blob, name, mime, size, spoken }) => ({
      blob,
      name,
      mime,
      size_bytes: size,
      ...(spoken && { spoken }),
    }));

export function AttachedFiles() {
  if (!files.value.length) return null;
  return html`
    <ul class="attached">
      ${files.value.map(
        (file) => html`
          <li key=${file.key} class=${`chip ${file.problem ? "bad" : ""}`}>
            ${
              file.thumb
                ? html`<img src=${file.thumb} alt="" />`
                : html`<${Icon} name=${file.spoken ? "mic" : "file"} />`
            }
            <span class="cut">${file.spoken ? t("Voice message") : file.name}</span>
            <span class="muted">
              ${file.problem || (file.blob ? formatBytes(file.size) : t("uploading …"))}
            </span>
            ${
              file.retry &&
              html`<${IconButton} name="retry" little label=${t("Upload again")} onClick=${file.retry} />`
            }
            <${IconButton}
              name="close"
              little
              label=${file.spoken ? t("Remove the voice message") : t("Remove {name}", { name: file.name })}
              onClick=${() => {
                files.value = files.value.filter((one) => one.key !== file.key);
              }}
            />
          </li>
        `,
      )}
    </ul>
  `;
}

/** Upload what is to go with the next message. */
export async function attachFiles(chosen) {
  for (const file of chosen) await attachFile(file);
}

/** Upload a file. With `spoken` it is what the person says. Returns what a message names, or null. */
export async function attachFile(file, spoken = false) {
  const entry = {
    key: crypto.getRandomValues(new Uint32Array(1))[0],
    name: file.name || "picture.png",
    size: file.size,
    mime: file.type || "application/octet-stream",
    spoken,
  };
  files.value = [...files.value, entry];
  if (!spoken)
    makeThumbnail(file).then(
      (thumb) => updateEntry(entry, { thumb }),
      () => undefined, // no picture, or one that the browser does not know
    );
  return uploadEntry(entry, file);
}

function updateEntry({ key }, more) {
  files.value = files.value.map((one) => (one.key === key ? { ...one, ...more } : one));
}

async function uploadEntry(entry, file) {
  updateEntry(entry, { problem: "", retry: null });
  try {
    const known = await call(
      "POST",
      `/api/blobs?name=${encodeURIComponent(entry.name)}`,
      new Blob([file], { type: entry.mime }),
    );
    updateEntry(entry, {
      blob: known.blob,
      mime: known.mime,
      size: known.size_bytes,
      name: known.name,
    });
    announce(t("{name} is attached", { name: entry.name }));
    return known;
  } catch (error) {
    updateEntry(entry, {
      problem: error.missing ? t("this server takes no files") : t("not uploaded"),
      retry: error.missing ? null : () => uploadEntry(entry, file),
    });
    if (!error.missing && error.status !== 0) showError(error); // the banner says that it is away
    return null;
  }
}

/** The picture, small, as an address that the page may show. */
async function makeThumbnail(file) {
  const bitmap = await createImageBitmap(file, { resizeHeight: 56, resizeQuality: "medium" });
  const canvas = Object.assign(document.createElement("canvas"), {
    width: bitmap.width,
    height: bitmap.height,
  });
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  return canvas.toDataURL("image/png");
}

export function listenForDrops() {
  let depth = 0;
  const handlers = {
    dragenter: (event) => {
      if (event.dataTransfer?.types.includes("Files")) {
        depth += 1;
        dropping.value = true;
      }
    },
    dragleave: () => {
      depth = Math.max(0, depth - 1);
      if (!depth) dropping.value = false;
    },
    dragover: (event) => event.preventDefault(),
    drop: (event) => {
      event.preventDefault();
      depth = 0;
      dropping.value = false;
      if (event.dataTransfer?.files.length && !event.target.closest?.(".panel"))
        attachFiles([...event.dataTransfer.files]);
    },
  };
  for (const [name, handler] of Object.entries(handlers)) addEventListener(name, handler);
  return () => {
    for (const [name, handler] of Object.entries(handlers)) removeEventListener(name, handler);
  };
}
