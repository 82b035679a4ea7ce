// Markdown as it may be shown: a whitelist of elements, no HTML of the author's, nothing that loads by itself.
import { Marked } from "../vendor/marked.js";
import "../vendor/purify.js";

const { DOMPurify } = globalThis;
const TAGS = ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del", "a", "table", "thead", "tbody", "tr", "th", "td", "button", "span", "input", "div"];
const ATTRIBUTES = ["href", "target", "rel", "title", "class", "start", "align", "type", "checked", "disabled", "data-url", "data-copy", "aria-label"];
const NO_ADDRESS = ATTRIBUTES.filter((name) => name !== "href" && name !== "data-url");
const DEEPEST = 24, LONGEST = 200_000;

const policy = globalThis.trustedTypes?.createPolicy("deskhand", {
  createHTML: clean,
  createScriptURL: (url) => { if (url !== "/sw.js") throw new TypeError("no such script"); return url; },
});

function clean(html) {
  return DOMPurify.sanitize(html, { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ADD_URI_SAFE_ATTR: NO_ADDRESS, ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i });
}

/** What may become a part of the page: sanitised, whatever it was. */
export const trusted = (html) => (policy ? policy.createHTML(html) : clean(html));
export const worker = () => (policy ? policy.createScriptURL("/sw.js") : "/sw.js");

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
export const escape = (text) => String(text).replace(/[&<>"']/g, (letter) => ESCAPES[letter]);

/** The address as a URL if it is one that a link may have, else null. */
export function safe(href) {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }) => escape(text),
    link({ href, tokens, text }) {
      const url = safe(href), words = this.parser.parseInline(tokens);
      if (!url) return `${words} <span class="void">(link removed: ${escape(String(href).slice(0, 80))})</span>`;
      const host = url.protocol === "mailto:" || text.includes(url.host) ? "" : `<span class="host">${escape(url.host)}</span>`;
      return `<a href="${escape(url.href)}" target="_blank" rel="noreferrer noopener">${words}</a>${host}`;
    },
    image({ href, text }) {
      const url = safe(href);
      if (!url) return `<span class="void">(picture removed${text ? `: ${escape(text)}` : ""})</span>`;
      return `<button type="button" class="remote" data-url="${escape(url.href)}"><span>Picture from elsewhere, not loaded${text ? ` (${escape(text)})` : ""}. Open:</span> <span class="url">${escape(url.href)}</span></button>`;
    },
    code({ text, lang }) {
      const name = (lang ?? "").split(/\s/)[0].slice(0, 20);
      return `<div class="code"><div class="code-bar"><span>${escape(name || "text")}</span><button type="button" class="code-copy" data-copy="1" aria-label="Copy this code">Copy</button></div><pre><code>${escape(text)}\n</code></pre></div>`;
    },
    table(token) {
      return `<div class="table">${Object.getPrototypeOf(this).table.call(this, token)}</div>`;
    },
  },
});

/** Too deep or too long to be worth parsing: shown as it is written. */
const plain = (text) => text.length > LONGEST || /^(?:[ \t]*>){25}/m.test(text) || nested(text) || /[^\n]{20000}/.test(text);

function nested(text) {
  let depth = 0;
  for (const letter of text) {
    if (letter === "[" || letter === "(") { if (++depth > DEEPEST * 8) return true; } else if (letter === "]" || letter === ")") depth = Math.max(0, depth - 1);
  }
  return false;
}

/** The HTML of one piece of Markdown; `links` are definitions (`[a]: …`) that stand elsewhere in the text. */
export function markup(text, links = "") {
  try {
    if (plain(text)) return `<pre class="as-is"><code>${escape(text)}</code></pre>`;
    return marked.parse(links ? `${links}\n\n${text}` : text);
  } catch {
    return `<pre class="as-is"><code>${escape(text)}</code></pre>`;
  }
}

/**
 * The blocks of a text that may still grow. `before` is what this gave for its beginning: blocks that cannot change any
 * more are kept, only the last one is read again. `{text, settled, done: [raw], tail}`.
 */
export function blocks(text, before = null) {
  const kept = before && text.startsWith(before.text) ? before : { settled: 0, done: [] };
  const rest = text.slice(kept.settled), done = [...kept.done];
  let settled = kept.settled;
  if (plain(rest)) return { text, settled, done, tail: rest, links: "" };
  try {
    const tokens = marked.lexer(rest);
    const solid = tokens.findLastIndex((token) => token.type !== "space");
    let raw = "";
    for (const token of tokens.slice(0, Math.max(0, solid))) {
      raw += token.raw;
      if (token.type !== "space") { done.push(raw); settled += raw.length; raw = ""; }
    }
  } catch { /* shown as it is */ }
  return { text, settled, done, tail: text.slice(settled), links: definitions(done) };
}

const definitions = (done) => done.filter((raw) => /^\s{0,3}\[[^\]\n]+\]:/.test(raw)).join("\n").slice(0, 10_000);
