// The button that is held to talk, and what is shown while somebody talks.

import { formatClock } from "../format.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { html, useEffect } from "../lib.js";
import { announce, attempt, problem, showError } from "../state.js";
import { phase, recording, stopSound } from "../voice.js";
import { openRecording } from "./recorder.js";

const LONGEST_S = 600;
const SHORTEST_S = 0.5;
const TAP_MS = 350; // a shorter press turns it on, and the next one off
const AWAY_PX = 90; // so far the finger slides to discard it
const TICK_MS = 100;
const BARS = 32;
const LABEL = t("Hold to talk");
const TOO_SHORT = t(
  "That was too short. Hold the button while you speak, or press it once to begin and once more to send.",
);

let current = null; // {began, deliver, opened, timer}: what is recorded
let press = null; // {at, x, y, ends}: the button is down

function update(change) {
  if (recording.value) recording.value = { ...recording.value, ...change };
}

async function begin(deliver, slides) {
  stopSound();
  problem.value = null;
  const mine = { deliver, began: 0, opened: null, timer: 0 };
  current = mine;
  recording.value = { asking: true, held: true, away: false, slides, seconds: 0, levels: [] };
  try {
    mine.opened = await openRecording();
  } catch (error) {
    if (current === mine) discard();
    showError(error);
    return;
  }
  if (current !== mine) {
    mine.opened.discard();
    return;
  }
  mine.began = performance.now();
  mine.timer = setInterval(tick, TICK_MS);
  update({ asking: false });
  announce(t("Recording"));
}

function tick() {
  const seconds = (performance.now() - current.began) / 1000;
  const levels = [...recording.value.levels, current.opened.readLevel()].slice(-BARS);
  update({ seconds, levels });
  if (seconds >= LONGEST_S || current.opened.isOver()) {
    finish(false);
    showError(new Error(t("The recording has ended. Send it, then record the rest.")));
  }
}

function end() {
  clearInterval(current.timer);
  current = null;
  press = null;
  recording.value = null;
}

/** Throw away what was recorded. */
export function discard() {
  if (!current) return;
  const { opened } = current;
  opened?.discard();
  end();
  if (opened) announce(t("The recording is discarded"));
}

/** Hand over what was recorded, to be sent at once or with the next message. */
export async function finish(send = true) {
  const { opened, deliver, began } = current ?? {};
  if (!opened) return;
  const seconds = (performance.now() - began) / 1000;
  end();
  const sound = await opened.finish();
  if (seconds < SHORTEST_S || !sound.size) showError(new Error(TOO_SHORT));
  else deliver(sound, send);
}

/** `place` is where a finger or a mouse is; a key has none, and cannot slide away. */
function pressDown(deliver, place = null) {
  const { clientX: x, clientY: y } = place ?? {};
  press = { at: performance.now(), x, y, ends: Boolean(current) };
  if (!current) begin(deliver, Boolean(place));
}

function letGo() {
  if (!press || !current) return;
  const { at, ends } = press;
  press = null;
  if (ends) finish();
  else if (recording.value.away) discard();
  else if (current.opened && performance.now() - at >= TAP_MS) finish();
  else update({ held: false });
}

function slide(event) {
  if (!press || press.ends || !recording.value) return;
  const away = Math.hypot(event.clientX - press.x, event.clientY - press.y) > AWAY_PX;
  if (away !== recording.value.away) update({ away });
}

/** What took the button away, such as another window, ends neither the recording nor the turn. */
function loseHold() {
  press = null;
  update({ held: false, away: false });
}

function discardOnEscape(event) {
  if (event.key !== "Escape" || !current) return;
  event.preventDefault();
  event.stopPropagation();
  discard();
}

/** `deliver(blob, send)` is called with each recording. */
export const TalkButton = ({ deliver }) => html`
  <${RecordButton} deliver=${deliver} />
  ${!phase.value && html`<${HandsFreeButton} />`}
`;

function HandsFreeButton() {
  const open = () =>
    attempt(async () => {
      const { openHandsFree } = await import("./hands-free-layer.js");
      await openHandsFree();
    });
  return html`
    <button
      type="button"
      class="ib hands-free-button"
      aria-label=${t("Talk hands-free")}
      title=${t("Talk hands-free: it listens by itself and answers aloud")}
      onClick=${open}
    >
      <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
        <path d="M4 10v4M8 7v10M12 4v16M16 7.500v9M20 10v4" />
      </svg>
    </button>
  `;
}

function RecordButton({ deliver }) {
  useEffect(() => {
    addEventListener("keydown", discardOnEscape, true);
    return () => {
      removeEventListener("keydown", discardOnEscape, true);
      discard();
    };
  }, []);
  const isKey = (event) => event.key === " " || event.key === "Enter";
  return html`
    <button
      type="button"
      class=${`ib talk-button ${phase.value ? "on" : ""}`}
      aria-label=${phase.value ? t("Send the recording") : LABEL}
      title=${t("Hold to talk, or press once to begin and once to send")}
      onPointerDown=${(event) => {
        if (event.button) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        pressDown(deliver, event);
      }}
      onPointerMove=${slide}
      onPointerUp=${letGo}
      onPointerCancel=${loseHold}
      onContextMenu=${(event) => event.preventDefault()}
      onKeyDown=${(event) => {
        if (!isKey(event)) return;
        event.preventDefault();
        if (!event.repeat) pressDown(deliver);
      }}
      onKeyUp=${(event) => {
        if (!isKey(event)) return;
        event.preventDefault();
        letGo();
      }}
      onBlur=${() => press && loseHold()}
      onClick=${(event) => {
        // Screen readers click without a pointer and without a key.
        if (event.detail || press) return;
        pressDown(deliver);
        letGo();
      }}
    >
      <${Icon} name="mic" />
    </button>
  `;
}

function describe({ asking, held, away, slides, seconds }) {
  if (asking) return t("Waiting for the microphone");
  if (away) return t("Release to discard");
  if (LONGEST_S - seconds < 60) return t("{time} left", { time: formatClock(LONGEST_S - seconds) });
  if (!held) return t("Press Send when you are done");
  return slides
    ? t("Release to send. Slide away to discard.")
    : t("Release to send. Esc discards.");
}

export function RecordingBar() {
  if (!recording.value) return null;
  const { seconds, levels, away } = recording.value;
  const bars = levels.map((level, i) => {
    const half = 1 + Math.round(level * 9);
    return `M${(BARS - levels.length + i) * 4 + 2} ${12 - half}v${2 * half}`;
  });
  return html`
    <div class=${`recording-bar ${away ? "away" : ""}`}>
      <span class="dot" aria-hidden="true"></span>
      <span class="clock" role="timer" aria-label=${t("Recorded")}>${formatClock(seconds)}</span>
      <svg
        class="meter"
        viewBox="0 0 128 24"
        preserveAspectRatio="xMaxYMid slice"
        aria-hidden="true"
      >
        <path d=${bars.join("")} />
      </svg>
      <span class="small muted">${describe(recording.value)}</span>
    </div>
  `;
}
