// The one way in which text becomes elements: a whitelist, nothing that runs, nothing that loads by itself.
import "../vendor/purify.js";

const { DOMPurify } = globalThis;
const ADDRESSES = ["href", "data-url"];

/** What stands in an answer. Marks of notes and names of files are data: what they do, a click decides. */
const PAGE = rules(
  [
    ...[
      "a",
      "blockquote",
      "br",
      "button",
      "code",
      "del",
      "div",
      "em",
      "h1",
      "h2",
      "h3",
      "h4",
      "h5",
      "h6",
      "hr",
    ],
    ...["input", "label", "li", "ol", "p", "pre", "section", "span", "strong", "sup"],
    ...["table", "tbody", "td", "th", "thead", "tr", "ul"],
  ],
  [
    ...[
      "align",
      "aria-label",
      "checked",
      "class",
      "data-copy",
      "data-mark",
      "data-note",
      "data-path",
      "dir",
    ],
    ...["disabled", "rel", "role", "start", "tabindex", "target", "title", "type"],
  ],
);
/** What a formula is made of: MathML that only shows. No annotations, no actions, no links, no style. */
const FORMULA = rules(
  [
    ...[
      "math",
      "menclose",
      "mfrac",
      "mi",
      "mmultiscripts",
      "mn",
      "mo",
      "mover",
      "mpadded",
      "mphantom",
    ],
    ...["mprescripts", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup"],
    ...["mtable", "mtd", "mtext", "mtr", "munder", "munderover"],
  ],
  [
    ...[
      "accent",
      "accentunder",
      "class",
      "columnspan",
      "depth",
      "display",
      "displaystyle",
      "fence",
      "form",
    ],
    ...[
      "height",
      "largeop",
      "linethickness",
      "lspace",
      "mathbackground",
      "mathcolor",
      "mathsize",
      "mathvariant",
    ],
    ...[
      "maxsize",
      "minsize",
      "movablelimits",
      "notation",
      "rowspan",
      "rspace",
      "scriptlevel",
      "separator",
    ],
    ...["stretchy", "symmetric", "voffset", "width"],
  ],
);

function rules(tags, attributes) {
  return {
    ALLOWED_TAGS: tags,
    ALLOWED_ATTR: tags.includes("a") ? [...attributes, ...ADDRESSES] : attributes,
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    ADD_URI_SAFE_ATTR: attributes,
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  };
}

const clean = (html, kind) => DOMPurify.sanitize(html, kind === "formula" ? FORMULA : PAGE);

const policy = globalThis.trustedTypes?.createPolicy("deskhand", {
  createHTML: clean,
  createScriptURL: (url) => {
    if (url !== "/sw.js") throw new TypeError("no such script");
    return url;
  },
});

/** What may become a part of the page, sanitised, whatever it was; `kind` is "formula" for MathML. */
export const trusted = (html, kind = "page") =>
  policy ? policy.createHTML(html, kind) : clean(html, kind);
export const worker = () => (policy ? policy.createScriptURL("/sw.js") : "/sw.js");

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
export const escapeHtml = (text) => String(text).replace(/[&<>"']/g, (letter) => ESCAPES[letter]);
