// Lists that load as they are scrolled: what asks for the next page, and rows that are drawn only near what is seen.

import { get } from "./api.js";
import { html, useEffect, useRef, useState } from "./lib.js";
import { complain } from "./state.js";

const NEAR = "800px 0px";

/** What scrolls around an element. */
const boxOf = (element) => element.closest(".scroll, .side-list, .page, .panel-body, .found-list");

/** Call `seen(near)` when the element comes near what is seen of its list, and when it leaves it. */
function watchNear(element, seen) {
  const observer = new IntersectionObserver(
    (entries) => element.isConnected && seen(entries.at(-1).isIntersecting),
    { root: boxOf(element), rootMargin: NEAR },
  );
  observer.observe(element);
  return () => observer.disconnect();
}

/** Stands where a list goes on: asks for more when it comes near, or when it is pressed. Its `key` is where it goes on. */
export function More({ more, label = "Show more" }) {
  const at = useRef(),
    ask = () => Promise.resolve(more()).catch((error) => error.status !== 0 && complain(error));
  useEffect(() => watchNear(at.current, (near) => near && ask()), []);
  return html`<p class="more" ref=${at}><button type="button" class="btn little quiet" onClick=${ask}>${label}</button></p>`;
}

/** Some rows of a list: far from what is seen they are an empty space, as high as they were. A row that has the focus
 * stays, however far it is: whoever goes on by keyboard goes on from there. */
export function Block({ children }) {
  const at = useRef(),
    far = useRef(false),
    [height, setHeight] = useState(0);
  const draw = (focused) =>
    setHeight(far.current && !at.current.contains(focused) ? at.current.offsetHeight : 0);
  useEffect(
    () =>
      watchNear(at.current, (near) => {
        far.current = !near;
        draw(document.activeElement);
      }),
    [],
  );
  return html`<ul ref=${at} style=${{ height: height ? `${height}px` : "" }} onFocusOut=${(event) => draw(event.relatedTarget)}>${height ? null : children()}</ul>`;
}

/** A list that comes in pages: `{rows, more, error, renew}`. `read(answer)` gives the `rows` of an answer and where the
 * `next` page begins. `rows` is null until the first one is there, `more` null where nothing is behind. */
export function usePages(path, read) {
  const [found, setFound] = useState({ path: "", rows: null }),
    now = useRef(path);
  now.current = path;
  const load = async (address, join) => {
    try {
      const page = read(await get(address));
      if (now.current === path) setFound((was) => ({ path, ...join(page, was) }));
    } catch (error) {
      if (now.current === path)
        setFound((was) => ({ ...(was.path === path ? was : { path, rows: null }), error }));
    }
  };
  useEffect(() => {
    if (path) load(path, (page) => page);
  }, [path]);
  const { rows, next, error } = found.path === path ? found : { rows: null };
  const more = () =>
    load(`${path}&before=${encodeURIComponent(next)}`, (page, was) =>
      was.next === next ? { rows: [...rows, ...page.rows], next: page.next } : was,
    );
  /** Ask for the first page again, and put it before what is behind it. `same(one, other)` says which are the same. */
  const renew = (same) =>
    load(path, (page, was) => {
      const old = (was.rows ?? []).filter((row) => !page.rows.some((one) => same(one, row)));
      return old.length < (was.rows?.length ?? 0)
        ? { rows: [...page.rows, ...old], next: was.next }
        : page;
    });
  return { rows, error, next, renew, more: next == null ? null : more };
}
