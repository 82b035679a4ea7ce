// What waits for an answer anywhere, and what was allowed or refused for good.

import { call, post, sessionPath } from "../api.js";
import { isEdit, ProposedDiff } from "../diff.js";
import { formatDateTime } from "../format.js";
import { t, tRich, tServer } from "../language.js";
import { html, useEffect } from "../lib.js";
import { asks } from "../list.js";
import { announce, attempt, hasScope, sessionHref } from "../state.js";
import { Access } from "./access.js";
import { ConfirmButton, Empty, Loaded, Rows, Section, useFetch } from "./parts.js";
import { StepButton } from "./suggestion.js";

const WORDS = {
  once: t("Allow once"),
  always: t("Always exactly this"),
  no: t("Do not allow"),
  never: t("Never exactly this"),
};
const VERDICTS = { always: t("always"), never: t("never") };
const ALL = { once: t("Allow all once"), each: t("Ask one by one"), no: t("Allow none") };

export function Approvals() {
  const waiting = useFetch("/api/approvals");
  const grants = useFetch("/api/grants");
  const { value } = asks;
  useEffect(() => {
    waiting.reload();
  }, [value]);
  const answerAsk = (one, choice) =>
    attempt(async () => {
      await post(sessionPath(one.name, `/asks/${encodeURIComponent(one.ask_id)}`), { choice });
      announce(t("Answered"));
      waiting.reload();
      grants.reload();
    });
  const revokeGrant = (id) =>
    attempt(async () => {
      await call("DELETE", `/api/grants/${encodeURIComponent(id)}`);
      announce(t("Taken back"));
      grants.reload();
    });
  return html`
    <div class="stack wide">
      <${Section}
        title=${t("Waiting for an answer")}
        note=${t("Any approver may answer, here or in the chat. The first answer counts.")}
      >
        <${Loaded} result=${waiting} what=${t("approvals")}>
          ${(all) =>
            all.length
              ? html`<${Rows} rows=${all} draw=${(one) => drawWaiting(one, answerAsk)} />`
              : html`
                  <${Empty}>
                    <span>
                      ${t(
                        "Nothing is waiting. Before an agent does something risky, such as writing to others, it asks you, and the question is listed here.",
                      )}
                    </span>
                    <${StepButton} step="permissions">${t("Set what it may do unasked")}<//>
                  <//>
                `}
        <//>
      <//>
      <${Section}
        title=${t("Standing answers")}
        note=${t("Identical calls are allowed or blocked without asking.")}
      >
        <${Loaded} result=${grants} what=${t("standing answers")}>
          ${(all) =>
            all.length
              ? html`<${Rows} rows=${all} draw=${(one) => drawGrant(one, revokeGrant)} />`
              : html`<${Empty}>${t(
                  "No standing answers. Choose “Always allow exactly this” when you are asked, and you are not asked for the same again.",
                )}<//>`}
        <//>
      <//>
      ${hasScope("admin") && html`<${Access} />`}
    </div>
  `;
}

function drawWaiting(one, answerAsk) {
  return html`
    <li key=${one.ask_id} class="tall">
      <span class="grow">
        ${isEdit(one.tool) && html`<${ProposedDiff} name=${one.name} callId=${one.call_id} />`}
        <pre class="exact" tabindex="0">${one.question}</pre>
        ${
          one.reason &&
          html`
            <span class="small muted">
              ${
                one.source
                  ? t("Asked because {reason} (from {source}).", {
                      reason: tServer(one.reason),
                      source: tServer(one.source.replaceAll("\n", ", ")),
                    })
                  : t("Asked because {reason}.", { reason: tServer(one.reason) })
              }${" "}
            </span>
          `
        }
        <span class="small muted">
          ${tRich("Until {date}, in {conversation}", {
            date: formatDateTime(one.until),
            conversation: html`
              <a href=${sessionHref(one.name)}>${one.title || t("this conversation")}</a>
            `,
          })}
        </span>
      </span>
      ${
        hasScope("approve") &&
        html`
          <span class="choices">
            ${one.choices.map(
              (choice) => html`
                <button
                  key=${choice}
                  type="button"
                  class="btn little"
                  onClick=${() => answerAsk(one, choice)}
                >
                  ${(one.calls.length ? ALL : WORDS)[choice] ?? choice}
                </button>
              `,
            )}
          </span>
        `
      }
    </li>
  `;
}

function drawGrant(one, revokeGrant) {
  return html`
    <li key=${one.id} class="tall">
      <span class="grow">
        <pre class="exact" tabindex="0">${one.tool} ${one.arguments}</pre>
        <span class="small muted">
          ${[t("{name} said so", { name: one.by }), formatDateTime(one.at), one.agent].join(" · ")}
        </span>
      </span>
      <span class=${`tag ${one.verdict === "never" ? "bad" : "good"}`}>
        ${VERDICTS[one.verdict] ?? one.verdict}
      </span>
      ${
        hasScope("approve") &&
        html`
          <${ConfirmButton}
            label=${t("Revoke")}
            confirm=${t("Yes, ask again")}
            onYes=${() => revokeGrant(one.id)}
          />
        `
      }
    </li>
  `;
}
