// Where the page begins: who one is, then what is shown.

import { Conversation } from "./conversation.js";
import { finding } from "./find.js";
import { moment } from "./format.js";
import { House } from "./house.js";
import { Icon, IconButton } from "./icons.js";
import { html, render, useEffect } from "./lib.js";
import { askHere, session, sessions, watch } from "./list.js";
import { Palette } from "./palette.js";
import { SidePanel } from "./panels/side.js";
import { Preview } from "./preview.js";
import { Sidebar } from "./sidebar.js";
import {
  alerts,
  attempt,
  checkHealth,
  developer,
  drawer,
  here,
  me,
  narrow,
  online,
  palette,
  panel,
  post,
  problem,
  signIn,
  spoken,
  spokenNow,
} from "./state.js";
import { retryNow, sendWaiting, show, stop, talk, view } from "./talk.js";
import { worker } from "./trusted.js";

function Gate() {
  if (me.value === undefined)
    return html`<main class="gate" aria-busy="true"><div class="spin"></div><span class="sr">One moment</span></main>`;
  return me.value ? html`<${App} />` : html`<${Login} />`;
}

function Login() {
  return html`<main class="gate"><div class="card">
    <img src="/icon.svg" alt="" width="48" height="48" />
    <h1>Sign in to Deskhand</h1>
    <p>This page belongs to the person at the machine it runs on. In a terminal there, type</p>
    <pre class="command">deskhand login</pre>
    <p>and open the link that it prints. The link works once, for ten minutes.</p>
    ${problem.value && html`<p class="said" role="alert">${problem.value.text}</p>`}
    <button type="button" class="btn" onClick=${() => location.reload()}>I have done that</button>
  </div></main>`;
}

function App() {
  useEffect(() => {
    checkHealth();
    const watching = watch(),
      timer = setInterval(checkHealth, 30_000);
    return () => {
      watching.close();
      clearInterval(timer);
    };
  }, []);
  const place = here.value;
  useEffect(() => {
    if (place.place === "talk") show(place.name);
  }, [place]);
  useEffect(() => {
    askHere();
  }, [place.name, sessions.value === null]);
  useEffect(() => {
    if (online.value) sendWaiting();
  }, [online.value]);
  useEffect(() => {
    const title =
      place.place === "house"
        ? "Settings"
        : place.name && (talk.value.title || session.value?.title);
    document.title = `${talk.value.asks.length ? "(!) " : ""}${title ? `${title} · ` : ""}Deskhand`;
  });
  return html`<div class="app" data-view=${developer.value ? "developer" : "simple"} data-panel=${panel.value || null}>
    <a class="skip" href=${place.place === "house" ? "#page" : "#composer"} onClick=${skip}>${place.place === "house" ? "Go to the settings" : "Go to the message field"}</a>
    <${Sidebar} />
    ${
      drawer.value &&
      html`<div class="veil" onClick=${() => {
        drawer.value = false;
      }}></div>`
    }
    <main class="middle" id="main" inert=${drawer.value && narrow.value}>
      <${Banner} />
      <${Alerts} />
      ${place.place === "house" ? html`<${House} />` : html`<${Conversation} />`}
    </main>
    ${place.place === "talk" && panel.value && html`<${SidePanel} />`}
    ${palette.value && html`<${Palette} />`}
    <${Preview} />
    <${Problem} />
    <div class="sr" role="status" aria-live="polite">${spoken.value}</div>
    <div class="sr" role="alert" aria-live="assertive">${spokenNow.value}</div>
  </div>`;
}

function skip(event) {
  event.preventDefault();
  document.querySelector(event.currentTarget.getAttribute("href"))?.focus();
}

function Banner() {
  if (online.value) return null;
  return html`<div class="banner" role="status"><${Icon} name="offline" /><span class="grow">Deskhand is not reached. You see what was here last; what you write is sent when it is back.</span>
    <button type="button" class="btn little" onClick=${retryNow}>Try now</button></div>`;
}

/** What nobody was told on any channel. */
function Alerts() {
  if (!alerts.value.length) return null;
  const see = () =>
    attempt(async () => {
      await post("/api/alerts/seen");
      await checkHealth();
    });
  return html`<div class="banner" role="status" aria-label="Alerts"><ul class="grow">${alerts.value.map((one) => html`<li key=${one.id}>${moment(one.at)}: ${one.text}</li>`)}</ul>
    <button type="button" class="btn little" onClick=${see}>Dismiss</button></div>`;
}

function Problem() {
  if (!problem.value) return null;
  const close = () => {
    problem.value = null;
  };
  return html`<div class="toast" role="alert"><span class="grow">${problem.value.text}${problem.value.id && developer.value ? html` <span class="muted tiny">${problem.value.id}</span>` : ""}</span><${IconButton} name="close" label="Close this message" little onClick=${close} /></div>`;
}

// ------------------------------------------------------------------ keys that work everywhere

const typing = (target) => target.matches?.("input, textarea, select, [contenteditable]");

addEventListener("keydown", (event) => {
  if (!me.value) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    palette.value = !palette.value;
    return;
  }
  if (event.altKey && event.key.toLowerCase() === "a") {
    event.preventDefault();
    document.querySelector(".ask.open button")?.focus();
    return;
  }
  if (
    event.key.toLowerCase() === "f" &&
    (event.ctrlKey || event.metaKey) &&
    !event.shiftKey &&
    here.value.name &&
    !finding.value &&
    (view.value || talk.value.first > 1)
  ) {
    event.preventDefault(); // the browser's own finds what is drawn; pressed once more, it comes
    finding.value = true;
    return;
  }
  if (event.key === "/" && (event.ctrlKey || event.metaKey || !typing(event.target))) {
    event.preventDefault();
    drawer.value = narrow.value;
    requestAnimationFrame(() => document.getElementById("search")?.focus());
  }
  if (event.key === "Escape" && !event.defaultPrevented) closeTopmost();
});

/** Esc closes what lies on top; where nothing does, it stops what runs. */
function closeTopmost() {
  if (palette.value) palette.value = false;
  else if (drawer.value) drawer.value = false;
  else if (problem.value) problem.value = null;
  else if (finding.value && here.value.place === "talk") finding.value = false;
  else if (panel.value) panel.value = "";
  else if (talk.value.open && here.value.place === "talk") stop();
}

addEventListener("online", retryNow);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !online.value) retryNow();
});
/** Without it, the page works as long as the server does: browsers have it on this machine and over TLS alone. */
async function keepShell() {
  if (!navigator.serviceWorker) return;
  await navigator.serviceWorker.register(worker());
  const { active } = await navigator.serviceWorker.ready;
  const keep = (entries) =>
    active.postMessage({
      keep: [
        "/",
        ...entries
          .map((entry) => new URL(entry.name).pathname)
          .filter((path) => !path.startsWith("/api/")),
      ],
    });
  keep(performance.getEntriesByType("resource"));
  new PerformanceObserver((seen) => keep(seen.getEntries())).observe({ type: "resource" }); // what is loaded on its first use
  document.documentElement.dataset.kept = "yes";
}

keepShell().catch(() => undefined);
signIn();
render(html`<${Gate} />`, document.getElementById("app"));
