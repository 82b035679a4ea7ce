// A small player for a recording that somebody has sent.

import { fetchBlob } from "../api.js";
import { formatClock } from "../format.js";
import { IconButton } from "../icons.js";
import { t } from "../language.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { sentFile } from "../preview.js";
import { attempt } from "../state.js";
import { sounding, stopSound } from "../voice.js";

export function Player({ part }) {
  const sound = useRef(null);
  const loading = useRef(null);
  const isShown = useRef(true);
  const [state, setState] = useState({ on: false, at: 0, length: 0, gone: false });
  const change = (more) => setState((before) => ({ ...before, ...more }));
  const file = sentFile(part);
  useEffect(
    () => () => {
      isShown.current = false;
      closeSound(sound.current);
    },
    [],
  );
  if (!file) return null;

  const load = async () => {
    const blob = await attempt(() => fetchBlob(file.raw));
    if (!blob || !isShown.current) return null;
    // The server goes by the name of a file; the message knows the type of its recording.
    const made = new Audio(URL.createObjectURL(new Blob([blob], { type: part.mime })));
    sound.current = made;
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
    stopSound();
    if (state.on) return;
    let stopped = false; // by something else that sounds, while this is loaded
    sounding.stop = () => {
      stopped = true;
      sound.current?.pause();
    };
    loading.current ??= load();
    const opened = await loading.current;
    if (!opened) loading.current = null; // it may be tried again
    if (!opened || stopped) return;
    await opened.play().catch((error) => {
      if (error.name !== "AbortError") change({ gone: true }); // else it was paused meanwhile
    });
  };

  const length = state.length || part.heard?.seconds || 0;
  if (state.gone)
    return html`
      <p class="small muted">
        ${t("This browser cannot play the recording.")}${" "}
        <a href=${file.raw} download=${file.name}>${t("Download it")}</a>
      </p>
    `;
  return html`
    <div class="player" role="group" aria-label=${t("Voice message")}>
      <${IconButton}
        name=${state.on ? "pause" : "play"}
        label=${state.on ? t("Pause the recording") : t("Play the recording")}
        onClick=${toggle}
      />
      <input
        type="range"
        min="0"
        max=${length || 1}
        step="0.1"
        value=${state.at}
        disabled=${!sound.current || !length}
        aria-label=${t("Position in the recording")}
        aria-valuetext=${t("{position} of {duration}", {
          position: formatClock(state.at),
          duration: formatClock(length),
        })}
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
}
