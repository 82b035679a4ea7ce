// Files of a message: a person's attachments as small pictures, the agent's files at full size.

import { formatBytes } from "./format.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { useLazyComponent } from "./lazy-component.js";
import { html, useState } from "./lib.js";
import { isPicture, openPreview, sentFile } from "./preview.js";

/** What a person attached. */
export function Attachments({ parts }) {
  const pictures = parts.filter(isPicture);
  const recordings = parts.filter((part) => part.type === "audio");
  const files = parts.filter((part) => !isPicture(part) && part.type !== "audio");
  return html`
    ${recordings.map((part) => html`<${Recording} key=${part.blob} part=${part} />`)}
    ${
      pictures.length > 0 &&
      html`
        <ul class="thumbs">
          ${pictures.map((part, i) => html`<li key=${i}><${Picture} part=${part} /></li>`)}
        </ul>
      `
    }
    ${
      files.length > 0 &&
      html`
        <ul class="file-cards">
          ${files.map((part, i) => html`<li key=${i}><${FileCard} part=${part} /></li>`)}
        </ul>
      `
    }
  `;
}

const loadPlayer = async () => (await import("./voice/player.js")).Player;

/** What somebody said, and what was heard of it. */
function Recording({ part }) {
  const Player = useLazyComponent("player", loadPlayer);
  const { text = part.transcript ?? "", problem = "" } = part.heard ?? {};
  return html`
    <div class="recording">
      ${Player && html`<${Player} part=${part} />`}
      ${text && html`<p class="pre" dir="auto">${text}</p>`}
      ${problem && html`<p class="small muted">${t("Not transcribed: {problem}", { problem })}</p>`}
      ${part.heard && !text && !problem && html`<p class="small muted">${t("No speech was heard")}</p>`}
    </div>
  `;
}

/** What a tool sent or gave back, with what was said about it. */
export function ToolFiles({ parts, caption }) {
  return html`
    <div class="made">
      ${parts.map((part, i) => {
        const words = i === parts.length - 1 ? caption : "";
        if (!isPicture(part))
          return html`
            <div key=${i}>
              <${FileCard} part=${part} />
              ${words && html`<p class="caption">${words}</p>`}
            </div>
          `;
        return html`
          <figure key=${i}>
            <${Picture} part=${part} alt=${caption} />
            <figcaption class="caption">${words || part.name}</figcaption>
          </figure>
        `;
      })}
    </div>
  `;
}

/** A picture that opens; where it cannot be loaded, it is shown as a file. */
function Picture({ part, alt = "" }) {
  const [gone, setGone] = useState(false);
  const file = sentFile(part);
  if (gone) return html`<${FileCard} part=${part} />`;
  return html`
    <button
      type="button"
      class="picture-button"
      aria-label=${t("Open {name}", { name: file.name })}
      onClick=${() => openPreview(file)}
    >
      <img
        class="picture"
        src=${file.raw}
        alt=${alt || part.name || t("A picture that was sent")}
        loading="lazy"
        onError=${() => setGone(true)}
      />
    </button>
  `;
}

function FileCard({ part }) {
  const file = sentFile(part);
  const name = file?.name ?? (part.name || t("file"));
  const ending = /\.([a-z0-9]{1,5})$/i.exec(name)?.[1].toUpperCase() ?? t("File");
  return html`
    <div class="file-card">
      <${Icon} name="file" />
      <span class="grow">
        <strong class="cut" title=${name}>${name}</strong>
        <span class="tiny muted">
          ${[ending, part.size_bytes ? formatBytes(part.size_bytes) : ""]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </span>
      ${
        file &&
        html`
          <button
            type="button"
            class="btn little"
            aria-label=${t("Open {name}", { name })}
            onClick=${() => openPreview(file)}
          >
            ${t("Open")}
          </button>
          <a
            class="ib little"
            href=${file.raw}
            download=${name}
            aria-label=${t("Download {name}", { name })}
            title=${t("Download")}
          >
            <${Icon} name="download" />
          </a>
        `
      }
    </div>
  `;
}
