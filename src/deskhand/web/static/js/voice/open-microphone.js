// A microphone that stays open: it tells how loud it is, and records from a moment before it is told
// to, so that the first word is whole.

import { RECORDED_TYPES } from "../voice.js";
import { BITS_PER_SECOND, openMicrophone, stopTracks } from "./recorder.js";

const LATER_S = 0.5; // what is recorded was said this long ago

/** `onLevel({decibels, ms})` is called many times a second. Throws an Error that names the next step. */
export async function listen(onLevel) {
  const stream = await openMicrophone();
  const context = new AudioContext();
  try {
    await context.audioWorklet.addModule("/js/voice/level-worklet.js");
  } catch (error) {
    stopTracks(stream);
    context.close();
    throw error;
  }
  const source = context.createMediaStreamSource(stream);
  const meter = new AudioWorkletNode(context, "level-meter", { numberOfOutputs: 0 });
  const later = new DelayNode(context, { delayTime: LATER_S, maxDelayTime: LATER_S });
  const recorded = context.createMediaStreamDestination();
  recorded.channelCount = 1;
  source.connect(meter);
  source.connect(later).connect(recorded);
  meter.port.onmessage = ({ data }) => onLevel(data);
  context.resume();
  let recording = null;

  return {
    begin() {
      recording ??= record(recorded.stream);
    },
    /** What was recorded since `begin`, as a Blob. */
    async end() {
      const ended = recording;
      recording = null;
      return ended.finish();
    },
    discard() {
      recording?.recorder.stop();
      recording = null;
    },
    mute(yes) {
      for (const track of stream.getTracks()) track.enabled = !yes;
    },
    /** Called once when the microphone is gone, such as when it was unplugged. */
    onEnd(callback) {
      stream.getTracks()[0].onended = callback;
    },
    close() {
      recording?.recorder.stop();
      stopTracks(stream);
      context.close();
    },
  };
}

function record(stream) {
  const mimeType = RECORDED_TYPES.find((type) => MediaRecorder.isTypeSupported(type));
  const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
  const chunks = [];
  recorder.ondataavailable = ({ data }) => chunks.push(data);
  recorder.start();
  return {
    recorder,
    async finish() {
      await new Promise((resolve) => {
        recorder.onstop = resolve;
        recorder.stop();
      });
      return new Blob(chunks, { type: mimeType.split(";")[0] });
    },
  };
}
