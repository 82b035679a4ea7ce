// What the agent sees in its browser or on its desktop: a picture that is fetched again and again.

import { stopTurn } from "../actions.js";
import { fetchBlob, get, sessionPath } from "../api.js";
import { formatTime } from "../format.js";
import { Icon } from "../icons.js";
import { t, tServer } from "../language.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { hasScope, route } from "../state.js";
import { talk } from "../talk.js";
import { Empty } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const AGAIN_MS = 1000;

export function Screen() {
  const { name } = route.value;
  const top = useRef();
  const [chosen, setChosen] = useState(""); // '' follows the agent
  const [paused, setPaused] = useState(false);
  const [large, setLarge] = useState(false);
  const [seen, setSeen] = useState(null);
  const watching = useInSight(top) && !paused;
  useEffect(() => {
    if (!watching) return undefined;
    return watch(name, chosen, (found) => setSeen((before) => keepPicture(before, found)));
  }, [watching, name, chosen]);
  const live = seen?.view ? t("Live") : "";
  const choose = (id) => {
    setChosen(id === seen.views[0]?.id ? "" : id);
    setPaused(false);
  };
  return html`
    <div class=${`stack screen-view ${large ? "large" : ""}`} ref=${top}>
      <div class="row">
        <span class="grow small" role="status">
          ${paused ? t("Paused") : live}
        </span>
        ${
          (seen?.view || paused) &&
          html`
            <button type="button" class="btn little" onClick=${() => setPaused(!paused)}>
              <${Icon} name=${paused ? "play" : "pause"} />${paused ? t("Go on") : t("Pause")}
            </button>
          `
        }
        ${
          talk.value.open &&
          hasScope("chat") &&
          html`
            <button type="button" class="btn little bad" onClick=${stopTurn}>
              <${Icon} name="stop" />${t("Stop")}
            </button>
          `
        }
      </div>
      ${seen === null ? html`<${Waiting} />` : html`<${Seen} seen=${seen} choose=${choose} />`}
      ${
        seen?.view &&
        html`
          <button
            type="button"
            class="btn little quiet only-wide larger"
            aria-pressed=${String(large)}
            onClick=${() => setLarge(!large)}
          >
            <${Icon} name=${large ? "shrink" : "expand"} />${t("Larger")}
          </button>
        `
      }
    </div>
  `;
}

const Waiting = () => html`
  <p class="none"><span class="spin"></span><span class="sr">${t("One moment")}</span></p>
`;

function Seen({ seen, choose }) {
  const { views, view, whyNot, picture, error } = seen;
  return html`
    ${views.length > 1 && html`<${Views} views=${views} view=${view} choose=${choose} />`}
    ${view && html`<${Picture} view=${view} picture=${picture} />`}
    ${error && html`<p class="note warn" role="status"><span>${error.message}</span></p>`}
    ${whyNot && html`<p class="small muted">${tServer(whyNot)}</p>`}
    ${
      !view &&
      !error &&
      !whyNot &&
      html`
        <${Empty}>
          <span>
            ${t(
              "Nothing is open. When Deskhand uses a browser or the desktop, you see here what it sees.",
            )}
          </span>
          <${Suggestion} text=${t("Open example.org in the browser, and tell me what you see.")}>
            ${t("Try an example")}
          <//>
        <//>
      `
    }
  `;
}

/** One button for each page and for the screen, in an order that stays. */
function Views({ views, view, choose }) {
  return html`
    <div class="tabs" role="group" aria-label=${t("What to watch")}>
      ${views
        .toSorted((one, other) => one.id.localeCompare(other.id, "en", { numeric: true }))
        .map(
          (each) => html`
            <button
              type="button"
              class="cut"
              key=${each.id}
              title=${each.url || each.program}
              aria-pressed=${String(each.id === view.id)}
              onClick=${() => choose(each.id)}
            >
              ${nameView(each)}
            </button>
          `,
        )}
    </div>
  `;
}

function Picture({ view, picture }) {
  const title = nameView(view);
  return html`
    <figure class="screen-figure">
      <div class="screen-frame">
        ${
          picture
            ? html`
                <img src=${picture} alt=${t("What Deskhand sees: {title}", { title })} />
              `
            : html`<${Waiting} />`
        }
      </div>
      <figcaption>
        <strong class="cut">${title}</strong>
        <span class="small muted cut" dir="ltr">${view.url || view.program}</span>
        <span class="tiny muted">${t("Last used at {time}", { time: formatTime(view.at) })}</span>
      </figcaption>
    </figure>
  `;
}

const nameView = (view) =>
  view.title || view.url || (view.kind === "desktop" ? t("The screen") : t("An empty page"));

/** Look again and again, until the function that is returned is called. */
function watch(name, chosen, onSeen) {
  const ending = new AbortController();
  let timer;
  const look = async () => {
    const found = await lookOnce(name, chosen, ending.signal);
    if (ending.signal.aborted) return;
    onSeen(found);
    timer = setTimeout(look, AGAIN_MS);
  };
  look();
  return () => {
    ending.abort();
    clearTimeout(timer);
  };
}

async function lookOnce(name, chosen, signal) {
  const found = { views: [], view: null, whyNot: "", picture: "", error: null };
  try {
    const screen = await get(sessionPath(name, "/screen"));
    found.views = screen.views;
    found.whyNot = screen.why_not;
    found.view = screen.views.find((view) => view.id === chosen) ?? screen.views[0] ?? null;
    if (found.view) {
      const path = sessionPath(name, `/screen/${encodeURIComponent(found.view.id)}`);
      found.picture = await readAsUrl(await fetchBlob(path, signal));
    }
  } catch (error) {
    if (!(error.missing && found.view)) found.error = error; // it may have been closed just now
  }
  return found;
}

/** The last picture stays while there is no new one of the same view. */
function keepPicture(before, found) {
  if (found.error && !found.view && before?.view) return { ...before, error: found.error }; // the server was not reached
  if (found.picture || before?.view?.id !== found.view?.id) return found;
  return { ...found, picture: before?.picture ?? "" };
}

/** A picture as an address that our policy lets a page show. */
function readAsUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** Whether this element can be seen now: nothing is fetched for a tab or a panel that is hidden. */
function useInSight(element) {
  const [inSight, setInSight] = useState(false);
  const [visible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const observer = new IntersectionObserver((changes) =>
      setInSight(changes.at(-1).isIntersecting),
    );
    const update = () => setVisible(!document.hidden);
    observer.observe(element.current);
    document.addEventListener("visibilitychange", update);
    return () => {
      observer.disconnect();
      document.removeEventListener("visibilitychange", update);
    };
  }, []);
  return inSight && visible;
}
