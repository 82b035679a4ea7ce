// An answer in the pieces in which it is read aloud while it is still being written. Pure.

const LEAST_CHARS = 24; // a shorter sentence is read with the next one
const MOST_CHARS = 600;
const END = /[.!?…:]["'”“»)\]*_]*\s+|[。！？]\s*|\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)])\s)/g;
/** What has a full stop and ends no sentence: a number at its beginning, a letter, an abbreviation. */
const NO_END =
  /(?:^|[\s(])(?:\d{1,2}|\p{L}|e\.g|i\.e|z\.\s?B|d\.\s?h|bzw|ca|Dr|Mr|Mrs|Ms|St|vs|Nr|No)\.\s+$/u;

/** What has been handed out of the answers of a turn: `text` is the beginning of answer `index`. */
export const UNREAD = Object.freeze({ index: 0, text: "" });

/**
 * `{read, pieces}`: what can be read next of these answers (`{text, done}`, the last one may still
 * grow), after what was `read` already. Where an answer begins anew with other words, it is read anew.
 */
export function readOn(read, answers) {
  const pieces = [];
  let { index, text: before } = read;
  for (; index < answers.length; index += 1) {
    const { text, done } = answers[index];
    if (!text.startsWith(before)) {
      if (!done && text.length < before.length) return { read: { index, text: before }, pieces };
      before = "";
    }
    const found = cutSentences(text.slice(before.length), done);
    pieces.push(...found.map((piece) => piece.trim()).filter(Boolean));
    before += found.join("");
    if (!done) return { read: { index, text: before }, pieces };
    before = "";
  }
  return { read: { index, text: "" }, pieces };
}

/** The whole sentences at the beginning of `text`; with `done`, all of it. Joined they are `text`. */
export function cutSentences(text, done = false) {
  const pieces = [];
  let begin = 0;
  for (const { index, 0: end } of text.matchAll(END)) {
    const at = index + end.length;
    const piece = text.slice(begin, at);
    const isParagraph = /\n\s*\n$/.test(piece);
    const more = isParagraph || at < text.length || done; // else more spaces may follow
    const least = isParagraph ? 1 : LEAST_CHARS;
    if (more && piece.trim().length >= least && isWhole(piece, text.slice(at))) {
      pieces.push(piece);
      begin = at;
    }
  }
  let rest = text.slice(begin);
  while (rest.length > MOST_CHARS && !rest.includes("```")) {
    const space = rest.lastIndexOf(" ", MOST_CHARS);
    const at = space > 0 ? space + 1 : MOST_CHARS;
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return done && rest ? [...pieces, rest] : pieces;
}

const count = (text, mark) => text.split(mark).length - 1;

/** Whether nothing that Markdown holds together is cut here: code, bold text, a table. */
function isWhole(piece, rest) {
  if (NO_END.test(piece)) return false;
  if (["```", "`", "**"].some((mark) => count(piece, mark) % 2)) return false;
  return !(/(?:^|\n)\s*\|[^\n]*\s*$/.test(piece) && /^\s*\|/.test(rest));
}
