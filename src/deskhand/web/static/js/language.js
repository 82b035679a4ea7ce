// What the page says, in the language of whoever reads it. The code has the English texts, and
// `/languages/CODE.json` has for each of them what is said instead. What the server says is in
// `/languages/CODE.server.json`, which comes behind the first screen.

import { signal } from "./lib.js";

const STORED = "deskhand.language";
const ENGLISH = "en";

/** The languages that there are beside English, as `[code, its own name]`. */
const found = globalThis.document?.querySelector('meta[name="languages"]')?.content ?? "";
const others = found.split(";").flatMap((each) => (each ? [each.split("=")] : []));
export const LANGUAGES = [[ENGLISH, "English"], ...others];

/** What was chosen in this browser, or '' where the browser's own language is used. */
export const chosenLanguage = globalThis.localStorage?.getItem(STORED) ?? "";

/** The first of what the reader wants that there is: `de` for `de-AT`. */
function pickLanguage() {
  const wanted = [chosenLanguage, ...(globalThis.navigator?.languages ?? [])];
  const codes = new Map(LANGUAGES.map(([code]) => [code.toLowerCase(), code]));
  for (const each of wanted) {
    const code = codes.get(each.toLowerCase()) ?? codes.get(each.toLowerCase().split("-")[0]);
    if (code) return code;
  }
  return ENGLISH;
}

/** What this file has. Without it, as when the server is away, the page is in English. */
async function loadFile(name) {
  try {
    const answer = await fetch(`/languages/${name}.json`);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

const picked = pickLanguage();
// Awaited here, so that the modules which import this one may use texts in their constants.
const loaded = picked === ENGLISH ? null : await loadFile(picked);
const texts = new Map(Object.entries(loaded?.texts ?? {}));

/** The language of the page's texts, and with it of its dates and numbers. */
export const language = loaded ? picked : ENGLISH;
/** The locale for `Intl`: the reader's own region where the language is theirs. */
export const locale =
  globalThis.navigator?.languages?.find((each) => each.split("-")[0] === language) ?? language;
const plurals = new Intl.PluralRules(language);

if (globalThis.document) {
  document.documentElement.lang = language;
  document.documentElement.dir = loaded?.dir ?? "ltr";
}

/** Chosen by the reader; '' follows the browser. It shows once the page is loaded again. */
export function chooseLanguage(code) {
  if (code) localStorage.setItem(STORED, code);
  else localStorage.removeItem(STORED);
  location.reload();
}

/** `text` in the reader's language, with `values` in place of `{name}`. */
export function t(text, values) {
  const said = tData(text);
  return values ? fill(said, values).join("") : said;
}

/** A text that comes from the server or from a list, such as what a setting does. */
export const tData = (text) => texts.get(text) || text; // empty: not translated yet

const asItCame = (text) => text;
asItCame.sayNotice = asItCame;
/** Says what the server says; in English until its texts are here. */
const server = signal(asItCame);

async function loadServerTexts() {
  const [code, sentences] = await Promise.all([
    import("./server-texts.js"),
    loadFile(`${picked}.server`),
  ]);
  if (sentences) server.value = code.makeServerTexts(sentences, locale);
  return server.value;
}

/** What says it, once it is said in the reader's language. */
export const serverTexts = loaded ? loadServerTexts() : Promise.resolve(asItCame);

/** A sentence that the server writes in English, such as when a job runs. */
export const tServer = (text) => server.value(text);

/** What the server says in several sentences and lines, such as the reply to a command. */
export const tNotice = (text) => server.value.sayNotice(text);

/** `t` where a value may be an element: a list of what is shown one after the other. */
export const tRich = (text, values) => fill(tData(text), values);

/** `one` or `more`, as the count wants it, which takes the place of `{count}`. */
export function tCount(count, one, more, values) {
  const said = texts.get(more);
  const form = said?.[plurals.select(count)] || said?.other || (count === 1 ? one : more);
  return fill(form, { count, ...values }).join("");
}

const fill = (text, values) =>
  text.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? (values[part] ?? "") : part));
