// The list of conversations: its pages, the events that change it, and the open questions.

import { followStream, get } from "./api.js";
import { computed, effect, signal } from "./lib.js";
import { isInDays, isPinned, listed, movesRow, put, renewed, told } from "./rows.js";
import { currentUser, online, route, showError } from "./state.js";

const ROW_PATH = "/api/sessions?limit=1&brief=true";
const PAGE_PATH = "/api/sessions?limit=60&brief=true&pinned=false&folder=&archived=false";
const PINNED_PATH = "/api/sessions?limit=200&brief=true&pinned=true&archived=false";
const MAX_STORED_ROWS = 60;
const SOON_MS = 150;

const rows = signal(null); // all that is known, the latest first; null: nothing yet
const dragging = signal(false);
let held = null;
/** What is drawn. It stays while a row is dragged: a browser lets go of a row that moves. */
const drawnRows = computed(() => {
  if (!dragging.value) held = rows.value;
  return held;
});
const edge = signal(undefined); // where the next page begins; undefined: nothing is behind
/** The list, down to where its pages go; null: not asked for yet. */
export const sessions = computed(
  () => drawnRows.value && listed(drawnRows.value.filter(isInDays), edge.value),
);
export const pinnedSessions = computed(() => (drawnRows.value ?? []).filter(isPinned));
export const folders = signal(null); // [{name, sessions}]; null: not asked for yet
export const archivedCount = signal(0);
/** How often conversations were moved between days, folders and the archive. */
export const placesChanged = signal(0);
export const moreSessions = computed(() => (edge.value ? loadMoreSessions : null));
export const activity = signal({}); // key of a session -> "running" | "asking"

/** All rows of the list are drawn again with a change, so there is none without need. */
export function setActivity(key, doing) {
  if ((activity.value[key] ?? "") !== doing) activity.value = { ...activity.value, [key]: doing };
}

export const asks = signal([]); // what waits for an answer, however old, the oldest first
export const busySessions = computed(() =>
  (rows.value ?? []).filter((row) => activity.value[row.key]),
);
export const currentSession = computed(
  () => (rows.value ?? []).find((row) => row.name === route.value.name) ?? null,
);

/** Key -> the step at which this page last heard of the session. Older answers are ignored. */
const touchedAt = new Map();
/** Name -> whether something has happened in the session since its row was requested. */
const pendingRefreshes = new Map();
let step = 0;
let asksTimer;

const keepUntouched = (found, began) =>
  found.filter((row) => (touchedAt.get(row.key) ?? 0) <= began);

export async function loadSessions() {
  const began = ++step;
  try {
    const [{ sessions: page, more: next }, { sessions: pinned }] = await Promise.all([
      get(PAGE_PATH),
      get(PINNED_PATH),
    ]);
    const heard = (rows.value ?? []).filter((row) => (touchedAt.get(row.key) ?? 0) > began);
    const known = renewed(rows.value ?? [], page, next, edge.value);
    rows.value = put(put(known.rows, pinned), heard);
    edge.value = known.edge;
  } catch (error) {
    if (error.status === 0 && rows.value === null)
      rows.value = JSON.parse(localStorage.getItem("deskhand.me.sessions") ?? "[]");
    else if (error.status !== 401 && error.status !== 0) showError(error);
  }
}

async function loadMoreSessions() {
  const from = edge.value;
  const began = ++step;
  const page = await get(`${PAGE_PATH}&before=${encodeURIComponent(from)}`);
  if (edge.value !== from) return; // the list was loaded again meanwhile
  rows.value = put(rows.value, keepUntouched(page.sessions, began));
  edge.value = page.more;
}

/** Load the row of one session: an old one that goes on, a new one, or the one that is open. */
async function refreshRow(name, key = "") {
  const began = ++step;
  const pending = pendingRefreshes.has(name);
  if (key) touchedAt.set(key, began);
  pendingRefreshes.set(name, pending);
  if (pending) return;
  try {
    const [found] = (await get(`${ROW_PATH}&name=${encodeURIComponent(name)}`)).sessions;
    if (found && keepUntouched([found], began).length) rows.value = put(rows.value ?? [], [found]);
    else if (!found && key) rows.value = (rows.value ?? []).filter((row) => row.key !== key);
  } catch {
    /* the list works without */
  }
  const news = pendingRefreshes.get(name);
  pendingRefreshes.delete(name);
  if (news) await refreshRow(name, key);
}

/** The one that is open, where it lies further back than the list goes. */
export async function refreshCurrentRow() {
  if (route.value.name && rows.value && !currentSession.value && online.value)
    await refreshRow(route.value.name);
}

/** The row as it is known here, where a page that was loaded earlier has it. */
export const renewedRow = (row) => (rows.value ?? []).find((one) => one.key === row.key) ?? row;

/** How many turns ended since the page was opened, in all conversations. */
export const endedTurns = signal(0);
let foldersTimer;

function schedulePlaces() {
  clearTimeout(foldersTimer);
  foldersTimer = setTimeout(loadFolders, SOON_MS);
}

/** From now on a row is dragged, until nothing is. */
export function holdRows() {
  dragging.value = true;
  const release = () => {
    dragging.value = false;
    for (const type of ["dragend", "pointerdown"]) removeEventListener(type, release, true);
  };
  for (const type of ["dragend", "pointerdown"]) addEventListener(type, release, true);
}

async function loadFolders() {
  if (dragging.value) return schedulePlaces();
  try {
    const found = await get("/api/folders");
    if (dragging.value) return schedulePlaces();
    archivedCount.value = found.archived;
    folders.value = found.folders;
    placesChanged.value += 1;
  } catch {
    /* the list works without */
  }
}

/** What the API calls the session of this key. */
export function sessionName(key) {
  const [agent, ...place] = key.split("/");
  return `${agent}~${place.join("/").replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** For when the server is away. */
effect(() => {
  if (rows.value && currentUser.value)
    localStorage.setItem(
      "deskhand.me.sessions",
      JSON.stringify(rows.value.slice(0, MAX_STORED_ROWS)),
    );
});

/** After signing out, nothing is left. */
effect(() => {
  if (currentUser.value !== null) return;
  rows.value = null;
  edge.value = undefined;
  asks.value = [];
  folders.value = null;
  activity.value = {};
  touchedAt.clear();
});

const ACTIVITY_BY_EVENT = {
  message_received: "running",
  approval_asked: "asking",
  question_asked: "asking",
  approval_answered: "running",
  question_answered: "running",
  turn_ended: "",
  undone: "",
};
/** Events after which a session that has no row yet gets one. */
const LISTING_EVENTS = new Set(["message_received", "options_set", "branched", "turn_ended"]);
/** Events, besides answers, that may close an open question. */
const ASK_CLOSING_EVENTS = new Set([
  "tool_finished",
  "call_closed",
  "turn_ended",
  "undone",
  "erased",
]);

const SUBAGENT = /^[^/]*\/subagent:/;

function applyRecorded(recorded) {
  const { session: key, event } = recorded;
  const doing = ACTIVITY_BY_EVENT[event.type];
  const row = (rows.value ?? []).find((one) => one.key === key);
  const asked = event.type in ACTIVITY_BY_EVENT && /asked|answered/.test(event.type);
  if (asked || (ASK_CLOSING_EVENTS.has(event.type) && activity.value[key] === "asking"))
    scheduleLoadAsks();
  if (doing !== undefined) setActivity(key, doing);
  if (event.type === "turn_ended") endedTurns.value += 1;
  if (SUBAGENT.test(key)) return; // they stand with the conversation that they work for
  if (event.type === "erased" || movesRow(row, event)) schedulePlaces();
  const unlisted = !row && (!touchedAt.has(key) || LISTING_EVENTS.has(event.type));
  if (event.type === "erased" || unlisted) {
    refreshRow(sessionName(key), key);
    return;
  }
  const updated = row && told(row, recorded);
  if (updated === row) return;
  touchedAt.set(key, ++step);
  rows.value = put(rows.value, [updated]);
}

/** Keep the list of conversations up to date by the server's events. */
export function watchSessions() {
  return followStream(() => "/api/watch", {
    recorded: applyRecorded,
    state: (state) => {
      if (state === "open") online.value = true;
      if (state === "open" || rows.value === null) {
        loadSessions().then(refreshCurrentRow); // what happened while the stream was lost
        loadAsks();
        loadFolders();
      }
    },
  });
}

function scheduleLoadAsks() {
  clearTimeout(asksTimer);
  asksTimer = setTimeout(loadAsks, SOON_MS);
}

export async function loadAsks() {
  try {
    asks.value = await get("/api/approvals");
    const waiting = new Set(asks.value.map((one) => one.key));
    const before = Object.entries(activity.value).map(([key, doing]) => [
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
