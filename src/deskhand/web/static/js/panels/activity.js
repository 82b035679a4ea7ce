// What agents do, in all conversations at once.

import { formatDateTime, formatDuration, formatTime, nameDay, summarizeArgs } from "../format.js";
import { t } from "../language.js";
import { html, useEffect } from "../lib.js";
import { activity, busySessions } from "../list.js";
import { More, usePages } from "../more.js";
import { sessionHref } from "../state.js";
import { Empty, Loaded, Section } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const readPage = ({ events, more }) => ({ rows: events.toReversed(), next: more });
const isSameCall = (one, other) =>
  one.tool_call_id === other.tool_call_id &&
  one.type === other.type &&
  one.session_id === other.session_id;

export function Activity() {
  const found = usePages("/api/activity?limit=60", readPage);
  const { value } = activity;
  const running = busySessions.value;
  useEffect(() => {
    if (found.rows) found.renew(isSameCall);
  }, [value]);
  return html`
    <div class="stack wide">
      <${Section} title=${t("Now")}>
        ${
          running.length
            ? html`
                <ul class="rows">
                  ${running.map((one) => drawRunning(one, value[one.key] === "asking"))}
                </ul>
              `
            : html`<${Empty}>${t("Nothing runs.")}<//>`
        }
      <//>
      <${Section} title=${t("Tools used")} note=${t("The latest first.")}>
        <${Loaded}
          result=${{ data: found.rows ?? undefined, error: found.error }}
          what=${t("activity")}
        >
          ${(rows) =>
            rows.length
              ? html`
                  <ul class="rows">${mergeCalls(rows).map(drawCall)}</ul>
                  ${
                    found.more &&
                    html`
                      <${More}
                        key=${found.next}
                        more=${found.more}
                        label=${t("Show earlier calls")}
                      />
                    `
                  }
                `
              : html`
                  <${Empty}>
                    <span>
                      ${t(
                        "No tool was used yet. Each file that an agent reads, each page and each command is listed here, whatever conversation it belongs to.",
                      )}
                    </span>
                    <${Suggestion} text=${t("Which files are in your workspace?")}>
                      ${t("Try an example")}
                    <//>
                  <//>
                `}
        <//>
      <//>
    </div>
  `;
}

function drawRunning(one, asking) {
  return html`
    <li key=${one.key}>
      <span class=${`dot ${asking ? "asks" : "runs"}`}></span>
      <a class="grow cut" href=${sessionHref(one.name)}>${one.title || t("Untitled")}</a>
      <span class="tag">${asking ? t("waits for an answer") : t("running")}</span>
    </li>
  `;
}

function drawCall(one) {
  return html`
    <li key=${`${one.session_id} ${one.tool_call_id}`}>
      <span class="tiny muted num">
        ${
          nameDay(one.timestamp) === nameDay(Date.now() / 1000)
            ? formatTime(one.timestamp)
            : formatDateTime(one.timestamp)
        }
      </span>
      <span class="grow">
        <strong>${one.tool}</strong>
        <span class="small muted cut">${summarizeArgs(one.input, 160) || one.result_preview}</span>
      </span>
      ${
        one.type === "tool_result"
          ? html`
              <span class=${`tag ${one.success ? "good" : "bad"}`}>
                ${one.success ? t("done") : t("failed")}
                ${one.duration_ms ? ` · ${formatDuration(one.duration_ms / 1000)}` : ""}
              </span>
            `
          : html`<span class="tag">${t("called")}</span>`
      }
      <a class="small" href=${sessionHref(one.session_id)}>${t("open")}</a>
    </li>
  `;
}

/** A call and what came of it are one line. The latest first. */
function mergeCalls(lines) {
  const found = new Map();
  for (const line of lines) {
    const key = `${line.session_id} ${line.tool_call_id}`;
    found.set(key, { ...line, ...found.get(key), input: found.get(key)?.input ?? line.input });
  }
  return [...found.values()];
}
