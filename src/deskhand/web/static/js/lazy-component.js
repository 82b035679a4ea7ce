// Parts of the page that are loaded on their first use.
import { useEffect, useState } from "./lib.js";
import { attempt } from "./state.js";

/** The component that `load` imports, once it is loaded; undefined until then. */
export function useLazyComponent(id, load) {
  const [loaded, setLoaded] = useState({});
  const Drawn = loaded[id];
  useEffect(() => {
    if (Drawn || !load) return;
    const loadOrExplain = () =>
      load().catch(() => {
        throw new Error("This page could not be loaded. Open it again when Deskhand is reached.");
      });
    attempt(loadOrExplain).then((found) => {
      if (found) setLoaded((before) => ({ ...before, [id]: found }));
    });
  }, [id]);
  return Drawn;
}
