// A conversation by voice alone: it listens, sends what was said, reads the answer aloud, and listens
// again. What is shown of it is in hands-free-layer.js.

import { call, fetchBlob, sessionPath } from "../api.js";
import { t } from "../language.js";
import { computed, effect, signal } from "../lib.js";
import { sendMessage } from "../sending.js";
import { sentMessages, spokenIds } from "../sent-messages.js";
import { canHear, canSay, currentUser, hasScope, route } from "../state.js";
import { talk } from "../talk.js";
import { browserCanRecord, handsFree, stopSound } from "../voice.js";
import { forgetSpeech, hearLevel, UNHEARD } from "./detect-speech.js";
import { findExchange } from "./exchange.js";
import { listen } from "./open-microphone.js";
import { openReader } from "./sentence-reader.js";
import { readOn, UNREAD } from "./sentences.js";

const ECHO_MS = 400; // its own voice is heard so long after it has ended
const BUSY_MS = 1500; // until a sound that was given up is made no more
const START = {
  problem: "", // why it does not listen
  asking: true, // for the microphone
  muted: false,
  paused: false,
  hearing: false,
  sending: 0, // recordings that are on their way
  unsent: null, // a recording that did not arrive
  message: "", // the id of what was said last
  busy: false, // an answer is read aloud, or about to be
  unspoken: "", // why an answer is not read aloud
};

/** How loud the microphone is, from 0 to 1, for the eye. */
export const loudness = signal(0);
/** What came of what was said last, or null. */
export const exchange = computed(() => {
  const id = handsFree.value?.message;
  return id ? findExchange(talk.value, id) : null;
});
/** The message of it, while the server does not have it. */
const underWay = computed(() =>
  sentMessages.value.find((message) => message.id === handsFree.value?.message),
);
export const phase = computed(() => {
  const state = handsFree.value;
  if (!state) return "";
  if (state.problem) return "failed";
  if (state.asking) return "opening";
  if (state.paused) return "paused";
  if (state.hearing) return "hearing";
  if (state.busy) return "speaking";
  if (talk.value.asks.length) return "asked";
  if (state.sending || exchange.value?.open || (underWay.value && !underWay.value.failed))
    return exchange.value && !exchange.value.listening ? "working" : "understanding";
  return state.muted ? "muted" : "listening";
});
/** What went wrong with what was said last; '' where nothing did. */
export const failure = computed(() => underWay.value?.failed || exchange.value?.problem || "");

let microphone = null;
let reader = null;
let speech = UNHEARD;
let read = UNREAD;
let ends = []; // what is to be called when it ends
let voiceUntil = 0;
let isPlaying = false;
let sendingQueue = Promise.resolve();
let followed = null; // the conversation that is open
const askedAloud = new Set();

const update = (change) => {
  if (handsFree.value) handsFree.value = { ...handsFree.value, ...change };
};

function findProblem() {
  if (!hasScope("chat")) return t("You may read here, but neither write nor talk.");
  if (!canHear())
    return (
      currentUser.value?.speech?.hear_problem ||
      t("Deskhand does not listen to recordings yet. Set it up first.")
    );
  if (!browserCanRecord())
    return t("This browser cannot record. Use another browser, or attach a recording as a file.");
  return "";
}

/** Begin to talk. What is in the way is shown in the layer. */
export async function begin() {
  stopSound();
  if (!handsFree.value) {
    reader = openReader({ load: loadSound, onChange: noteReading, onProblem: noteUnspoken });
    ends = [effect(followAnswers), effect(followAsks), effect(followRoute), keepScreenOn()];
  }
  const mine = { ...START, problem: findProblem() };
  handsFree.value = mine;
  if (mine.problem) return;
  try {
    const opened = await listen(takeLevel);
    if (!handsFree.value || microphone) {
      opened.close();
      return;
    }
    microphone = opened;
    microphone.onEnd(() => fail(t("The microphone is gone. Connect it, then try again.")));
    speech = UNHEARD;
    update({ asking: false });
  } catch (error) {
    fail(error.message);
  }
}

function fail(problem) {
  microphone?.close();
  microphone = null;
  reader?.drop();
  update({ problem, hearing: false });
}

/** End it: the microphone is closed, and nothing is read aloud any more. */
export function end() {
  for (const stop of ends) stop();
  ends = [];
  reader?.drop();
  microphone?.close();
  microphone = null;
  followed = null;
  handsFree.value = null;
}

/** A phone that sleeps hears nothing. */
function keepScreenOn() {
  const asked = navigator.wakeLock?.request("screen").catch(() => null);
  return () => asked?.then((lock) => lock?.release());
}

// ------------------------------------------------------------------ listening

function takeLevel({ decibels, ms }) {
  const { muted, paused } = handsFree.value ?? START;
  if (!microphone || muted || paused) return;
  const overVoice = isPlaying || performance.now() < voiceUntil;
  speech = hearLevel(speech, decibels, ms, overVoice);
  loudness.value = Math.round(20 * Math.min(1, Math.max(0, (speech.level + 60) / 40))) / 20;
  if (speech.event === "begin") hearBegin();
  else if (speech.event === "discard") hearNothing();
  else if (speech.event === "end") hearEnd();
}

function hearBegin() {
  reader.hold();
  microphone.begin();
  update({ hearing: true });
}

function hearNothing() {
  microphone.discard();
  update({ hearing: false });
  reader.resume();
}

async function hearEnd() {
  reader.drop();
  update({ hearing: false, message: "", unspoken: "" });
  deliver(await microphone.end());
}

/** Take back what is being said: it is not sent. */
function stopHearing() {
  if (!handsFree.value.hearing) return;
  microphone.discard();
  update({ hearing: false });
}

export function toggleMute() {
  const muted = !handsFree.value.muted;
  stopHearing();
  speech = forgetSpeech(speech);
  loudness.value = 0;
  microphone?.mute(muted);
  update({ muted });
  if (!handsFree.value.paused) reader.resume();
}

/** Neither listen nor speak, or go on with both. */
export function togglePause() {
  const paused = !handsFree.value.paused;
  stopHearing();
  speech = forgetSpeech(speech);
  loudness.value = 0;
  microphone?.mute(paused || handsFree.value.muted);
  update({ paused });
  if (paused) reader.hold();
  else reader.resume();
}

// ------------------------------------------------------------------ sending

/** Send a recording as the voice message that it is, after those before it; also after the end. */
function deliver(sound) {
  const { name: open } = route.value;
  const sending = (handsFree.value?.sending ?? 0) + 1;
  update({ sending, unsent: null });
  sendingQueue = sendingQueue.then(async () => {
    try {
      const kind = sound.type.split("/")[1];
      const file = await call("POST", `/api/blobs?name=recording.${kind}`, sound);
      // a first message before it may have begun the conversation
      sendSpoken(file, handsFree.value ? route.value.name : open);
    } catch {
      update({ unsent: sound });
    }
    if (handsFree.value) update({ sending: Math.max(0, handsFree.value.sending - 1) });
  });
}

function sendSpoken(file, name) {
  read = UNREAD;
  const when = talk.value.asks.length ? "queue" : "steer"; // else it would take back what is asked
  sendMessage("", [{ ...file, spoken: true }], when, name);
  const { id } = sentMessages.value.at(-1);
  if (handsFree.value) spokenIds.delete(id); // it is read here, sentence by sentence
  update({ message: id });
}

export const sendAgain = () => deliver(handsFree.value.unsent);

// ------------------------------------------------------------------ reading aloud

async function loadSound(text, signal) {
  const path = sessionPath(route.value.name, "/speech");
  for (let tries = 0; ; tries += 1) {
    try {
      return await fetchBlob(path, signal, { text });
    } catch (error) {
      if (error.status === 404) return null; // code, a table, an address: nothing to say
      if (error.status !== 429 || tries === 3) throw error;
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    }
  }
}

function noteReading({ busy, playing }) {
  if (isPlaying && !playing) voiceUntil = performance.now() + ECHO_MS;
  isPlaying = playing;
  if (handsFree.value?.busy !== busy) update({ busy });
}

function noteUnspoken(error) {
  update({ unspoken: error.message });
}

function followAnswers() {
  const found = exchange.value;
  if (!found || !canSay()) return;
  const next = readOn(read, found.answers);
  read = next.read;
  queueMicrotask(() => reader.add(next.pieces)); // it changes what this effect must not depend on
}

/** What is asked is said once. It is answered on the page: a voice can be anybody's. */
function followAsks() {
  const { asks } = talk.value;
  if (!canSay()) return;
  const fresh = asks.filter(({ id }) => !askedAloud.has(id));
  for (const { id } of fresh) askedAloud.add(id);
  const words = fresh.map(({ approval, question }) =>
    approval
      ? t("I need your permission for something. Please answer on the page.")
      : t("I have a question. Please answer on the page: {question}", { question }),
  );
  queueMicrotask(() => reader.add(words));
}

/** Whoever opens another conversation or page ends it; a first message opens its own. */
function followRoute() {
  const { place, name } = route.value;
  const isOurs = underWay.peek()?.name === name || followed === null || followed === name;
  followed = name;
  if (!currentUser.value || place !== "talk" || !isOurs) queueMicrotask(end);
}
