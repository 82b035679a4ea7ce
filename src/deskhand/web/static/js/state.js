// What the page knows, as signals. Nothing here draws.
import { computed, effect, signal } from "./lib.js";
import { at, call, fresh, follow, get, onAnswer, post } from "./api.js";

/** undefined: not asked yet; null: nobody. */
export const me = signal(undefined);
export const sessions = signal(null);
export const activity = signal({}); // key of a session -> "running" | "asking"
export const here = signal({ name: "", place: "talk", page: "" }); // where one is: a conversation, or a page of settings
export const online = signal(true);
export const health = signal(null);
export const alerts = signal([]); // those that reached nobody
export const problem = signal(null); // {text, next}: what went wrong, until it is closed
export const spoken = signal(""); // for screen readers
export const spokenNow = signal("");
export const drawer = signal(false);
export const palette = signal(false);
export const panel = signal(""); // files | trace | time | options | ""
export const developer = signal(localStorage.getItem("deskhand.view") === "developer");
export const theme = signal(document.documentElement.dataset.theme);
export const sought = signal(null); // {name, n}: the event that one wants to see

effect(() => { localStorage.setItem("deskhand.view", developer.value ? "developer" : "simple"); });
effect(() => { document.documentElement.dataset.theme = theme.value; });

export const may = (scope) => Boolean(me.value?.scopes.includes(scope));
export const session = computed(() => (sessions.value ?? []).find((one) => one.name === here.value.name) ?? null);

export function announce(text, now = false) {
  (now ? spokenNow : spoken).value = text;
}

export function chooseTheme(value) {
  theme.value = value;
  localStorage.setItem("deskhand.theme", value);
}

/** Show what went wrong. The message of the server names the next step. */
export function complain(error) {
  if (error?.status === 401) return;
  problem.value = { text: error?.message ?? String(error), id: error?.requestId ?? "" };
}

/** Do something; what goes wrong is shown. Gives what it gave, or undefined. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    complain(error);
    return undefined;
  }
}

onAnswer((status) => {
  online.value = status !== 0;
  if (status === 401) me.value = null;
});

// ------------------------------------------------------------------ who

export async function signIn() {
  const code = /^#login=(.+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname); // it is a secret: gone from the address before anything else
    try {
      await post("/api/login", { code: decodeURIComponent(code) });
    } catch (error) {
      complain(error);
      problem.value = { text: error.message, id: error.requestId };
    }
  }
  try {
    me.value = await get("/api/auth/me");
    localStorage.setItem("deskhand.me", JSON.stringify(me.value));
  } catch (error) {
    me.value = error.status === 0 ? JSON.parse(localStorage.getItem("deskhand.me") ?? "null") : null;
  }
}

export async function signOut() {
  await attempt(() => post("/api/logout"));
  me.value = null;
  for (const key of Object.keys(localStorage)) if (key.startsWith("deskhand.me") || key.startsWith("deskhand.wait")) localStorage.removeItem(key);
  sessions.value = null;
  indexedDB.deleteDatabase("deskhand");
}

// ------------------------------------------------------------------ where

function read() {
  const [, first, ...rest] = location.hash.split("/");
  const name = decodeURIComponent(rest.join("/"));
  here.value = first === "house" ? { name: "", place: "house", page: name || "models" } : { name: first === "c" ? name : "", place: "talk", page: "" };
  drawer.value = false;
}

addEventListener("hashchange", () => (location.hash.startsWith("#login=") ? signIn().then(read) : read()));
read();

export const hrefOf = (name) => `#/c/${encodeURIComponent(name)}`;

export function go(name) {
  location.hash = name ? hrefOf(name) : "#/";
}

// ------------------------------------------------------------------ the list

let asked = 0, listed = 0; // which request for the list was the last, and of which one it is

export async function loadSessions() {
  const mine = ++asked;
  try {
    const found = (await get("/api/sessions?limit=200")).sessions;
    if (mine < listed) return; // a newer list came before this one
    listed = mine;
    sessions.value = found;
    localStorage.setItem("deskhand.me.sessions", JSON.stringify(sessions.value.slice(0, 60)));
  } catch (error) {
    if (error.status === 0 && sessions.value === null) sessions.value = JSON.parse(localStorage.getItem("deskhand.me.sessions") ?? "[]");
    else if (error.status !== 401 && error.status !== 0) complain(error);
  }
}

const RUNS = { message_received: "running", approval_asked: "asking", question_asked: "asking", approval_answered: "running", question_answered: "running", turn_ended: "", undone: "" };
let later;

/** A list of conversations that is true without asking all the time. */
export function watch() {
  const hear = (recorded) => {
    const kind = recorded.event.type, doing = RUNS[kind];
    if (doing !== undefined) activity.value = { ...activity.value, [recorded.session]: doing };
    const known = (sessions.value ?? []).some((one) => one.key === recorded.session);
    if (!known || ["turn_ended", "message_received", "options_set", "branched", "erased"].includes(kind)) soon();
  };
  return follow(() => "/api/watch", { recorded: hear, state: (state) => { if (state === "open") { online.value = true; loadSessions(); } } });
}

/** What waited for an answer before this page was open. */
export async function loadAsks() {
  try {
    const names = new Set((await get("/api/approvals")).map((ask) => ask.name));
    const keys = (sessions.value ?? []).filter((one) => names.has(one.name)).map((one) => [one.key, "asking"]);
    activity.value = { ...Object.fromEntries(keys), ...activity.value };
  } catch { /* the list works without */ }
}

export function soon() {
  clearTimeout(later);
  later = setTimeout(loadSessions, 150);
}

export async function checkHealth() {
  try {
    health.value = await get("/health");
    const unreached = may("admin") && (health.value.components ?? []).some((one) => one.name === "alerts");
    alerts.value = unreached ? (await get("/api/alerts")).filter((one) => one.state === "unreached") : [];
  } catch { /* the banner says that it is not reached */ }
}

// ------------------------------------------------------------------ what one does

export async function change(name, options) {
  await call("PATCH", at(name), options);
  soon();
}

export { at, call, fresh, get, post };
