// What waits for an answer anywhere, and what was allowed or refused for good.

import { at, call, post } from "../api.js";
import { isEdit, Proposed } from "../diff.js";
import { moment } from "../format.js";
import { html, useEffect } from "../lib.js";
import { asks } from "../list.js";
import { announce, attempt, hrefOf, may } from "../state.js";
import { Loaded, None, Section, Sure, useAsk } from "./parts.js";

const WORDS = {
  once: "Allow once",
  always: "Always exactly this",
  no: "Do not allow",
  never: "Never exactly this",
};
const ALL = { once: "Allow all once", each: "Ask one by one", no: "Allow none" };

export function Approvals() {
  const waiting = useAsk("/api/approvals"),
    grants = useAsk("/api/grants");
  const { value } = asks;
  useEffect(() => {
    waiting.again();
  }, [value]);
  const answer = (one, choice) =>
    attempt(async () => {
      await post(at(one.name, `/asks/${encodeURIComponent(one.ask_id)}`), { choice });
      announce("Answered");
      waiting.again();
      grants.again();
    });
  const revoke = (id) =>
    attempt(async () => {
      await call("DELETE", `/api/grants/${encodeURIComponent(id)}`);
      announce("Taken back");
      grants.again();
    });
  return html`<div class="stack wide">
    <${Section} title="Waiting for an answer" note="Any approver may answer, here or in the chat. The first answer counts."><${Loaded} of=${waiting} what="approvals">${(
      all,
    ) =>
      all.length
        ? html`<ul class="rows">${all.map(
            (
              one,
            ) => html`<li key=${one.ask_id} class="tall"><span class="grow">${isEdit(one.tool) && html`<${Proposed} name=${one.name} callId=${one.call_id} />`}<pre class="exact" tabindex="0">${one.question}</pre>${one.reason && html`<span class="small muted">Asked because ${one.reason}${one.source ? ` (from ${one.source})` : ""}. </span>`}<span class="small muted">Until ${moment(one.until)}, in <a href=${hrefOf(one.name)}>${one.title || "this conversation"}</a></span></span>
      ${may("approve") && html`<span class="choices">${one.choices.map((choice) => html`<button key=${choice} type="button" class="btn little" onClick=${() => answer(one, choice)}>${(one.calls.length ? ALL : WORDS)[choice] ?? choice}</button>`)}</span>`}</li>`,
          )}</ul>`
        : html`<${None}>Nothing is waiting.<//>`}<//><//>
    <${Section} title="Standing answers" note="Identical calls are allowed or blocked without asking."><${Loaded} of=${grants} what="standing answers">${(all) => (all.length ? html`<ul class="rows">${all.map((one) => html`<li key=${one.id} class="tall"><span class="grow"><pre class="exact" tabindex="0">${one.tool} ${one.arguments}</pre><span class="small muted">${[`${one.by} said so`, moment(one.at), one.agent].join(" · ")}</span></span><span class=${`tag ${one.verdict === "never" ? "bad" : "good"}`}>${one.verdict}</span>${may("approve") && html`<${Sure} label="Take back" sure="Yes, ask again" onYes=${() => revoke(one.id)} />`}</li>`)}</ul>` : html`<${None}>No standing answers. “Always allow exactly this” adds one.<//>`)}<//><//>
  </div>`;
}
