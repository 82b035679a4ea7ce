// How this one conversation is held: model, thinking, preset, what it may do unasked.

import { at, call, fresh } from "../api.js";
import { count, money } from "../format.js";
import { forget } from "../keep.js";
import { html } from "../lib.js";
import { announce, attempt, change, go, here, may } from "../state.js";
import { talk } from "../talk.js";
import { Section, Sure, submit, Toggle, useAsk } from "./parts.js";

const EFFORTS = [
  ["", "default"],
  ["off", "off"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["max", "maximum"],
];

export function Options() {
  const { name } = here.value,
    state = talk.value;
  if (!name) return html`<${Before} />`;
  return html`<${Held} name=${name} state=${state} />`;
}

/** A conversation that has not begun: it gets a name, so that it can be set up before its first message. */
function Before() {
  const begin = () =>
    attempt(async () => {
      const name = `chat-${fresh()}`;
      await change(name, { mode: "normal" });
      go(name);
    });
  return html`<div class="stack"><p class="muted">Model, thinking, preset and what it may do unasked can be set before the first message.</p><div><button type="button" class="btn" onClick=${begin}>Set up a new conversation</button></div></div>`;
}

function Held({ name, state }) {
  const models = useAsk("/api/models"),
    presets = useAsk("/api/presets"),
    about = useAsk(`${at(name)}?n=${state.open ? 0 : state.n}`);
  const options = { ...about.data?.options, ...state.options },
    usage = about.data?.usage;
  const set = (more) => attempt(() => change(name, more).then(() => announce("Saved")));
  const erase = () =>
    attempt(async () => {
      const gone = await call("DELETE", at(name));
      await forget(name);
      go("");
      announce(gone.memories ? `Erased, with ${gone.memories} of my memories` : "Erased");
    });
  const locked = !may("chat");
  const chosen = (field) => (event) => set({ [field]: event.target.value });
  return html`<div class="stack wide">
    <label class="field"><span>Model</span><select class="input" value=${options.model ?? ""} disabled=${locked} onChange=${chosen("model")}><option value="">default</option>${(models.data?.models ?? []).filter((one) => one.ready && !one.id.includes("*")).map((one) => html`<option key=${one.id} value=${one.id}>${one.id}</option>`)}</select></label>
    <label class="field"><span>Thinking</span><select class="input" value=${options.thinking ?? ""} disabled=${locked} onChange=${chosen("thinking")}>${EFFORTS.map(([id, label]) => html`<option key=${id} value=${id}>${label}</option>`)}</select></label>
    <label class="field"><span>Preset</span><select class="input" value=${options.preset ?? ""} disabled=${locked} onChange=${chosen("preset")}><option value="">none</option>${(presets.data ?? []).map((one) => html`<option key=${one.name} value=${one.name} title=${one.description}>${one.name}</option>`)}</select></label>
    <div class="toggles">
      <${Toggle} label="Ask before each tool" note="When off, your usual permissions apply" on=${options.approval} disabled=${locked} set=${(on) => set({ approval: on })} />
      <${Toggle} label="Plan first" note="It says what it will do before it does it" on=${options.plan_mode} disabled=${locked} set=${(on) => set({ plan_mode: on })} />
      <${Toggle} label="Deep work" note="It goes on by itself while tasks are open" on=${options.mode === "deep_work"} disabled=${locked} set=${(on) => set({ mode: on ? "deep_work" : "normal", plan_mode: on })} />
      <${Toggle} label="Tracing" note="Keeps what was sent to the model, for the trace" on=${options.tracing} disabled=${locked} set=${(on) => set({ tracing: on })} />
    </div>
    <form class="stack" onSubmit=${submit((fields) =>
      change(name, { system_prompt: fields.prompt }).then(() => {
        announce("Saved");
        return null;
      }),
    )}>
      <label class="field"><span>Instructions for this conversation</span><textarea class="input" name="prompt" rows="4" disabled=${locked} placeholder="What it should keep in mind here" defaultValue=${options.system_prompt ?? ""}></textarea></label>
      <div><button class="btn little" disabled=${locked}>Save the instructions</button></div></form>
    <${Section} title="Used so far"><dl class="facts"><dt>Read</dt><dd>${count(usage?.input_tokens)} tokens${usage?.cached_tokens ? ` (${count(usage.cached_tokens)} from the cache)` : ""}</dd><dt>Written</dt><dd>${count(usage?.output_tokens)} tokens</dd>${usage && "cost" in usage && html`<dt>Cost</dt><dd>${money(usage.cost)}</dd>`}</dl><//>
    ${may("chat") && html`<${Section} title="Erase" note="What was said here is removed from the log for good, and so is what I remember of it alone. Files that were made stay."><div><${Sure} label="Erase this conversation" sure="Yes, erase it for good" onYes=${erase} little=${false} /></div><//>`}
  </div>`;
}
