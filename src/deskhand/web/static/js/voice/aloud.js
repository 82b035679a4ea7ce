// Plays an answer as it is read aloud by Deskhand.

import { fetchBlob, sessionPath } from "../api.js";
import { t } from "../language.js";

const KEPT = 6; // answers whose sound is kept, to be heard again
const kept = new Map();
let player = null;

/** Resolves when it is over, or was aborted. Throws ApiError, and Error where it cannot be played. */
export async function playAnswer(name, number, signal, onPlay) {
  const sound = await loadAnswer(name, number, signal);
  if (!signal.aborted) await playSound(sound, signal, onPlay);
}

/** Play this sound file. Resolves when it is over, or was aborted. */
export async function playSound(sound, signal, onPlay) {
  player ??= new Audio(); // one for all: a browser that let it play once lets it play again
  const address = URL.createObjectURL(sound);
  player.src = address;
  try {
    const over = new Promise((resolve) => {
      player.onended = resolve;
      player.onpause = resolve;
      signal.addEventListener("abort", resolve, { once: true });
    });
    await player.play();
    if (signal.aborted) return;
    onPlay();
    await over;
  } catch (error) {
    if (!signal.aborted) throw new Error(explainSilence(error));
  } finally {
    if (player.src === address) player.pause(); // else another answer plays by now
    URL.revokeObjectURL(address);
  }
}

async function loadAnswer(name, number, signal) {
  const path = sessionPath(name, `/messages/${number}/speech`);
  if (!kept.has(path)) {
    kept.set(path, await fetchBlob(path, signal));
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  }
  return kept.get(path);
}

function explainSilence(error) {
  return error.name === "NotAllowedError"
    ? t("The browser does not play sound by itself here. Press the speaker below the answer.")
    : t("This browser cannot play the answer. Try another browser, or update this one.");
}
