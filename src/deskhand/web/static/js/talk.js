// The conversation that is open: its log as it comes, and what a person does in it.

import { at, call, follow, fresh, post } from "./api.js";
import { EMPTY, fold, hear } from "./fold.js";
import { forget, remember, remembered, setWaiting, waiting } from "./keep.js";
import { batch, computed, effect, signal } from "./lib.js";
import { activity } from "./list.js";
import { amendments, amends, folded, MOST, PAGE, part } from "./log.js";
import { announce, attempt, go, here, me, online } from "./state.js";

export const talk = signal(EMPTY); // the end of the log, which grows
export const view = signal(null); // an earlier part of the log that one looks at, as {events, state}; null: the end
export const shown = computed(() => view.value?.state ?? talk.value);
export const missing = signal(""); // why it cannot be shown
export const loading = signal(false);
export const toEnd = signal(0); // grows when the end should come into sight
export const sent = signal(waiting()); // what was written and is not in the log yet
export const unsent = computed(() =>
  sent.value.filter(
    (message) => message.name === here.value.name && !talk.value.seen.includes(message.inbox),
  ),
);

/** The events of this conversation that are here, as they came. */
export const rawEvents = () => events;

let name = "",
  events = [],
  queue = [],
  frame = 0,
  stream = null,
  keeping = 0,
  since = null,
  turning = "",
  follows = true;

/** Whether the end is in sight: then what is far above it may go. */
export function atEnd(yes) {
  follows = yes;
}

/** Show this conversation ('' is a new one) and follow it. */
export async function show(wanted) {
  if (wanted === name && (stream || !wanted)) return;
  leave();
  name = wanted;
  batch(() => {
    talk.value = EMPTY;
    view.value = null;
    missing.value = "";
    loading.value = Boolean(wanted);
  });
  if (!wanted) return;
  const known = (await remembered(wanted)).slice(-PAGE);
  if (name !== wanted || stream) return;
  for (const recorded of known) take({ recorded });
  flush();
  if (!known.length && sent.value.some((message) => message.name === wanted && !message.inbox)) {
    loading.value = false;
    return;
  } // it begins when its first message is there
  listen();
}

function leave() {
  stream?.close();
  stream = null;
  keep();
  [events, queue, since, follows] = [[], [], null, true];
}

/** Keep the log as far as it is here, for when the server is not. */
function keep() {
  clearTimeout(keeping);
  keeping = 0;
  const last = events.at(-1)?.n;
  if (last)
    remember(name, events).then(() => {
      document.documentElement.dataset.remembered = last;
    });
}

addEventListener("pagehide", () => keep());

/** Whoever signed out leaves nothing behind, here neither. */
effect(() => {
  if (me.value !== null) return;
  clearTimeout(keeping);
  stream?.close();
  [name, events, queue, stream, keeping] = ["", [], [], null, 0];
  [talk.value, view.value] = [EMPTY, null];
});

function listen() {
  const wanted = name;
  let lost = 0;
  stream = follow(() => at(wanted, `/events?after=${events.at(-1)?.n ?? 0}&last=${PAGE}`), {
    recorded: (recorded) => take({ recorded }),
    progress: (piece) => take({ piece }),
    closed: ({ reason }) => {
      missing.value = reason;
    },
    state: (state) => {
      if (state === "open") {
        lost = 0;
        online.value = true;
        missing.value = "";
        setTimeout(() => {
          loading.value = false;
        }, 60);
        return;
      }
      if (++lost === 1) probe(wanted);
    },
  });
}

/** The stream broke: is the server away, or the conversation? */
async function probe(wanted) {
  try {
    await call("GET", at(wanted, `/log?after=${2 ** 40}`));
    online.value = true;
  } catch (error) {
    if (wanted !== name) return;
    if (error.status === 404) {
      missing.value =
        "There is no such conversation here. It may have been erased, or it is somebody else's.";
      forget(wanted);
      stream?.close();
    } else if (error.status === 0) online.value = false;
  }
  loading.value = false;
}

/** Put what came in line; it is drawn with the next frame, however much it is. */
function take(item) {
  queue.push(item);
  if (!frame) frame = document.hidden ? setTimeout(flush, 50) : requestAnimationFrame(flush);
}

function flush() {
  frame = 0;
  if (!queue.length) return;
  let state = talk.value;
  const before = state,
    back = queue.some(({ recorded }) => recorded && amends(recorded));
  for (const { recorded, piece } of queue) {
    if (recorded) {
      if (events.length && recorded.n > state.n + 1) [events, state] = [[], EMPTY]; // more was missed than is asked for at once
      if (recorded.n > state.n) events.push(recorded);
      state = fold(state, recorded);
    } else state = hear(state, piece);
  }
  queue = [];
  if (follows && before.open && !state.open && events.length > MOST) {
    events = events.slice(-PAGE);
    state = folded(events);
  }
  batch(() => {
    talk.value = state;
    if (back && view.value) look(view.value.events);
    if (state.session)
      activity.value = {
        ...activity.value,
        [state.session]: state.asks.length ? "asking" : state.open ? "running" : "",
      };
    const left = sent.value.filter(
      (message) => !(message.name === name && state.seen.includes(message.inbox)),
    );
    if (left.length !== sent.value.length) {
      sent.value = left;
      setWaiting(left.filter((message) => !message.inbox));
    }
  });
  tell(before, state);
  if (before.open && !state.open) keep();
  else if (state.n > before.n && !keeping) keeping = setTimeout(keep, 400);
}

/** What a screen reader is told: that something is asked, and what came of a turn. Not each word of it. */
function tell(before, state) {
  const asked = state.asks.find((ask) => !before.asks.some((old) => old.id === ask.id));
  if (asked)
    announce(
      asked.approval
        ? `Permission needed: ${asked.question.slice(0, 120)}`
        : `Question: ${asked.question}`,
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
    announce(answer ? `Answer: ${answer.text.slice(0, 400)}` : "Done");
  }
}

// ------------------------------------------------------------------ up and down a long log

function refold() {
  const { live, outputs, results, status } = talk.value;
  talk.value = { ...folded(events), live, outputs, results, status };
}

/** Look at these events, with what was undone, edited or reacted to since. */
function look(found) {
  const n = found.at(-1).n,
    later = [...(since ?? []), ...events.filter(amends)].filter((recorded) => recorded.n > n);
  view.value = { events: found, state: folded([...found, ...later]) };
}

/** These reach down to the end: from here on they are one with it. */
function join(found) {
  events = [...found.filter(({ n }) => n < events[0].n), ...events].slice(-MOST);
  batch(() => {
    view.value = null;
    refold();
  });
}

/** Ask for a part of the log, one at a time, and show what `take` makes of it. */
async function turn(after, to, take) {
  const wanted = name;
  if (turning === wanted || !events.length) return;
  turning = wanted;
  try {
    const [found, all] = await Promise.all([
      part(wanted, Math.max(0, after), to),
      since ?? amendments(wanted),
    ]);
    if (name !== wanted) return;
    since = all;
    if (found.length || view.value) batch(() => take(found));
  } finally {
    if (turning === wanted) turning = "";
  }
}

/** Show a page more of what was before. What is far below goes, where it is too much. */
export function earlier() {
  const { first } = shown.value;
  return (
    first > 1 &&
    turn(first - 1 - PAGE, first - 1, (found) => {
      const all = [...found, ...(view.value?.events ?? events)];
      if (!view.value && all.length <= MOST) return join(found);
      if (!view.value) {
        events = events.slice(-PAGE);
        refold();
      }
      look(all.slice(0, MOST));
    })
  );
}

/** Show a page more of what came next. What is far above goes. */
export function afterwards() {
  const last = view.value?.events.at(-1).n ?? 0;
  return (
    view.value &&
    turn(last, Math.min(last + PAGE, events[0].n - 1), (found) => {
      const all = [...view.value.events, ...found];
      if (all.at(-1).n >= events[0].n - 1) join(all);
      else look(all.slice(-MOST));
    })
  );
}

/** Show what happened around event `n`, wherever that is. */
export function jump(n) {
  if (n >= talk.value.first) view.value = null;
  else if (!view.value || n < view.value.events[0].n || n > view.value.events.at(-1).n) {
    const after = Math.max(0, n - PAGE / 2);
    return turn(after, Math.min(after + PAGE, events[0].n - 1), (found) =>
      found.at(-1).n >= events[0].n - 1 ? join(found) : look(found),
    );
  }
  return undefined;
}

// ------------------------------------------------------------------ what one does

/** Say something. It is kept until the server has it, and sent under one id however often that takes. */
export async function say(text, files, when) {
  const wanted = here.value.name || `chat-${fresh()}`;
  const message = { id: fresh("m-"), name: wanted, text, files, when, at: Date.now() / 1000 };
  keepSent([...sent.value, message]);
  toEnd.value += 1;
  if (!here.value.name) go(wanted);
  await send(message);
}

async function send(message) {
  try {
    const { name: known, inbox_id: inbox } = await post(at(message.name, "/messages"), {
      text: message.text,
      files: message.files,
      when: message.when,
      id: message.id,
    });
    online.value = true;
    keepSent(
      sent.value.map((other) =>
        other.id === message.id ? { ...other, inbox, name: known, failed: "" } : other,
      ),
    );
    if (here.value.name === message.name && known !== message.name) go(known);
    if (here.value.name === known && !stream) {
      name = "";
      show(known);
    }
  } catch (error) {
    keepSent(
      sent.value.map((other) =>
        other.id === message.id
          ? { ...other, failed: error.status === 0 ? "" : error.message }
          : other,
      ),
    );
    if (error.status === 0) {
      clearTimeout(again);
      again = setTimeout(sendWaiting, AGAIN_MS);
    }
  }
}

function keepSent(messages) {
  sent.value = messages;
  setWaiting(messages.filter((message) => !message.inbox));
}

export function drop(id) {
  keepSent(sent.value.filter((message) => message.id !== id));
}

const AGAIN_MS = 2000;
let sending = false,
  again = 0;

/** Send what could not be sent before, in its order. */
export async function sendWaiting() {
  if (sending) return;
  sending = true;
  for (const message of sent.value.filter((one) => !one.inbox && !one.failed)) {
    await send(message);
    if (!online.value) break;
  }
  sending = false;
}

/** Come back at once, where the wait for the next try is long. */
export function retryNow() {
  stream?.now();
  sendWaiting();
}

export const stop = () => attempt(() => post(at(here.value.name, "/stop")));
export const choose = (id, choice) =>
  attempt(() => post(at(here.value.name, `/asks/${encodeURIComponent(id)}`), { choice }));
export const retry = () => attempt(() => post(at(here.value.name, "/retry")));
export const rewind = (to_n, more = {}) =>
  attempt(() => post(at(here.value.name, "/rewind"), { to_n, ...more }));

export async function branch(at_n) {
  const made = await attempt(() => post(at(here.value.name, "/branch"), { at_n }));
  if (made) {
    go(made.name);
    announce("A branch is open");
  }
}
