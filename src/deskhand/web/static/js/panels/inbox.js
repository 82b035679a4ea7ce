// The inbox: what waits for an answer, what failed, and what finished while nobody was looking.

import { call } from "../api.js";
import { DrawerButton } from "../drawer-button.js";
import { formatDateTime, formatDuration, formatTime, nameDay } from "../format.js";
import { Icon } from "../icons.js";
import { clearInboxCount, inboxChanges } from "../inbox-count.js";
import { t, tServer } from "../language.js";
import { html, useEffect, useRef } from "../lib.js";
import { asks } from "../list.js";
import { More, usePages } from "../more.js";
import { describeCall } from "../plain-words.js";
import { attempt, sessionHref } from "../state.js";
import { Empty, Loaded, Section } from "./parts.js";
import { PushDevices } from "./push-devices.js";

const readPage = ({ items, more }) => ({ rows: items, next: more });
const isSame = (one, other) => one.seq === other.seq;
const formatWhen = (at) =>
  nameDay(at) === nameDay(Date.now() / 1000) ? formatTime(at) : nameDay(at);
const QUESTION_CHARS = 160;
const BY = { you: "", job: t("job"), agent: t("sub-agent") };

export function Inbox() {
  const found = usePages("/api/inbox?limit=30", readPage);
  const top = useRef();
  const changes = inboxChanges.value;
  useEffect(() => top.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    if (found.rows) found.renew(isSame);
  }, [changes]);
  const newest = found.rows?.[0]?.seq;
  const fresh = (found.rows ?? []).filter((one) => one.is_new);
  const markSeen = () =>
    attempt(async () => {
      await call("PUT", "/api/inbox/seen", { seq: newest });
      clearInboxCount();
      found.renew(isSame);
    });
  return html`
    <div class="settings-view">
      <header class="head">
        <${DrawerButton} />
        <h1 class="title">${t("Inbox")}</h1>
        <span class="grow"></span>
        ${
          fresh.length > 0 &&
          html`
            <button type="button" class="btn little" onClick=${markSeen}>
              ${t("Mark all as read")}
            </button>
          `
        }
      </header>
      <div
        class="page inbox"
        id="page"
        role="region"
        aria-label=${t("Inbox")}
        tabindex="-1"
        ref=${top}
      >
        <div class="stack wide">
          ${asks.value.length > 0 && html`<${Waiting} />`}
          <${Loaded}
            result=${{ data: found.rows ?? undefined, error: found.error }}
            what=${t("the inbox")}
          >
            ${(rows) =>
              rows.length
                ? html`
                    ${
                      fresh.length > 0 &&
                      html`<${Section} title=${t("New")}><${Items} rows=${fresh} /><//>`
                    }
                    ${
                      (fresh.length < rows.length || found.more) &&
                      html`
                        <${Section} title=${t("Earlier")}>
                          <${Items} rows=${rows.filter((one) => !one.is_new)} />
                          ${
                            found.more &&
                            html`
                              <${More}
                                key=${found.next}
                                more=${found.more}
                                label=${t("Show earlier")}
                              />
                            `
                          }
                        <//>
                      `
                    }
                  `
                : html`
                    <${Empty}>
                      ${t(
                        "When an agent asks you, finishes long work or a job, or fails, it is listed here, whatever conversation it belongs to.",
                      )}
                    <//>
                  `}
          <//>
          <${PushDevices} />
        </div>
      </div>
    </div>
  `;
}

function Waiting() {
  return html`
    <${Section} title=${t("Waits for you")}>
      <ul class="rows">
        ${asks.value.map(
          (ask) => html`
            <li key=${ask.ask_id ?? ask.key}>
              <${Icon} name="ask" />
              <span class="grow">
                <a href=${sessionHref(ask.name)}>${ask.title || t("Untitled")}</a>
                <span class="small muted">
                  ${describeAsk(ask)}
                </span>
              </span>
              <a class="btn little" href=${sessionHref(ask.name)}>${t("Answer")}</a>
            </li>
          `,
        )}
      </ul>
    <//>
  `;
}

/** In plain words where they are known; the exact call stands where it is answered. */
function describeAsk({ tool, question }) {
  const text = question || "";
  const action = tool && text.startsWith(tool) && describeAskedCall(tool, text.slice(tool.length));
  return action
    ? t("Allow it to {action}?", { action })
    : text.split("\n")[0].slice(0, QUESTION_CHARS);
}

function describeAskedCall(name, text) {
  if (name === "exit_plan_mode") return describeCall({ name });
  try {
    return describeCall({ name, args: JSON.parse(text) });
  } catch {
    return ""; // several calls
  }
}

function Items({ rows }) {
  return html`
    <ul class="rows">
      ${rows.map(
        (one) => html`
          <li key=${one.seq} class=${one.is_new ? "new" : ""}>
            <${Icon} name=${one.kind === "failed" ? "warn" : "check"} />
            <span class="grow">
              <span class="row">
                <a href=${sessionHref(one.name)}>${one.title || t("Untitled")}</a>
                ${one.kind === "failed" && html`<span class="tag bad">${t("failed")}</span>`}
                ${BY[one.by] && html`<span class="tag">${BY[one.by]}</span>`}
              </span>
              <span class="small muted">${tServer(one.text)}</span>
            </span>
            <span class="tiny muted" title=${formatDateTime(one.at)}>
              ${formatWhen(one.at)}${one.took_s >= 1 ? ` · ${formatDuration(one.took_s)}` : ""}
            </span>
          </li>
        `,
      )}
    </ul>
  `;
}
