// What waits for a person: the exact call, why it is asked, and what each answer means.

import { isEdit, Proposed } from "./diff.js";
import { clock, moment } from "./format.js";
import { Icon } from "./icons.js";
import { html, useState } from "./lib.js";
import { Asked, capital, changeWords, RUN, runOf } from "./programs.js";
import { may } from "./state.js";
import { choose } from "./talk.js";

const ALL = { once: "Allow all once", each: "Ask one by one", no: "Allow none" };
const WORDS = {
  once: "Allow once",
  always: "Always allow exactly this",
  no: "Do not allow",
  never: "Never allow exactly this",
};
const MEANS = {
  once: "It is done this once. Next time you are asked again.",
  always:
    "Identical calls are allowed without asking, until you take it back in Settings, Approvals.",
  no: "It is not done now. The agent is told and goes on without it.",
  never:
    "Identical calls are blocked without asking, until you take it back in Settings, Approvals.",
};
const MEANS_ALL = {
  once: "All of them are done this once. Next time you are asked again.",
  each: "You are asked about each of them by itself.",
  no: "None of them is done. The agent is told and goes on without them.",
};
const until = (at) => (at - Date.now() / 1000 > 12 * 3600 ? moment(at) : clock(at));
const DONE = {
  once: "Allowed once",
  always: "Allowed, always for exactly this",
  no: "Not allowed",
  never: "Never allowed for exactly this",
  each: "Asked one by one",
  closed: "Nobody answered",
};

export function Ask({ ask, open = false }) {
  if (!open) return html`<${Answered} ask=${ask} />`;
  return ask.approval ? html`<${Approval} ask=${ask} />` : html`<${Question} ask=${ask} />`;
}

function Answered({ ask }) {
  const run = programOf(ask),
    several = ask.calls?.length > 1 ? `${ask.calls.length} calls: ` : "",
    brief = run ? capital(changeWords(run.changes)) : `${several}${ask.question}`;
  const said = DONE[ask.answer] ?? ask.answer,
    good = ask.approval ? ["once", "always"].includes(ask.answer) : ask.answer !== "closed";
  return html`<details class="ask answered"><summary><${Icon} name=${ask.approval ? "shield" : "ask"} /><span class="cut grow">${brief}</span><span class=${`tag ${good ? "good" : "bad"}`}>${said}${ask.by ? ` · ${ask.by}` : ""}</span></summary>
    <pre class="exact" tabindex="0">${ask.question}</pre>${ask.reason && html`<p class="small muted">Asked because ${ask.reason}</p>`}${ask.why && html`<p class="small muted">${ask.why}</p>`}</details>`;
}

/** The program that is asked about, and what it changes; null where it is another call. */
const programOf = (ask) => (ask.approval && ask.call?.name === RUN ? runOf(ask.call.args) : null);

function Approval({ ask }) {
  const run = programOf(ask),
    together = ask.choices.includes("each"),
    words = together ? ALL : WORDS;
  const [explained, setExplained] = useState("once"),
    [busy, setBusy] = useState("");
  const answer = async (choice) => {
    setBusy(choice);
    if ((await choose(ask.id, choice)) === undefined) setBusy("");
  };
  const keys = together
    ? { y: "once", e: "each", n: "no" }
    : { y: "once", a: "always", n: "no", N: "never" };
  const key = (event) => {
    const choice = keys[event.key];
    if (choice && !event.ctrlKey && !event.metaKey && !event.altKey && may("approve")) {
      event.preventDefault();
      answer(choice);
    }
  };
  return html`<section class="ask open" aria-label="Permission needed" onKeyDown=${key}>
    <h3><${Icon} name="shield" />${together ? `May it do these ${ask.calls.length}?` : "May it do this?"}</h3>
    ${together ? html`<ol class="several">${ask.question.split("\n").map((line, i) => html`<li key=${ask.calls[i]}><${Exact} question=${line} /></li>`)}</ol>` : run ? html`<${Asked} call=${ask.call} run=${run} />` : isEdit(ask.call?.name) ? html`<${Proposed} call=${ask.call} callId=${ask.callId}>${(known) => html`<${Exact} question=${ask.question} folded=${known} />`}<//>` : html`<${Exact} question=${ask.question} />`}
    ${ask.reason && html`<p class="reason">You are asked because ${ask.reason}.</p>`}
    ${
      may("approve")
        ? html`<div class="choices" role="group" aria-label="Your answer" aria-describedby="means">
      ${Object.entries(words).map(([choice, label], i) => html`<button key=${choice} type="button" disabled=${busy !== ""} class=${`btn ${i === 0 ? "main" : ""}`} onFocus=${() => setExplained(choice)} onMouseEnter=${() => setExplained(choice)} onClick=${() => answer(choice)}>${label}<kbd aria-hidden="true">${Object.keys(keys)[i]}</kbd></button>`)}
    </div><p class="small means" id="means">${(together ? MEANS_ALL : MEANS)[explained]}</p>`
        : html`<p class="small">Somebody with the role approver or owner has to answer this.</p>`
    }
    <p class="tiny muted">It waits until ${until(ask.until)}; then it is not done.<span class="only-wide"> Alt+A comes here.</span></p>
  </section>`;
}

/** The bytes that are asked about; folded where what they do stands above. */
function Exact({ question, folded = false }) {
  const bytes = html`<pre class="exact" tabindex="0" aria-label="Exactly this would be done">${question}</pre>`;
  return folded
    ? html`<details class="spelled"><summary>Exactly this</summary>${bytes}</details>`
    : html`${bytes}<${Spelled} question=${question} />`;
}

/** Where the bytes hide line ends or letters behind escapes: what they spell. */
function Spelled({ question }) {
  if (!question.includes("\\")) return null;
  try {
    const args = JSON.parse(question.slice(question.indexOf(" ") + 1));
    if (typeof args !== "object" || args === null) return null;
    return html`<details class="spelled"><summary>What it spells</summary>${Object.entries(args).map(([name, value]) => html`<div key=${name}><h4>${name}</h4><pre tabindex="0">${typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre></div>`)}</details>`;
  } catch {
    return null;
  }
}

function Question({ ask }) {
  const [busy, setBusy] = useState(false);
  const answer = async (text) => {
    if (!text) return;
    setBusy(true);
    if ((await choose(ask.id, text)) === undefined) setBusy(false);
  };
  const send = (event) => {
    event.preventDefault();
    answer(new FormData(event.target).get("answer").trim());
  };
  return html`<section class="ask open" aria-label="A question for you">
    <h3><${Icon} name="ask" />${ask.question}</h3>
    ${ask.choices.length > 0 && html`<div class="choices">${ask.choices.map((choice) => html`<button key=${choice} type="button" class="btn" disabled=${busy} onClick=${() => answer(choice)}>${choice}</button>`)}</div>`}
    <form class="row" onSubmit=${send}><input class="input" name="answer" aria-label="Your answer in your own words" placeholder=${ask.choices.length ? "Or in your own words" : "Your answer"} autocomplete="off" disabled=${busy} /><button class="btn main" disabled=${busy}>Answer</button></form>
    <p class="tiny muted">It waits until ${until(ask.until)}.</p>
  </section>`;
}
