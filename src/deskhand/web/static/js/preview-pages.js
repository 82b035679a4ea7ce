// The pages of a PDF: a picture of each, its words laid over it to be selected, and a field that
// finds them.

import { formatCount } from "./format.js";
import { IconButton } from "./icons.js";
import { t } from "./language.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { useFetch } from "./panels/parts.js";
import { findHits, joinSelected } from "./preview-words.js";

const GRID = 10_000; // a page is so many units wide and high for its words
const NONE = [];

/** An Office document as LibreOffice draws it, which takes a while the first time. */
export function DrawnDocument({ file }) {
  const found = useFetch(file.pages);
  if (found.error)
    return html`
      <p class="note warn" role="alert">
        ${t("{problem} Its text is under Text.", { problem: found.error.message })}
      </p>
    `;
  if (!found.data)
    return html`<p class="small muted" role="status">${t("Drawing the pages …")}</p>`;
  const view = { pages: found.data.sizes, page_count: found.data.count };
  return html`<${Pages} view=${view} file=${file} />`;
}

export function Pages({ view, file }) {
  const list = useRef();
  const found = useFetch(file.words);
  const pages = found.data?.pages ?? NONE;
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const hits = useMemo(() => findHits(pages, query), [pages, query]);
  const current = hits[chosen];
  useLayoutEffect(() => {
    if (file.at?.page) list.current.children[file.at.page - 1]?.scrollIntoView();
  }, [file.at]);
  useEffect(() => {
    if (!current) return;
    const page = list.current.children[current.page];
    page?.scrollIntoView({ block: "nearest" });
    page?.querySelector(".hit.now")?.scrollIntoView({ block: "center" });
  }, [current]);
  const search = (text) => {
    setQuery(text);
    setChosen(0);
  };
  const copy = (event) => {
    const text = joinSelected(list.current, getSelection());
    if (!text) return;
    event.preventDefault();
    event.clipboardData.setData("text/plain", text);
  };
  const total = view.page_count;
  return html`
    ${
      found.data &&
      html`
        <${Search}
          hasWords=${pages.some((words) => words.length > 0)}
          query=${query}
          search=${search}
          count=${hits.length}
          chosen=${chosen}
          choose=${setChosen}
        />
      `
    }
    <ol class="pdf-pages" ref=${list} onCopy=${copy}>
      ${view.pages.map(
        ([width, height], i) => html`
          <li key=${i}>
            <div class="pdf-page">
              <img
                src=${file.page(i + 1)}
                alt=${t("Page {page} of {total}", { page: i + 1, total })}
                width=${Math.round(width)}
                height=${Math.round(height)}
                loading="lazy"
              />
              <${Words}
                words=${pages[i] ?? NONE}
                hits=${hits.filter((hit) => hit.page === i)}
                current=${current}
              />
            </div>
          </li>
        `,
      )}
    </ol>
    ${
      total > view.pages.length &&
      html`
        <p class="small muted">
          ${t("These are the first {shown} of {total} pages. Download the file for all of them.", {
            shown: view.pages.length,
            total: formatCount(total),
          })}
        </p>
      `
    }
  `;
}

function Search({ hasWords, query, search, count, chosen, choose }) {
  if (!hasWords)
    return html`
      <p class="small muted">${t("This PDF has no text to search: its pages are pictures.")}</p>
    `;
  const step = (by) => count && choose((chosen + by + count) % count);
  const handleKey = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    }
    if (event.key === "Escape" && query) {
      event.preventDefault();
      event.stopPropagation(); // the preview stays open
      search("");
    }
  };
  const place = count ? t("{number} of {count}", { number: chosen + 1, count }) : t("Not found");
  return html`
    <div class="row pdf-search">
      <input
        class="input grow"
        type="search"
        placeholder=${t("Search this document")}
        aria-label=${t("Search this document")}
        value=${query}
        onInput=${(event) => search(event.target.value)}
        onKeyDown=${handleKey}
      />
      <span class="small muted" role="status">${query.trim() && place}</span>
      <${IconButton} name="up" label=${t("Previous match")} onClick=${() => step(-1)} />
      <${IconButton} name="down" label=${t("Next match")} onClick=${() => step(1)} />
    </div>
  `;
}

/** The words of a page, unseen over its picture; they are drawn when the page comes near. */
function Words({ words, hits, current }) {
  const box = useRef();
  const [near, setNear] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver(([entry]) => entry.isIntersecting && setNear(true), {
      rootMargin: "800px",
    });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const boxes = hits.flatMap((hit) =>
    words.slice(hit.first, hit.last + 1).map((word) => ({ word, now: hit === current })),
  );
  return html`
    <svg
      class="pdf-words"
      ref=${box}
      viewBox=${`0 0 ${GRID} ${GRID}`}
      preserveAspectRatio="none"
    >
      ${boxes.map(
        ({ word: [, x, y, width, height], now }, i) => html`
          <rect key=${`hit${i}`} class=${now ? "hit now" : "hit"} x=${x} y=${y} width=${width} height=${height} />
        `,
      )}
      ${
        near &&
        words.map(
          ([text, x, y, width, height, ends], i) => html`
            <text
              key=${i}
              x=${x}
              y=${y + height * 0.8}
              font-size=${height}
              textLength=${Math.max(width, 1)}
              lengthAdjust="spacingAndGlyphs"
              data-ends=${ends || null}
            >${text}</text>
          `,
        )
      }
    </svg>
  `;
}
