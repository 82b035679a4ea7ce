// Parts of the page that are loaded on their first use.
import { useEffect, useState } from "./lib.js";
import { attempt } from "./state.js";

/** The component that `load` brings, once it is here; until then nothing. */
export function useLater(id, load) {
  const [loaded, setLoaded] = useState({}),
    Drawn = loaded[id];
  useEffect(() => {
    if (Drawn || !load) return;
    const fetched = () =>
      load().catch(() => {
        throw new Error("This page could not be loaded. Open it again when Deskhand is reached.");
      });
    attempt(fetched).then((found) => {
      if (found) setLoaded((before) => ({ ...before, [id]: found }));
    });
  }, [id]);
  return Drawn;
}
