// What this browser stores: the end of each log, so that it can be read without the server, and
// messages that are not sent yet. Nothing is, while nobody is signed in.
import { currentUser } from "./state.js";

const MAX_EVENTS = 1500;
const MAX_SESSIONS = 30;

function openDatabase() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("deskhand", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("logs", { keyPath: "name" });
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function runTransaction(mode, work) {
  if (!currentUser.value) return undefined; // what still runs after signing out brings nothing back
  try {
    const database = await openDatabase();
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction("logs", mode);
      const asked = work(transaction.objectStore("logs"));
      transaction.oncomplete = () => {
        database.close();
        resolve(asked.result);
      };
      transaction.onerror = transaction.onabort = () => {
        database.close();
        reject(transaction.error);
      };
    });
  } catch {
    return undefined; // a browser that keeps nothing shows what the server has
  }
}

/** The last events of this conversation that were seen, one after the other, or []. */
export async function loadEvents(name) {
  return (await runTransaction("readonly", (store) => store.get(name)))?.events ?? [];
}

/** Keep these, the last of the log, behind those that were kept before. */
export async function storeEvents(name, events) {
  const before = (await loadEvents(name)).filter((recorded) => recorded.n < events[0].n);
  const joined = before.at(-1)?.n === events[0].n - 1 ? [...before, ...events] : events;
  await runTransaction("readwrite", (store) =>
    store.put({ name, at: Date.now(), events: joined.slice(-MAX_EVENTS) }),
  );
  const all = (await runTransaction("readonly", (store) => store.getAll())) ?? [];
  const old = all.sort((one, other) => other.at - one.at).slice(MAX_SESSIONS);
  for (const each of old) await runTransaction("readwrite", (store) => store.delete(each.name));
}

export const deleteEvents = (name) => runTransaction("readwrite", (store) => store.delete(name));

const UNSENT_KEY = "deskhand.wait";

/** Messages that the server has not confirmed, oldest first: `{id, name, text, files, when}`. */
export function loadUnsent() {
  try {
    return JSON.parse(localStorage.getItem(UNSENT_KEY) ?? "[]");
  } catch {
    return [];
  }
}

export function storeUnsent(messages) {
  if (messages.length) localStorage.setItem(UNSENT_KEY, JSON.stringify(messages));
  else localStorage.removeItem(UNSENT_KEY);
}

export const loadDraft = (name) => sessionStorage.getItem(`deskhand.draft.${name}`) ?? "";
export function storeDraft(name, text) {
  if (text) sessionStorage.setItem(`deskhand.draft.${name}`, text);
  else sessionStorage.removeItem(`deskhand.draft.${name}`);
}
