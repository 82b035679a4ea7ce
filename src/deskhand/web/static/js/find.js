// Find in this conversation: the hits one after the other, wherever they lie in it.

import { IconButton } from "./icons.js";
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { usePages } from "./more.js";
import { here, sought } from "./state.js";

export const finding = signal(false);
const WAIT_MS = 160,
  BESIDE = 0.6,
  ABOVE_PX = 96;

const PAGE = 50;
const read = (rows) => ({ rows, next: rows.length < PAGE ? null : rows.at(-1).seq });

export function Find() {
  const field = useRef(),
    [query, setQuery] = useState(""),
    [asked, setAsked] = useState(""),
    [at, setAt] = useState(0),
    { name } = here.value;
  const found = usePages(
      asked &&
        `/api/search?order=latest&limit=${PAGE}&session=${encodeURIComponent(name)}&q=${encodeURIComponent(asked)}`,
      read,
    ),
    rows = found.rows ?? [];
  useEffect(() => {
    const timer = setTimeout(() => {
      setAsked(query.trim());
      setAt(0);
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [query]);
  useLayoutEffect(() => {
    field.current.focus();
    return () => {
      CSS.highlights?.delete("hit");
    };
  }, []);
  useEffect(() => {
    if (rows[at]) sought.value = { name, n: rows[at].n, query: asked };
    if (at >= rows.length - 2 && found.more) found.more();
  }, [found.rows, at]);
  const step = (by) => {
    if (rows.length) setAt(Math.max(0, Math.min(rows.length - 1, at + by)));
  };
  const close = () => {
    finding.value = false;
    document.querySelector(".scroll")?.focus({ preventScroll: true });
  };
  const key = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
    if (["Enter", "ArrowUp", "ArrowDown"].includes(event.key)) {
      event.preventDefault();
      step(event.key === "ArrowDown" || event.shiftKey ? -1 : 1);
    }
  };
  const said = found.error
    ? found.error.message
    : !asked || !found.rows
      ? ""
      : rows.length
        ? `${at + 1} of ${rows.length}${found.more ? "+" : ""}`
        : "Not found";
  return html`<div class="find" role="search" aria-label="In this conversation" onKeyDown=${key}>
    <input class="input" type="search" ref=${field} aria-label="Find in this conversation" placeholder="Find in this conversation" autocomplete="off" value=${query} onInput=${(event) => setQuery(event.target.value)} />
    <span class="small muted" role="status">${said}</span>
    <${IconButton} name="up" little label="Earlier" disabled=${at >= rows.length - 1} onClick=${() => step(1)} />
    <${IconButton} name="down" little label="Later" disabled=${at <= 0} onClick=${() => step(-1)} />
    <${IconButton} name="close" little label="Close the search" onClick=${close} /></div>`;
}

/** Mark in this turn what is searched for. Gives how far below the upper edge of `area` the turn is to begin, so that
 * the first hit in it is in sight. */
export function markHits(turn, area, query = "") {
  const ranges = rangesOf(
    turn,
    query
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u)
      .filter(Boolean),
  );
  if (globalThis.Highlight) CSS.highlights.set("hit", new Highlight(...ranges));
  if (!ranges.length) return 0;
  const down = ranges[0].getBoundingClientRect().top - turn.getBoundingClientRect().top;
  return down > area.clientHeight * BESIDE ? ABOVE_PX - down : 0;
}

function rangesOf(turn, words) {
  const found = [],
    walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const match of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      const word = match[0].toLowerCase(),
        hit = words.find((one) => word.startsWith(one));
      if (hit) {
        const range = new Range();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + hit.length);
        found.push(range);
      }
    }
  }
  return found;
}
