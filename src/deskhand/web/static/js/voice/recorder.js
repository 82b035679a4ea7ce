// Records what is said into the microphone.

import { t } from "../language.js";
import { RECORDED_TYPES } from "../voice.js";

export const BITS_PER_SECOND = 32_000;
const CHUNK_MS = 1000;
const PROBLEMS = {
  NotAllowedError: t(
    "The browser does not allow this page to use the microphone. Allow it in the browser's settings for this site, then press the button again.",
  ),
  NotFoundError: t("There is no microphone here. Connect one, then press the button again."),
  NotReadableError: t(
    "The microphone cannot be opened. Close other programs that use it, then press the button again.",
  ),
};
const INSECURE = t(
  "Browsers allow the microphone only on the machine where Deskhand runs, or over https. Open this page there, or set web.tls_cert and web.tls_key.",
);

/** Begin to record. Throws an Error that names the next step. */
export async function openRecording() {
  const stream = await openMicrophone();
  try {
    return record(stream);
  } catch (error) {
    stopTracks(stream);
    throw error;
  }
}

export function stopTracks(stream) {
  for (const track of stream.getTracks()) track.stop();
}

function record(stream) {
  const mimeType = RECORDED_TYPES.find((type) => MediaRecorder.isTypeSupported(type));
  const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
  const chunks = [];
  recorder.ondataavailable = ({ data }) => chunks.push(data);
  recorder.start(CHUNK_MS);
  const meter = openMeter(stream);
  const close = () => {
    meter.close();
    stopTracks(stream);
  };
  return {
    readLevel: meter.read,
    /** Whether it ended by itself, such as when the microphone was unplugged. */
    isOver: () => recorder.state === "inactive",
    async finish() {
      if (recorder.state !== "inactive")
        await new Promise((resolve) => {
          recorder.onstop = resolve;
          recorder.stop();
        });
      close();
      return new Blob(chunks, { type: mimeType.split(";")[0] });
    },
    discard() {
      if (recorder.state !== "inactive") recorder.stop();
      close();
    },
  };
}

/** The microphone as a stream. Throws an Error that names the next step. */
export async function openMicrophone() {
  if (!navigator.mediaDevices?.getUserMedia) throw new Error(INSECURE);
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: true, noiseSuppression: true, channelCount: 1 },
    });
  } catch (error) {
    throw new Error(
      PROBLEMS[error.name] ??
        t("The microphone cannot be opened: {message}", { message: error.message }),
    );
  }
}

/** How loud it is, from 0 to 1. */
function openMeter(stream) {
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  return {
    read() {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      return Math.min(1, Math.sqrt(power) * 4);
    },
    close: () => context.close(),
  };
}
