// Cuts Markdown into pieces that can be read apart from each other. A cut is made only where every
// list, quote and block of code is over, whatever follows: what was cut off stays as it is, however
// the text goes on.

const BLANK = /^[ \t]*$/;
const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})/;
const MARKER = /^([ \t]*)([-*+]|\d{1,9}[.)])(?=[ \t]|$)/;
/** HTML that goes on over blank lines, and what ends it. */
const LONG_HTML = [
  [/^ {0,3}<(?:script|pre|style|textarea)(?=[\s>]|$)/i, /<\/(?:script|pre|style|textarea)>/i],
  [/^ {0,3}<!--/, /-->/],
  [/^ {0,3}<\?/, /\?>/],
  [/^ {0,3}<!\[CDATA\[/, /\]\]>/],
  [/^ {0,3}<![a-z]/i, />/],
];
/** HTML that goes on to the next blank line, or a paragraph: it need not be known which. */
const HTML = /^ {0,3}<\/?[a-z][a-z0-9-]*(?:[\s/>]|$)/i;

const START = {
  at: 0, // where the first line begins that was not read to its end
  searched: 0, // up to where there is no end of that line
  from: 0, // where the last piece begins
  ends: [], // where the pieces before it end
  list: Infinity, // how far the text of a list is indented at least, if this piece may be in one
  blank: false, // the line before was blank
  html: false, // since the last blank line there was something that may be HTML
  open: null, // {over(line), sure}: code or HTML that goes on over blank lines
  whole: false, // nothing is certain any more: all that follows is one piece
};

/**
 * Where the pieces of `text` end: `{ends, settled, state}`. The first `settled` of them stay,
 * whatever follows. `before` is the state that this gave for the beginning of the text; no line but
 * the last is read twice.
 */
export function cutPieces(text, before = START) {
  const state = { ...before, ends: [...before.ends] };
  let end = text.indexOf("\n", state.searched);
  while (end >= 0) {
    readLine(state, text.slice(state.at, end), state.at, end + 1);
    state.at = end + 1;
    end = text.indexOf("\n", state.at);
  }
  state.searched = text.length;
  const last = { ...state, ends: [...state.ends] };
  readLine(last, text.slice(state.at, state.at + 200), state.at, text.length);
  if (last.from < text.length) last.ends.push(text.length);
  return { ends: last.ends, settled: state.ends.length, state };
}

/** One line of the text, from `start` to `end`. */
function readLine(state, line, start, end) {
  if (state.whole) return;
  if (BLANK.test(line)) {
    Object.assign(state, { blank: true, html: false });
    return;
  }
  if (state.open) {
    readOpenLine(state, line, end);
    return;
  }
  if (state.blank && /^\S/.test(line) && !(state.list < Infinity && MARKER.test(line)))
    cutAt(state, start);
  state.blank = false;
  if (openBlock(state, line, start, end)) return;
  state.html ||= HTML.test(line);
  const marker = MARKER.exec(line);
  if (marker) state.list = Math.min(state.list, marker[1].length + marker[2].length + 1);
}

function cutAt(state, position) {
  if (position > state.from) {
    state.ends.push(position);
    state.from = position;
  }
  Object.assign(state, { list: Infinity, html: false });
}

const measureIndent = (line) => /^ */.exec(line)[0].length;

/** A line in code or HTML that goes on over blank lines. */
function readOpenLine(state, line, end) {
  const { over, sure } = state.open;
  if (!sure && measureIndent(line) < state.list) {
    state.whole = true; // was it in the list, then it ended here; if not, it goes on
  } else if (over(line)) {
    Object.assign(state, { open: null, blank: false });
    if (sure) cutAt(state, end);
  }
}

/** Whether code, or HTML that goes on over blank lines, begins with this line. */
function openBlock(state, line, start, end) {
  const fence = FENCE.exec(line);
  const html = !fence && LONG_HTML.find(([begin]) => begin.test(line));
  if (!fence && !html) return false;
  if (state.html) {
    state.whole = true; // after HTML it may be the start of code, or more HTML
    return true;
  }
  const sure = measureIndent(line) < state.list;
  if (sure) cutAt(state, start);
  if (fence) {
    const [, before, mark] = fence;
    const close = new RegExp(
      `^ {${sure ? 0 : before.length},3}${mark[0]}{${mark.length},}[ \\t]*$`,
    );
    state.open = { over: (other) => close.test(other), sure };
  } else if (!html[1].test(line)) {
    state.open = { over: (other) => html[1].test(other), sure };
  } else if (sure) {
    cutAt(state, end);
  }
  return true;
}
