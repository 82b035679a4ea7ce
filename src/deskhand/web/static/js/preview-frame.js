// A page or a drawing that somebody else made, in a frame without origin and network.

import { fetchBlob } from "./api.js";
import { t } from "./language.js";
import { html, useEffect, useRef, useState } from "./lib.js";

/** The document of the frame, whose own policy decides what may happen in it. */
export const FRAME = "/frame";
const LARGEST = 10_000_000; // characters

/** The whole text of a file, as `useFetch` gives it: a preview has only the beginning. */
export function useWholeText(view, file) {
  const [found, setFound] = useState({});
  const whole = view.content !== null && !view.truncated;
  useEffect(() => {
    if (whole) return undefined;
    let ended = false;
    readText(view, file).then(
      (data) => !ended && setFound({ data }),
      (error) => !ended && setFound({ error }),
    );
    return () => {
      ended = true;
    };
  }, [view, file.raw]);
  return whole ? { data: view.content } : found;
}

async function readText(view, file) {
  if (view.size > LARGEST) throw new Error(t("It is too large for a preview. Download it."));
  return (await fetchBlob(file.raw)).text();
}

const DRAWING_STYLE = `<style>
html, body { margin: 0; height: 100%; }
body { display: grid; place-items: center; }
svg { max-width: 100%; max-height: 100vh; }
</style>`;

// What a component is compiled by and runs with, inside the frame: loaded with the first of them.
const COMPONENT_SCRIPTS = ["/vendor/component-tools.js", "/js/frame/component.js"];
const COMPONENT_WORDS = {
  notCompiled: t("It could not be compiled."),
  failed: t("The component failed."),
  nothing: t("There is nothing to show."),
  noDefault: t("The default export of the file is shown, and this file has none."),
  noModule: t("There is no module “{module}” here. A component can import {modules}.", {
    module: "{module}",
    modules: "{modules}",
  }),
  skipped: t("Not loaded: {files}", { files: "{files}" }),
  place: t("Line {line}, column {column}", { line: "{line}", column: "{column}" }),
};

async function fetchScript(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.text();
}

/** What the frame is told, for a `kind` of text: "page", "drawing" or "component". */
async function makeFrameMessage({ text, name, kind }) {
  if (kind === "page") return { page: text };
  if (kind === "drawing") return { page: DRAWING_STYLE + text };
  const libraries = await Promise.all(COMPONENT_SCRIPTS.map(fetchScript));
  return { component: { text, name, words: COMPONENT_WORDS }, libraries };
}

/** Shows `text`. Where it tries to leave its frame, the frame is taken away. */
export function Frame({ text, name, kind }) {
  const shown = useRef({ text, round: 0, filled: false });
  const [stopped, setStopped] = useState(-1); // the round that was stopped
  const [missing, setMissing] = useState(-1); // the round for which a script could not be loaded
  const beginRound = () => {
    shown.current = { text, round: shown.current.round + 1, filled: false };
  };
  if (shown.current.text !== text) beginRound();
  const { round } = shown.current;
  const fillFrame = (event) => {
    if (shown.current.filled) {
      setStopped(round); // it is another document: what was shown has tried to go there
      return;
    }
    shown.current.filled = true;
    const { contentWindow } = event.target;
    makeFrameMessage({ text, name, kind }).then(
      (message) => contentWindow?.postMessage(message, "*"), // it has no origin to name
      () => setMissing(round),
    );
  };
  useEffect(() => {
    // Firefox loads nothing in place of an address that our policy refuses.
    const noteRefusal = ({ effectiveDirective, blockedURI }) => {
      if (effectiveDirective === "frame-src" && /^https?:/.test(blockedURI))
        setStopped(shown.current.round);
    };
    document.addEventListener("securitypolicyviolation", noteRefusal);
    return () => document.removeEventListener("securitypolicyviolation", noteRefusal);
  }, []);
  if (stopped === round || missing === round)
    return html`
      <div class="empty" role="alert">
        <p>
          ${
            missing === round
              ? t("What shows components could not be loaded.")
              : t("{name} tried to go to another page and was stopped.", { name })
          }
        </p>
        <button
          type="button"
          class="btn"
          onClick=${() => {
            beginRound();
            setStopped(-1);
            setMissing(-1);
          }}
        >
          ${t("Show it again")}
        </button>
      </div>
    `;
  return html`
    <iframe
      key=${round}
      class="frame"
      title=${t("Preview of {name}", { name })}
      sandbox="allow-scripts"
      referrerpolicy="no-referrer"
      src=${FRAME}
      onLoad=${fillFrame}
    ></iframe>
    <p class="frame-note tiny muted">${t("Runs without network, and cannot see your data.")}</p>
  `;
}
