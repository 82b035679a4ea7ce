// What is kept in this browser: the end of each log, so that it can be read without the server, and messages that wait
// to be sent.
const EVENTS = 1500,
  SESSIONS = 30;

function open() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("deskhand", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("logs", { keyPath: "name" });
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function within(mode, work) {
  try {
    const database = await open();
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction("logs", mode),
        asked = work(transaction.objectStore("logs"));
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
export async function remembered(name) {
  return (await within("readonly", (store) => store.get(name)))?.events ?? [];
}

/** Keep these, the last of the log, behind those that were kept before. */
export async function remember(name, events) {
  const before = (await remembered(name)).filter(({ n }) => n < events[0].n);
  const joined = before.at(-1)?.n === events[0].n - 1 ? [...before, ...events] : events;
  await within("readwrite", (store) =>
    store.put({ name, at: Date.now(), events: joined.slice(-EVENTS) }),
  );
  const all = (await within("readonly", (store) => store.getAll())) ?? [];
  const old = all.sort((one, other) => other.at - one.at).slice(SESSIONS);
  for (const each of old) await within("readwrite", (store) => store.delete(each.name));
}

export const forget = (name) => within("readwrite", (store) => store.delete(name));

const WAITING = "deskhand.wait";

/** Messages that the server has not confirmed: `{id, name, text, files, when}`, the oldest first. */
export function waiting() {
  try {
    return JSON.parse(localStorage.getItem(WAITING) ?? "[]");
  } catch {
    return [];
  }
}

export function setWaiting(messages) {
  if (messages.length) localStorage.setItem(WAITING, JSON.stringify(messages));
  else localStorage.removeItem(WAITING);
}

export const draftOf = (name) => sessionStorage.getItem(`deskhand.draft.${name}`) ?? "";
export function keepDraft(name, text) {
  if (text) sessionStorage.setItem(`deskhand.draft.${name}`, text);
  else sessionStorage.removeItem(`deskhand.draft.${name}`);
}
