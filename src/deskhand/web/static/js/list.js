// The conversations, as far as they are here: pages that are asked for, events that change them, and what waits.

import { follow, get } from "./api.js";
import { computed, effect, signal } from "./lib.js";
import { listed, put, renewed, told } from "./rows.js";
import { complain, here, me, online } from "./state.js";

const PAGE = "/api/sessions?limit=60&brief=true",
  KEPT = 60,
  SOON_MS = 150;

const rows = signal(null); // all that is known, the latest first; null: nothing yet
const edge = signal(undefined); // where the next page begins; undefined: nothing is behind
/** The list, down to where its pages go; null: not asked for yet. */
export const sessions = computed(() => rows.value && listed(rows.value, edge.value));
export const moreSessions = computed(() => (edge.value ? more : null));
export const activity = signal({}); // key of a session -> "running" | "asking"
export const asks = signal([]); // what waits for an answer, however old, the oldest first
export const busy = computed(() => (rows.value ?? []).filter((row) => activity.value[row.key]));
export const session = computed(
  () => (rows.value ?? []).find((row) => row.name === here.value.name) ?? null,
);

const touched = new Map(); // key -> when this page heard of it last, counted in steps: what is older is not put over it
const flights = new Map(); // name -> whether something has happened there since it was asked for
let step = 0,
  later;

const fresher = (found, began) => found.filter((row) => (touched.get(row.key) ?? 0) <= began);

export async function loadSessions() {
  const began = ++step;
  try {
    const { sessions: page, more: next } = await get(PAGE);
    const heard = (rows.value ?? []).filter((row) => (touched.get(row.key) ?? 0) > began);
    const known = renewed(rows.value ?? [], page, next, edge.value);
    [rows.value, edge.value] = [put(known.rows, heard), known.edge];
  } catch (error) {
    if (error.status === 0 && rows.value === null)
      rows.value = JSON.parse(localStorage.getItem("deskhand.me.sessions") ?? "[]");
    else if (error.status !== 401 && error.status !== 0) complain(error);
  }
}

async function more() {
  const from = edge.value,
    began = ++step;
  const page = await get(`${PAGE}&before=${encodeURIComponent(from)}`);
  if (edge.value !== from) return; // the list was asked for anew meanwhile
  [rows.value, edge.value] = [put(rows.value, fresher(page.sessions, began)), page.more];
}

/** A row that no page has named: of an old conversation that goes on, of a new one, of the one that is open. */
async function ask(name, key = "") {
  const began = ++step,
    again = flights.has(name);
  if (key) touched.set(key, began);
  flights.set(name, again);
  if (again) return;
  try {
    const [found] = (await get(`${PAGE}&name=${encodeURIComponent(name)}`)).sessions;
    if (found && fresher([found], began).length) rows.value = put(rows.value ?? [], [found]);
    else if (!found && key) rows.value = (rows.value ?? []).filter((row) => row.key !== key);
  } catch {
    /* the list works without */
  }
  const news = flights.get(name);
  flights.delete(name);
  if (news) await ask(name, key);
}

/** The one that is open, where it lies further back than the list goes. */
export async function askHere() {
  if (here.value.name && rows.value && !session.value && online.value) await ask(here.value.name);
}

/** What the API calls the session of this key. */
export function nameOf(key) {
  const [agent, ...place] = key.split("/");
  return `${agent}~${place.join("/").replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** For when the server is away. */
effect(() => {
  if (rows.value && me.value)
    localStorage.setItem("deskhand.me.sessions", JSON.stringify(rows.value.slice(0, KEPT)));
});

/** Whoever signed out leaves nothing behind. */
effect(() => {
  if (me.value !== null) return;
  [rows.value, edge.value, asks.value, activity.value] = [null, undefined, [], {}];
  touched.clear();
});

const RUNS = {
  message_received: "running",
  approval_asked: "asking",
  question_asked: "asking",
  approval_answered: "running",
  question_answered: "running",
  turn_ended: "",
  undone: "",
};
const BEGINS = new Set(["message_received", "options_set", "branched", "turn_ended"]);
const ENDS = new Set(["tool_finished", "call_closed", "turn_ended", "undone", "erased"]); // what may end an ask as well

function hear(recorded) {
  const { session: key, event } = recorded,
    doing = RUNS[event.type],
    row = (rows.value ?? []).find((one) => one.key === key);
  const asked = event.type in RUNS && /asked|answered/.test(event.type);
  if (asked || (ENDS.has(event.type) && activity.value[key] === "asking")) soon();
  if (doing !== undefined && activity.value[key] !== doing)
    activity.value = { ...activity.value, [key]: doing };
  if (event.type === "erased" || (!row && (!touched.has(key) || BEGINS.has(event.type))))
    return void ask(nameOf(key), key);
  const now = row && told(row, recorded);
  if (now === row) return;
  touched.set(key, ++step);
  rows.value = put(rows.value, [now]);
}

/** A list of conversations that is true without asking all the time. */
export function watch() {
  return follow(() => "/api/watch", {
    recorded: hear,
    state: (state) => {
      if (state === "open") online.value = true;
      if (state === "open" || rows.value === null) {
        loadSessions().then(askHere);
        loadAsks();
      } // what happened while it was lost
    },
  });
}

function soon() {
  clearTimeout(later);
  later = setTimeout(loadAsks, SOON_MS);
}

export async function loadAsks() {
  try {
    asks.value = await get("/api/approvals");
    const waiting = new Set(asks.value.map((one) => one.key)),
      before = Object.entries(activity.value).map(([key, doing]) => [
        key,
        doing === "asking" && !waiting.has(key) ? "running" : doing,
      ]);
    activity.value = {
      ...Object.fromEntries(before),
      ...Object.fromEntries([...waiting].map((key) => [key, "asking"])),
    };
  } catch {
    /* the list works without */
  }
}
