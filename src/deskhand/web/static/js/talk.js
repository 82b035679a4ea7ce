// The conversation that is open: its log as it comes, and what a person does in it.
import { batch, computed, effect, signal } from "./lib.js";
import { at, call, follow, fresh, post } from "./api.js";
import { EMPTY, fold, hear } from "./fold.js";
import { forget, remember, remembered, setWaiting, waiting } from "./keep.js";
import { activity, announce, attempt, go, here, me, online, soon } from "./state.js";

export const talk = signal(EMPTY);
export const missing = signal(""); // why it cannot be shown
export const loading = signal(false);
export const toEnd = signal(0); // grows when the end should come into sight
export const sent = signal(waiting()); // what was written and is not in the log yet
export const unsent = computed(() => sent.value.filter((message) => message.name === here.value.name && !talk.value.seen.includes(message.inbox)));

/** The events of this conversation that are here, as they came. */
export const rawEvents = () => events;

let name = "", events = [], queue = [], frame = 0, stream = null, keeping = 0;

/** Show this conversation ('' is a new one) and follow it. */
export async function show(wanted) {
  if (wanted === name && (stream || !wanted)) return;
  leave();
  name = wanted;
  batch(() => { talk.value = EMPTY; missing.value = ""; loading.value = Boolean(wanted); });
  if (!wanted) return;
  const known = await remembered(wanted);
  if (name !== wanted || stream) return;
  for (const recorded of known) take({ recorded });
  flush();
  if (!known.length && sent.value.some((message) => message.name === wanted && !message.inbox)) { loading.value = false; return; } // it begins when its first message is there
  listen();
}

function leave() {
  stream?.close();
  stream = null;
  keep();
  events = [];
  queue = [];
}

/** Keep the log as far as it is here, for when the server is not. */
function keep() {
  clearTimeout(keeping);
  keeping = 0;
  const last = events.at(-1)?.n;
  if (last) remember(name, events).then(() => { document.documentElement.dataset.remembered = last; });
}

addEventListener("pagehide", () => keep());

/** Whoever signed out leaves nothing behind, here neither. */
effect(() => {
  if (me.value !== null) return;
  clearTimeout(keeping);
  stream?.close();
  [name, events, queue, stream, keeping] = ["", [], [], null, 0];
  talk.value = EMPTY;
});

function listen() {
  const wanted = name;
  let lost = 0;
  stream = follow(() => at(wanted, `/events?after=${events.at(-1)?.n ?? 0}`), {
    recorded: (recorded) => take({ recorded }),
    progress: (piece) => take({ piece }),
    closed: ({ reason }) => { missing.value = reason; },
    state: (state) => {
      if (state === "open") { lost = 0; online.value = true; missing.value = ""; setTimeout(() => { loading.value = false; }, 60); return; }
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
    if (error.status === 404) { missing.value = "There is no such conversation here. It may have been erased, or it is somebody else's."; forget(wanted); stream?.close(); }
    else if (error.status === 0) online.value = false;
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
  const before = state;
  for (const { recorded, piece } of queue) {
    if (recorded) {
      if (recorded.n > state.n) events.push(recorded);
      state = fold(state, recorded);
    } else state = hear(state, piece);
  }
  queue = [];
  batch(() => {
    talk.value = state;
    if (state.session) activity.value = { ...activity.value, [state.session]: state.asks.length ? "asking" : state.open ? "running" : "" };
    const left = sent.value.filter((message) => !(message.name === name && state.seen.includes(message.inbox)));
    if (left.length !== sent.value.length) { sent.value = left; setWaiting(left.filter((message) => !message.inbox)); }
  });
  tell(before, state);
  if (before.open && !state.open) keep();
  else if (state.n > before.n && !keeping) keeping = setTimeout(keep, 400);
}

/** What a screen reader is told: that something is asked, and what came of a turn. Not each word of it. */
function tell(before, state) {
  const asked = state.asks.find((ask) => !before.asks.some((old) => old.id === ask.id));
  if (asked) announce(asked.approval ? `Permission needed: ${asked.question.slice(0, 120)}` : `Question: ${asked.question}`, true);
  else if (before.session === state.session && before.open && !state.open && Date.now() / 1000 - state.turns.at(-1).end < 30) {
    const answer = state.turns.at(-1)?.items.findLast((item) => item.kind === "answer" || item.kind === "note");
    announce(answer ? `Answer: ${answer.text.slice(0, 400)}` : "Done");
  }
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
    const { name: known, inbox_id: inbox } = await post(at(message.name, "/messages"), { text: message.text, files: message.files, when: message.when, id: message.id });
    online.value = true;
    keepSent(sent.value.map((other) => (other.id === message.id ? { ...other, inbox, name: known, failed: "" } : other)));
    if (here.value.name === message.name && known !== message.name) go(known);
    if (here.value.name === known && !stream) { name = ""; show(known); }
    soon();
  } catch (error) {
    keepSent(sent.value.map((other) => (other.id === message.id ? { ...other, failed: error.status === 0 ? "" : error.message } : other)));
    if (error.status === 0) { clearTimeout(again); again = setTimeout(sendWaiting, AGAIN_MS); }
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
let sending = false, again = 0;

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
export const choose = (id, choice) => attempt(() => post(at(here.value.name, `/asks/${encodeURIComponent(id)}`), { choice }));
export const retry = () => attempt(() => post(at(here.value.name, "/retry")));
export const rewind = (to_n, more = {}) => attempt(() => post(at(here.value.name, "/rewind"), { to_n, ...more }));

export async function branch(at_n) {
  const made = await attempt(() => post(at(here.value.name, "/branch"), { at_n }));
  if (made) { soon(); go(made.name); announce("A branch is open"); }
}
