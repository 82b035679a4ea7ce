// What waits for an answer anywhere, and what was allowed or refused for good.

import { call, post, sessionPath } from "../api.js";
import { isEdit, ProposedDiff } from "../diff.js";
import { formatDateTime } from "../format.js";
import { html, useEffect } from "../lib.js";
import { asks } from "../list.js";
import { announce, attempt, hasScope, sessionHref } from "../state.js";
import { ConfirmButton, Empty, Loaded, Section, useFetch } from "./parts.js";

const WORDS = {
  once: "Allow once",
  always: "Always exactly this",
  no: "Do not allow",
  never: "Never exactly this",
};
const ALL = { once: "Allow all once", each: "Ask one by one", no: "Allow none" };

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
      announce("Answered");
      waiting.reload();
      grants.reload();
    });
  const revokeGrant = (id) =>
    attempt(async () => {
      await call("DELETE", `/api/grants/${encodeURIComponent(id)}`);
      announce("Taken back");
      grants.reload();
    });
  return html`
    <div class="stack wide">
      <${Section}
        title="Waiting for an answer"
        note="Any approver may answer, here or in the chat. The first answer counts."
      >
        <${Loaded} result=${waiting} what="approvals">
          ${(all) =>
            all.length
              ? html`<ul class="rows">${all.map((one) => drawWaiting(one, answerAsk))}</ul>`
              : html`<${Empty}>Nothing is waiting.<//>`}
        <//>
      <//>
      <${Section}
        title="Standing answers"
        note="Identical calls are allowed or blocked without asking."
      >
        <${Loaded} result=${grants} what="standing answers">
          ${(all) =>
            all.length
              ? html`<ul class="rows">${all.map((one) => drawGrant(one, revokeGrant))}</ul>`
              : html`<${Empty}>No standing answers. “Always allow exactly this” adds one.<//>`}
        <//>
      <//>
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
              Asked because ${one.reason}
              ${one.source ? ` (from ${one.source})` : ""}.${" "}
            </span>
          `
        }
        <span class="small muted">
          Until ${formatDateTime(one.until)}, in${" "}
          <a href=${sessionHref(one.name)}>${one.title || "this conversation"}</a>
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
          ${[`${one.by} said so`, formatDateTime(one.at), one.agent].join(" · ")}
        </span>
      </span>
      <span class=${`tag ${one.verdict === "never" ? "bad" : "good"}`}>${one.verdict}</span>
      ${
        hasScope("approve") &&
        html`
          <${ConfirmButton}
            label="Revoke"
            confirm="Yes, ask again"
            onYes=${() => revokeGrant(one.id)}
          />
        `
      }
    </li>
  `;
}
