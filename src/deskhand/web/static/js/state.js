// What the page knows, as signals. Nothing here draws.

import { at, call, fresh, get, onAnswer, post } from "./api.js";
import { effect, signal } from "./lib.js";

/** undefined: not asked yet; null: nobody. */
export const me = signal(undefined);
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

const small = matchMedia("(max-width: 760px)");
export const narrow = signal(small.matches); // one thing at a time: the list lies over the rest
small.addEventListener("change", () => {
  narrow.value = small.matches;
});

effect(() => {
  localStorage.setItem("deskhand.view", developer.value ? "developer" : "simple");
});
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export const may = (scope) => Boolean(me.value?.scopes.includes(scope));

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
    me.value =
      error.status === 0 ? JSON.parse(localStorage.getItem("deskhand.me") ?? "null") : null;
  }
}

/** What the owner is called is set on the page `setup`: it may be another name when one leaves it. */
let page = "";
effect(() => {
  const now = here.value.page;
  if (page === "setup" && now !== "setup")
    get("/api/auth/me").then(
      (found) => {
        me.value = found;
      },
      () => undefined,
    );
  page = now;
});

export async function signOut() {
  await attempt(() => post("/api/logout"));
  me.value = null;
  for (const key of Object.keys(localStorage))
    if (key.startsWith("deskhand.me") || key.startsWith("deskhand.wait"))
      localStorage.removeItem(key);
  indexedDB.deleteDatabase("deskhand");
}

// ------------------------------------------------------------------ where

function read() {
  const [, first, ...rest] = location.hash.split("/");
  const name = decodeURIComponent(rest.join("/"));
  here.value =
    first === "house"
      ? { name: "", place: "house", page: name || "models" }
      : { name: first === "c" ? name : "", place: "talk", page: "" };
  drawer.value = false;
}

addEventListener("hashchange", () =>
  location.hash.startsWith("#login=") ? signIn().then(read) : read(),
);
read();

export const hrefOf = (name) => `#/c/${encodeURIComponent(name)}`;

export function go(name) {
  location.hash = name ? hrefOf(name) : "#/";
}

// ------------------------------------------------------------------ how it is

export async function checkHealth() {
  try {
    health.value = await get("/health");
    const unreached =
      may("admin") && (health.value.components ?? []).some((one) => one.name === "alerts");
    alerts.value = unreached
      ? (await get("/api/alerts")).filter((one) => one.state === "unreached")
      : [];
  } catch {
    /* the banner says that it is not reached */
  }
}

// ------------------------------------------------------------------ what one does

export async function change(name, options) {
  await call("PATCH", at(name), options);
}

export { at, call, fresh, get, post };
