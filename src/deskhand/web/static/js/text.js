// Draws Markdown: each block by itself, so that while an answer grows only its last block is drawn anew.
import { html, useLayoutEffect, useMemo, useRef } from "./lib.js";
import { blocks, markup, trusted } from "./markdown.js";
import { announce } from "./state.js";

function Block({ raw, links }) {
  const at = useRef();
  useLayoutEffect(() => { at.current.innerHTML = trusted(markup(raw, links)); }, [raw, links]);
  return useMemo(() => html`<div class="block" ref=${at}></div>`, []);
}

/** `text` as Markdown. */
export function Markdown({ text, live = false }) {
  const before = useRef(null);
  const found = useMemo(() => (before.current = blocks(text, before.current)), [text]);
  return html`<div class=${`md ${live ? "live" : ""}`} onClick=${clicked}>
    ${[...found.done, found.tail].map((raw, i) => raw && html`<${Block} key=${i} raw=${raw} links=${found.links} />`)}
  </div>`;
}

/** Copies, and opens what is elsewhere: only ever after a click. */
function clicked(event) {
  const button = event.target.closest?.("button");
  if (button?.dataset.url) window.open(button.dataset.url, "_blank", "noopener,noreferrer");
  else if (button?.dataset.copy) copy(button.closest(".code").querySelector("code").textContent.replace(/\n$/, ""), button);
}

export async function copy(text, button = null) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text, className: "sr" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce("Copied");
  if (button) {
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  }
}
