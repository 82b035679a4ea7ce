// Skills that agents thought of: what stands in each, how it did in replays, and a person's word on it.

import { post } from "../api.js";
import { count, many, moment } from "../format.js";
import { html, useEffect, useState } from "../lib.js";
import { activity } from "../list.js";
import { announce, attempt, hrefOf } from "../state.js";
import { Held } from "./held.js";
import { Loaded, None, Section, Sure, Toggle, useAsk } from "./parts.js";

const STATES = {
  proposed: ["waits for you", ""],
  refused: ["refused", "bad"],
  accepted: ["active", "good"],
  rejected: ["turned down", ""],
  reverted: ["taken out", ""],
  kept: ["active, not watched", "warn"],
};
/** Whether it may be the word of others than an owner. */
const doubted = (one) => Boolean(one.source) || one.by.length > 0;
const path = (id, rest = "") => `/api/proposals/${id}${rest}`;

export function Proposals() {
  const found = useAsk("/api/proposals?all=true"),
    [open, setOpen] = useState(0);
  useEffect(() => {
    found.again();
  }, [activity.value]);
  const rows = (all) =>
    html`<ul class="rows">${all.map((one) => html`<${Row} key=${one.id} one=${one} open=${open === one.id} toggle=${() => setOpen(open === one.id ? 0 : one.id)} again=${found.again} />`)}</ul>`;
  return html`<div class="stack wide"><${Loaded} of=${found} what="proposed skills">${(all) => {
    const waiting = all.filter((one) => one.state === "proposed"),
      decided = all.filter((one) => one.state !== "proposed");
    return html`<${Section} title="Waiting for you" note="An agent thought of these while it worked. None of them is active before you take it in.">
        ${waiting.length ? rows(waiting) : html`<${None}>No skill is proposed. An agent proposes one when it has found a way that is worth keeping.<//>`}<//>
      <${Section} title="Decided" note="What is active is watched: if turns that use it end badly more often than before, it is taken out, and you are told.">
        ${decided.length ? rows(decided) : html`<${None}>You have not decided about any yet.<//>`}<//>`;
  }}<//><${Held} /></div>`;
}

function Row({ one, open, toggle, again }) {
  const [words, tone] = STATES[one.state] ?? [one.state, ""];
  return html`<li class=${open ? "wrap tall" : ""}>
    <button type="button" class="grow plainly" aria-expanded=${String(open)} onClick=${toggle}><strong>${one.name}</strong>
      <span class="small">${one.description}</span>
      <span class="small muted">${[`for ${one.agent}`, moment(one.at), !open && (one.verdict || (one.state === "proposed" ? "not tried yet" : one.why))].filter(Boolean).join(" · ")}</span></button>
    ${doubted(one) && html`<span class="tag warn">untrusted</span>`}<span class=${`tag ${tone}`}>${words}</span>
    ${open && html`<${Detail} id=${one.id} state=${one.state} again=${again} />`}</li>`;
}

function Detail({ id, state, again }) {
  const found = useAsk(path(id));
  useEffect(() => {
    found.again();
  }, [state]);
  const settle = (rest, body, words) =>
    attempt(async () => {
      await post(path(id, rest), body);
      announce(words);
      again();
      found.again();
    });
  return html`<div class="grow stack"><${Loaded} of=${found} what="this proposal">${({
    proposal: one,
    ...data
  }) => html`
    ${one.by.length > 0 && html`<p class="note warn">This was written on the word of ${one.by.join(", ")}: read it to its end.</p>`}
    ${one.source && html`<p class="note warn">Before this was thought of, ${one.source} had been read in that conversation. Somebody there may have wanted it: read it to its end.</p>`}
    <p class="small muted">From <a href=${hrefOf(one.conversation)}>this conversation</a>. ${data.decided_at ? `${STATES[one.state][0]}, ${moment(data.decided_at)}${data.decided_by ? ` by ${data.decided_by}` : ""}. ` : ""}${one.why ? `${one.why}. ` : ""}${["accepted", "kept", "reverted"].includes(one.state) ? `${data.uses ? `${many(data.uses, "turn")} read it, ${data.bad_uses} of them ended badly.` : "No turn has read it yet."}` : ""}</p>
    <${Findings} all=${data.findings} />
    <${Card} one=${one} data=${data} />
    <div class="field"><span>${one.state === "accepted" || one.state === "kept" ? `Its text, in ${data.file}` : "All of its text"}</span><pre class="exact whole" tabindex="0" aria-label=${`The text of ${one.name}`}>${data.body}</pre></div>
    <${Word} one=${one} data=${data} settle=${settle} />`}<//></div>`;
}

function Findings({ all }) {
  if (!all.length)
    return html`<p class="small muted">Nothing stands in it that skills have been used for against people.</p>`;
  return html`<ul class="rows" aria-label="What was found in it">${all.map((each) => html`<li key=${each.words + each.excerpt}><span class="grow"><span>${each.words}</span>${each.excerpt && html`<code class="small">${each.excerpt}</code>`}</span><span class=${`tag ${each.severity === "bad" ? "bad" : "warn"}`}>${each.severity === "bad" ? "bad" : "look"}</span></li>`)}</ul>`;
}

/** How it did in replays of recorded turns, in which no tool was run. */
function Card({ one, data }) {
  if (!one.verdict)
    return one.state === "proposed"
      ? html`<p class="small muted">It was not tried on recorded turns${doubted(one) ? ": what comes from others is not tried by itself" : " yet"}. In a terminal: <code>deskhand skills try ${one.id}</code></p>`
      : null;
  return html`<div class="stack"><p class="small">${one.verdict}${data.spent ? ` Trying it took ${count(data.spent)} tokens.` : ""}</p>
    ${data.scores.length > 0 && html`<ul class="rows" aria-label="Turns it was tried on">${data.scores.map((each, i) => html`<li key=${i}><span class="grow"><span>“${each.asked}”</span><span class="small muted">${many(each.calls, "call")} (${each.calls_before} without it) · ${count(each.tokens)} tokens (${count(each.tokens_before)})${each.read ? "" : " · did not read it"}${each.unknown ? ` · ${many(each.unknown, "call")} without a recorded result` : ""}</span></span><span class=${`tag ${each.solved ? "good" : "bad"}`}>${each.solved ? "solved" : "not solved"}</span></li>`)}</ul>`}</div>`;
}

function Word({ one, data, settle }) {
  const [read, setRead] = useState(false),
    [why, setWhy] = useState("");
  if (one.state === "accepted" || one.state === "kept")
    return html`<div class="row"><${Sure} label="Take it out" sure="Yes, take it out" onYes=${() => settle("/revert", {}, `${one.name} is taken out`)} /></div>`;
  if (one.state !== "proposed" && one.state !== "refused") return null;
  const bad = one.state === "refused" || data.findings.some((each) => each.severity === "bad");
  return html`<div class="stack">
    ${bad && html`<p class="small muted">It cannot be taken in as it is. If you want what it says, write a skill of your own under Models and skills.</p>`}
    ${doubted(one) && !bad && html`<${Toggle} on=${read} label="I have read all of it" note="What it says is mine from now on." set=${setRead} />`}
    <label class="field"><span>Why not, if you turn it down</span><input class="input" maxlength="1000" value=${why} onInput=${(event) => setWhy(event.target.value)} /></label>
    <div class="row">${!bad && html`<button type="button" class="btn main little" disabled=${doubted(one) && !read} onClick=${() => settle("/accept", { untrusted: doubted(one) }, `${one.name} is a skill of ${one.agent} now`)}>Take it in</button>`}
      <${Sure} label="Turn it down" sure="Yes, and never again" onYes=${() => settle("/reject", { why }, `${one.name} is turned down`)} /></div></div>`;
}
