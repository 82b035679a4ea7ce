// Reads the pieces of an answer aloud one after the other. The next one is made while one plays.

import { playSound } from "./aloud.js";

/**
 * `load(text, signal)` gives the sound of a piece, or null where there are no words to say.
 * `onChange({busy, playing})` is called when that changes, `onProblem(error)` when a piece cannot
 * be read; then what is left is not read either.
 */
export function openReader({ load, onChange, onProblem }) {
  let queue = []; // {text, aborter, sound, ready}: the first one plays
  let current = new AbortController();
  let held = false;
  let running = false;
  let playing = false;

  const tell = () => onChange({ busy: queue.length > 0, playing });
  const setPlaying = (value) => {
    playing = value;
    tell();
  };

  function prepare(piece) {
    piece.aborter = new AbortController();
    piece.sound = load(piece.text, piece.aborter.signal);
    piece.sound.then(
      () => {
        piece.ready = true;
        prepareNext();
      },
      () => undefined, // it is said when it is the turn of this piece
    );
  }

  /** One at a time: Deskhand makes no two sounds at once for a person. */
  function prepareNext() {
    const at = queue.findIndex((piece) => !piece.ready);
    if ((at === 0 || at === 1) && !queue[at].sound) prepare(queue[at]);
  }

  async function playFirst(signal) {
    const [piece] = queue;
    try {
      const sound = await piece.sound;
      if (sound && !signal.aborted) await playSound(sound, signal, () => setPlaying(true));
    } catch (error) {
      if (signal.aborted || queue[0] !== piece) return;
      clear();
      onProblem(error);
    }
    if (!signal.aborted && queue[0] === piece) queue.shift();
  }

  async function run() {
    if (running) return;
    running = true;
    while (queue.length && !held) {
      current = new AbortController();
      prepareNext();
      await playFirst(current.signal);
      setPlaying(false);
    }
    running = false;
  }

  function clear() {
    for (const { aborter } of queue) aborter?.abort();
    queue = [];
  }

  return {
    add(texts) {
      if (!texts.length) return;
      queue.push(...texts.map((text) => ({ text, aborter: null, sound: null, ready: false })));
      prepareNext();
      tell();
      run();
    },
    /** Be silent at once, and keep what is left. */
    hold() {
      held = true;
      current.abort();
    },
    /** Go on, with the piece that was interrupted. */
    resume() {
      held = false;
      run();
    },
    /** Be silent at once, and read nothing of what is left. */
    drop() {
      clear();
      held = false;
      current.abort();
      tell();
    },
  };
}
