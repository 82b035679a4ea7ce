// A tool call as a card: one line that opens. While it runs, the end of its output is shown.

import { CallDiff, isEdit } from "./diff.js";
import { formatDuration, summarizeArgs } from "./format.js";
import { Icon } from "./icons.js";
import { t, tCount } from "./language.js";
import { useLazyComponent } from "./lazy-component.js";
import { html, useEffect, useState } from "./lib.js";
import { describeRehearsal, lineOf, ProgramDetails, REHEARSE, RUN } from "./programs.js";
import { developer, hasScope } from "./state.js";
import { copyText } from "./text.js";
import { WatchLink } from "./watch-link.js";

const ICONS = {
  spawn_agent: "spark",
  shell: "shell",
  read_file: "file",
  write_file: "edit",
  edit_file: "edit",
  send_file: "file",
  exit_plan_mode: "check",
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
  spawn_agent: t("Sub-agent"),
  read_file: t("Read"),
  write_file: t("Write"),
  edit_file: t("Edit"),
  send_file: t("Send"),
  exit_plan_mode: t("Plan"),
  list_files: t("Look through"),
  search_files: t("Search for"),
  shell: t("Run"),
  ask_user: t("Ask"),
  read_skill: t("Read skill"),
};
const STATES = {
  ok: t("done"),
  error: t("failed"),
  denied: t("not allowed"),
  expired: t("expired"),
  unasked: t("unasked"),
  interrupted: t("interrupted"),
  superseded: t("superseded"),
  running: t("running"),
  waits: t("waits for you"),
};
const SPAWNING = new Set(["spawn_agent", "subagents", "task", "delegate", "localagents"]);
const TONES = { waits: "warn", running: "" };
const SHOWN_CHARS = 20000;
const OUTSIDE = " is outside the workspace, so it is not ";

export function Tool({ item, output = "", early = null }) {
  const status = early && item.status === "running" ? early.status : item.status;
  const running = status === "running";
  const text = item.text || early?.text || output;
  const [open, setOpen] = useState(null);
  const shown = open ?? false;
  const line = lineOf(item, status, text);
  const isProgram = line !== null && (item.name === RUN || item.name === REHEARSE);
  const lines = running && output ? output.trimEnd().split("\n").slice(-4).join("\n") : "";
  const label = WORDS[item.name] ?? item.name.replaceAll("_", " ");
  return html`
    <div class=${`tool ${status}`}>
      <button
        type="button"
        class="tool-head"
        aria-expanded=${String(shown)}
        onClick=${() => setOpen(!shown)}
      >
        ${
          running
            ? html`<span class="spin"></span>`
            : html`<${Icon} name=${ICONS[item.name] ?? "tool"} />`
        }
        ${
          line !== null
            ? html`
                <span class="cut grow tool-line">${line}</span>
                ${developer.value && html`<span class="tool-brief">${item.name}</span>`}
              `
            : html`
                <span class="tool-name">${developer.value ? item.name : label}</span>
                <span class="cut grow tool-brief">${summarizeArgs(item.args)}</span>
              `
        }
        ${
          status !== "ok" &&
          html`<span class=${`tag ${TONES[status] ?? "bad"}`}>${STATES[status] ?? status}</span>`
        }
        <span class="tiny muted"><${Duration} item=${item} running=${running} /></span>
        <span class="sr">${STATES[status]}</span>
        <${Icon} name=${shown ? "down" : "right"} />
      </button>
      <${WatchLink} item=${item} running=${running} />
      ${SPAWNING.has(item.name) && html`<${LazySubagents} item=${item} running=${running} />`}
      ${
        status === "error" &&
        text.includes(OUTSIDE) &&
        hasScope("admin") &&
        html`<${LazyFolderAccess} item=${item} text=${text} />`
      }
      ${!shown && lines && html`<pre class="tool-live" aria-hidden="true">${lines}</pre>`}
      ${
        shown &&
        html`
          <div class="tool-body">
            ${
              (developer.value || item.name === "shell" || (status === "error" && !isProgram)) &&
              html`
                <h4>${item.name === "shell" ? t("Command") : t("Arguments")}</h4>
                <pre tabindex="0">${formatCall(item)}</pre>
              `
            }
            ${
              item.source &&
              html`
                <p class="small muted">
                  ${t("From {source}: less trusted than your own words", { source: item.source })}
                </p>
              `
            }
            ${
              status === "ok" &&
              (isEdit(item.name) || item.name === "shell") &&
              html`<${CallDiff} item=${item} />`
            }
            ${
              isProgram
                ? html`<${ProgramDetails} item=${item} status=${status} text=${text} />`
                : drawResult(text, running)
            }
          </div>
        `
      }
    </div>
  `;
}

/** The sub-agents of a call, loaded with the first that has any. */
function LazySubagents({ item, running }) {
  const load = () => import("./subagents.js").then((found) => found.Subagents);
  const Drawn = useLazyComponent("subagents", load);
  return Drawn ? html`<${Drawn} item=${item} running=${running} />` : null;
}

/** The folder that a call could not use, with a way to allow it. */
function LazyFolderAccess({ item, text }) {
  const load = () => import("./panels/folder-access.js").then((found) => found.FolderAccess);
  const Drawn = useLazyComponent("folder-access", load);
  return Drawn ? html`<${Drawn} item=${item} text=${text} />` : null;
}

function drawResult(text, running) {
  const shown = text.slice(0, SHOWN_CHARS);
  const rest = text.length - shown.length;
  const more = rest ? tCount(rest, "… {count} more character", "… {count} more characters") : "";
  return html`
    <h4>${running ? t("So far") : t("Result")}</h4>
    ${
      text
        ? html`
            <pre tabindex="0">${shown}${more && `\n${more}`}</pre>
            <button type="button" class="btn little quiet" onClick=${() => copyText(text)}>
              ${t("Copy")}
            </button>
          `
        : html`<p class="small muted">${running ? t("No output yet") : t("No output")}</p>`
    }
  `;
}

/** What a call was given: a command as it was typed, all else as data. */
function formatCall({ name, args }) {
  if (typeof args === "string") return args;
  const { command, ...more } = args ?? {};
  const plain = name === "shell" && typeof command === "string";
  if (!plain) return JSON.stringify(args, null, 2);
  return Object.keys(more).length ? `${command}\n\n${JSON.stringify(more)}` : command;
}

/** Rehearsals that follow each other, as one line that opens. */
export function Rehearsals({ items, now }) {
  const [open, setOpen] = useState(false);
  const last = items.at(-1);
  const early = now?.results[last.callId];
  const status = early && last.status === "running" ? early.status : last.status;
  const running = status === "running";
  const line = describeRehearsal(status, last.text || early?.text || "", true);
  return html`
    <div class=${`tool ${running ? "running" : "ok"}`}>
      <button
        type="button"
        class="tool-head"
        aria-expanded=${String(open)}
        onClick=${() => setOpen(!open)}
      >
        ${running ? html`<span class="spin"></span>` : html`<${Icon} name="code" />`}
        <span class="tool-name">
          ${tCount(items.length, "{count} rehearsal", "{count} rehearsals")}
        </span>
        <span class="cut grow tool-line muted">${line}</span>
        <${Icon} name=${open ? "down" : "right"} />
      </button>
      ${
        open &&
        html`
          <ol class="rehearsals" aria-label=${t("Rehearsals")}>
            ${items.map(
              (item) => html`
                <li key=${item.key}>
                  <${Tool}
                    item=${item}
                    output=${now?.outputs[item.callId]}
                    early=${now?.results[item.callId]}
                  />
                </li>
              `,
            )}
          </ol>
        `
      }
    </div>
  `;
}

function Duration({ item, running }) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, [running]);
  const seconds = (item.end ?? now) - item.since;
  return seconds >= 0.5 ? formatDuration(seconds) : "";
}
