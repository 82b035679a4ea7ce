// Lists that load as they are scrolled: a button for the next page, and rows drawn only when near.

import { get } from "./api.js";
import { t } from "./language.js";
import { html, useEffect, useRef, useState } from "./lib.js";
import { showError } from "./state.js";

const NEAR = "800px 0px";

/** The element that scrolls around this one. */
const findScrollBox = (element) =>
  element.closest(".scroll, .side-list, .page, .panel-body, .found-list");

/** Call `seen(near)` when the element comes near the visible part of its list, and when it goes. */
function watchNear(element, seen) {
  const observer = new IntersectionObserver(
    (entries) => element.isConnected && seen(entries.at(-1).isIntersecting),
    { root: findScrollBox(element), rootMargin: NEAR },
  );
  observer.observe(element);
  return () => observer.disconnect();
}

/** A button for more rows, which also loads when it comes near. Its `key`: where the list ends. */
export function More({ more, label = t("Show more") }) {
  const root = useRef();
  const loadMore = () =>
    Promise.resolve(more()).catch((error) => error.status !== 0 && showError(error));
  useEffect(() => watchNear(root.current, (near) => near && loadMore()), []);
  return html`
    <p class="more" ref=${root}>
      <button type="button" class="btn little quiet" onClick=${loadMore}>${label}</button>
    </p>
  `;
}

/**
 * Some rows of a list: far from the visible part they are an empty space of the same height. A row
 * that has the focus stays, however far it is: the keyboard goes on from there.
 */
export function Block({ children }) {
  const root = useRef();
  const far = useRef(false);
  const [height, setHeight] = useState(0);
  const updateHeight = (focused) =>
    setHeight(far.current && !root.current.contains(focused) ? root.current.offsetHeight : 0);
  useEffect(
    () =>
      watchNear(root.current, (near) => {
        far.current = !near;
        updateHeight(document.activeElement);
      }),
    [],
  );
  return html`
    <ul
      ref=${root}
      style=${{ height: height ? `${height}px` : "" }}
      onFocusOut=${(event) => updateHeight(event.relatedTarget)}
    >
      ${height ? null : children()}
    </ul>
  `;
}

/**
 * A list that is loaded in pages: `{rows, more, error, renew}`. `read(answer)` gives the `rows` of
 * an answer and where the `next` page begins. `rows` is null until the first page is loaded, `more`
 * is null after the last one.
 */
export function usePages(path, read) {
  const [found, setFound] = useState({ path: "", rows: null });
  const currentPath = useRef(path);
  currentPath.current = path;
  const load = async (address, join) => {
    try {
      const page = read(await get(address));
      if (currentPath.current === path) setFound((was) => ({ path, ...join(page, was) }));
    } catch (error) {
      if (currentPath.current === path)
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
  /** Load the first page again, before the others. `same(one, other)`: is it the same row? */
  const renew = (same) =>
    load(path, (page, was) => {
      const old = (was.rows ?? []).filter((row) => !page.rows.some((one) => same(one, row)));
      return old.length < (was.rows?.length ?? 0)
        ? { rows: [...page.rows, ...old], next: was.next }
        : page;
    });
  return { rows, error, next, renew, more: next == null ? null : more };
}
