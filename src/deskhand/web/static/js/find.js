// Find in this conversation: the hits one after the other, wherever they lie in it.

import { IconButton } from "./icons.js";
import { t } from "./language.js";
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { usePages } from "./more.js";
import { route, searchTarget } from "./state.js";

export const finding = signal(false);
const WAIT_MS = 160;
const LOWEST_SHARE = 0.6;
const ABOVE_PX = 96;

const PAGE = 50;
const readPage = (rows) => ({ rows, next: rows.length < PAGE ? null : rows.at(-1).seq });

function describeHits({ error, rows, more }, current) {
  if (error) return error.message;
  if (!rows) return "";
  if (!rows.length) return t("Not found");
  const count = `${rows.length}${more ? "+" : ""}`;
  return t("{number} of {count}", { number: current + 1, count });
}

export function Find() {
  const field = useRef();
  const [query, setQuery] = useState("");
  const [asked, setAsked] = useState("");
  const [current, setCurrent] = useState(0);
  const { name } = route.value;
  const session = encodeURIComponent(name);
  const words = encodeURIComponent(asked);
  const found = usePages(
    asked && `/api/search?order=latest&limit=${PAGE}&session=${session}&q=${words}`,
    readPage,
  );
  const rows = found.rows ?? [];
  useEffect(() => {
    const timer = setTimeout(() => {
      setAsked(query.trim());
      setCurrent(0);
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
    if (rows[current]) searchTarget.value = { name, n: rows[current].n, query: asked };
    if (current >= rows.length - 2 && found.more) found.more();
  }, [found.rows, current]);
  const moveHit = (offset) => {
    if (rows.length) setCurrent(Math.max(0, Math.min(rows.length - 1, current + offset)));
  };
  const closeFind = () => {
    finding.value = false;
    document.querySelector(".scroll")?.focus({ preventScroll: true });
  };
  const handleKey = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      closeFind();
    }
    if (["Enter", "ArrowUp", "ArrowDown"].includes(event.key)) {
      event.preventDefault();
      moveHit(event.key === "ArrowDown" || event.shiftKey ? -1 : 1);
    }
  };
  const status = asked || found.error ? describeHits(found, current) : "";
  return html`
    <div class="find" role="search" aria-label=${t("In this conversation")} onKeyDown=${handleKey}>
      <input
        class="input"
        type="search"
        ref=${field}
        aria-label=${t("Find in this conversation")}
        placeholder=${t("Find in this conversation")}
        autocomplete="off"
        value=${query}
        onInput=${(event) => setQuery(event.target.value)}
      />
      <span class="small muted" role="status">${status}</span>
      <${IconButton}
        name="up"
        little
        label=${t("Earlier")}
        disabled=${current >= rows.length - 1}
        onClick=${() => moveHit(1)}
      />
      <${IconButton}
        name="down"
        little
        label=${t("Later")}
        disabled=${current <= 0}
        onClick=${() => moveHit(-1)}
      />
      <${IconButton} name="close" little label=${t("Close the search")} onClick=${closeFind} />
    </div>
  `;
}

/**
 * Highlight the words of the query in this turn. Returns how far below the top of `area` the turn
 * has to begin, so that its first hit is in sight.
 */
export function markHits(turn, area, query = "") {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  const ranges = findRanges(turn, words.filter(Boolean));
  if (globalThis.Highlight) CSS.highlights.set("hit", new Highlight(...ranges));
  if (!ranges.length) return 0;
  const down = ranges[0].getBoundingClientRect().top - turn.getBoundingClientRect().top;
  return down > area.clientHeight * LOWEST_SHARE ? ABOVE_PX - down : 0;
}

function findRanges(turn, words) {
  const found = [];
  const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const match of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      const word = match[0].toLowerCase();
      const hit = words.find((one) => word.startsWith(one));
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
