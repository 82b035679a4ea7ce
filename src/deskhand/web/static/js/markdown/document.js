// A text of Markdown that may still grow, as the HTML of its pieces. What it gives depends on the text alone, never on how
// it came: what was drawn before is kept where nothing that it depends on has changed.

import { draw, drawNotes } from "./draw.js";
import { cut } from "./pieces.js";
import { label, readBlocks, readInline } from "./syntax.js";

const FREE = 2_000_000; // characters that a growing text may cost, however short it is
const TIMES = 12; // and how often each of its characters may be read
const LABEL = /\[((?:\\[\s\S]|[^[\]\\]){1,999})\]/g;
const NOTHING = { text: "", cuts: undefined, pieces: [], read: 0 };

/**
 * What is shown of `text`: `{blocks: [{html, rest, done}], notes, read}`. `html` is Markdown; `rest` is text that is shown
 * as it is written; what is `done` does not grow any more. `before` is what this gave for a beginning of the text.
 * While the text is `live`, what would cost too much is put off: `read` counts the characters that were read so far.
 */
export function readDocument(text, before = null, live = false) {
  const whole = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  const last = before && whole.startsWith(before.text) ? before : NOTHING;
  const { ends, settled, state } = cut(whole, last.cuts);
  const budget = { read: last.read, most: live ? FREE + TIMES * whole.length : Infinity };
  const pieces = ends.map((end, at) =>
    take(whole, at ? ends[at - 1] : 0, end, last.pieces[at], budget),
  );
  const defined = versioned(define(pieces), last.defined);
  for (const piece of pieces) finish(piece, defined, budget);
  const known = versioned(refer(pieces, defined), last.known);
  for (const piece of pieces) render(piece, known);
  return {
    text: whole,
    cuts: state,
    pieces,
    defined,
    known,
    read: budget.read,
    blocks: pieces.map(({ html, rest }, at) => ({ html, rest, done: !live || at < settled })),
    notes: drawNotes(
      [...known.numbers].map(([of, number]) => [number, known.notes.get(of).html ?? ""]),
    ),
  };
}

/** What stays the same keeps its version, so that nobody has to compare it again. */
function versioned(made, last) {
  return Object.assign(made, { version: made.signature === last?.signature ? last.version : {} });
}

// ------------------------------------------------------------------ pieces

/** The piece from `start` to `end`: what there was before, or read anew, or put off. */
function take(whole, start, end, old, budget) {
  const goesOn = old?.start === start,
    affordable = budget.read + end - start <= budget.most;
  if (goesOn && old.end === end && !(old.waits && affordable)) return old;
  const raw = whole.slice(start, end);
  if (!affordable) {
    const drawn = goesOn
      ? old
      : { reader: null, labels: [], links: {}, notes: [], html: "", shown: 0 };
    return { ...drawn, start, end, waits: true, rest: raw.slice(drawn.shown) };
  }
  budget.read += raw.length;
  const reader = readBlocks(raw);
  return {
    start,
    end,
    reader,
    labels:
      reader && raw.includes("[")
        ? [...new Set(Array.from(raw.matchAll(LABEL), (found) => label(found[1])))]
        : [],
    links: reader?.tokens.links ?? {},
    notes: reader ? [...notesIn(reader.tokens)] : [],
    html: "",
    rest: reader ? "" : raw,
    shown: reader ? raw.length : 0,
  };
}

/** Read the text within a piece, with what is defined anywhere; again where that has changed. */
function finish(piece, defined, budget) {
  if (!piece.reader || piece.defined === defined.version) return;
  const links = Object.create(null),
    used = new Set();
  const key = piece.labels.map((of) => defined.keys.get(of) ?? "").join("\n");
  if (piece.linkKey !== undefined && piece.linkKey !== key) {
    if (budget.read + piece.shown > budget.most) return;
    budget.read += piece.shown;
  }
  piece.defined = defined.version;
  if (piece.linkKey === key) return;
  for (const of of piece.labels) {
    const link = defined.links.get(of);
    if (link)
      links[of] = {
        get href() {
          used.add(of);
          return link.href;
        },
        title: link.title,
      }; // what is taken is used
  }
  try {
    readInline(piece.reader, links, (of) => defined.notes.has(of));
  } catch {
    asItIs(piece);
  }
  Object.assign(piece, {
    linkKey: key,
    used,
    drawnKey: undefined,
    references: [...referencesIn(piece.reader?.tokens ?? [])],
  });
  for (const note of piece.notes) note.references = [...referencesIn(note.tokens)];
}

/** The HTML of a piece; anew where a number, or what is referred to, has changed. */
function render(piece, known) {
  if (!piece.reader || (piece.known === known.version && piece.drawnKey !== undefined)) return;
  piece.known = known.version;
  const marks = piece.labels.map(
    (of) => `${known.numbers.get(of) ?? ""}${known.used.has(of) ? "u" : ""}`,
  );
  const key = [...marks, ...piece.notes.map((note) => known.notes.get(note.label) === note)].join(
    "\n",
  );
  if (key === piece.drawnKey) return;
  try {
    piece.html = draw(piece.reader.tokens, known);
    for (const note of piece.notes) note.html = draw(note.tokens, known);
    piece.drawnKey = key;
  } catch {
    asItIs(piece);
  }
}

function asItIs(piece) {
  Object.assign(piece, { rest: piece.reader.raw, reader: null, labels: [], html: "", shown: 0 });
}

// ------------------------------------------------------------------ what pieces say about each other

/** The definitions of all pieces; the first of each label holds. */
function define(pieces) {
  const links = new Map(),
    notes = new Map(),
    keys = new Map();
  for (const piece of pieces) {
    for (const [of, link] of Object.entries(piece.links)) {
      if (links.has(of)) continue;
      links.set(of, link);
      keys.set(of, `${of}\t${link.href}\t${link.title ?? ""}`);
    }
    for (const note of piece.notes) {
      if (notes.has(note.label)) continue;
      notes.set(note.label, note);
      keys.set(note.label, note.label);
    }
  }
  return { links, notes, keys, signature: [...keys.values()].join("\n") };
}

/** Which links are referred to, and the numbers of the footnotes: in the order in which they are first referred to. */
function refer(pieces, { notes }) {
  const used = new Set(),
    numbers = new Map(),
    waiting = [];
  const number = (of) => {
    if (numbers.has(of) || !notes.has(of)) return;
    numbers.set(of, numbers.size + 1);
    waiting.push(...(notes.get(of).references ?? []));
  };
  for (const piece of pieces) {
    for (const of of piece.used ?? []) used.add(of);
    for (const of of piece.references ?? []) number(of);
  }
  while (waiting.length) number(waiting.shift());
  return {
    used,
    numbers,
    notes,
    signature: `${[...numbers.keys()].join("\n")}\n\n${[...used].join("\n")}`,
  };
}

/** The tokens within a token. */
function within(token) {
  if (token.type === "table") return [...token.header, ...token.rows.flat()];
  return token.items ?? token.tokens ?? [];
}

function* notesIn(tokens) {
  for (const token of tokens) {
    if (token.type === "note") yield token;
    yield* notesIn(within(token));
  }
}

/** The labels of the footnotes that these tokens refer to, but for what stands in footnotes. */
function* referencesIn(tokens) {
  for (const token of tokens) {
    if (token.type === "reference") yield token.label;
    else if (token.type !== "note") yield* referencesIn(within(token));
  }
}
