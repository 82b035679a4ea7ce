// A call as a card: one line that opens. While it runs, the end of what it says is in sight.

import { CallDiff, isEdit } from "./diff.js";
import { brief, took } from "./format.js";
import { Icon } from "./icons.js";
import { html, useEffect, useState } from "./lib.js";
import { lineOf, Opened, REHEARSE, RUN } from "./programs.js";
import { developer } from "./state.js";
import { copy } from "./text.js";

const ICONS = {
  shell: "shell",
  read_file: "file",
  write_file: "edit",
  edit_file: "edit",
  send_file: "file",
  list_files: "files",
  search_files: "search",
  ask_user: "ask",
  think: "spark",
  read_skill: "book",
  survey_files: "files",
  rehearse_program: "code",
  run_program: "edit",
};
const WORDS = {
  read_file: "Read",
  write_file: "Write",
  edit_file: "Edit",
  send_file: "Send",
  list_files: "Look through",
  search_files: "Search for",
  shell: "Run",
  ask_user: "Ask",
  read_skill: "Read skill",
};
const STATES = {
  ok: "done",
  error: "failed",
  denied: "not allowed",
  interrupted: "interrupted",
  superseded: "overtaken",
  running: "running",
  waits: "waits for you",
};
const SHOWN_CHARS = 20000;

export function Tool({ item, output = "", early = null }) {
  const status = early && item.status === "running" ? early.status : item.status;
  const running = status === "running",
    text = item.text || early?.text || output;
  const [open, setOpen] = useState(null),
    shown = open ?? false;
  const line = lineOf(item, status, text),
    ours = line !== null && (item.name === RUN || item.name === REHEARSE);
  const lines = running && output ? output.trimEnd().split("\n").slice(-4).join("\n") : "";
  return html`<div class=${`tool ${status}`}>
    <button type="button" class="tool-head" aria-expanded=${String(shown)} onClick=${() => setOpen(!shown)}>
      ${running ? html`<span class="spin"></span>` : html`<${Icon} name=${ICONS[item.name] ?? "tool"} />`}
      ${
        line !== null
          ? html`<span class="cut grow tool-line">${line}</span>${developer.value && html`<span class="tool-brief">${item.name}</span>`}`
          : html`<span class="tool-name">${developer.value ? item.name : (WORDS[item.name] ?? item.name.replaceAll("_", " "))}</span>
      <span class="cut grow tool-brief">${brief(item.args)}</span>`
      }
      ${status !== "ok" && html`<span class=${`tag ${status === "waits" ? "warn" : running ? "" : "bad"}`}>${STATES[status] ?? status}</span>`}
      <span class="tiny muted"><${Duration} item=${item} running=${running} /></span><span class="sr">${STATES[status]}</span><${Icon} name=${shown ? "down" : "right"} />
    </button>
    ${!shown && lines && html`<pre class="tool-live" aria-hidden="true">${lines}</pre>`}
    ${
      shown &&
      html`<div class="tool-body">
      ${(developer.value || item.name === "shell" || (status === "error" && !ours)) && html`<h4>${item.name === "shell" ? "Command" : "Called with"}</h4><pre tabindex="0">${calledWith(item)}</pre>`}
      ${item.source && html`<p class="small muted">Came from ${item.source}: not trusted like your own words</p>`}
      ${status === "ok" && (isEdit(item.name) || item.name === "shell") && html`<${CallDiff} item=${item} />`}
      ${
        ours
          ? html`<${Opened} item=${item} status=${status} text=${text} />`
          : html`<h4>${running ? "So far" : "Result"}</h4>
      ${text ? html`<pre tabindex="0">${text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}\n… ${text.length - SHOWN_CHARS} more characters` : text}</pre><button type="button" class="btn little quiet" onClick=${() => copy(text)}>Copy</button>` : html`<p class="small muted">${running ? "Nothing yet" : "It said nothing"}</p>`}`
      }
    </div>`
    }
  </div>`;
}

/** What a call was given: a command as it was typed, all else as data. */
function calledWith({ name, args }) {
  if (typeof args === "string") return args;
  const { command, ...more } = args ?? {},
    plain = name === "shell" && typeof command === "string";
  if (!plain) return JSON.stringify(args, null, 2);
  return Object.keys(more).length ? `${command}\n\n${JSON.stringify(more)}` : command;
}

/** Rehearsals that follow each other, as one line that opens. */
export function Rehearsals({ items, now }) {
  const [open, setOpen] = useState(false),
    last = items.at(-1),
    early = now?.results[last.callId];
  const status = early && last.status === "running" ? early.status : last.status,
    running = status === "running";
  return html`<div class=${`tool ${running ? "running" : "ok"}`}>
    <button type="button" class="tool-head" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
      ${running ? html`<span class="spin"></span>` : html`<${Icon} name="code" />`}
      <span class="tool-name">${items.length} rehearsals</span><span class="cut grow tool-line muted">${lineOf(last, status, last.text || early?.text || "").replace(/^Rehearsed: /, "the last ")}</span>
      <${Icon} name=${open ? "down" : "right"} />
    </button>
    ${open && html`<ol class="rehearsals" aria-label="Rehearsals">${items.map((item) => html`<li key=${item.key}><${Tool} item=${item} output=${now?.outputs[item.callId]} early=${now?.results[item.callId]} /></li>`)}</ol>`}
  </div>`;
}

function Duration({ item, running }) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, [running]);
  const seconds = (item.end ?? now) - item.since;
  return seconds >= 0.5 ? took(seconds) : "";
}
