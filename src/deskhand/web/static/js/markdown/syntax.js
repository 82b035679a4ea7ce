// Markdown as we read it: GFM, footnotes and formulas. What is too long or too deep to parse stays
// plain text.
import { getDefaults, Lexer, Tokenizer } from "../../vendor/marked.js";

const MAX_DEPTH = 24; // quotes and lists in each other
const MAX_INLINE_DEPTH = 40;
const MAX_PIECE_CHARS = 400_000;
const MAX_INLINE_CHARS = 20_000;
/** Characters times marks: the parser looks for the counterpart of each mark. */
const MAX_INLINE_COST = 4_000_000;
const CODE = /^ {0,3}(?:```|~~~)/;
const LONG_LINE = /[^\n]{20000}/;
const MARKS = /[[\]()*_~`<&$\\@:]/g;

// ------------------------------------------------------------------ footnotes

const REFERENCE = /^\[\^([^\]\s[]{1,80})\]/;
const NOTE = /^ {0,3}\[\^([^\]\s[]{1,80})\]:[ \t]*/;
const NEXT_BLOCK =
  /^ {0,3}(?:#{1,6}(?:\s|$)|>|[-*+][ \t]|\d{1,9}[.)][ \t]|```|~~~|\[\^[^\]\s[]+\]:)/;
const INDENTED = /^(?: {4}|\t)/;

/** As definitions of links are compared. */
export const normalizeLabel = (words) =>
  words.trim().replace(/\s+/g, " ").toLowerCase().toUpperCase().toLowerCase();

/** `[^1]: …`, with the lines that belong to it. */
const note = {
  name: "note",
  level: "block",
  start(rest) {
    const end = rest.search(/\n[ \t]*(?:\n|$)/);
    const offset = (end < 0 ? rest : rest.slice(0, end)).search(/\n {0,3}\[\^[^\]\s[]+\]:/);
    return offset < 0 ? undefined : offset + 1;
  },
  tokenizer(rest) {
    const head = NOTE.exec(rest);
    if (!head) return undefined;
    const end = findNoteEnd(rest, head[0].length);
    const [first, ...others] = rest.slice(head[0].length, end).split("\n");
    const text = [first, ...others.map((line) => line.replace(INDENTED, ""))].join("\n");
    return {
      type: "note",
      raw: rest.slice(0, end),
      label: normalizeLabel(`^${head[1]}`),
      tokens: this.lexer.blockTokens(text, []),
    };
  },
};

/** The end of the note that begins before `from`: indented lines and its paragraph belong to it. */
function findNoteEnd(rest, from) {
  let end = findLineEnd(rest, from);
  let blank = false;
  for (let next = end; next < rest.length; ) {
    const stop = findLineEnd(rest, next);
    const line = rest.slice(next, stop);
    next = stop;
    if (!line.trim()) {
      blank = true;
    } else {
      if (!INDENTED.test(line) && (blank || NEXT_BLOCK.test(line))) break;
      blank = false;
      end = stop;
    }
  }
  return end;
}

function findLineEnd(text, from) {
  const found = text.indexOf("\n", from);
  return found < 0 ? text.length : found + 1;
}

const reference = {
  name: "reference",
  level: "inline",
  start: (rest) => omitNegative(rest.indexOf("[^")),
  tokenizer(rest) {
    const found = REFERENCE.exec(rest);
    const known = found && this.lexer.noted?.(normalizeLabel(`^${found[1]}`));
    return known
      ? { type: "reference", raw: found[0], label: normalizeLabel(`^${found[1]}`) }
      : undefined;
  },
};

const omitNegative = (index) => (index < 0 ? undefined : index);

// ------------------------------------------------------------------ formulas

const DISPLAYED = /\$\$(?!\$)((?:\\[\s\S]|[^$\\]){1,5000}?)\$\$(?!\$)/;
const INLINE = /\$(?![\s$])((?:\\[^\n]|[^$\\`\n]){1,1000}?)\$(?![\w$])/;
const ROUND = /\\\(([\s\S]{1,1000}?)\\\)/;
const SQUARE = /\\\[([\s\S]{1,2000}?)\\\]/;
const FORMULA = new RegExp(
  `^(?:${[DISPLAYED, INLINE, ROUND, SQUARE].map((one) => one.source).join("|")})`,
);

const DOLLAR_BLOCK = /\$\$(?!\$)((?:\\[^\n]|\n(?![ \t]*\n)|[^$\\\n]){1,20000}?)\$\$/;
const SQUARE_BLOCK = /\\\[((?:\n(?![ \t]*\n)|[^\n]){1,20000}?)\\\]/;
const BLOCK = new RegExp(
  `^ {0,3}(?:${DOLLAR_BLOCK.source}|${SQUARE_BLOCK.source})[ \\t]*(?:\\n+|$)`,
);
const OPEN_BLOCK = /^ {0,3}(?:\$\$|\\\[)[ \t]*\n(?:[^\n]*\S[^\n]*(?:\n|$))*/;

const CLOSES = { "(": "\\)", "[": "\\]" };

/** The formula at the start of `rest`: `{raw, tex, display}`; null for money or bracketed words. */
function matchFormula(rest) {
  const close = CLOSES[rest[1]];
  if (rest[0] === "\\" && !(close && rest.includes(close))) return null;
  const found = FORMULA.exec(rest);
  if (!found) return null;
  const [raw, displayed, inline, round, square] = found;
  const tex = displayed ?? inline ?? round ?? square;
  if (/\n[ \t]*\n/.test(tex) || !/[\p{L}\p{N}]/u.test(tex)) return null;
  if (inline !== undefined && !isInlineTex(inline)) return null;
  if ((round ?? square) !== undefined && /[a-z]{3}/i.test(tex) && !/[\\^_=+*/<>{}|\d&]/.test(tex))
    return null;
  return { raw, tex, display: displayed !== undefined || square !== undefined };
}

/** `$5 and 10$` is money: it begins with a number, and has words that are no commands. */
function isInlineTex(tex) {
  if (/\s$/.test(tex)) return false;
  return !(
    /^\d/.test(tex) &&
    /(?:^|[\s\d])(?!\\)[a-z]{2,}(?=[\s,.;]|$)/i.test(tex.replace(/\{[^{}]*\}/g, "{}"))
  );
}

const inlineFormula = {
  name: "formula",
  level: "inline",
  start: (rest) => omitNegative(rest.search(/\$|\\[([]/)),
  tokenizer(rest) {
    if (rest[0] !== "$" && rest[0] !== "\\") return undefined;
    const found = matchFormula(rest);
    return found ? { type: "formula", raw: found.raw, display: found.display } : undefined;
  },
};

const blockFormula = {
  name: "display",
  level: "block",
  start(rest) {
    const end = rest.search(/\n[ \t]*(?:\n|$)/);
    const found = (end < 0 ? rest : rest.slice(0, end)).search(/\n {0,3}(?:\$\$|\\\[)/);
    return found < 0 || !BLOCK.test(rest.slice(found + 1)) ? undefined : found + 1;
  },
  tokenizer(rest) {
    const found = BLOCK.exec(rest);
    if (found && /[\p{L}\p{N}]/u.test(found[0])) return { type: "display", raw: found[0] };
    const open = OPEN_BLOCK.exec(rest); // it is not closed (yet): no Markdown either
    return open ? { type: "display", raw: open[0], open: true } : undefined;
  },
};

/** Hides formulas from what looks for the ends of emphasis. */
function maskFormulas(masked) {
  const source = this.lexer.source;
  if (source.length !== masked.length || !/\$|\\[([]/.test(source)) return masked;
  let hidden = "";
  let from = 0;
  for (const found of source.matchAll(/(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)|\$|\\[\s\S]/g)) {
    if (found.index < from || found[1] || !/^\$|^\\[([]/.test(found[0])) continue;
    const known = matchFormula(source.slice(found.index, found.index + 5100));
    if (!known) continue;
    hidden += masked.slice(from, found.index) + "a".repeat(known.raw.length);
    from = found.index + known.raw.length;
  }
  return hidden + masked.slice(from);
}

// ------------------------------------------------------------------ reading

/** Reads, and leaves what is too deep or too dear as it is written. */
class Reader extends Lexer {
  raw = "";
  depth = 0;
  within = 0;
  source = "";
  noted = null;

  blockTokens(text, tokens = [], clipped = false) {
    if (this.depth >= MAX_DEPTH) {
      this.state.top = true;
      tokens.push({
        type: "paragraph",
        raw: text,
        text,
        tokens: [{ type: "text", raw: text, text }],
      });
      return tokens;
    }
    this.depth++;
    try {
      return super.blockTokens(text, tokens, clipped);
    } finally {
      this.depth--;
    }
  }

  inlineTokens(text, tokens = []) {
    if (this.within >= MAX_INLINE_DEPTH || isExpensive(text)) {
      tokens.push({ type: "text", raw: text, text });
      return tokens;
    }
    this.within++;
    this.source = text;
    try {
      return super.inlineTokens(text, tokens);
    } finally {
      this.within--;
    }
  }
}

function isExpensive(text) {
  if (text.length > MAX_INLINE_CHARS) return true;
  return text.length > 500 && (text.match(MARKS)?.length ?? 0) * text.length > MAX_INLINE_COST;
}

/** What the parser of Markdown is told, for reading and for drawing. */
export const OPTIONS = { ...getDefaults(), gfm: true, hooks: { emStrongMask: maskFormulas } };
OPTIONS.tokenizer = new Tokenizer(OPTIONS);
OPTIONS.extensions = {
  renderers: Object.create(null),
  childTokens: Object.create(null),
  block: [note.tokenizer, blockFormula.tokenizer],
  startBlock: [note.start, blockFormula.start],
  inline: [reference.tokenizer, inlineFormula.tokenizer],
  startInline: [reference.start, inlineFormula.start],
};

/** A reader with a piece's blocks and the links that it defines; null where it is too long. */
export function readBlocks(raw) {
  if (raw.length > MAX_PIECE_CHARS || (!CODE.test(raw) && LONG_LINE.test(raw))) return null;
  try {
    const reader = new Reader(OPTIONS);
    reader.raw = raw;
    reader.blockTokens(raw, reader.tokens);
    return reader;
  } catch {
    return null;
  }
}

/** Read the text in the blocks, with these links; `noted(label)` says whether a footnote exists. */
export function readInline(reader, links, noted) {
  reader.tokens.links = links;
  reader.noted = noted;
  for (const entry of reader.inlineQueue) {
    entry.first ??= [...entry.tokens]; // the box of a task is there before its words
    entry.tokens.splice(0, Infinity, ...entry.first);
    Object.assign(reader.state, { inRawBlock: false, inLink: false, linkEmitted: false });
    reader.inlineTokens(entry.src, entry.tokens);
  }
}
