// Parts of the page, and their style sheets, that are loaded on their first use.
import { t } from "./language.js";
import { useEffect, useState } from "./lib.js";
import { attempt } from "./state.js";

const styles = new Map(); // name of a style sheet: resolved once it is in force or is not to be had

/** Load the style sheet of this name. */
export function loadStyles(name) {
  if (!styles.has(name))
    styles.set(
      name,
      new Promise((resolve) => {
        const link = document.createElement("link");
        Object.assign(link, { rel: "stylesheet", href: `/css/${name}.css` });
        link.onload = link.onerror = resolve;
        document.head.append(link);
      }),
    );
  return styles.get(name);
}

/** The component that `load` imports, once it is loaded; undefined until then. */
export function useLazyComponent(id, load) {
  const [loaded, setLoaded] = useState({});
  const Drawn = loaded[id];
  useEffect(() => {
    if (Drawn || !load) return;
    const loadOrExplain = () =>
      Promise.all([load(), loadStyles("panels")]).catch(() => {
        throw new Error(
          t("This page could not be loaded. Open it again when Deskhand is reached."),
        );
      });
    attempt(loadOrExplain).then((found) => {
      if (found) setLoaded((before) => ({ ...before, [id]: found[0] }));
    });
  }, [id]);
  return Drawn;
}
