// What the page knows, as signals. Nothing here draws.

import { call, get, onResponse, post, sessionPath } from "./api.js";
import { effect, signal } from "./lib.js";

/** undefined: not asked yet; null: nobody. */
export const currentUser = signal(undefined);
/** What is open: a conversation, by its name, or a page of the settings. */
export const route = signal({ name: "", place: "talk", page: "" });
export const online = signal(true);
export const health = signal(null);
export const alerts = signal([]); // those that reached nobody
export const problem = signal(null); // {text, next}: what went wrong, until it is closed
export const politeAnnouncement = signal(""); // for screen readers
export const urgentAnnouncement = signal("");
export const drawer = signal(false);
export const palette = signal(false);
export const panel = signal(""); // files | tasks | branches | options | trace | time | ""
export const developer = signal(localStorage.getItem("deskhand.view") === "developer");
export const theme = signal(document.documentElement.dataset.theme);
/** When answers are read aloud: `spoken` (to whoever spoke), `always` or `never`. */
export const readAloud = signal(localStorage.getItem("deskhand.aloud") ?? "spoken");
export const searchTarget = signal(null); // {name, n, query}: the event to scroll to

const narrowScreen = matchMedia("(max-width: 760px)");
/** Whether the screen is narrow: the list of conversations then covers the rest. */
export const narrow = signal(narrowScreen.matches);
narrowScreen.addEventListener("change", () => {
  narrow.value = narrowScreen.matches;
});

const darkSystem = matchMedia("(prefers-color-scheme: dark)");
darkSystem.addEventListener("change", () => {
  const isChosen = localStorage.getItem("deskhand.theme") !== null;
  if (!isChosen) theme.value = darkSystem.matches ? "dark" : "light"; // many systems turn dark at dusk
});

effect(() => {
  localStorage.setItem("deskhand.view", developer.value ? "developer" : "simple");
});
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

/** Whether Deskhand listens to recordings, and whether it reads answers aloud. */
export const canHear = () => currentUser.value?.speech?.hear_problem === "";
export const canSay = () => currentUser.value?.speech?.say_problem === "";

export const hasScope = (scope) => Boolean(currentUser.value?.scopes.includes(scope));

export function announce(text, now = false) {
  (now ? urgentAnnouncement : politeAnnouncement).value = text;
}

export function setTheme(value) {
  theme.value = value;
  localStorage.setItem("deskhand.theme", value);
}

export function setReadAloud(value) {
  readAloud.value = value;
  localStorage.setItem("deskhand.aloud", value);
}

/** Show what went wrong. The message of the server names the next step. */
export function showError(error) {
  if (error?.status === 401) return;
  problem.value = { text: error?.message ?? String(error), id: error?.requestId ?? "" };
}

/** Do something; what goes wrong is shown. Gives what it gave, or undefined. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    showError(error);
    return undefined;
  }
}

onResponse((status) => {
  online.value = status !== 0;
  if (status === 401) currentUser.value = null;
});

// ------------------------------------------------------------------ signing in and out

export async function signIn() {
  const code = /^#login=(.+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname); // the code is a secret: hide it first
    try {
      await post("/api/login", { code: decodeURIComponent(code) });
    } catch (error) {
      showError(error);
      problem.value = { text: error.message, id: error.requestId };
    }
  }
  await signInByPlatform();
  try {
    currentUser.value = await get("/api/auth/me");
    localStorage.setItem("deskhand.me", JSON.stringify(currentUser.value));
  } catch (error) {
    currentUser.value =
      error.status === 0 ? JSON.parse(localStorage.getItem("deskhand.me") ?? "null") : null;
  }
}

/** Telegram opens the page with what it has signed of the person behind the `#`. Each time it may be
 * another person: who was signed in before counts no more. */
async function signInByPlatform() {
  const data = new URLSearchParams(location.hash.slice(1)).get("tgWebAppData");
  const channel = new URLSearchParams(location.search).get("channel");
  if (!data || !channel) return;
  history.replaceState(null, "", location.pathname);
  try {
    await post("/api/login/platform", { channel, data });
  } catch (error) {
    await post("/api/logout").catch(() => undefined);
    problem.value = { text: error.message, id: error.requestId };
  }
}

// The name of the owner, and what hears and speaks, are set on these pages.
const PAGES_THAT_CHANGE_USER = ["setup", "settings"];
let previousPage = "";
// Ask again who this is when one of them is left, and when the page that shows it is opened.
effect(() => {
  const { page } = route.value;
  if (page === previousPage) return;
  const outdated = PAGES_THAT_CHANGE_USER.includes(previousPage) || page === "voice";
  previousPage = page;
  if (outdated && currentUser.peek()) refreshUser();
});

async function refreshUser() {
  try {
    currentUser.value = await get("/api/auth/me");
  } catch {
    /* the banner says that it is not reached */
  }
}

export async function signOut() {
  await attempt(async () => (await import("./push.js")).endPush());
  await attempt(() => post("/api/logout"));
  currentUser.value = null;
  for (const key of Object.keys(localStorage))
    if (key.startsWith("deskhand.me") || key.startsWith("deskhand.wait"))
      localStorage.removeItem(key);
  indexedDB.deleteDatabase("deskhand");
  globalThis.caches?.delete("deskhand-shared");
}

// ------------------------------------------------------------------ routes

function readRoute() {
  const [, first, ...rest] = location.hash.split("/");
  const name = decodeURIComponent(rest.join("/"));
  const settings = first === "settings" || first === "house"; // "house" in older links
  if (first === "inbox") route.value = { name: "", place: "inbox", page: "" };
  else if (settings) route.value = { name: "", place: "settings", page: name || "models" };
  else route.value = { name: first === "c" ? name : "", place: "talk", page: "" };
  drawer.value = false;
}

addEventListener("hashchange", () =>
  location.hash.startsWith("#login=") ? signIn().then(readRoute) : readRoute(),
);
readRoute();

export const sessionHref = (name) => `#/c/${encodeURIComponent(name)}`;

/** Whether this is the conversation of a sub-agent. */
export const isSubagentName = (name) => name.includes("~subagent:");

export function openSession(name) {
  location.hash = name ? sessionHref(name) : "#/";
}

// ------------------------------------------------------------------ health

export async function checkHealth() {
  try {
    health.value = await get("/health");
    const unreached =
      hasScope("admin") && (health.value.components ?? []).some((one) => one.name === "alerts");
    alerts.value = unreached
      ? (await get("/api/alerts")).filter((one) => one.state === "unreached")
      : [];
  } catch {
    /* the banner says that it is not reached */
  }
}

// ------------------------------------------------------------------ sessions

export async function updateSession(name, options) {
  await call("PATCH", sessionPath(name), options);
}
