// What `/` and `@` offer while one writes: commands, skills, presets; files, conversations.

import { get } from "./api.js";
import { t, tData } from "./language.js";
import { html, signal, useLayoutEffect, useRef } from "./lib.js";
import { sessions } from "./list.js";

const MAX_OFFERED = 8;
const WAIT_MS = 90;
const COMMAND = /^\/([\w-]*)$/;
const MENTION = /(?:^|\s)@(?:"([^"\n]*)|([^\s"]*))$/;

/** `{kind, word, start}` of what is being written before the caret; null: nothing that completes. */
export function findToken(text, caret) {
  const before = text.slice(0, caret);
  const command = COMMAND.exec(before);
  if (command) return { kind: "command", word: command[1], start: 0 };
  const mention = MENTION.exec(before);
  if (!mention) return null;
  const word = mention[1] ?? mention[2];
  return { kind: "mention", word, start: before.lastIndexOf("@") };
}

/** The text, and the caret in it, once this entry is taken. A folder is gone into. */
export function complete(text, caret, token, entry) {
  const written = entry.written ?? entry.label;
  const quoted = /\s/.test(written);
  const whole = entry.kind === "folder" ? "" : " ";
  const taken =
    token.kind === "command"
      ? (entry.text ?? `/${written} `)
      : `@${quoted ? `"${written}${whole && '"'}` : written}${whole}`;
  return {
    text: text.slice(0, token.start) + taken + text.slice(caret),
    caret: token.start + taken.length,
  };
}

export const offered = signal(null); // {token, entries, chosen}, or null
let request = 0;
let timer = 0;
let commands = null;
let skills = null;
let presets = null;

/** Offer what completes the text before the caret. */
export function offerCompletions(text, caret) {
  const token = findToken(text, caret);
  clearTimeout(timer);
  const mine = ++request;
  if (!token) {
    offered.value = null;
    return;
  }
  const find = async () => {
    const entries = await (token.kind === "command" ? findCommands : findMentions)(token.word);
    if (mine === request) offered.value = entries.length ? { token, entries, chosen: 0 } : null;
  };
  timer = setTimeout(() => find().catch(closeCompletions), offered.value ? WAIT_MS : 0);
}

export function closeCompletions() {
  clearTimeout(timer);
  request += 1;
  offered.value = null;
}

async function findCommands(word) {
  commands ??= await get("/api/commands");
  skills ??= await get("/api/skills").catch(() => []);
  presets ??= await get("/api/presets").catch(() => []);
  const wanted = word.toLowerCase();
  const isWanted = ({ name }) => name.toLowerCase().startsWith(wanted);
  const drawn = ({ name }) => ({ label: `/${name}`, written: name });
  return [
    ...commands
      .filter(isWanted)
      .map((one) => ({ ...drawn(one), kind: "command", note: tData(one.help) })),
    ...skills.filter(isWanted).map((one) => ({
      ...drawn(one),
      kind: "skill",
      text: t("Use the skill {name}: ", { name: one.name }),
      note: t("Skill: {what}", { what: one.description }),
    })),
    ...presets.filter(isWanted).map((one) => ({
      ...drawn(one),
      kind: "preset",
      text: "",
      note: t("Preset: {what}", { what: one.description }),
    })),
  ];
}

/** Files whose path begins so, then conversations whose title has the word. */
async function findMentions(word) {
  const [files, titles] = await Promise.all([findFiles(word), findTitles(word)]);
  const kept = Math.max(MAX_OFFERED - titles.length, MAX_OFFERED / 2);
  return [...files.slice(0, kept), ...titles].slice(0, MAX_OFFERED);
}

async function findFiles(word) {
  const slash = word.lastIndexOf("/") + 1;
  const folder = word.slice(0, slash);
  const wanted = word.slice(slash).toLowerCase();
  const found = await get(`/api/files?path=${encodeURIComponent(folder || ".")}`).catch(() => []);
  return found
    .filter(({ name }) => name.toLowerCase().startsWith(wanted))
    .filter(({ name }) => wanted.startsWith(".") || !name.startsWith("."))
    .filter(({ name }) => !name.includes('"'))
    .map(({ name, kind, shown }) => ({
      kind: kind === "folder" ? "folder" : "file",
      label: folder + (shown || name) + (kind === "folder" ? "/" : ""),
      written: folder + name + (kind === "folder" ? "/" : ""),
      note: kind === "folder" ? t("folder") : t("file"),
    }));
}

async function findTitles(word) {
  const titled = word.trim()
    ? (await get(`/api/sessions?limit=4&brief=true&title=${encodeURIComponent(word)}`)).sessions
    : (sessions.peek() ?? []).slice(0, 3);
  return titled
    .map(({ title }) => title.replaceAll('"', "'"))
    .filter(Boolean)
    .map((title) => ({
      kind: "conversation",
      label: title,
      written: title,
      note: t("conversation"),
    }));
}

/** The list for what is written by now, where the one for that has not come yet. */
function narrow(now, token) {
  const word = token.word.toLowerCase();
  if (word === now.token.word.toLowerCase()) return now;
  const entries = now.entries.filter(({ written }) => written.toLowerCase().includes(word));
  return { ...now, entries, chosen: 0 };
}

/**
 * Whether this key was for the list: the arrows choose, Enter and Tab take, Esc closes. `take(entry)`
 * puts an entry into the text.
 */
export function steerCompletions(event, take) {
  const now = offered.value;
  if (!now || event.isComposing) return false;
  const token = findToken(event.target.value, event.target.selectionStart);
  const { entries, chosen } = token ? narrow(now, token) : now;
  const isWritten = event.key === "Enter" && entries[chosen]?.written === token?.word;
  if (!token || !entries.length || isWritten) {
    closeCompletions();
    return false; // Enter sends what is written out
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step)
    offered.value = { ...now, entries, chosen: (chosen + step + entries.length) % entries.length };
  else if ((event.key === "Enter" && !event.shiftKey) || (event.key === "Tab" && !event.shiftKey))
    take(entries[chosen]);
  else if (event.key === "Escape") closeCompletions();
  else return false;
  event.preventDefault();
  event.stopPropagation();
  return true;
}

export function Completions({ take }) {
  const list = useRef();
  const now = offered.value;
  useLayoutEffect(() => {
    list.current?.children[now.chosen]?.scrollIntoView({ block: "nearest" });
  }, [now?.chosen]);
  if (!now) return null;
  return html`
    <ul
      class="completions"
      id="completions"
      role="listbox"
      aria-label=${now.token.kind === "command" ? t("Commands, skills and presets") : t("Files and conversations")}
      ref=${list}
    >
      ${now.entries.map(
        (entry, i) => html`
          <li
            key=${entry.kind + entry.label}
            id=${`completion-${i}`}
            role="option"
            aria-selected=${String(i === now.chosen)}
            onMouseDown=${(event) => event.preventDefault()}
            onClick=${() => take(entry)}
          >
            <span class="label cut">${entry.label}</span>
            <span class="about cut muted">${entry.note}</span>
          </li>
        `,
      )}
    </ul>
  `;
}
