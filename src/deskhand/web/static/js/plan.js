// A plan that waits for a yes: read as it is meant to be, and changed in the words of whoever reads it.

import { answerAsk } from "./actions.js";
import { formatDateTime } from "./format.js";
import { Icon } from "./icons.js";
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
      isEdited ? `Change the plan to this:\n\n${text}` : "Make another plan.",
      [],
      "steer",
    );
    announce("The change is sent");
  };
  const mayAnswer = hasScope("approve");
  return html`
    <section class="ask open plan" aria-label="Permission needed">
      <h3><${Icon} name="check" />Approve this plan?</h3>
      ${
        changing
          ? html`
              <form class="stack" onSubmit=${sendChange}>
                <label class="field">
                  <span>Write what should be different, or change the plan itself</span>
                  <textarea class="input" name="plan" rows="12" defaultValue=${plan}></textarea>
                </label>
                <div class="row">
                  <button class="btn main" disabled=${busy}>Send the change</button>
                  <button type="button" class="btn" onClick=${() => setChanging(false)}>
                    Cancel
                  </button>
                </div>
              </form>
            `
          : html`
              <div class="plan-text" tabindex="0" role="region" aria-label="The plan">
                <${Markdown} text=${plan} />
              </div>
              ${
                mayAnswer &&
                html`
                  <div class="choices" role="group" aria-label="Your answer">
                    <button
                      type="button"
                      class="btn main"
                      disabled=${busy}
                      onClick=${() => answer("once")}
                    >
                      Approve
                    </button>
                    <button
                      type="button"
                      class="btn"
                      disabled=${busy}
                      onClick=${() => setChanging(true)}
                    >
                      Change
                    </button>
                    <button
                      type="button"
                      class="btn"
                      disabled=${busy}
                      onClick=${() => answer("no")}
                    >
                      Do not do this
                    </button>
                  </div>
                `
              }
            `
      }
      ${!mayAnswer && html`<p class="small">Somebody with the role approver or owner has to answer this.</p>`}
      <p class="tiny muted">
        ${"With your approval it begins; each step still asks where your permissions say so. "}
        It waits until ${formatDateTime(ask.until)}.
      </p>
    </section>
  `;
}
