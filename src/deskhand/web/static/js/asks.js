// Questions to a person: the exact call, why it is asked about, and what each answer means.

import { answerAsk } from "./actions.js";
import { isEdit, ProposedDiff } from "./diff.js";
import { capitalize, formatDateTime, formatTime } from "./format.js";
import { Icon } from "./icons.js";
import { t, tCount, tServer } from "./language.js";
import { html, useState } from "./lib.js";
import { describeCall, quote } from "./plain-words.js";
import { findPlan, PlanApproval } from "./plan.js";
import { describeChanges, parseRun, RUN, RunApproval } from "./programs.js";
import { hasScope } from "./state.js";
import { Markdown } from "./text.js";

const ALL = { once: t("Allow all once"), each: t("Ask one by one"), no: t("Allow none") };
const WORDS = {
  once: t("Allow once"),
  always: t("Always allow exactly this"),
  no: t("Do not allow"),
  never: t("Never allow exactly this"),
};
const MEANS = {
  once: t("It is done this once. Next time you are asked again."),
  always: t(
    "Identical calls are allowed without asking, until you take it back in Settings, Approvals.",
  ),
  no: t("It is not done now. The agent is told and goes on without it."),
  never: t(
    "Identical calls are blocked without asking, until you take it back in Settings, Approvals.",
  ),
};
/** A host has no other arguments: what holds for exactly this call holds for the host. */
const describeHost = (host) => ({
  words: {
    ...WORDS,
    once: t("Allow in this conversation"),
    always: t("Always allow {host}", { host }),
    never: t("Never allow {host}", { host }),
  },
  means: {
    ...MEANS,
    once: t("Commands of this conversation may reach it. In another one you are asked again."),
    always: t(
      "Commands may reach it without asking, until you take it back in Settings, Approvals. After something untrusted was read, you are asked again.",
    ),
    never: t("It is refused without asking, until you take it back in Settings, Approvals."),
  },
});
const MEANS_ALL = {
  once: t("All of them are done this once. Next time you are asked again."),
  each: t("You are asked about each of them by itself."),
  no: t("None of them is done. The agent is told and goes on without them."),
};
const formatUntil = (timestamp) =>
  timestamp - Date.now() / 1000 > 12 * 3600 ? formatDateTime(timestamp) : formatTime(timestamp);
const DONE = {
  once: t("Allowed once"),
  always: t("Allowed, always for exactly this"),
  no: t("Not allowed"),
  never: t("Never allowed for exactly this"),
  each: t("Asked one by one"),
  closed: t("Nobody answered"),
};

export function Ask({ ask, open = false }) {
  if (!open) return html`<${AnsweredAsk} ask=${ask} />`;
  const plan = findPlan(ask);
  if (plan !== null) return html`<${PlanApproval} ask=${ask} plan=${plan} />`;
  return ask.approval ? html`<${Approval} ask=${ask} />` : html`<${Question} ask=${ask} />`;
}

function AnsweredAsk({ ask }) {
  const run = findProgram(ask);
  const plan = findPlan(ask);
  const brief = plan
    ? t("Plan: {title}", { title: plan.trim().split("\n")[0].replace(/^#+ /, "") })
    : run
      ? capitalize(describeChanges(run.changes))
      : describeQuestion(ask);
  const said = DONE[ask.answer] ?? ask.answer;
  const good = ask.approval ? ["once", "always"].includes(ask.answer) : ask.answer !== "closed";
  return html`
    <details class="ask answered">
      <summary>
        <${Icon} name=${ask.approval ? "shield" : "ask"} />
        <span class="cut grow">${brief}</span>
        <span class=${`tag ${good ? "good" : "bad"}`}>${said}${ask.by ? ` · ${ask.by}` : ""}</span>
      </summary>
      ${
        plan === null
          ? html`<pre class="exact" tabindex="0">${ask.question}</pre>`
          : html`<div class="plan-text"><${Markdown} text=${plan} /></div>`
      }
      ${ask.reason && html`<p class="small muted">${t("Asked because {reason}", { reason: tServer(ask.reason) })}</p>`}
      ${ask.why && html`<p class="small muted">${tServer(ask.why)}</p>`}
    </details>
  `;
}

/** What is asked, after how many calls it is about. */
const describeQuestion = ({ calls = [], question }) =>
  calls.length > 1
    ? tCount(calls.length, "{count} call: {question}", "{count} calls: {question}", { question })
    : question;

/** The program that is asked about, with its changes; null for another call. */
const findProgram = (ask) =>
  ask.approval && ask.call?.name === RUN ? parseRun(ask.call.args) : null;

function drawCalls(ask) {
  const lines = ask.question.split("\n");
  return html`
    <ol class="several">
      ${lines.map(
        (line, i) => html`<li key=${ask.calls[i]}><${ExactCall} question=${line} /></li>`,
      )}
    </ol>
  `;
}

function drawCall(ask, run) {
  if (run) return html`<${RunApproval} call=${ask.call} run=${run} />`;
  if (!isEdit(ask.call?.name)) return html`<${ExactCall} question=${ask.question} />`;
  return html`
    <${ProposedDiff} call=${ask.call} callId=${ask.callId}>
      ${(known) => html`<${ExactCall} question=${ask.question} folded=${known} />`}
    <//>
  `;
}

/** The question in plain words; what exactly is asked about stands below it. */
function formatRequest(ask, together, run) {
  if (together)
    return tCount(ask.calls.length, "Allow this {count} call?", "Allow these {count} calls?");
  if (run || !ask.call) return t("Allow this call?");
  return t("Allow it to {action}?", { action: describeCall(ask.call) });
}

function Approval({ ask }) {
  const run = findProgram(ask);
  const together = ask.choices.includes("each");
  const host = ask.call?.name === "request_host" && ask.call.args?.host;
  const { words, means } = together
    ? { words: ALL, means: MEANS_ALL }
    : host
      ? describeHost(quote(host))
      : { words: WORDS, means: MEANS };
  const [explained, setExplained] = useState("once");
  const [busy, setBusy] = useState("");
  const answerApproval = async (choice) => {
    setBusy(choice);
    if ((await answerAsk(ask.id, choice)) === undefined) setBusy("");
  };
  const keys = together
    ? { y: "once", e: "each", n: "no" }
    : { y: "once", a: "always", n: "no", N: "never" };
  const handleKey = (event) => {
    const choice = keys[event.key];
    if (choice && !event.ctrlKey && !event.metaKey && !event.altKey && hasScope("approve")) {
      event.preventDefault();
      answerApproval(choice);
    }
  };
  return html`
    <section class="ask open" aria-label=${t("Permission needed")} onKeyDown=${handleKey}>
      <h3>
        <${Icon} name="shield" />
        ${formatRequest(ask, together, run)}
      </h3>
      ${together ? drawCalls(ask) : drawCall(ask, run)}
      ${ask.reason && html`<p class="reason">${t("You are asked because {reason}.", { reason: tServer(ask.reason) })}</p>`}
      ${
        hasScope("approve")
          ? html`
              <div class="choices" role="group" aria-label=${t("Your answer")} aria-describedby="means">
                ${Object.entries(words).map(
                  ([choice, label], i) => html`
                    <button
                      key=${choice}
                      type="button"
                      disabled=${busy !== ""}
                      class=${`btn ${i === 0 ? "main" : ""}`}
                      onFocus=${() => setExplained(choice)}
                      onMouseEnter=${() => setExplained(choice)}
                      onClick=${() => answerApproval(choice)}
                    >
                      ${label}
                      <kbd aria-hidden="true">${Object.keys(keys)[i]}</kbd>
                    </button>
                  `,
                )}
              </div>
              <p class="small means" id="means">${means[explained]}</p>
            `
          : html`<p class="small">${t("Somebody with the role approver or owner has to answer this.")}</p>`
      }
      <p class="tiny muted">
        ${t("It waits until {until}; then it is not done.", { until: formatUntil(ask.until) })}
        <span class="only-wide"> ${t("Press Alt+A to go here.")}</span>
      </p>
    </section>
  `;
}

/** The bytes that are asked about; folded where what they do stands above. */
function ExactCall({ question, folded = false }) {
  const bytes = html`
    <pre class="exact" tabindex="0" aria-label=${t("The exact call")}>${question}</pre>
  `;
  return folded
    ? html`<details class="spelled"><summary>${t("Exact call")}</summary>${bytes}</details>`
    : html`${bytes}<${SpelledArguments} question=${question} />`;
}

/** Where the bytes hide line ends or letters behind escapes: what they spell. */
function SpelledArguments({ question }) {
  if (!question.includes("\\")) return null;
  try {
    const args = JSON.parse(question.slice(question.indexOf(" ") + 1));
    if (typeof args !== "object" || args === null) return null;
    return html`
      <details class="spelled">
        <summary>${t("Decoded arguments")}</summary>
        ${Object.entries(args).map(
          ([name, value]) => html`
            <div key=${name}>
              <h4>${name}</h4>
              <pre tabindex="0">
                ${typeof value === "string" ? value : JSON.stringify(value, null, 2)}
              </pre>
            </div>
          `,
        )}
      </details>
    `;
  } catch {
    return null;
  }
}

function Question({ ask }) {
  const [busy, setBusy] = useState(false);
  const answer = async (text) => {
    if (!text) return;
    setBusy(true);
    if ((await answerAsk(ask.id, text)) === undefined) setBusy(false);
  };
  const sendAnswer = (event) => {
    event.preventDefault();
    answer(new FormData(event.target).get("answer").trim());
  };
  return html`
    <section class="ask open" aria-label=${t("A question for you")}>
      <h3><${Icon} name="ask" />${ask.question}</h3>
      ${
        ask.choices.length > 0 &&
        html`
          <div class="choices">
            ${ask.choices.map(
              (choice) => html`
                <button
                  key=${choice}
                  type="button"
                  class="btn"
                  disabled=${busy}
                  onClick=${() => answer(choice)}
                >
                  ${choice}
                </button>
              `,
            )}
          </div>
        `
      }
      <form class="row" onSubmit=${sendAnswer}>
        <input
          class="input"
          name="answer"
          aria-label=${t("Your answer in your own words")}
          placeholder=${ask.choices.length ? t("Or in your own words") : t("Your answer")}
          autocomplete="off"
          disabled=${busy}
        />
        <button class="btn main" disabled=${busy}>${t("Answer")}</button>
      </form>
      <p class="tiny muted">${t("It waits until {until}.", { until: formatUntil(ask.until) })}</p>
    </section>
  `;
}
