// What the server says in whole sentences, in the reader's language. It says them in English, and
// what it fills in is only known to it: a sentence is recognised by what stands around that.
//
// No regular expression looks for it: the fixed pieces of a text are looked for one after the
// other, so that no sentence takes longer than its length allows.

const MAX_DEPTH = 4;
const MAX_KEPT = 500;
/** A line of more is said sentence by sentence. */
const MAX_SENTENCES = 12;
const INDENT = /^\s*(?:[•*-] )?/;
const SENTENCE_END = /(?<=[.!?”]) (?=[A-ZÄÖÜ/“])/;
/** Between sentences that the server has joined, and between those that it names in one. */
const JOINTS = ["; ", " · "];
const INNER_JOINTS = [...JOINTS, ", "];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  ...["January", "February", "March", "April", "May", "June", "July", "August", "September"],
  ...["October", "November", "December"],
];
const THROUGH = "{first_days} through {last_days}";

/** What a value is, by the last word of its name: a value of another shape does not fit there. */
const SHAPES = {
  number: /^\d[\d,]*(?:\.\d+)?[kM]?$/,
  size: /^\d[\d,]*(?:\.\d+)? ?[kMG]?B$/,
  time: /^\d{4}-\d\d-\d\d \d\d:\d\d$/,
  numbers: /^\d+(?:(?:, and|,| and) \d+)*$/,
  ordinal: /^(?:(?:fir|seco|thi|four|fif|six|seven|eigh|nin)(?:st|nd|rd|th)|\d+th)$/,
  clocks: /^\d\d:\d\d(?::\d\d)?(?:(?:,| and|, and) \d\d:\d\d(?::\d\d)?)*$/,
  days: /^(?:(?:, and|,| and| through|^) ?(?:Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day)+$/,
  name: /^\S+$/,
  code: /^`[^`\n]+`$/,
  month: new RegExp(`^(?:${MONTHS.join("|")})$`),
};

/** A text as its fixed pieces, and the names of what stands between them. */
function readTemplate(text) {
  const parts = text.split(/\{(\w+)\}/);
  const pieces = parts.filter((_, i) => i % 2 === 0);
  const names = parts.filter((_, i) => i % 2);
  return { text, pieces, names, weight: pieces.join("").length };
}

const splitList = (text) => text.split(/, and |, | and /);
const kindOf = (name) => name.split("_").at(-1);

/** What `text` has in the places of the template, by name; null where it is another sentence. */
function matchTemplate({ pieces, names }, text) {
  const last = pieces.at(-1);
  const end = text.length - last.length;
  if (!text.startsWith(pieces[0]) || end < pieces[0].length || !text.endsWith(last)) return null;
  const values = {};
  let at = pieces[0].length;
  for (let i = 0; i < names.length; i++) {
    const next = i === names.length - 1 ? end : text.indexOf(pieces[i + 1], at);
    if (next < at || next > end) return null;
    const value = text.slice(at, next);
    if (!value || value.includes("\n") || SHAPES[kindOf(names[i])]?.test(value) === false)
      return null;
    values[names[i]] = value;
    at = next + pieces[i + 1].length;
  }
  return values;
}

/** How to say what the server has said, with the `texts` of a language by the English ones. */
export function makeServerTexts(texts, locale) {
  const known = Object.keys(texts);
  const exact = new Set(known.filter((each) => !each.includes("{")));
  const templates = known
    .filter((each) => each.includes("{"))
    .map(readTemplate)
    .sort((one, two) => two.weight - one.weight);
  const lists = new Intl.ListFormat(locale, { type: "conjunction" });
  const kept = new Map();

  const formatNumber = (text) =>
    text.replace(/^[\d,]+(?:\.\d+)?/, (number) =>
      Number(number.replaceAll(",", "")).toLocaleString(locale, { maximumFractionDigits: 6 }),
    );
  const formatDate = (date, form) =>
    new Intl.DateTimeFormat(locale, { timeZone: "UTC", ...form }).format(date);
  const formatTime = (text) =>
    formatDate(new Date(`${text.replace(" ", "T")}Z`), { dateStyle: "medium", timeStyle: "short" });
  // The first of January 2023 was a Sunday.
  const formatDay = (day) => {
    const number = WEEKDAYS.indexOf(day);
    if (number >= 0)
      return formatDate(new Date(Date.UTC(2023, 0, 1 + number)), { weekday: "long" });
    const [first, last] = day.split(" through ");
    return fill(texts[THROUGH] || THROUGH, {
      first_days: formatDay(first),
      last_days: formatDay(last),
    });
  };
  const formatMonth = (month) =>
    formatDate(new Date(Date.UTC(2023, MONTHS.indexOf(month), 1)), { month: "long" });
  const join = (text, say) => lists.format(splitList(text).map(say));
  const FORMS = {
    text: (value, depth) => say(value, depth + 1),
    ordinal: (value, depth) => say(value, depth + 1),
    numbers: (value) => join(value, (each) => each),
    number: formatNumber,
    size: formatNumber,
    time: formatTime,
    clocks: (value) => join(value, (each) => each),
    days: (value) => join(value, formatDay),
    month: formatMonth,
  };

  const fill = (text, values) =>
    text
      .split(/\{(\w+)\}/)
      .map((part, i) => (i % 2 ? values[part] : part))
      .join("");

  function sayTemplate(text, depth) {
    for (const template of templates) {
      const values = matchTemplate(template, text);
      if (!values) continue;
      for (const name of Object.keys(values))
        values[name] = FORMS[kindOf(name)]?.(values[name], depth) ?? values[name];
      return fill(texts[template.text] || template.text, values);
    }
    return null;
  }

  function sayJoined(text, depth) {
    const joint = (depth ? INNER_JOINTS : JOINTS).find((each) => text.includes(each));
    return joint
      ? text
          .split(joint)
          .map((part) => say(part, depth + 1))
          .join(joint)
      : text;
  }

  function say(text, depth) {
    if (exact.has(text)) return texts[text] || text;
    if (depth > MAX_DEPTH) return text;
    return sayTemplate(text, depth) ?? sayJoined(text, depth);
  }

  /** What the API has made a sentence of: with a capital letter, and a full stop. */
  function saySentence(text) {
    const plain = text[0].toLowerCase() + text.slice(1).replace(/\.$/, "");
    const said = sayTemplate(plain, 0) ?? (exact.has(plain) && texts[plain]);
    return said ? `${said[0].toUpperCase()}${said.slice(1)}.` : null;
  }

  /** The sentence in the reader's language; one that is not known as it came. */
  function tServer(text) {
    if (!text) return text;
    if (!kept.has(text)) {
      if (kept.size >= MAX_KEPT) kept.clear();
      const said = say(text, 0);
      kept.set(text, said === text && !isKnown(text) ? (saySentence(text) ?? said) : said);
    }
    return kept.get(text);
  }

  /** A line of several sentences, the longest that are known first. */
  function sayLine(line) {
    const indent = line.match(INDENT)[0];
    const sentences = line.slice(indent.length).split(SENTENCE_END);
    const longest = sentences.length > MAX_SENTENCES ? 1 : sentences.length;
    const said = [];
    while (sentences.length) {
      const count = countKnown(sentences.slice(0, longest));
      said.push(tServer(sentences.splice(0, count).join(" ")));
    }
    return indent + said.join(" ");
  }

  /** How many of these are known together, the most. */
  function countKnown(sentences) {
    for (const inOne of [true, false])
      for (let count = sentences.length; count > 0; count--)
        if (isKnown(sentences.slice(0, count).join(" "), inOne)) return count;
    return 1;
  }

  /** With `inOne`, no value goes over the end of a sentence. */
  function isKnown(text, inOne = false) {
    const fits = (template) => {
      const values = matchTemplate(template, text);
      return values && !(inOne && Object.values(values).some((each) => SENTENCE_END.test(each)));
    };
    return exact.has(text) || templates.some(fits);
  }

  /** What the server says in several sentences and lines, such as the reply to a command. */
  tServer.sayNotice = (text) =>
    !text || isKnown(text, true) ? tServer(text) : text.split("\n").map(sayLine).join("\n");

  /** All texts that this sentence could be. */
  tServer.findTexts = (text) => [
    ...[...exact].filter((each) => each === text),
    ...templates.filter((each) => matchTemplate(each, text)).map((each) => each.text),
  ];
  return tServer;
}
