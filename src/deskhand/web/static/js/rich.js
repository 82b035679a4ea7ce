// Colours code, and draws formulas and figures. Each library is loaded when it is needed for the first time.
import { trustedHtml } from "./trusted.js";

const LONGEST_CODE = 50_000;
const LIBRARIES = {
  code: () => import("../vendor/highlight.js"),
  formula: async () => {
    const [library] = await Promise.all([import("../vendor/temml.js"), loadMathFont()]);
    return library;
  },
  figure: () => import("./figures/figures.js"),
};
const loaded = {};
const loading = {};
const drawnFormulas = new Map(); // as MathML: a growing answer draws each of its formulas once

/**
 * Draw the formulas in this element and, if it is `done`, colour its code and draw its figures. May
 * return a promise.
 */
export function enrichElement(root, done) {
  const formulas = root.querySelectorAll(".tex:not(.open, .set)");
  const codes = done ? root.querySelectorAll("code[class]:not(.hljs)") : [];
  const figures = done ? root.querySelectorAll(".figure:not(.drawn, .failed)") : [];
  return Promise.all([
    withLibrary("formula", formulas, drawFormula),
    withLibrary("code", codes, colourCode),
    withLibrary("figure", figures, (figure) => loaded.figure.drawFigure(figure)),
  ]);
}

/** With their font there, formulas have their size at once. Without it, another one will do. */
function loadMathFont() {
  return document.fonts.load('1em "STIX Two Math"').catch(() => []);
}

/** Work at once where the library is loaded, so that nothing flickers; else once it is loaded. */
function withLibrary(kind, elements, work) {
  const wanted = [...elements];
  if (!wanted.length) return undefined;
  const workOnAll = () => {
    for (const element of wanted) work(element);
  };
  if (loaded[kind]) return workOnAll();
  loading[kind] ??= LIBRARIES[kind]().then((library) => {
    loaded[kind] = library;
  });
  return loading[kind].then(workOnAll, () => {
    delete loading[kind]; // without the library, the text stays as it is written
  });
}

function colourCode(code) {
  const words = code.textContent;
  const highlighter = loaded.code.default;
  const language = /language-(\S+)/.exec(code.className)?.[1];
  if (words.length > LONGEST_CODE || !highlighter.getLanguage(language)) return;
  code.classList.add("hljs");
  code.innerHTML = trustedHtml(
    highlighter.highlight(words, { language, ignoreIllegals: true }).value,
  );
}

function drawFormula(element) {
  const raw = element.textContent;
  const display = element.classList.contains("display");
  const key = `${display}${raw}`;
  if (!drawnFormulas.has(key)) {
    if (drawnFormulas.size > 500) drawnFormulas.clear();
    drawnFormulas.set(key, makeMathml(raw, display));
  }
  if (drawnFormulas.get(key) === null) return;
  element.classList.add("set");
  element.innerHTML = trustedHtml(drawnFormulas.get(key), "formula");
}

/** MathML of a formula as it is written, with its marks; null where it is none. */
function makeMathml(raw, displayMode) {
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
    return replaceStyles(loaded.formula.temml.renderToString(raw.slice(marks, -marks), options));
  } catch {
    return null;
  }
}

/** Replace Temml's inline styles, which our policy refuses, by classes and MathML attributes. */
function replaceStyles(markup) {
  return markup.replace(/<m[a-z]+\b[^>]*? style="[^"]*"[^>]*>/g, (tag) => {
    const style = / style="([^"]*)"/.exec(tag)[1];
    const classes = [];
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
