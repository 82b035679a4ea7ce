// The only way in which text becomes elements: a whitelist without anything that runs or loads.
import "../vendor/purify.js";

const { DOMPurify } = globalThis;
const ADDRESSES = ["href", "data-url"];

/** What an answer may contain. Footnote marks and file names are data: a click acts on them. */
const PAGE = makeRules({
  tags: `a blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr input label li ol p pre section
    span strong sup table tbody td th thead tr ul`,
  attributes: `align aria-label aria-pressed checked class data-act data-at data-copy data-figure data-mark
    data-note data-path dir disabled
    rel role start tabindex target title type href data-url`,
});
/** What a formula may contain: presentational MathML. No annotations, actions, links or styles. */
const FORMULA = makeRules({
  tags: `math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow
    mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover`,
  attributes: `accent accentunder class columnspan depth display displaystyle fence form height
    largeop linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize
    movablelimits notation rowspan rspace scriptlevel separator stretchy symmetric voffset width`,
});

function makeRules({ tags, attributes }) {
  const allowed = attributes.split(/\s+/);
  return {
    ALLOWED_TAGS: tags.split(/\s+/),
    ALLOWED_ATTR: allowed,
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    ADD_URI_SAFE_ATTR: allowed.filter((name) => !ADDRESSES.includes(name)),
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  };
}

const sanitize = (html, kind) => DOMPurify.sanitize(html, kind === "formula" ? FORMULA : PAGE);

const policy = globalThis.trustedTypes?.createPolicy("deskhand", {
  createHTML: sanitize,
  createScriptURL: (url) => {
    if (url !== "/sw.js") throw new TypeError("no such script");
    return url;
  },
});

/** Sanitised HTML that may become a part of the page; `kind` is "formula" for MathML. */
export const trustedHtml = (html, kind = "page") =>
  policy ? policy.createHTML(html, kind) : sanitize(html, kind);
export const workerUrl = () => (policy ? policy.createScriptURL("/sw.js") : "/sw.js");

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
export const escapeHtml = (text) => String(text).replace(/[&<>"']/g, (letter) => ESCAPES[letter]);
