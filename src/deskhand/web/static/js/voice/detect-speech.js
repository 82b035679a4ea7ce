// When somebody begins to speak and when they are done, from how loud it is. Pure.
//
// The noise of the room is the quietest moment of the last seconds: people pause within them, and a
// fan does not. What is clearly louder than that is speech.

export const SILENCE_DB = -80; // what is quieter counts as this
const WARM_UP_MS = 300; // nothing is known of the room before
const SLICE_MS = 250; // the window of the noise moves by this
const SLICES = 14;
const SMOOTH_MS = 30;
const BEGIN = { over: 12, least: -50, loudMs: 90 };
/** While the page speaks, what is left of its own voice begins nothing. */
const BEGIN_OVER_VOICE = { over: 18, least: -42, loudMs: 250 };
const KEEP = { over: 7, least: -55 }; // lower than to begin, so that a soft ending is not cut
const QUIET_MS = 1000; // so long a silence ends what is said
const SHORTEST_MS = 250; // of loud sound; a click or a cough is shorter
const LONGEST_MS = 5 * 60_000;

/** Nothing was heard yet. `phase` is `quiet` or `speech`. */
export const UNHEARD = Object.freeze({
  phase: "quiet",
  event: "",
  level: SILENCE_DB,
  noise: SILENCE_DB,
  heardMs: 0,
  slices: [],
  sliceMs: 0,
  loudMs: 0,
  quietMs: 0,
  spokenMs: 0,
});

/**
 * The state after `ms` milliseconds that were this loud, in decibels (0 is the loudest). `event` of
 * what is returned is `begin`, `end`, `discard` (it was too short to be speech) or ''. `overVoice`:
 * the page itself speaks meanwhile.
 */
export function hearLevel(state, decibels, ms, overVoice = false) {
  const next = followNoise(state, decibels, ms);
  if (next.heardMs < WARM_UP_MS) return next;
  return next.phase === "quiet" ? awaitSpeech(next, ms, overVoice) : awaitSilence(next, ms);
}

function followNoise(state, decibels, ms) {
  const heard = Math.min(0, Math.max(SILENCE_DB, Number.isNaN(decibels) ? SILENCE_DB : decibels));
  const share = state.heardMs ? Math.min(1, ms / SMOOTH_MS) : 1;
  const level = state.level + share * (heard - state.level);
  const startsSlice = state.sliceMs >= SLICE_MS || !state.slices.length;
  const slices = startsSlice
    ? [...state.slices.slice(1 - SLICES), level]
    : [...state.slices.slice(0, -1), Math.min(level, state.slices.at(-1))];
  return {
    ...state,
    event: "",
    level,
    noise: Math.min(...slices),
    slices,
    sliceMs: startsSlice ? ms : state.sliceMs + ms,
    heardMs: state.heardMs + ms,
  };
}

const isOver = ({ level, noise }, { over, least }) => level > Math.max(noise + over, least);

function awaitSpeech(state, ms, overVoice) {
  const begin = overVoice ? BEGIN_OVER_VOICE : BEGIN;
  // a short gap within a word takes back a part of it, and not all
  const loudMs = isOver(state, begin) ? state.loudMs + ms : Math.max(0, state.loudMs - ms);
  if (loudMs < begin.loudMs) return { ...state, loudMs };
  return { ...state, phase: "speech", event: "begin", loudMs: 0, quietMs: 0, spokenMs: loudMs };
}

function awaitSilence(state, ms) {
  const loud = isOver(state, KEEP);
  const quietMs = loud ? 0 : state.quietMs + ms;
  const spokenMs = state.spokenMs + (loud ? ms : 0);
  const next = { ...state, quietMs, spokenMs };
  if (quietMs < QUIET_MS && spokenMs < LONGEST_MS) return next;
  return { ...next, phase: "quiet", event: spokenMs < SHORTEST_MS ? "discard" : "end", loudMs: 0 };
}

/** Nobody is taken to speak any more; what is known of the room stays. */
export const forgetSpeech = (state) => ({ ...state, phase: "quiet", event: "", loudMs: 0 });
