// Where the page starts: sign-in, then the application.

import { stopTurn } from "./actions.js";
import { get, post } from "./api.js";
import { Conversation } from "./conversation.js";
import { finding } from "./find.js";
import { folded } from "./folded.js";
import { formatDateTime } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { countInbox, inboxCount } from "./inbox-count.js";
import { t, tServer } from "./language.js";
import { useLazyComponent } from "./lazy-component.js";
import { effect, html, render, useEffect, useState } from "./lib.js";
import { currentSession, refreshCurrentRow, sessions, watchSessions } from "./list.js";
import { MenuLayer } from "./menu.js";
import { Palette } from "./palette.js";
import { SidePanel } from "./panels/side.js";
import { closePreview, Preview, previewedFile } from "./preview.js";
import { PromptLayer } from "./prompt.js";
import { reconnectNow, resendMessages } from "./sending.js";
import { SettingsView } from "./settings-pages.js";
import { ShareLayer } from "./share.js";
import { Sidebar } from "./sidebar.js";
import {
  alerts,
  attempt,
  checkHealth,
  currentUser,
  developer,
  drawer,
  online,
  palette,
  panel,
  politeAnnouncement,
  problem,
  route,
  signIn,
  urgentAnnouncement,
} from "./state.js";
import { earlierPart, showSession, talk } from "./talk.js";
import { workerUrl } from "./trusted.js";
import { speaking, stopSpeaking } from "./voice.js";

function Gate() {
  if (currentUser.value === undefined)
    return html`
      <main class="gate" aria-busy="true">
        <div class="opening">
          <img src="/icon.svg" alt="" width="44" height="44" />
          <p>Deskhand</p>
        </div>
      </main>
    `;
  return currentUser.value ? html`<${App} />` : html`<${Login} />`;
}

function Login() {
  const [provider, setProvider] = useState("");
  useEffect(() => {
    get("/api/auth/config").then(
      (found) => setProvider(found.enabled ? found.provider : ""),
      () => undefined,
    );
  }, []);
  return html`
    <main class="gate">
      <div class="card">
        <img src="/icon.svg" alt="" width="48" height="48" />
        <h1>${t("Sign in to Deskhand")}</h1>
        ${
          provider
            ? html`<a class="btn main" href="/auth/sign-in">${t("Sign in with {provider}", { provider })}</a>
              <p>
                ${t("You can also sign in with a link. In a terminal on the machine where Deskhand runs, type")}
              </p>`
            : html`<p>
                ${t("This page belongs to the person at the machine it runs on. In a terminal there, type")}
              </p>`
        }
        <pre class="command">deskhand login</pre>
        <p>${t("and open the link that it prints. The link works once, for ten minutes.")}</p>
        ${problem.value && html`<p class="said" role="alert">${problem.value.text}</p>`}
        <button type="button" class="btn" onClick=${() => location.reload()}>
          ${t("Reload the page")}
        </button>
      </div>
    </main>
  `;
}

/** In the tab: how much is new or waits, and what is looked at. */
function showTitle() {
  const { place, name } = route.value;
  const places = { settings: t("Settings"), inbox: t("Inbox") };
  const title = places[place] ?? (name && (talk.value.title || currentSession.value?.title));
  const count = inboxCount.value ? `(${inboxCount.value}) ` : "";
  document.title = `${count}${title ? `${title} · ` : ""}Deskhand`;
}

function LazySharedIn() {
  const [open, setOpen] = useState(false);
  const load = () => import("./shared-in.js").then((found) => found.SharedIn);
  const Drawn = useLazyComponent(open ? "shared" : "", open ? load : null);
  useEffect(() => {
    globalThis.caches?.has("deskhand-shared").then(setOpen, () => undefined);
  }, []);
  return open && Drawn ? html`<${Drawn} close=${() => setOpen(false)} />` : null;
}

function App() {
  useEffect(() => {
    checkHealth();
    countInbox();
    renewNotifications();
    const watching = watchSessions();
    const timer = setInterval(checkHealth, 30_000);
    return () => {
      watching.close();
      clearInterval(timer);
    };
  }, []);
  const place = route.value;
  useEffect(() => {
    if (place.place === "talk") showSession(place.name);
  }, [place]);
  useEffect(() => {
    refreshCurrentRow();
  }, [place.name, sessions.value === null]);
  useEffect(() => {
    if (online.value) resendMessages();
  }, [online.value]);
  useEffect(() => effect(showTitle), []);
  useEffect(() => {
    const link = /^#\/continue\/([\w-]+)$/.exec(location.hash)?.[1];
    if (link) attempt(async () => (await import("./continued.js")).continueShared(link));
  }, []);
  return html`
    <div
      class="app"
      data-view=${developer.value ? "developer" : "simple"}
      data-panel=${panel.value || null}
      data-list=${folded.value ? "folded" : null}
    >
      <a
        class="skip"
        href=${place.place === "talk" ? "#composer" : "#page"}
        onClick=${skipToContent}
      >
        ${place.place === "talk" ? t("Go to the message field") : t("Go to the content")}
      </a>
      <${Sidebar} />
      ${
        folded.value &&
        drawer.value &&
        html`
          <div
            class="veil"
            onClick=${() => {
              drawer.value = false;
            }}
          ></div>
        `
      }
      <main class="middle" id="main" inert=${drawer.value && folded.value}>
        <${Banner} />
        <${Alerts} />
        <${Place} place=${place.place} />
      </main>
      ${place.place === "talk" && panel.value && html`<${SidePanel} />`}
      ${palette.value && html`<${Palette} />`}
      <${Preview} />
      <${MenuLayer} />
      <${PromptLayer} />
      <${LazySharedIn} />
      <${ShareLayer} />
      <${Problem} />
      <div class="sr" role="status" aria-live="polite">${politeAnnouncement.value}</div>
      <div class="sr" role="alert" aria-live="assertive">${urgentAnnouncement.value}</div>
    </div>
  `;
}

const loadInbox = async () => (await import("./panels/inbox.js")).Inbox;

function Place({ place }) {
  const Inbox = useLazyComponent(
    place === "inbox" ? place : "",
    place === "inbox" ? loadInbox : null,
  );
  if (place === "settings") return html`<${SettingsView} />`;
  if (place === "inbox") return Inbox && html`<${Inbox} />`;
  return html`<${Conversation} />`;
}

function skipToContent(event) {
  event.preventDefault();
  document.querySelector(event.currentTarget.getAttribute("href"))?.focus();
}

function Banner() {
  if (online.value) return null;
  return html`
    <div class="banner" role="status">
      <${Icon} name="offline" />
      <span class="grow">
        ${t("Deskhand is not reached. You see what was here last; what you write is sent when it is back.")}
      </span>
      <button type="button" class="btn little" onClick=${reconnectNow}>${t("Try now")}</button>
    </div>
  `;
}

/** Alerts that reached nobody on any channel. */
function Alerts() {
  if (!alerts.value.length) return null;
  const dismissAlerts = () =>
    attempt(async () => {
      await post("/api/alerts/seen");
      await checkHealth();
    });
  return html`
    <div class="banner" role="status" aria-label=${t("Alerts")}>
      <ul class="grow">
        ${alerts.value.map(
          (one) => html`<li key=${one.id}>${formatDateTime(one.at)}: ${tServer(one.text)}</li>`,
        )}
      </ul>
      <button type="button" class="btn little" onClick=${dismissAlerts}>${t("Dismiss")}</button>
    </div>
  `;
}

function Problem() {
  if (!problem.value) return null;
  const closeProblem = () => {
    problem.value = null;
  };
  return html`
    <div class="toast" role="alert">
      <span class="grow">
        ${problem.value.text}
        ${
          problem.value.id && developer.value
            ? html` <span class="muted tiny">${problem.value.id}</span>`
            : ""
        }
      </span>
      <${IconButton} name="close" label=${t("Close this message")} little onClick=${closeProblem} />
    </div>
  `;
}

// ------------------------------------------------------------------ keyboard shortcuts

const isTyping = (target) => target.matches?.("input, textarea, select, [contenteditable]");

addEventListener("keydown", (event) => {
  if (!currentUser.value) return;
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
    route.value.name &&
    !finding.value &&
    (earlierPart.value || talk.value.first > 1)
  ) {
    event.preventDefault(); // the browser finds only what is drawn; pressed again, its own opens
    finding.value = true;
    return;
  }
  if (event.key === "/" && (event.ctrlKey || event.metaKey || !isTyping(event.target))) {
    event.preventDefault();
    drawer.value = folded.value;
    requestAnimationFrame(() => document.getElementById("search")?.focus());
  }
  if (event.key === "Escape" && !event.defaultPrevented) closeTopmost();
});

/** Esc closes the topmost element; where there is none, it ends the reading or the turn. */
function closeTopmost() {
  if (palette.value) palette.value = false;
  else if (drawer.value) drawer.value = false;
  else if (problem.value) problem.value = null;
  else if (previewedFile.value) closePreview();
  else if (finding.value && route.value.place === "talk") finding.value = false;
  else if (panel.value) panel.value = "";
  else if (speaking.value) stopSpeaking();
  else if (talk.value.open && route.value.place === "talk") stopTurn();
}

addEventListener("online", reconnectNow);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !online.value) reconnectNow();
});

/** Let a service worker cache the page. Browsers allow one on this machine and over TLS only. */
async function cacheShell() {
  if (!navigator.serviceWorker) return;
  await navigator.serviceWorker.register(workerUrl());
  const { active } = await navigator.serviceWorker.ready;
  const cacheEntries = (entries) => {
    const paths = entries.map((entry) => new URL(entry.name).pathname);
    active.postMessage({ keep: ["/", ...paths.filter((path) => !path.startsWith("/api/"))] });
  };
  cacheEntries(performance.getEntriesByType("resource"));
  const observer = new PerformanceObserver((seen) => cacheEntries(seen.getEntries()));
  observer.observe({ type: "resource" }); // modules that are loaded later
  document.documentElement.dataset.kept = "yes";
}

async function renewNotifications() {
  if (!localStorage.getItem("deskhand.me.push")) return;
  const { renewPush } = await import("./push.js");
  await renewPush().catch(() => undefined); // it is tried again when the page is opened again
}

navigator.serviceWorker?.addEventListener("message", (event) => {
  if (event.data?.open) location.hash = event.data.open;
});

cacheShell().catch(() => undefined);
signIn();
render(html`<${Gate} />`, document.getElementById("app"));
