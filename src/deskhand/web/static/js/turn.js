// One turn: the person's message, what the agent thought, did and answered, and a summary line.

import { branchSession, retryTurn, rewindSession } from "./actions.js";
import { Ask } from "./asks.js";
import { ToolFiles } from "./attachment.js";
import { isUnheard } from "./fold-items.js";
import { capitalize, formatCount, formatDateTime, formatDuration, formatTime } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { t, tCount, tNotice } from "./language.js";
import { html, useLayoutEffect, useState } from "./lib.js";
import { UserMessage } from "./message.js";
import { REHEARSE, SURVEY } from "./programs.js";
import { canSay, developer, hasScope } from "./state.js";
import { copyText, Markdown } from "./text.js";
import { Rehearsals, Tool } from "./tool.js";
import { summarizeTurn } from "./turn-summary.js";
import { lastAnswer, readAnswer, speaking, stopSpeaking } from "./voice.js";

const REASONS = {
  stopped: t("Stopped"),
  failed: t("Failed"),
  steps: t("Stopped: too many steps"),
  tokens: t("Stopped: too many tokens"),
  loop: t("Stopped: it repeated itself"),
  dead: t("Gave up"),
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
  return html`
    <article
      data-first=${turn.first}
      class=${`turn ${turn.undone ? "undone" : ""}`}
      aria-label=${t("Turn of {time}", { time: formatTime(turn.at) })}
    >
      ${groupItems(items).map((group) => {
        if (group.made)
          return html`
            <${ToolFiles} key=${group.key} parts=${group.made} caption=${group.caption} />
          `;
        if (group.tools)
          return html`<${ToolList} key=${group.key} tools=${group.tools} now=${now} />`;
        return html`<${Item} key=${group.item.key} item=${group.item} turn=${turn} last=${last} />`;
      })}
      ${
        now &&
        !now.live?.text &&
        (now.status || !now.live?.thinking) &&
        !waits &&
        html`<${Working} turn=${turn} now=${now} />`
      }
      ${turn.mark && html`<p class="note warn">${turn.mark}</p>`}
      ${
        turn.end !== null &&
        turn.reason !== "aside" &&
        turn.reason !== "kept" &&
        html`<${TurnFooter} turn=${turn} last=${last} />`
      }
    </article>
  `;
}

function ToolList({ tools, now }) {
  return html`
    <ol class="tools" aria-label=${t("What was done")}>
      ${groupRows(tools).map(
        (row) => html`
          <li key=${row[0].key}>
            ${
              row.length > 1
                ? html`<${Rehearsals} items=${row} now=${now} />`
                : html`
                    <${Tool}
                      item=${row[0]}
                      output=${now?.outputs[row[0].callId]}
                      early=${now?.results[row[0].callId]}
                    />
                  `
            }
          </li>
        `,
      )}
    </ol>
  `;
}

/** Calls that follow each other are one list; the files that they made are shown below it. */
function groupItems(items) {
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
        caption: item.name === "send_file" ? readCaption(item.args) : "",
      });
  }
  return found;
}

function readCaption(args) {
  const words = args?.text ?? args?.caption ?? args?.message;
  return typeof words === "string" ? words : "";
}

/** A row for each call; rehearsals that follow each other share a row. */
function groupRows(tools) {
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
      return html`<${UserMessage} item=${item} turn=${turn} />`;
    case "answer":
      return html`<${Answer} item=${item} stopped=${turn.reason === "stopped"} />`;
    case "ask":
      return item.answer ? html`<${Ask} ask=${item} />` : null;
    case "command":
      return html`
        <div class="command-run">
          ${item.text && html`<p class="small"><code>${item.text}</code></p>`}
          <p class="pre muted">${tNotice(item.reply)}</p>
        </div>
      `;
    case "divider":
      return html`<p class="divider"><span>${describeDivider(item)}</span></p>`;
    case "note":
      return html`<${Note} item=${item} last=${last && turn.end !== null} />`;
    default:
      return null;
  }
}

const describeDivider = ({ text, dropped }) =>
  dropped ? `${text} (${tCount(dropped, "{count} message", "{count} messages")})` : text;

const RETRY_SHOWN_S = 30; // the time of the next try is shown where the wait is longer than this

function Note({ item, last }) {
  const advice =
    item.retryAt - item.at > RETRY_SHOWN_S
      ? t("{advice} at {time}.", {
          advice: item.after.replace(/\.$/, ""),
          time: formatDateTime(item.retryAt),
        })
      : item.after;
  return html`
    <div class=${`note ${item.tone}`}>
      <p class="pre">${tNotice(item.text)} ${advice}</p>
      ${
        last &&
        item.tone === "bad" &&
        hasScope("chat") &&
        html`
          <div class="row">
            <button type="button" class="btn little" onClick=${retryTurn}>
              <${Icon} name="retry" />${t("Try again")}
            </button>
            <a class="btn little" href="#/settings/models">${t("Use another model")}</a>
          </div>
        `
      }
    </div>
  `;
}

function Answer({ item, stopped }) {
  return html`
    <div class="answer">
      ${
        item.thinking &&
        html`
          <${Thinking}
            text=${item.thinking}
            growing=${item.growing && !item.text}
            code=${item.program}
          />
        `
      }
      ${item.text && html`<${Markdown} text=${item.text} live=${item.growing} />`}
      ${
        item.finish === "interrupted" &&
        !stopped &&
        html`<p class="note">${t("Interrupted here")}</p>`
      }
      ${
        item.finish === "length" &&
        html`<p class="note">${t("Cut off: the model's answer reached its limit")}</p>`
      }
      ${
        item.finish === "filtered" &&
        html`<p class="note warn">${t("The provider's filter ended this answer")}</p>`
      }
    </div>
  `;
}

/** What the model thought. While it thinks, the end is shown; a small model may write a program. */
function Thinking({ text, growing, code = false }) {
  const program = code || /^\s*```/.test(text);
  const said = program ? text.replace(/^\s*```\w*\n?/, "") : text;
  if (!growing)
    return html`
      <details class="thinking">
        <summary>${t("Thought about it")}</summary>
        <p class="pre">${said}</p>
      </details>
    `;
  return html`
    <details class="thinking">
      <summary>
        <span class="spin"></span>${program ? t("Writing a program") : t("Thinking")}
      </summary>
      <p class=${program ? "pre code" : "pre"}>${said}</p>
    </details>
    <pre class=${`thought ${program ? "program" : ""}`} aria-hidden="true">
      ${said.trimEnd().split("\n").slice(-4).join("\n").slice(-600)}
    </pre>
  `;
}

function Working({ turn, now }) {
  const running = turn.items.some((item) => item.kind === "tool" && item.status === "running");
  if (running && !now.status) return null;
  const unheard = turn.items.some((item) => item.kind === "user" && item.parts.some(isUnheard));
  const usual = unheard ? t("Listening") : t("Working");
  return html`
    <p class="working">
      <span class="spin"></span>
      ${capitalize(now.status) || usual}
    </p>
  `;
}

function describeUsage({ usage, model }) {
  const { read, written } = usage;
  return [t("{read} tokens read, {written} written", { read, written }), model]
    .filter(Boolean)
    .join(", ");
}

/** Reads the last answer of a turn aloud, or stops reading it. */
function SpeakButton({ turn }) {
  const number = lastAnswer(turn)?.n;
  if (!number || !canSay() || turn.reason === "kept") return null;
  const now = speaking.value?.n === number;
  return html`
    <${IconButton}
      name=${now ? "stop" : "speaker"}
      little
      label=${now ? t("Stop reading") : t("Read this answer aloud")}
      onClick=${now ? stopSpeaking : () => readAnswer(number)}
    />
  `;
}

/** The summary of a turn, made from its log and not by the model. */
function TurnFooter({ turn, last }) {
  const summary = summarizeTurn(turn);
  const spent = turn.usage.read + turn.usage.written;
  const facts = [
    REASONS[turn.reason],
    summary,
    formatDuration(turn.end - turn.at),
    spent ? tCount(spent, "{count} token", "{count} tokens", { count: formatCount(spent) }) : "",
  ].filter(Boolean);
  const answer = turn.items
    .filter((item) => item.kind === "answer")
    .map((item) => item.text)
    .join("\n\n");
  return html`
    <footer class="did">
      <p class="cut-2" title=${spent ? describeUsage(turn) : null}>
        <span class="sr">${t("What I did:")} </span>
        ${facts.join(" · ")}
      </p>
      <div class="acts" role="group" aria-label=${t("What to do with this answer")}>
        ${
          answer &&
          html`
            <${IconButton}
              name="copy"
              little
              label=${t("Copy this answer")}
              onClick=${() => copyText(answer)}
            />
          `
        }
        <${SpeakButton} turn=${turn} />
        ${
          hasScope("chat") &&
          !turn.undone &&
          html`
            ${
              last &&
              html`
                <${IconButton}
                  name="retry"
                  little
                  label=${t("Try this turn again")}
                  onClick=${retryTurn}
                />
              `
            }
            <${IconButton}
              name="branch"
              little
              label=${t("Branch from here: a new conversation")}
              onClick=${() => branchSession(turn.last)}
            />
            ${
              !last &&
              html`
                <${IconButton}
                  name="undo"
                  little
                  label=${t("Undo to here: go on as if nothing had followed")}
                  onClick=${() => rewindSession(turn.last)}
                />
              `
            }
          `
        }
        ${developer.value && html`<span class="tiny muted">${turn.first}–${turn.last}</span>`}
      </div>
    </footer>
  `;
}

/** Turns that were undone, folded; open where one of them is `wanted`. */
export function UndoneTurns({ turns, wanted }) {
  const [open, setOpen] = useState(false);
  useLayoutEffect(() => {
    if (wanted) setOpen(true);
  }, [wanted]);
  return html`
    <div class="undone-group">
      <button
        type="button"
        class="divider"
        aria-expanded=${String(open)}
        onClick=${() => setOpen(!open)}
      >
        <span>
          ${tCount(turns.length, "{count} turn undone", "{count} turns undone")} ·${" "}
          ${open ? t("hide") : t("show")}
        </span>
      </button>
      ${
        open &&
        turns.map((turn) => html`<${Turn} key=${turn.id} turn=${turn} last=${false} now=${null} />`)
      }
    </div>
  `;
}
