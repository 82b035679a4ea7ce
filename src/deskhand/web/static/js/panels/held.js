// Files that are held back from prompts: why, what stands in each, and an owner's word on it.

import { post } from "../api.js";
import { html, useState } from "../lib.js";
import { announce, attempt } from "../state.js";
import { Loaded, Section, Sure, Toggle, useAsk } from "./parts.js";

export function Held() {
  const found = useAsk("/api/held"),
    [open, setOpen] = useState("");
  return html`<${Loaded} of=${found} what="held back files">${(all) =>
    all.length > 0 &&
    html`<${Section} title="Held back files" note="They would tell an agent what to do, and are left out until you have read and approved them.">
    <ul class="rows" aria-label="Held back files">${all.map(
      (one) => html`<li key=${one.path} class=${open === one.path ? "wrap tall" : ""}>
      <button type="button" class="grow plainly" aria-expanded=${String(open === one.path)} onClick=${() => setOpen(open === one.path ? "" : one.path)}><strong>${one.shown}</strong><span class="small muted">${[one.agent && `for ${one.agent}`, one.why].filter(Boolean).join(" · ")}</span></button>
      ${
        open === one.path &&
        html`<${Detail} path=${one.path} shown=${one.shown} again=${() => {
          setOpen("");
          found.again();
        }} />`
      }</li>`,
    )}</ul><//>`}<//>`;
}

function Detail({ path, shown, again }) {
  const found = useAsk(`/api/held/file?path=${encodeURIComponent(path)}`),
    [read, setRead] = useState(false);
  const approve = (digest) =>
    attempt(async () => {
      await post("/api/held/approve", { path, digest });
      announce(`${shown} is approved`);
      again();
    });
  return html`<div class="grow stack"><${Loaded} of=${found} what="this file">${(one) => html`
    <div class="field"><span>All of its text</span><pre class="exact whole" tabindex="0" aria-label=${`The text of ${shown}`}>${one.text}</pre></div>
    ${
      one.digest
        ? html`<p class="small muted">SHA-256 <code>${one.digest}</code>. ${one.bound ? "If it changes, it is held back until you approve it again." : "Deskhand writes this file itself, so later changes are not held back for that alone."}</p>
      <${Toggle} on=${read} label="I have read all of it" note="What it says is mine from now on, for everybody who talks to this agent." set=${setRead} />
      <div class="row">${read && html`<${Sure} label="Approve it" sure="Yes, exactly this" onYes=${() => approve(one.digest)} />`}</div>`
        : html`<p class="note warn">It cannot be approved: ${one.problem}.</p>`
    }`}<//></div>`;
}
