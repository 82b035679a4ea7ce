// The files that were made or changed in this conversation, and those that were sent in it.

import { sessionPath } from "../api.js";
import { formatBytes, formatDateTime } from "../format.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { isPicture, openPreview, sentFile, workspaceFile } from "../preview.js";
import { route } from "../state.js";
import { talk } from "../talk.js";
import { Empty, Loaded, useFetch } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const PICTURE = /\.(?:png|jpe?g|gif|webp|avif|svg)$/i;

export function Gallery() {
  const found = useFetch(sessionPath(route.value.name, "/files"));
  const { open, turns } = talk.value;
  useEffect(() => {
    if (!open) found.reload();
  }, [open, turns.length]); // a short turn begins and ends between two frames
  return html`
    <${Loaded} result=${found} what=${t("files")}>
      ${(made) => {
        const shown = [...made.map(describeMade), ...listSent(made)];
        return shown.length
          ? html`
              <ul class="gallery">
                ${shown.map((one) => html`<li key=${one.key}><${Card} one=${one} /></li>`)}
              </ul>
            `
          : html`
              <${Empty}>
                <span>
                  ${t(
                    "No file was made in this conversation yet. Pictures, documents and tables that you ask for are shown here.",
                  )}
                </span>
                <${Suggestion}
                  text=${t("Draw a chart of how warm it is in Berlin in each month, as a picture.")}
                >
                  ${t("Try an example")}
                <//>
              <//>
            `;
      }}
    <//>
  `;
}

function describeMade(one) {
  const file = workspaceFile(one.path);
  return {
    key: one.path,
    file,
    title: `${one.path} · ${formatDateTime(one.at)}`,
    note: formatBytes(one.size),
    picture: thumbnailOf(one.name, file),
  };
}

function thumbnailOf(name, file) {
  if (PICTURE.test(name)) return file.raw;
  return /\.pdf$/i.test(name) ? file.page(1) : "";
}

/** What was sent in the part of the conversation that is loaded, and lies in no folder. */
function listSent(made) {
  const names = new Set(made.map((one) => one.name));
  const parts = talk.value.turns
    .flatMap((turn) => turn.items)
    .filter((item) => item.kind === "tool" && item.status === "ok")
    .flatMap((item) => item.parts)
    .filter((part) => part.blob && !names.has(part.name));
  const sent = new Map(parts.map((part) => [part.blob, part]));
  return [...sent.values()].reverse().map((part) => {
    const file = sentFile(part);
    return {
      key: part.blob,
      file,
      title: file.name,
      note: part.size_bytes ? formatBytes(part.size_bytes) : "",
      picture: isPicture(part) ? file.raw : thumbnailOf(file.name, file),
    };
  });
}

function Card({ one }) {
  const [gone, setGone] = useState(false);
  const ending = /\.([a-z0-9]{1,5})$/i.exec(one.file.name)?.[1].toUpperCase() ?? "";
  return html`
    <button type="button" class="made-file" title=${one.title} onClick=${() => openPreview(one.file)}>
      <span class="thumbnail">
        ${
          one.picture && !gone
            ? html`<img src=${one.picture} alt="" loading="lazy" onError=${() => setGone(true)} />`
            : html`<${Icon} name="file" /><span class="tiny">${ending}</span>`
        }
      </span>
      <span class="cut">${one.file.name}</span>
      <span class="tiny muted">${one.note}</span>
    </button>
  `;
}
