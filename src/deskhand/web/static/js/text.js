// Draws Markdown: each piece by itself, so that while an answer grows only its last piece is drawn anew.

import { drawPictures, openFile } from "./answer-files.js";
import { html, useLayoutEffect, useMemo, useRef } from "./lib.js";
import { readDocument } from "./markdown/document.js";
import { enrich } from "./rich.js";
import { announce } from "./state.js";
import { trusted } from "./trusted.js";

/** One piece: its Markdown, and after it what is shown as it is written. */
function Piece({ markup, rest = "", done = true, base }) {
  const at = useRef(),
    drawn = useRef({ markup: "", rest: "" });
  useLayoutEffect(() => {
    const root = at.current,
      before = drawn.current;
    if (before.markup !== markup || !rest.startsWith(before.rest)) {
      root.innerHTML = trusted(markup);
      for (const block of root.children) if (!block.dir) block.dir = "auto";
      drawn.current = { markup, rest: "" };
    }
    grow(root, rest.slice(drawn.current.rest.length));
    drawn.current.rest = rest;
    enrich(root, done);
    if (done) drawPictures(root, base); // not with each letter that comes
  }, [markup, rest, done]);
  return useMemo(() => html`<div class="block" ref=${at}></div>`, []);
}

const PART = 10_000;

/** Add to what is shown as it is written: in parts of whole lines, so that only the last has to be laid out anew. */
function grow(root, more) {
  if (!more) return;
  let plain = root.querySelector(":scope > .as-is");
  if (!plain) {
    plain = Object.assign(document.createElement("pre"), {
      className: "as-is",
      tabIndex: 0,
      dir: "auto",
    });
    root.append(plain);
  }
  for (let from = 0; from < more.length; ) {
    const data = plain.lastChild?.firstChild.data ?? "",
      room = roomIn(data);
    if (!plain.lastChild || !room) {
      plain.append(document.createElement("span"));
      plain.lastChild.append("");
      continue;
    }
    const line = more.indexOf("\n", from + Math.max(0, PART - 1 - data.length)) + 1;
    const end = Math.min(from + room, line || Infinity, more.length);
    plain.lastChild.firstChild.appendData(more.slice(from, end));
    from = end;
  }
}

/** How much a part may still take: to the end of a line, or twice its length where a line is that long. */
function roomIn(data) {
  if (data.length >= PART && data.endsWith("\n")) return 0;
  const halved = /[\ud800-\udbff]$/.test(data) ? 1 : 0;
  return Math.max(2 * PART - data.length, halved);
}

/** `text` as Markdown. `base` is the folder from which it names files, '' for the workspace. */
export function Markdown({ text, live = false, base = "" }) {
  const before = useRef(null);
  const read = useMemo(
    () => (before.current = readDocument(text, before.current, live)),
    [text, live],
  );
  return html`<div class=${`md ${live ? "live" : ""}`} onClick=${(event) => openFile(event, base) || clicked(event)}>
    ${read.blocks.map((block, i) => html`<${Piece} key=${i} markup=${block.html} rest=${block.rest} done=${block.done} base=${base} />`)}
    ${read.notes && html`<${Piece} key="notes" markup=${read.notes} done=${!live} base=${base} />`}
  </div>`;
}

/** Copies, leads to a footnote and back, and opens what is elsewhere: only ever after a click. */
function clicked(event) {
  const button = event.target.closest?.("button"),
    { url, copy: code, note, mark } = button?.dataset ?? {};
  if (url) window.open(url, "_blank", "noopener,noreferrer");
  else if (code)
    copy(button.closest(".code").querySelector("code").textContent.replace(/\n$/, ""), button);
  else if (note)
    jump(button, event.currentTarget.querySelectorAll(".notes > ol > li")[note - 1], note);
  else if (mark)
    jump(
      button,
      from.get(button.closest("li")) ?? event.currentTarget.querySelector(`[data-note="${mark}"]`),
    );
}

const from = new WeakMap(); // a note: the mark that led to it

function jump(button, target) {
  if (!target) return;
  if (button.dataset.note) from.set(target, button);
  target.focus({ preventScroll: true }); // not scrollIntoView: that moves the whole page too
  let area = target.parentElement;
  while (
    area &&
    !(area.scrollHeight > area.clientHeight && /auto|scroll/.test(getComputedStyle(area).overflowY))
  )
    area = area.parentElement;
  if (!area) return;
  const [at, within] = [target, area].map((element) => element.getBoundingClientRect());
  if (at.top < within.top || at.bottom > within.bottom)
    area.scrollTop += at.top - within.top - within.height / 3;
}

export async function copy(text, button = null) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), {
      value: text,
      className: "sr",
    });
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
