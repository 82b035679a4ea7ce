// The open conversation: its log as it arrives, and the part of it that is shown.

import { call, followStream, sessionPath } from "./api.js";
import { EMPTY, fold, hear } from "./fold.js";
import { t } from "./language.js";
import { batch, computed, effect, signal } from "./lib.js";
import { setActivity } from "./list.js";
import {
  fetchAmendments,
  fetchEvents,
  foldEvents,
  isAmendment,
  MAX_DRAWN_EVENTS,
  PAGE_EVENTS,
} from "./log.js";
import { sentMessages, setSentMessages } from "./sent-messages.js";
import { announce, currentUser, online, route } from "./state.js";
import { deleteEvents, loadEvents, storeEvents } from "./storage.js";

export const talk = signal(EMPTY); // the end of the log, which grows
/** An earlier part of the log that is shown instead of the end: `{events, state}`, or null. */
export const earlierPart = signal(null);
export const shownState = computed(() => earlierPart.value?.state ?? talk.value);
export const missingReason = signal(""); // why it cannot be shown
export const loading = signal(false);
export const scrollToEndRequests = signal(0); // grows when the end should come into sight
export const unsentMessages = computed(() =>
  sentMessages.value.filter(
    (message) => message.name === route.value.name && !isInLog(message, talk.value),
  ),
);

/** Whether a message that was sent is in the log, maybe before the server has answered. */
const isInLog = (message, state) =>
  state.seen.includes(message.id) || state.seen.includes(message.inbox);

/** The events of this conversation that are here, as they came. */
export const getLoadedEvents = () => events;

let openName = "";
let events = [];
let queue = [];
let drawTimer = 0;
let stream = null;
let storeTimer = 0;
let laterAmendments = null;
let loadingPart = "";
let followsEnd = true;

/** Whether the end is in sight: then what is far above it may go. */
export function setFollowsEnd(yes) {
  followsEnd = yes;
}

/** Show this conversation ('' is a new one) and follow it. */
export async function showSession(wanted) {
  if (wanted === openName && (stream || !wanted)) return;
  leaveSession();
  openName = wanted;
  batch(() => {
    talk.value = EMPTY;
    earlierPart.value = null;
    missingReason.value = "";
    loading.value = Boolean(wanted);
  });
  if (!wanted) return;
  const known = (await loadEvents(wanted)).slice(-PAGE_EVENTS);
  if (openName !== wanted || stream) return;
  for (const recorded of known) enqueueItem({ recorded });
  drawQueue();
  const unsent = sentMessages.value.some((message) => message.name === wanted && !message.inbox);
  if (!known.length && unsent) {
    loading.value = false; // the session begins when the server has its first message
    return;
  }
  followSession();
}

/** Show the session that a message from here has begun, where it is not followed yet. */
export function showBegunSession(name) {
  if (stream) return;
  openName = "";
  showSession(name);
}

/** Connect at once, without waiting for the next try. */
export const reconnectStream = () => stream?.reconnectNow();

function leaveSession() {
  stream?.close();
  stream = null;
  storeLog();
  events = [];
  queue = [];
  laterAmendments = null;
  followsEnd = true;
}

/** Store the loaded events in this browser, for when the server is away. */
function storeLog() {
  clearTimeout(storeTimer);
  storeTimer = 0;
  const last = events.at(-1)?.n;
  if (last)
    storeEvents(openName, events).then(() => {
      document.documentElement.dataset.remembered = last;
    });
}

addEventListener("pagehide", () => storeLog());

/** After signing out, nothing is left. */
effect(() => {
  if (currentUser.value !== null) return;
  clearTimeout(storeTimer);
  stream?.close();
  openName = "";
  events = [];
  queue = [];
  stream = null;
  storeTimer = 0;
  talk.value = EMPTY;
  earlierPart.value = null;
});

function followSession() {
  const wanted = openName;
  let lost = 0;
  stream = followStream(
    () => sessionPath(wanted, `/events?after=${events.at(-1)?.n ?? 0}&last=${PAGE_EVENTS}`),
    {
      recorded: (recorded) => enqueueItem({ recorded }),
      progress: (piece) => enqueueItem({ piece }),
      closed: ({ reason }) => {
        missingReason.value = reason;
      },
      state: (state) => {
        if (state === "open") {
          lost = 0;
          online.value = true;
          missingReason.value = "";
          setTimeout(() => {
            loading.value = false;
          }, 60);
          return;
        }
        lost += 1;
        if (lost === 1) checkSession(wanted);
      },
    },
  );
}

/** The stream broke: is the server away, or the conversation? */
async function checkSession(wanted) {
  try {
    await call("GET", sessionPath(wanted, `/log?after=${2 ** 40}`));
    online.value = true;
  } catch (error) {
    if (wanted !== openName) return;
    if (error.status === 404) {
      missingReason.value = t(
        "There is no such conversation here. It may have been erased, or it is somebody else's.",
      );
      deleteEvents(wanted);
      stream?.close();
    } else if (error.status === 0) online.value = false;
  }
  loading.value = false;
}

/** Queue what arrived: all of it is drawn with the next frame. */
function enqueueItem(item) {
  queue.push(item);
  if (!drawTimer)
    drawTimer = document.hidden ? setTimeout(drawQueue, 50) : requestAnimationFrame(drawQueue);
}

function drawQueue() {
  drawTimer = 0;
  if (!queue.length) return;
  let state = talk.value;
  const before = state;
  const amended = queue.some(({ recorded }) => recorded && isAmendment(recorded));
  for (const { recorded, piece } of queue) {
    if (!recorded) {
      state = hear(state, piece);
      continue;
    }
    if (events.length && recorded.n > state.n + 1) {
      events = []; // more events were missed than one request brings
      state = EMPTY;
    }
    if (recorded.n > state.n) events.push(recorded);
    state = fold(state, recorded);
  }
  queue = [];
  if (followsEnd && before.open && !state.open && events.length > MAX_DRAWN_EVENTS) {
    events = events.slice(-PAGE_EVENTS);
    state = foldEvents(events);
  }
  batch(() => {
    talk.value = state;
    if (amended && earlierPart.value) showEvents(earlierPart.value.events);
    if (state.session) setActivity(state.session, describeActivity(state));
    const left = sentMessages.value.filter(
      (message) => !(message.name === openName && isInLog(message, state)),
    );
    if (left.length !== sentMessages.value.length) setSentMessages(left);
  });
  announceChange(before, state);
  if (before.open && !state.open) storeLog();
  else if (state.n > before.n && !storeTimer) storeTimer = setTimeout(storeLog, 400);
}

function describeActivity(state) {
  if (state.asks.length) return "asking";
  return state.open ? "running" : "";
}

/** Tell screen readers that something is asked, or how a turn ended; not each word of it. */
function announceChange(before, state) {
  const asked = state.asks.find((ask) => !before.asks.some((old) => old.id === ask.id));
  if (asked)
    announce(
      asked.approval
        ? t("Permission needed: {question}", { question: asked.question.slice(0, 120) })
        : t("Question: {question}", { question: asked.question }),
      true,
    );
  else if (
    before.session === state.session &&
    before.open &&
    !state.open &&
    Date.now() / 1000 - state.turns.at(-1).end < 30
  ) {
    const answer = state.turns
      .at(-1)
      ?.items.findLast((item) => item.kind === "answer" || item.kind === "note");
    announce(answer ? t("Answer: {answer}", { answer: answer.text.slice(0, 400) }) : t("Done"));
  }
}

// ------------------------------------------------------------------ parts of a long log

function refoldEvents() {
  const { live, outputs, results, status } = talk.value;
  talk.value = { ...foldEvents(events), live, outputs, results, status };
}

/** Show these events, with the undos, edits and reactions that came later. */
function showEvents(found) {
  const last = found.at(-1).n;
  const later = [...(laterAmendments ?? []), ...events.filter(isAmendment)].filter(
    (recorded) => recorded.n > last,
  );
  earlierPart.value = { events: found, state: foldEvents([...found, ...later]) };
}

/** These events reach the end of the log: show both as one. */
function joinWithEnd(found) {
  events = [...found.filter((recorded) => recorded.n < events[0].n), ...events].slice(
    -MAX_DRAWN_EVENTS,
  );
  batch(() => {
    earlierPart.value = null;
    refoldEvents();
  });
}

/** Load a part of the log, one at a time, and give it to `showPart`. */
async function loadPart(after, last, showPart) {
  const wanted = openName;
  if (loadingPart === wanted || !events.length) return;
  loadingPart = wanted;
  try {
    const [found, all] = await Promise.all([
      fetchEvents(wanted, Math.max(0, after), last),
      laterAmendments ?? fetchAmendments(wanted),
    ]);
    if (openName !== wanted) return;
    laterAmendments = all;
    if (found.length || earlierPart.value) batch(() => showPart(found));
  } finally {
    if (loadingPart === wanted) loadingPart = "";
  }
}

/** Show one more page of earlier events. Events far below are dropped where there are too many. */
export function loadEarlier() {
  const { first } = shownState.value;
  if (first <= 1) return undefined;
  return loadPart(first - 1 - PAGE_EVENTS, first - 1, (found) => {
    const all = [...found, ...(earlierPart.value?.events ?? events)];
    if (!earlierPart.value && all.length <= MAX_DRAWN_EVENTS) {
      joinWithEnd(found);
      return;
    }
    if (!earlierPart.value) {
      events = events.slice(-PAGE_EVENTS);
      refoldEvents();
    }
    showEvents(all.slice(0, MAX_DRAWN_EVENTS));
  });
}

/** Show one more page of later events. Events far above are dropped. */
export function loadLater() {
  if (!earlierPart.value) return undefined;
  const last = earlierPart.value.events.at(-1).n;
  return loadPart(last, Math.min(last + PAGE_EVENTS, events[0].n - 1), (found) => {
    const all = [...earlierPart.value.events, ...found];
    if (all.at(-1).n >= events[0].n - 1) joinWithEnd(all);
    else showEvents(all.slice(-MAX_DRAWN_EVENTS));
  });
}

/** Show the events around this one, wherever it is in the log. */
export function jumpToEvent(number) {
  if (number >= talk.value.first) {
    earlierPart.value = null;
    return undefined;
  }
  const part = earlierPart.value?.events;
  if (part && number >= part[0].n && number <= part.at(-1).n) return undefined;
  const after = Math.max(0, number - PAGE_EVENTS / 2);
  return loadPart(after, Math.min(after + PAGE_EVENTS, events[0].n - 1), (found) => {
    if (found.at(-1).n >= events[0].n - 1) joinWithEnd(found);
    else showEvents(found);
  });
}
