// Draws tokens as HTML of our own: no HTML and no address of the author is taken over unchecked.

import { Parser, Renderer } from "../../vendor/marked.js";
import { t } from "../language.js";
import { escapeHtml } from "../trusted.js";
import { OPTIONS } from "./syntax.js";

/** What is drawn from code, as soon as all of it is there. */
const FIGURES = new Set(["mermaid", "chart", "svg"]);
const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The HTML of tokens. `known` is what the rest of the text says: `{used, numbers, notes}`. */
export function drawTokens(tokens, known) {
  const parser = new Parser(OPTIONS);
  Object.assign(parser, { known, inButton: 0 });
  return parser.parse(tokens);
}

// ------------------------------------------------------------------ addresses

/** The address as a URL if it is one that a link may have, else null. */
export function parseSafeUrl(href) {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/** The path of a file of the conversation, if the address is one: relative, within its folder. */
export function localPath(href) {
  let path = href;
  try {
    path = decodeURIComponent(href);
  } catch {
    /* it has a % of its own */
  }
  path = path.replace(/^(?:\.\/)+/, "");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what no path may hold
  const odd = /^[a-z][a-z\d+.-]*:|^[/#?~]|\\|\/\/|[\u0000-\u001f\u007f]/i.test(path);
  return path && path.length <= 300 && !odd && !path.split("/").includes("..") ? path : null;
}

function decodeEntities(href) {
  return String(href).replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos));/gi,
    (all, decimal, hex, name) => {
      if (name) return NAMED[name.toLowerCase()];
      const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hex, 16);
      return code > 0 && code < 0x110000 ? String.fromCodePoint(code) : all;
    },
  );
}

const drawRemoved = (words) => `<span class="void">${escapeHtml(words)}</span>`;

function describeRemovedLink(href) {
  if (!href) return t("(link removed)");
  return t("(link removed: {address})", { address: href.slice(0, 80) });
}

function describeRemovedPicture(alt) {
  if (!alt) return t("(picture removed)");
  return t("(picture removed: {name})", { name: alt.slice(0, 80) });
}

/** `#L3-L5` are lines of a file, `#page=2` is a page. */
const PLACE = /#(?:L\d{1,7}(?:-L?\d{1,7})?|page=\d{1,5})$/;

/** Opens a file of the conversation, at a place in it if its address names one. */
function drawFileButton(path, kind, words) {
  const at = PLACE.exec(path)?.[0] ?? "";
  const name = path.slice(0, path.length - at.length);
  const shown = escapeHtml(name);
  const place = at ? ` data-at="${escapeHtml(at.slice(1))}"` : "";
  return [
    `<button type="button" class="${kind}" data-path="${shown}"${place}>`,
    `${words || escapeHtml(path)}</button>`,
  ].join("");
}

function drawLink(url, words) {
  const href = escapeHtml(url.href);
  return `<a href="${href}" target="_blank" rel="noreferrer noopener">${words}</a>`;
}

// ------------------------------------------------------------------ elements

/** Text in which entities stay what they are. */
const escapeText = (words) =>
  words.replace(/[<>"']|&(?!(?:#\d{1,7}|#[xX][a-fA-F\d]{1,6}|\w+);)/g, escapeHtml);

/** Whether code can be shown in a frame, as a page or a React component. */
const isShown = (name, code) =>
  name === "html" || (/^[jt]sx$/.test(name) && /^export default\b/m.test(code));

/** Shows a page or a component, or what a figure is drawn from. */
function drawViewButton(figure) {
  const [act, words] = figure ? ["source", t("Source")] : ["open", t("Preview")];
  const pressed = act === "source" ? ` aria-pressed="false"` : "";
  return [
    `<button type="button" class="code-copy" data-act="${act}"${pressed}>`,
    `${escapeHtml(words)}</button>`,
  ].join("");
}

const isClickable = (token) =>
  ["link", "image", "reference"].includes(token.type) || (token.tokens ?? []).some(isClickable);

/** What is drawn within a link or a button, where no other may be. */
function drawInner(parser, tokens) {
  parser.inButton++;
  const words = parser.parseInline(tokens);
  parser.inButton--;
  return words;
}

class Page extends Renderer {
  text(token) {
    return token.tokens ? this.parser.parseInline(token.tokens) : escapeText(token.text);
  }

  html({ text: words, block }) {
    if (block) return `<p class="html">${escapeHtml(words.trimEnd())}</p>`;
    return /^<br\s*\/?>$/i.test(words) ? "<br>" : escapeHtml(words);
  }

  link({ href: written, tokens, text: label }) {
    const href = decodeEntities(written);
    const url = parseSafeUrl(href);
    const words = drawInner(this.parser, tokens);
    if (this.parser.inButton || href.startsWith("#")) return words;
    if (!url) {
      const path = localPath(href);
      return path
        ? drawFileButton(path, "file-link", words)
        : `${words} ${drawRemoved(describeRemovedLink(href))}`;
    }
    const named = url.protocol === "mailto:" || label.includes(url.host);
    const host = named ? "" : `<span class="host">${escapeHtml(url.host)}</span>`;
    return drawLink(url, words) + host;
  }

  image({ href: written, tokens, text: words }) {
    const alt = tokens ? this.parser.parseInline(tokens, this.parser.textRenderer) : words;
    const href = decodeEntities(written);
    const url = parseSafeUrl(href);
    if (this.parser.inButton) return escapeText(alt);
    if (!url) {
      const path = localPath(href);
      return path
        ? drawFileButton(path, "file-link picture", escapeText(alt))
        : drawRemoved(describeRemovedPicture(alt));
    }
    const shown = escapeHtml(url.href);
    const caption = alt ? ` <span>${escapeText(alt)}</span>` : "";
    return [
      `<button type="button" class="remote" data-url="${shown}">`,
      `<span>${escapeHtml(t("External image: click to open"))}</span>${caption}`,
      ` <span class="url">${shown}</span></button>`,
    ].join("");
  }

  code({ text: code, lang }) {
    const name = (lang ?? "").split(/\s/)[0].slice(0, 20);
    const shown = escapeHtml(name || t("text"));
    const label = escapeHtml(t("Code: {language}", { language: name || t("text") }));
    const kind = /^[\w+#.-]+$/.test(name) ? ` class="language-${shown}"` : "";
    const figure = FIGURES.has(name) ? ` figure" data-figure="${name}` : "";
    return [
      `<div class="code${figure}" dir="ltr"><div class="code-bar"><span>${shown}</span>`,
      `<span class="row">${figure || isShown(name, code) ? drawViewButton(figure) : ""}`,
      `<button type="button" class="code-copy" data-copy="1"`,
      ` aria-label="${escapeHtml(t("Copy this code"))}">`,
      `${escapeHtml(t("Copy"))}</button></span></div>`,
      `<pre tabindex="0" role="group" aria-label="${label}">`,
      `<code${kind}>${escapeHtml(code.replace(/\n$/, ""))}\n</code></pre></div>`,
    ].join("");
  }

  table(token) {
    const table = super.table(token);
    return [
      `<div class="table" tabindex="0" role="group" aria-label="${escapeHtml(t("Table"))}">`,
      `${table}</div>`,
      `<p class="table-bar"><button type="button" class="code-copy" data-act="csv">`,
      `${escapeHtml(t("Copy as CSV"))}</button></p>`,
    ].join("");
  }

  /** A header sorts the table, unless there is something else in it to click on. */
  tablecell(token) {
    const plain = token.header && token.text.trim() && !token.tokens.some(isClickable);
    if (!plain) return super.tablecell(token);
    const align = token.align ? ` align="${token.align}"` : "";
    const words = drawInner(this.parser, token.tokens);
    const button = `<button type="button" class="sort" data-act="sort">${words}</button>`;
    return `<th${align}>${button}</th>\n`;
  }

  /** The words of a task are the label of its box. */
  listitem(item) {
    if (!item.task) return super.listitem(item);
    const [first, ...rest] = item.tokens;
    let head;
    if (first.type === "checkbox") {
      const words = rest[0]?.type === "text" ? [rest.shift()] : [];
      head = `<label>${this.parser.parse([first, ...words])}</label>`;
    } else {
      head = `<p><label>${this.parser.parseInline(first.tokens)}</label></p>`;
    }
    return `<li class="task">${head}${this.parser.parse(rest)}</li>\n`;
  }

  checkbox({ checked }) {
    return `<input type="checkbox" disabled${checked ? " checked" : ""}> `;
  }

  /** A definition that nothing refers to is shown as text. */
  def({ tag, raw, href }) {
    if (this.parser.known.used.has(tag)) return "";
    const [, head, rest] = /^([\s\S]*?\]:\s*)([\s\S]*)$/.exec(raw.trim());
    const url = parseSafeUrl(decodeEntities(href));
    const shown =
      url && rest.startsWith(href)
        ? drawLink(url, escapeText(href)) + escapeText(rest.slice(href.length))
        : escapeText(rest);
    return `<p>${escapeText(head)}${shown}</p>\n`;
  }
}

/**
 * The only source that a footnote names, as a URL or as a path: then its mark leads there. null
 * where the note says more, or names no source.
 */
export function findSource(note) {
  const words = note?.tokens?.length === 1 ? note.tokens[0].tokens : null;
  const [only, ...more] = (words ?? []).filter(({ type, raw }) => type !== "text" || raw.trim());
  if (only?.type !== "link" || more.length) return null;
  const href = decodeEntities(only.href);
  const url = parseSafeUrl(href);
  if (url) return url.protocol === "mailto:" ? null : { url };
  const path = localPath(href);
  return path ? { path } : null;
}

/** The mark of a footnote. A click on it, which text.js handles, leads to the note or the source. */
function drawReference({ label: name }) {
  const number = this.parser.known.numbers.get(name);
  if (this.parser.inButton) return `[${number}]`;
  const { url, path } = this.parser.known.sources.get(name) ?? {};
  if (url) {
    const label = escapeHtml(t("Source {number}: {host}", { number, host: url.host }));
    return [
      `<sup><a class="note-mark" href="${escapeHtml(url.href)}" target="_blank"`,
      ` rel="noreferrer noopener" data-note="${number}"`,
      ` aria-label="${label}">${number}</a></sup>`,
    ].join("");
  }
  if (path)
    return [
      `<sup><span class="source-mark" data-note="${number}">`,
      `${drawFileButton(path, "file-link note-mark", String(number))}</span></sup>`,
    ].join("");
  return [
    `<sup><button type="button" class="note-mark" data-note="${number}"`,
    ` aria-label="${escapeHtml(t("Footnote {number}", { number }))}">${number}</button></sup>`,
  ].join("");
}

/** A note stands at the end of the text; one that nothing refers to stays where it is. */
function drawNote(token) {
  const { numbers, notes } = this.parser.known;
  if (numbers.has(token.label) && notes.get(token.label) === token) return "";
  const [first, ...rest] = token.tokens;
  const head = escapeText(`[${token.label}]: `);
  if (first?.type === "paragraph")
    return `<p>${head}${this.parser.parseInline(first.tokens)}</p>${this.parser.parse(rest)}`;
  return `<p>${head}</p>${this.parser.parse(token.tokens)}`;
}

/** A formula as it is written: rich.js draws it. */
const drawFormula = ({ raw, display }) =>
  `<span class="tex${display ? " display" : ""}">${escapeHtml(raw)}</span>`;
const drawDisplay = ({ raw, open }) =>
  `<div class="tex ${open ? "open" : "display"}">${escapeHtml(raw.trim())}</div>`;

/** The notes at the end of a text: `[[number, html]]`. */
export function drawNotes(notes) {
  if (!notes.length) return "";
  const items = notes.map(([number, html]) => {
    const back = [
      `<button type="button" class="note-back" data-mark="${number}"`,
      ` aria-label="${escapeHtml(t("Back to mark {number}", { number }))}">↩</button>`,
    ].join("");
    const end = html.trimEnd();
    const inside = end.endsWith("</p>") ? `${end.slice(0, -4)} ${back}</p>` : `${end}${back}`;
    return `<li tabindex="-1">${inside}</li>`;
  });
  const list = `<ol>${items.join("")}</ol>`;
  const label = escapeHtml(t("Footnotes"));
  return `<section class="notes" role="group" aria-label="${label}">${list}</section>`;
}

OPTIONS.renderer = new Page(OPTIONS);
Object.assign(OPTIONS.extensions.renderers, {
  reference: drawReference,
  note: drawNote,
  formula: drawFormula,
  display: drawDisplay,
});
