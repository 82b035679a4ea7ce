// A picture or a file that belongs to a message.
import { html } from "./lib.js";
import { here } from "./state.js";
import { bytes } from "./format.js";
import { Icon } from "./icons.js";

export function Attachment({ part }) {
  const href = part.blob ? `/api/blobs/${part.blob}?session=${encodeURIComponent(here.value.name)}` : null;
  if (part.type === "image" && href) return html`<a href=${href} target="_blank" rel="noreferrer noopener"><img class="picture" src=${href} alt=${part.name || "A picture that was sent"} loading="lazy" /></a>`;
  const name = part.name || (part.type === "audio" ? "voice message" : "file");
  return html`<a class="chip" href=${href} download=${name}><${Icon} name="file" /><span class="cut">${name}</span>${part.size_bytes ? html`<span class="muted">${bytes(part.size_bytes)}</span>` : ""}</a>`;
}
