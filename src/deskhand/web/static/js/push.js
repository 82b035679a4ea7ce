// Notifications in this browser, also with the page closed: Web Push.

import { call, get } from "./api.js";
import { language, t } from "./language.js";
import { signal } from "./lib.js";
import { currentUser } from "./state.js";

// Whose notifications come here. Signing out deletes it.
const KEY = "deskhand.me.push";
/** `{status, problem, devices, mine}`: `status` is "cannot", "blocked", "off" or "on"; `problem`
 * says why it cannot; `mine` is the id of this browser among `devices`. Null until it is known. */
export const push = signal(null);

let publicKey = "";

export async function loadPush() {
  const found = await get("/api/push");
  publicKey = found.public_key;
  const problem = found.problem || findProblem();
  const endpoint = problem ? "" : (await findSubscription())?.endpoint;
  const mine = found.devices.find((one) => one.endpoint === endpoint)?.id ?? "";
  push.value = { problem, devices: found.devices, mine, status: chooseStatus(problem, mine) };
}

function chooseStatus(problem, mine) {
  if (problem) return "cannot";
  if (Notification.permission === "denied") return "blocked";
  return mine && Notification.permission === "granted" ? "on" : "off";
}

/** Why this browser cannot show notifications, or "". */
function findProblem() {
  if (!isSecureContext)
    return t("Browsers allow notifications over https, and on the machine where Deskhand runs.");
  if (navigator.standalone === false)
    return t("Put this page on the home screen first: press Share, then Add to Home Screen.");
  const able = navigator.serviceWorker && globalThis.PushManager && globalThis.Notification;
  return able ? "" : t("This browser cannot show notifications of a page.");
}

async function findManager() {
  return (await navigator.serviceWorker.ready).pushManager;
}

async function findSubscription() {
  if (!(await navigator.serviceWorker.getRegistration())) return null;
  return (await findManager()).getSubscription();
}

/** Ask for permission, which only a press of a button may, and subscribe. */
export async function turnOn() {
  if ((await Notification.requestPermission()) === "granted") {
    const subscription = await subscribe(await findManager());
    await register(subscription);
  }
  await loadPush();
}

async function subscribe(manager) {
  const wanted = { userVisibleOnly: true, applicationServerKey: publicKey };
  try {
    return await manager.subscribe(wanted);
  } catch (error) {
    const old = await manager.getSubscription();
    if (!old) throw error;
    await old.unsubscribe(); // it was made for another key
    return manager.subscribe(wanted);
  }
}

async function register(subscription) {
  await call("POST", "/api/push", { ...subscription.toJSON(), label: nameBrowser(), language });
  localStorage.setItem(KEY, currentUser.value.user);
}

export async function turnOff() {
  localStorage.removeItem(KEY);
  await (await findSubscription())?.unsubscribe();
  await call("DELETE", `/api/push/${push.value.mine}`);
  await loadPush();
}

export async function forgetDevice(id) {
  await call("DELETE", `/api/push/${id}`);
  await loadPush();
}

/** Subscriptions belong to a login: after a new one of the same person, this browser says so. */
export async function renewPush() {
  if (localStorage.getItem(KEY) !== currentUser.value?.user) return;
  const subscription = await findSubscription();
  if (subscription) await register(subscription);
}

/** Called before somebody signs out. */
export async function endPush() {
  if (localStorage.getItem(KEY)) await (await findSubscription())?.unsubscribe();
}

const BROWSERS = ["Firefox", "Edg", "Chrome", "Safari"];
const PLATFORMS = ["Android", "iPhone", "iPad", "Windows", "Mac", "Linux"];

/** Such as "Chrome on Android". */
function nameBrowser() {
  const find = (names) => names.find((name) => navigator.userAgent.includes(name));
  const browser = find(BROWSERS)?.replace("Edg", "Edge") ?? t("A browser");
  const platform = find(PLATFORMS);
  return platform ? t("{browser} on {platform}", { browser, platform }) : browser;
}
