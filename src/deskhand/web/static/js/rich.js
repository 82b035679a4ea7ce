// Colours code and sets formulas. The libraries for it are loaded when the first of either is there.
import { trusted } from "./trusted.js";

const LONGEST_CODE = 50_000;
const LIBRARIES = {
  code: () => import("../vendor/highlight.js"),
  formula: () => import("../vendor/temml.js"),
};
const loaded = {};
const loading = {};
const set = new Map(); // formulas as MathML: an answer that grows sets each of them once

/** Colour and set what stands in this element; code only where it is `done`. Gives a promise where something is loaded. */
export function enrich(root, done) {
  const formulas = root.querySelectorAll(".tex:not(.open, .set)");
  const codes = done ? root.querySelectorAll("code[class]:not(.hljs)") : [];
  return Promise.all([each("formula", formulas, setFormula), each("code", codes, colour)]);
}

/** Do it at once where the library is there, so that nothing flickers; else when it has come. */
function each(kind, elements, work) {
  const wanted = [...elements];
  if (!wanted.length) return undefined;
  const all = () => {
    for (const element of wanted) work(element);
  };
  if (loaded[kind]) return all();
  loading[kind] ??= LIBRARIES[kind]().then((library) => {
    loaded[kind] = library;
  });
  return loading[kind].then(all, () => {
    delete loading[kind];
  }); // without it, it stays as it is written
}

function colour(code) {
  const words = code.textContent,
    highlighter = loaded.code.default;
  const language = /language-(\S+)/.exec(code.className)?.[1];
  if (words.length > LONGEST_CODE || !highlighter.getLanguage(language)) return;
  code.classList.add("hljs");
  code.innerHTML = trusted(highlighter.highlight(words, { language, ignoreIllegals: true }).value);
}

function setFormula(element) {
  const raw = element.textContent,
    display = element.classList.contains("display");
  const key = `${display}${raw}`;
  if (!set.has(key)) {
    if (set.size > 500) set.clear();
    set.set(key, mathml(raw, display));
  }
  if (set.get(key) === null) return;
  element.classList.add("set");
  element.innerHTML = trusted(set.get(key), "formula");
}

/** MathML of a formula as it is written, with its marks; null where it is none. */
function mathml(raw, displayMode) {
  const marks = /^(?:\$\$|\\)/.test(raw) ? 2 : 1;
  try {
    const options = {
      displayMode,
      wrap: "tex",
      throwOnError: true,
      trust: false,
      maxExpand: 300,
      maxSize: [20, 20],
    };
    return unstyled(loaded.formula.temml.renderToString(raw.slice(marks, -marks), options));
  } catch {
    return null;
  }
}

/** What Temml says by styles, which our policy refuses, said by classes and by attributes of MathML. */
function unstyled(markup) {
  return markup.replace(/<m[a-z]+\b[^>]*? style="[^"]*"[^>]*>/g, (tag) => {
    const style = / style="([^"]*)"/.exec(tag)[1],
      classes = [];
    for (const [, side] of style.matchAll(/border-(top|right|bottom|left):[^;]*/g))
      classes.push(`line-${side}`);
    if (/(?:^|;)border:/.test(style)) classes.push("boxed");
    const colour = /(?:^|;)color:(#[\da-f]{3,8})/i.exec(style)?.[1];
    const plain = tag.replace(/ (?:style|class)="[^"]*"/g, "").replace(/>$/, "");
    const before = / class="([^"]*)"/.exec(tag)?.[1];
    const named = [before, ...classes].filter(Boolean).join(" ");
    return `${plain}${named ? ` class="${named}"` : ""}${colour ? ` mathcolor="${colour}"` : ""}>`;
  });
}
