// A plan that waits for a yes: read as it is meant to be, and changed in the words of whoever reads it.

import { answerAsk } from "./actions.js";
import { formatDateTime } from "./format.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { html, useState } from "./lib.js";
import { sendMessage } from "./sending.js";
import { announce, hasScope } from "./state.js";
import { Markdown } from "./text.js";

/** The plan that a question is about; null for another call. */
export function findPlan(ask) {
  if (!ask.approval || ask.call?.name !== "exit_plan_mode") return null;
  const { plan } = ask.call.args ?? {};
  return typeof plan === "string" ? plan : null;
}

export function PlanApproval({ ask, plan }) {
  const [busy, setBusy] = useState(false);
  const [changing, setChanging] = useState(false);
  const answer = async (choice) => {
    setBusy(true);
    if ((await answerAsk(ask.id, choice)) === undefined) setBusy(false);
  };
  const sendChange = (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("plan").trim();
    if (!text) return;
    setBusy(true);
    const isEdited = text !== plan.trim();
    sendMessage(
      isEdited ? t("Change the plan to this:\n\n{text}", { text }) : t("Make another plan."),
      [],
      "steer",
    );
    announce(t("The change is sent"));
  };
  const mayAnswer = hasScope("approve");
  return html`
    <section class="ask open plan" aria-label=${t("Permission needed")}>
      <h3><${Icon} name="check" />${t("Approve this plan?")}</h3>
      ${
        changing
          ? html`
              <form class="stack" onSubmit=${sendChange}>
                <label class="field">
                  <span>${t("Write what should be different, or change the plan itself")}</span>
                  <textarea class="input" name="plan" rows="12" defaultValue=${plan}></textarea>
                </label>
                <div class="row">
                  <button class="btn main" disabled=${busy}>${t("Send the change")}</button>
                  <button type="button" class="btn" onClick=${() => setChanging(false)}>
                    ${t("Cancel")}
                  </button>
                </div>
              </form>
            `
          : html`
              <div class="plan-text" tabindex="0" role="region" aria-label=${t("The plan")}>
                <${Markdown} text=${plan} />
              </div>
              ${
                mayAnswer &&
                html`
                  <div class="choices" role="group" aria-label=${t("Your answer")}>
                    <button
                      type="button"
                      class="btn main"
                      disabled=${busy}
                      onClick=${() => answer("once")}
                    >
                      ${t("Approve")}
                    </button>
                    <button
                      type="button"
                      class="btn"
                      disabled=${busy}
                      onClick=${() => setChanging(true)}
                    >
                      ${t("Change")}
                    </button>
                    <button
                      type="button"
                      class="btn"
                      disabled=${busy}
                      onClick=${() => answer("no")}
                    >
                      ${t("Do not do this")}
                    </button>
                  </div>
                `
              }
            `
      }
      ${
        !mayAnswer &&
        html`
          <p class="small">
            ${t("Somebody with the role approver or owner has to answer this.")}
          </p>
        `
      }
      <p class="tiny muted">
        ${t(
          "With your approval it begins; each step still asks where your permissions say so. It waits until {time}.",
          { time: formatDateTime(ask.until) },
        )}
      </p>
    </section>
  `;
}
