// Runs beside the sound: tells the page how loud the microphone is, every 20 ms. A timer of the page
// would sleep while another tab is looked at.

const EACH_S = 0.02;

class LevelMeter extends AudioWorkletProcessor {
  power = 0;
  count = 0;

  process([[samples]]) {
    if (!samples) return true;
    for (const sample of samples) this.power += sample * sample;
    this.count += samples.length;
    if (this.count >= EACH_S * sampleRate) {
      this.port.postMessage({
        decibels: 10 * Math.log10(this.power / this.count),
        ms: (1000 * this.count) / sampleRate,
      });
      this.power = 0;
      this.count = 0;
    }
    return true;
  }
}

registerProcessor("level-meter", LevelMeter);
