// One turn: what the person said, what the agent thought, did and answered, and a line on what it did.

import { Ask } from "./asks.js";
import { Attachments, Made } from "./attachment.js";
import { whatIDid } from "./fold.js";
import { clock, count, many, moment, took } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { html, useLayoutEffect, useState } from "./lib.js";
import { REHEARSE, SURVEY } from "./programs.js";
import { announce, developer, may, me } from "./state.js";
import { branch, drop, retry, rewind, sendWaiting, talk } from "./talk.js";
import { copy, Markdown } from "./text.js";
import { Rehearsals, Tool } from "./tool.js";

const REASONS = {
  stopped: "Stopped",
  failed: "Failed",
  steps: "Stopped: too many steps",
  tokens: "Stopped: too many tokens",
  loop: "Stopped: it went in circles",
  dead: "Given up",
};

export function Turn({ turn, last, now }) {
  const items = [...turn.items];
  if (now?.live && (now.live.text || now.live.thinking))
    items.push({
      kind: "answer",
      key: `${now.live.n}.answer`,
      n: now.live.n,
      text: now.live.text,
      thinking: now.live.thinking,
      growing: true,
      program: [SURVEY, REHEARSE].includes(items.at(-1)?.name),
    });
  const waits = items.some((item) => item.kind === "ask" && !item.answer);
  return html`<article data-first=${turn.first} class=${`turn ${turn.undone ? "undone" : ""}`} aria-label=${`Turn of ${clock(turn.at)}`}>
    ${runs(items).map((run) => (run.made ? html`<${Made} key=${run.key} parts=${run.made} caption=${run.caption} />` : run.tools ? html`<ol class="tools" key=${run.key} aria-label="What was done">${rows(run.tools).map((row) => html`<li key=${row[0].key}>${row.length > 1 ? html`<${Rehearsals} items=${row} now=${now} />` : html`<${Tool} item=${row[0]} output=${now?.outputs[row[0].callId]} early=${now?.results[row[0].callId]} />`}</li>`)}</ol>` : html`<${Item} key=${run.item.key} item=${run.item} turn=${turn} last=${last} />`))}
    ${now && !now.live?.text && (now.status || !now.live?.thinking) && !waits && html`<${Working} turn=${turn} now=${now} />`}
    ${turn.mark && html`<p class="note warn">${turn.mark}</p>`}
    ${turn.end !== null && turn.reason !== "aside" && turn.reason !== "kept" && html`<${Did} turn=${turn} last=${last} />`}
  </article>`;
}

/** Calls that follow each other stand in one list; what they made stands below it. */
function runs(items) {
  const found = [];
  for (const item of items) {
    if (item.kind !== "tool") found.push({ item });
    else if (found.at(-1)?.tools) found.at(-1).tools.push(item);
    else found.push({ key: `t${item.key}`, tools: [item] });
    const made =
      item.kind === "tool" && item.status === "ok" ? item.parts.filter((part) => part.blob) : [];
    if (made.length)
      found.push({
        key: `m${item.key}`,
        made,
        caption: item.name === "send_file" ? captionOf(item.args) : "",
      });
  }
  return found;
}

function captionOf(args) {
  const words = args?.text ?? args?.caption ?? args?.message;
  return typeof words === "string" ? words : "";
}

/** A row for each call; rehearsals that follow each other share one. */
function rows(tools) {
  const found = [];
  for (const item of tools) {
    if (item.name === REHEARSE && found.at(-1)?.[0].name === REHEARSE) found.at(-1).push(item);
    else found.push([item]);
  }
  return found;
}

function Item({ item, turn, last }) {
  switch (item.kind) {
    case "user":
      return html`<${User} item=${item} turn=${turn} />`;
    case "answer":
      return html`<${Answer} item=${item} stopped=${turn.reason === "stopped"} />`;
    case "ask":
      return item.answer ? html`<${Ask} ask=${item} />` : null;
    case "command":
      return html`<div class="command-run">${item.text && html`<p class="small"><code>${item.text}</code></p>`}<p class="pre muted">${item.reply}</p></div>`;
    case "divider":
      return html`<p class="divider"><span>${item.text}${item.dropped ? ` (${many(item.dropped, "message")})` : ""}</span></p>`;
    case "note":
      return html`<${Note} item=${item} last=${last && turn.end !== null} />`;
    default:
      return null;
  }
}

const SAID_S = 30; // who waits for a model for longer is told until when

function Note({ item, last }) {
  const then =
    item.retryAt - item.at > SAID_S
      ? item.after.replace(/\.$/, ` at ${moment(item.retryAt)}.`)
      : item.after;
  return html`<div class=${`note ${item.tone}`}><p class="pre">${item.text} ${then}</p>
    ${last && item.tone === "bad" && may("chat") && html`<div class="row"><button type="button" class="btn little" onClick=${retry}><${Icon} name="retry" />Try again</button><a class="btn little" href="#/house/models">Use another model</a></div>`}</div>`;
}

function User({ item, turn }) {
  const [editing, setEditing] = useState(false),
    first = turn.items[0] === item;
  const foreign =
    (item.by && item.by !== me.value.user) || (item.channel && item.channel !== "web");
  if (editing)
    return html`<${Editor} item=${item} turn=${turn} close=${() => setEditing(false)} />`;
  return html`<div class="said-by-me">
    ${foreign && html`<p class="tiny muted">${[item.by, item.channel && item.channel !== "web" ? `on ${item.channel}` : ""].filter(Boolean).join(" ")}</p>`}
    <div class="bubble">${item.parts.length > 0 && html`<${Attachments} parts=${item.parts} />`}${item.text && html`<p class="pre" dir="auto">${item.text}</p>`}</div>
    <div class="acts" role="group" aria-label="What to do with this message">
      ${item.edited && html`<span class="tiny muted">edited</span>`}${item.emoji && html`<span>${item.emoji}</span>`}
      <time class="tiny muted" datetime=${new Date(item.at * 1000).toISOString()} title=${moment(item.at)}>${clock(item.at)}</time>
      <${IconButton} name="copy" little label="Copy this message" onClick=${() => copy(item.text)} />
      ${first && may("chat") && !turn.undone && turn.reason !== "kept" && html`<${IconButton} name="edit" little label="Edit and send again" onClick=${() => setEditing(true)} />`}
    </div>
  </div>`;
}

function Editor({ item, turn, close }) {
  const send = async (event) => {
    event.preventDefault();
    const text = new FormData(event.target.form ?? event.target).get("text").trim();
    if (text && (await rewind(turn.first - 1, { text })) !== undefined) {
      close();
      announce("Sent again");
    }
  };
  const key = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
    if (event.key === "Enter" && !event.shiftKey) send(event);
  };
  return html`<form class="editor" onSubmit=${send}><textarea name="text" rows="3" aria-label="Your message" defaultValue=${item.text} onKeyDown=${key} ref=${(field) => field?.focus()}></textarea>
    <p class="tiny muted grow">What followed is undone: it stays in the log, and the agent goes on from here. Files stay as they are.</p>
    <div class="row"><button type="submit" class="btn main little">Send again</button><button type="button" class="btn little" onClick=${close}>Cancel</button></div></form>`;
}

function Answer({ item, stopped }) {
  return html`<div class="answer">
    ${item.thinking && html`<${Thought} text=${item.thinking} growing=${item.growing && !item.text} code=${item.program} />`}
    ${item.text && html`<${Markdown} text=${item.text} live=${item.growing} />`}
    ${item.finish === "interrupted" && !stopped && html`<p class="note">Interrupted here</p>`}
    ${item.finish === "length" && html`<p class="note">Cut off: the model's answer reached its limit</p>`}
    ${item.finish === "filtered" && html`<p class="note warn">The provider's filter ended this answer</p>`}
  </div>`;
}

/** What it thought. While it thinks, the end of it is in sight; a small model thinks of a program. */
function Thought({ text, growing, code = false }) {
  const program = code || /^\s*```/.test(text),
    said = program ? text.replace(/^\s*```\w*\n?/, "") : text;
  if (!growing)
    return html`<details class="thinking"><summary>Thought about it</summary><p class="pre">${said}</p></details>`;
  return html`<details class="thinking"><summary><span class="spin"></span>${program ? "Writing a program" : "Thinking"}</summary><p class=${program ? "pre code" : "pre"}>${said}</p></details>
    <pre class=${`thought ${program ? "program" : ""}`} aria-hidden="true">${said.trimEnd().split("\n").slice(-4).join("\n").slice(-600)}</pre>`;
}

function Working({ turn, now }) {
  const running = turn.items.some((item) => item.kind === "tool" && item.status === "running");
  if (running && !now.status) return null;
  return html`<p class="working"><span class="spin"></span>${now.status || "Working"}</p>`;
}

/** What stands under a turn: made from its log, not by the model. */
function Did({ turn, last }) {
  const did = whatIDid(turn),
    spent = turn.usage.read + turn.usage.written;
  const facts = [
    REASONS[turn.reason],
    did,
    took(turn.end - turn.at),
    spent ? `${count(spent)} tokens` : "",
  ].filter(Boolean);
  const answer = turn.items
    .filter((item) => item.kind === "answer")
    .map((item) => item.text)
    .join("\n\n");
  return html`<footer class="did"><p class="cut-2" title=${spent ? `${turn.usage.read} tokens read, ${turn.usage.written} written${turn.model ? `, ${turn.model}` : ""}` : null}><span class="sr">What I did: </span>${facts.join(" · ")}</p>
    <div class="acts" role="group" aria-label="What to do with this answer">
      ${answer && html`<${IconButton} name="copy" little label="Copy this answer" onClick=${() => copy(answer)} />`}
      ${
        may("chat") &&
        !turn.undone &&
        html`${last && html`<${IconButton} name="retry" little label="Try this turn again" onClick=${retry} />`}
      <${IconButton} name="branch" little label="Branch from here: a new conversation" onClick=${() => branch(turn.last)} />
      ${!last && html`<${IconButton} name="undo" little label="Undo to here: go on as if nothing had followed" onClick=${() => rewind(turn.last)} />`}`
      }
      ${developer.value && html`<span class="tiny muted">${turn.first}–${turn.last}</span>`}
    </div></footer>`;
}

/** Turns that were undone, folded; open where one of them is `wanted`. */
export function Undone({ turns, wanted }) {
  const [open, setOpen] = useState(false);
  useLayoutEffect(() => {
    if (wanted) setOpen(true);
  }, [wanted]);
  return html`<div class="undone-group"><button type="button" class="divider" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}><span>${many(turns.length, "turn")} undone · ${open ? "hide" : "show"}</span></button>
    ${open && turns.map((turn) => html`<${Turn} key=${turn.id} turn=${turn} last=${false} now=${null} />`)}</div>`;
}

/** A message that is not in the log yet. */
export function Waiting({ message }) {
  const state = message.failed
    ? message.failed
    : message.inbox
      ? talk.value.open
        ? "Waits its turn"
        : "Received"
      : "Waits to be sent";
  return html`<div class="said-by-me waiting"><div class="bubble">${message.files.length > 0 && html`<ul class="attached">${message.files.map((file) => html`<li key=${file.blob}><span class="chip"><${Icon} name="file" />${file.name}</span></li>`)}</ul>`}<p class="pre">${message.text}</p></div>
    <div class="acts shown"><span class=${`tiny ${message.failed ? "failed" : "muted"}`} role=${message.failed ? "alert" : null}>${state}</span>
    ${
      message.failed &&
      html`<button type="button" class="btn little" onClick=${() => {
        message.failed = "";
        sendWaiting();
      }}>Send again</button>`
    }
    ${!message.inbox && html`<button type="button" class="btn little quiet" onClick=${() => drop(message.id)}>Discard</button>`}</div></div>`;
}
