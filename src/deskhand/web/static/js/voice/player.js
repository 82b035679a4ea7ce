// A small player for a recording that somebody has sent.

import { fetchBytes } from "../api.js";
import { formatClock } from "../format.js";
import { IconButton } from "../icons.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { sentFile } from "../preview.js";
import { attempt } from "../state.js";
import { stopSpeaking } from "../voice.js";

let playing = null; // one plays at a time

export function Player({ part }) {
  const sound = useRef(null);
  const [state, setState] = useState({ on: false, at: 0, length: 0, gone: false });
  const change = (more) => setState((before) => ({ ...before, ...more }));
  const file = sentFile(part);
  useEffect(() => () => closeSound(sound.current), []);
  if (!file) return null;

  const load = async () => {
    const bytes = await attempt(() => fetchBytes(file.raw));
    if (!bytes) return null;
    const made = new Audio(URL.createObjectURL(new Blob([bytes], { type: part.mime })));
    made.onplay = () => change({ on: true });
    made.onpause = () => change({ on: false });
    made.ontimeupdate = () => change({ at: made.currentTime });
    made.ondurationchange = () =>
      Number.isFinite(made.duration) && change({ length: made.duration });
    made.onended = () => change({ on: false, at: 0 });
    made.onerror = () => change({ gone: true });
    return made;
  };
  const toggle = async () => {
    stopSpeaking();
    if (state.on) {
      sound.current.pause();
      return;
    }
    sound.current ??= await load();
    if (playing !== sound.current) playing?.pause();
    playing = sound.current;
    await playing?.play().catch(() => change({ gone: true }));
  };

  const length = state.length || part.heard?.seconds || 0;
  if (state.gone)
    return html`
      <p class="small muted">
        This browser cannot play the recording. ${" "}
        <a href=${file.raw} download=${file.name}>Download it</a>
      </p>
    `;
  return html`
    <div class="player" role="group" aria-label="Voice message">
      <${IconButton}
        name=${state.on ? "pause" : "play"}
        label=${state.on ? "Pause the recording" : "Play the recording"}
        onClick=${toggle}
      />
      <input
        type="range"
        min="0"
        max=${length || 1}
        step="0.1"
        value=${state.at}
        disabled=${!sound.current || !length}
        aria-label="Place in the recording"
        aria-valuetext=${`${formatClock(state.at)} of ${formatClock(length)}`}
        onInput=${(event) => {
          sound.current.currentTime = Number(event.target.value);
        }}
      />
      <span class="clock">${length ? formatClock(state.on || state.at ? state.at : length) : ""}</span>
    </div>
  `;
}

function closeSound(sound) {
  if (!sound) return;
  sound.pause();
  URL.revokeObjectURL(sound.src);
  if (playing === sound) playing = null;
}
