// Draws Markdown piece by piece: while an answer grows, only its last piece is drawn again.

import { drawPictures, openFile } from "./answer-files.js";
import { t } from "./language.js";
import { html, useLayoutEffect, useMemo, useRef } from "./lib.js";
import { readDocument } from "./markdown/document.js";
import { enrichElement } from "./rich.js";
import { announce } from "./state.js";
import { trustedHtml } from "./trusted.js";

/** One piece: its Markdown, and after it what is shown as it is written. */
function Piece({ markup, rest = "", done = true, base }) {
  const element = useRef();
  const drawn = useRef({ markup: "", rest: "" });
  useLayoutEffect(() => {
    const root = element.current;
    const before = drawn.current;
    if (before.markup !== markup || !rest.startsWith(before.rest)) {
      root.innerHTML = trustedHtml(markup);
      for (const block of root.children) if (!block.dir) block.dir = "auto";
      drawn.current = { markup, rest: "" };
    }
    appendPlain(root, rest.slice(drawn.current.rest.length));
    drawn.current.rest = rest;
    enrichElement(root, done);
    if (done) drawPictures(root, base); // not while it still grows
  }, [markup, rest, done]);
  return useMemo(() => html`<div class="block" ref=${element}></div>`, []);
}

const PART_CHARS = 10_000;

/** Append to the plain text, in parts of whole lines: only the last part is laid out again. */
function appendPlain(root, more) {
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
    const data = plain.lastChild?.firstChild.data ?? "";
    const room = measureRoom(data);
    if (!plain.lastChild || !room) {
      plain.append(document.createElement("span"));
      plain.lastChild.append("");
      continue;
    }
    const line = more.indexOf("\n", from + Math.max(0, PART_CHARS - 1 - data.length)) + 1;
    const end = Math.min(from + room, line || Infinity, more.length);
    plain.lastChild.firstChild.appendData(more.slice(from, end));
    from = end;
  }
}

/** How much a part may still take: up to a line's end, or twice its length where a line is long. */
function measureRoom(data) {
  if (data.length >= PART_CHARS && data.endsWith("\n")) return 0;
  const halved = /[\ud800-\udbff]$/.test(data) ? 1 : 0;
  return Math.max(2 * PART_CHARS - data.length, halved);
}

/** `text` as Markdown. `base` is the folder from which it names files, '' for the workspace. */
export function Markdown({ text, live = false, base = "" }) {
  const before = useRef(null);
  const read = useMemo(
    () => (before.current = readDocument(text, before.current, live)),
    [text, live],
  );
  return html`
    <div
      class=${`md ${live ? "live" : ""}`}
      onClick=${(event) => {
        if (!openFile(event, base)) handleClick(event);
      }}
    >
      ${read.blocks.map(
        (block, i) => html`
          <${Piece}
            key=${i}
            markup=${block.html}
            rest=${block.rest}
            done=${block.done}
            base=${base}
          />
        `,
      )}
      ${
        read.notes && html`<${Piece} key="notes" markup=${read.notes} done=${!live} base=${base} />`
      }
    </div>
  `;
}

/** Copy code, jump to a footnote and back, or open an external image: only after a click. */
function handleClick(event) {
  const button = event.target.closest?.("button");
  const { url, copy: code, note, mark, act } = button?.dataset ?? {};
  const root = event.currentTarget;
  if (url) window.open(url, "_blank", "noopener,noreferrer");
  else if (code) copyText(readCode(button), button);
  else if (act) import("./answer-acts.js").then(({ ACTS }) => ACTS[act]?.(button));
  else if (note) jumpToNote(button, root.querySelectorAll(".notes > ol > li")[note - 1]);
  else if (mark) {
    const usedMark = noteMarks.get(button.closest("li"));
    jumpToNote(button, usedMark ?? root.querySelector(`[data-note="${mark}"]`));
  }
}

/** The code in the box of this button. */
export function readCode(button) {
  const code = button.closest(".code").querySelector("code");
  return code.textContent.replace(/\n$/, "");
}

const noteMarks = new WeakMap(); // a note: the mark that led to it

function jumpToNote(button, target) {
  if (!target) return;
  if (button.dataset.note) noteMarks.set(target, button);
  target.focus({ preventScroll: true }); // not scrollIntoView: that moves the whole page too
  let area = target.parentElement;
  while (area && !isScrollable(area)) area = area.parentElement;
  if (!area) return;
  const place = target.getBoundingClientRect();
  const frame = area.getBoundingClientRect();
  if (place.top < frame.top || place.bottom > frame.bottom)
    area.scrollTop += place.top - frame.top - frame.height / 3;
}

const isScrollable = (element) =>
  element.scrollHeight > element.clientHeight &&
  /auto|scroll/.test(getComputedStyle(element).overflowY);

export async function copyText(text, button = null) {
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
  announce(t("Copied"));
  if (button) {
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  }
}
