// Finding and copying the words of a document whose pages are pictures. A word is `[text, x, y,
// width, height, ends]`; `ends` is 1 where a line ends behind it.

const MAX_HITS = 1_000;
const normalize = (text) => text.normalize("NFC").toLowerCase();

/** Where `query` stands in these pages: `{page, first, last}`, the words that it is in. */
export function findHits(pages, query) {
  const wanted = normalize(query).trim().split(/\s+/).join(" ");
  const hits = [];
  if (!wanted) return hits;
  pages.forEach((words, page) => {
    const texts = words.map(([text]) => normalize(text));
    const whole = texts.join(" ");
    let word = 0;
    let start = 0; // where this word begins in the whole
    let at = whole.indexOf(wanted);
    while (at >= 0 && hits.length < MAX_HITS) {
      while (start + texts[word].length <= at) start += texts[word++].length + 1;
      let last = word;
      let end = start + texts[word].length;
      while (end < at + wanted.length) end += texts[++last].length + 1;
      hits.push({ page, first: word, last });
      at = whole.indexOf(wanted, at + wanted.length);
    }
  });
  return hits;
}

/** What of the words beneath this element is selected, in their order, with spaces and line ends;
 * '' for nothing. */
export function joinSelected(element, selection) {
  if (!selection?.rangeCount || selection.isCollapsed) return "";
  const range = selection.getRangeAt(0);
  let joined = "";
  for (const word of element.querySelectorAll(".pdf-words text")) {
    const node = word.firstChild;
    if (!node || !range.intersectsNode(node)) continue;
    const from = node === range.startContainer ? range.startOffset : 0;
    const to = node === range.endContainer ? range.endOffset : node.length;
    if (from === to) continue;
    const lastOfPage = !word.nextElementSibling;
    joined += node.data.slice(from, to) + (word.dataset.ends || lastOfPage ? "\n" : " ");
  }
  return joined.trimEnd();
}
