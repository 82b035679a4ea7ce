// The HTML of a Markdown text that may still grow, piece by piece. The result depends on the text
// alone, not on how it arrived: a piece is kept where nothing that it depends on has changed.

import { drawNotes, drawTokens, findSource } from "./draw.js";
import { cutPieces } from "./pieces.js";
import { normalizeLabel, readBlocks, readInline } from "./syntax.js";

const FREE_CHARS = 2_000_000; // characters that may be read of a growing text, however short it is
const READS_PER_CHAR = 12; // and how often each of its characters may be read besides
const LABEL = /\[((?:\\[\s\S]|[^[\]\\]){1,999})\]/g;
const NOTHING = { text: "", cuts: undefined, pieces: [], read: 0 };

/**
 * What is shown of `text`: `{blocks: [{html, rest, done}], notes, read}`. `html` is drawn Markdown;
 * `rest` is text that is shown as it is written; a `done` block does not grow any more. `before` is
 * the result for a beginning of the text. While the text is `live`, what would cost too much is
 * postponed: `read` counts the characters that were read so far.
 */
export function readDocument(text, before = null, live = false) {
  const whole = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  const last = before && whole.startsWith(before.text) ? before : NOTHING;
  const { ends, settled, state } = cutPieces(whole, last.cuts);
  const most = live ? FREE_CHARS + READS_PER_CHAR * whole.length : Infinity;
  const budget = { read: last.read, most };
  const pieces = ends.map((end, index) =>
    readPiece(whole, index ? ends[index - 1] : 0, end, last.pieces[index], budget),
  );
  const defined = keepVersion(collectDefinitions(pieces), last.defined);
  for (const piece of pieces) readPieceInline(piece, defined, budget);
  const known = keepVersion(collectReferences(pieces, defined), last.known);
  for (const piece of pieces) drawPiece(piece, known);
  return {
    text: whole,
    cuts: state,
    pieces,
    defined,
    known,
    read: budget.read,
    blocks: pieces.map(({ html, rest }, index) => ({ html, rest, done: !live || index < settled })),
    notes: drawNotes(
      [...known.numbers].map(([label, number]) => [number, known.notes.get(label).html ?? ""]),
    ),
  };
}

/** What stays the same keeps its version, so that it need not be compared again. */
function keepVersion(made, last) {
  return Object.assign(made, { version: made.signature === last?.signature ? last.version : {} });
}

// ------------------------------------------------------------------ pieces

/** The piece from `start` to `end`: the old one, or read again, or postponed. */
function readPiece(whole, start, end, old, budget) {
  const goesOn = old?.start === start;
  const affordable = budget.read + end - start <= budget.most;
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
    labels: reader ? findLabels(raw) : [],
    links: reader?.tokens.links ?? {},
    notes: reader ? [...findNotes(reader.tokens)] : [],
    html: "",
    rest: reader ? "" : raw,
    shown: reader ? raw.length : 0,
  };
}

function findLabels(raw) {
  if (!raw.includes("[")) return [];
  return [...new Set(Array.from(raw.matchAll(LABEL), (found) => normalizeLabel(found[1])))];
}

/** Read the text within a piece, with all definitions; again where these have changed. */
function readPieceInline(piece, defined, budget) {
  if (!piece.reader || piece.defined === defined.version) return;
  const links = Object.create(null);
  const used = new Set();
  const key = piece.labels.map((label) => defined.keys.get(label) ?? "").join("\n");
  if (piece.linkKey !== undefined && piece.linkKey !== key) {
    if (budget.read + piece.shown > budget.most) return;
    budget.read += piece.shown;
  }
  piece.defined = defined.version;
  if (piece.linkKey === key) return;
  for (const label of piece.labels) {
    const link = defined.links.get(label);
    if (!link) continue;
    links[label] = {
      get href() {
        used.add(label); // a link whose address is read is used
        return link.href;
      },
      title: link.title,
    };
  }
  try {
    readInline(piece.reader, links, (label) => defined.notes.has(label));
  } catch {
    showAsText(piece);
  }
  Object.assign(piece, {
    linkKey: key,
    used,
    drawnKey: undefined,
    references: [...findReferences(piece.reader?.tokens ?? [])],
  });
  for (const note of piece.notes) note.references = [...findReferences(note.tokens)];
}

/** The HTML of a piece; again where a number, or what is referred to, has changed. */
function drawPiece(piece, known) {
  if (!piece.reader || (piece.known === known.version && piece.drawnKey !== undefined)) return;
  piece.known = known.version;
  const marks = piece.labels.map(
    (label) =>
      `${known.numbers.get(label) ?? ""}${known.used.has(label) ? "u" : ""}` +
      describeSource(known.sources.get(label)),
  );
  const current = piece.notes.map((note) => known.notes.get(note.label) === note);
  const key = [...marks, ...current].join("\n");
  if (key === piece.drawnKey) return;
  try {
    piece.html = drawTokens(piece.reader.tokens, known);
    for (const note of piece.notes) note.html = drawTokens(note.tokens, known);
    piece.drawnKey = key;
  } catch {
    showAsText(piece);
  }
}

function showAsText(piece) {
  Object.assign(piece, { rest: piece.reader.raw, reader: null, labels: [], html: "", shown: 0 });
}

// ------------------------------------------------------------------ references between pieces

/** The definitions of all pieces; the first of each label holds. */
function collectDefinitions(pieces) {
  const links = new Map();
  const notes = new Map();
  const keys = new Map();
  for (const piece of pieces) {
    for (const [label, link] of Object.entries(piece.links)) {
      if (links.has(label)) continue;
      links.set(label, link);
      keys.set(label, `${label}\t${link.href}\t${link.title ?? ""}`);
    }
    for (const note of piece.notes) {
      if (notes.has(note.label)) continue;
      notes.set(note.label, note);
      keys.set(note.label, note.label);
    }
  }
  return { links, notes, keys, signature: [...keys.values()].join("\n") };
}

/** The links that are referred to, and the footnotes' numbers, in the order of first reference. */
function collectReferences(pieces, { notes }) {
  const used = new Set();
  const numbers = new Map();
  const waiting = [];
  const numberNote = (label) => {
    if (numbers.has(label) || !notes.has(label)) return;
    numbers.set(label, numbers.size + 1);
    waiting.push(...(notes.get(label).references ?? []));
  };
  for (const piece of pieces) {
    for (const label of piece.used ?? []) used.add(label);
    for (const label of piece.references ?? []) numberNote(label);
  }
  while (waiting.length) numberNote(waiting.shift());
  const sources = new Map();
  for (const label of numbers.keys()) {
    const source = findSource(notes.get(label));
    if (source) sources.set(label, source);
  }
  const marks = [...numbers.keys()].map((label) => label + describeSource(sources.get(label)));
  return {
    used,
    numbers,
    notes,
    sources,
    signature: `${marks.join("\n")}\n\n${[...used].join("\n")}`,
  };
}

const describeSource = (source) => (source ? ` ${source.url?.href ?? source.path}` : "");

/** The tokens within a token. */
function childTokens(token) {
  if (token.type === "table") return [...token.header, ...token.rows.flat()];
  return token.items ?? token.tokens ?? [];
}

function* findNotes(tokens) {
  for (const token of tokens) {
    if (token.type === "note") yield token;
    yield* findNotes(childTokens(token));
  }
}

/** The labels of the footnotes that these tokens refer to, but for what stands in footnotes. */
function* findReferences(tokens) {
  for (const token of tokens) {
    if (token.type === "reference") yield token.label;
    else if (token.type !== "note") yield* findReferences(childTokens(token));
  }
}
