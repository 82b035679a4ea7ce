// What the rest of the page knows of voice. What records, plays and reads aloud is loaded on its
// first use.

import { computed, effect, signal } from "./lib.js";
import { spokenIds } from "./sent-messages.js";
import { canHear, hasScope, readAloud, route, showError } from "./state.js";
import { talk } from "./talk.js";

/** What can be recorded, the best first. */
export const RECORDED_TYPES = ["audio/ogg;codecs=opus", "audio/webm;codecs=opus", "audio/mp4"];
/** What is being recorded: `{asking, held, away, seconds, levels}`, or null. */
export const recording = signal(null);
/** `asking` for the microphone, `held` or `on`; '' while nothing is recorded. */
export const phase = computed(() => {
  if (!recording.value) return "";
  if (recording.value.asking) return "asking";
  return recording.value.held ? "held" : "on";
});
/** The state of a conversation by voice alone, or null. */
export const handsFree = signal(null);
/** The answer that is read aloud: `{n, playing, stop}`, or null. It is prepared before it plays. */
export const speaking = signal(null);
const FRESH_S = 30; // an answer that ended earlier is not read aloud by itself

export const browserCanRecord = () =>
  typeof MediaRecorder === "function" &&
  RECORDED_TYPES.some((type) => MediaRecorder.isTypeSupported(type));

/** Whether a person can talk here: in this browser, and to this Deskhand. */
export const canRecord = () => hasScope("chat") && canHear() && browserCanRecord();

/** The last answer of a turn, or undefined. */
export const lastAnswer = (turn) =>
  turn.items.findLast((item) => item.kind === "answer" && item.text.trim());

/** Ends what sounds, an answer or a recording; null where nothing does. */
export const sounding = { stop: null };

/** End whatever sounds. */
export function stopSound() {
  sounding.stop?.();
  sounding.stop = null;
}

export function stopSpeaking() {
  speaking.value?.stop();
}

/** Read the answer of this event aloud. Where nobody asked for it, some failures stay unsaid. */
export async function readAnswer(number, unasked = false) {
  stopSound();
  const { name } = route.value;
  const aborter = new AbortController();
  const stop = () => {
    aborter.abort();
    if (speaking.value?.stop === stop) speaking.value = null;
  };
  sounding.stop = stop;
  speaking.value = { n: number, playing: false, stop };
  try {
    const { playAnswer } = await import("./voice/aloud.js");
    await playAnswer(name, number, aborter.signal, () => {
      speaking.value = { n: number, playing: true, stop };
    });
  } catch (error) {
    const unsaid = unasked && (error.status === 404 || error.code === "too_long");
    if (!aborter.signal.aborted && !unsaid) showError(error);
  }
  if (speaking.value?.stop === stop) speaking.value = null;
}

/** Whether this turn answers what was last spoken into this page; true once for each. */
function answersSpoken(turn) {
  const said = turn.items.findLast((item) => item.kind === "user")?.externalId ?? "";
  const id = [...spokenIds].find((one) => said.endsWith(one));
  return spokenIds.delete(id) && readAloud.value !== "never";
}

let before = talk.value;
effect(() => {
  const state = talk.value;
  const ended = before.open && !state.open && before.session === state.session;
  before = state;
  const turn = state.turns.findLast((one) => one.reason === "done");
  if (!turn) return;
  const recent = Date.now() / 1000 - turn.end < FRESH_S;
  const always = ended && !document.hidden && readAloud.value === "always";
  const wanted = answersSpoken(turn) || always;
  if (!recent || !wanted || recording.peek() || handsFree.peek()) return; // while somebody talks it would be recorded
  const answer = lastAnswer(turn);
  if (answer) queueMicrotask(() => readAnswer(answer.n, true));
});

let shown = route.value.name;
effect(() => {
  if (route.value.name === shown) return;
  shown = route.value.name;
  stopSpeaking();
});
