// How this one conversation is held: model, thinking, preset, what it may do unasked.

import { newId, sessionPath } from "../api.js";
import { formatCount, formatMoney } from "../format.js";
import { html } from "../lib.js";
import { eraseSession } from "../session-row.js";
import { announce, attempt, hasScope, openSession, route, updateSession } from "../state.js";
import { talk } from "../talk.js";
import { ConfirmButton, Section, submitFields, Toggle, useFetch } from "./parts.js";

const EFFORTS = [
  ["", "default"],
  ["off", "off"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["max", "maximum"],
];

export function Options() {
  const { name } = route.value;
  const state = talk.value;
  if (!name) return html`<${NewSessionOptions} />`;
  return html`<${SessionOptions} name=${name} state=${state} />`;
}

/** A new conversation: it is created first, so that it can be set up before its first message. */
function NewSessionOptions() {
  const createSession = () =>
    attempt(async () => {
      const name = `chat-${newId()}`;
      await updateSession(name, { mode: "normal" });
      openSession(name);
    });
  return html`
    <div class="stack">
      <p class="muted">
        Model, thinking, preset and what it may do unasked can be set before the first message.
      </p>
      <div>
        <button type="button" class="btn" onClick=${createSession}>
          Set up a new conversation
        </button>
      </div>
    </div>
  `;
}

function SessionOptions({ name, state }) {
  const models = useFetch("/api/models");
  const presets = useFetch("/api/presets");
  const about = useFetch(`${sessionPath(name)}?n=${state.open ? 0 : state.n}`);
  const options = { ...about.data?.options, ...state.options };
  const usage = about.data?.usage;
  const saveOptions = (more) =>
    attempt(() => updateSession(name, more).then(() => announce("Saved")));
  const locked = !hasScope("chat");
  const saveChoice = (field) => (event) => saveOptions({ [field]: event.target.value });
  return html`
    <div class="stack wide">
      <label class="field">
        <span>Model</span>
        <select
          class="input"
          value=${options.model ?? ""}
          disabled=${locked}
          onChange=${saveChoice("model")}
        >
          <option value="">default</option>
          ${(models.data?.models ?? [])
            .filter((one) => one.ready && !one.id.includes("*"))
            .map((one) => html`<option key=${one.id} value=${one.id}>${one.id}</option>`)}
        </select>
      </label>
      <label class="field">
        <span>Thinking</span>
        <select
          class="input"
          value=${options.thinking ?? ""}
          disabled=${locked}
          onChange=${saveChoice("thinking")}
        >
          ${EFFORTS.map(([id, label]) => html`<option key=${id} value=${id}>${label}</option>`)}
        </select>
      </label>
      <label class="field">
        <span>Preset</span>
        <select
          class="input"
          value=${options.preset ?? ""}
          disabled=${locked}
          onChange=${saveChoice("preset")}
        >
          <option value="">none</option>
          ${(presets.data ?? []).map(
            (one) => html`
              <option key=${one.name} value=${one.name} title=${one.description}>
                ${one.name}
              </option>
            `,
          )}
        </select>
      </label>
      <div class="toggles">
        <${Toggle}
          label="Ask before each tool"
          note="When off, your usual permissions apply"
          enabled=${options.approval}
          disabled=${locked}
          set=${(enabled) => saveOptions({ approval: enabled })}
        />
        <${Toggle}
          label="Plan first"
          note="It says what it will do before it does it"
          enabled=${options.plan_mode}
          disabled=${locked}
          set=${(enabled) => saveOptions({ plan_mode: enabled })}
        />
        <${Toggle}
          label="Deep work"
          note="It goes on by itself while tasks are open"
          enabled=${options.mode === "deep_work"}
          disabled=${locked}
          set=${(enabled) =>
            saveOptions({ mode: enabled ? "deep_work" : "normal", plan_mode: enabled })}
        />
        <${Toggle}
          label="Team"
          note="It may take other agents into a team"
          enabled=${options.teams}
          disabled=${locked}
          set=${(enabled) => saveOptions({ teams: enabled })}
        />
        <${Toggle}
          label="Tracing"
          note="Keeps what was sent to the model, for the trace"
          enabled=${options.tracing}
          disabled=${locked}
          set=${(enabled) => saveOptions({ tracing: enabled })}
        />
      </div>
      <form
        class="stack"
        onSubmit=${submitFields((fields) =>
          updateSession(name, { system_prompt: fields.prompt }).then(() => {
            announce("Saved");
            return null;
          }),
        )}
      >
        <label class="field">
          <span>Instructions for this conversation</span>
          <textarea
            class="input"
            name="prompt"
            rows="4"
            disabled=${locked}
            placeholder="What it should keep in mind here"
            defaultValue=${options.system_prompt ?? ""}
          ></textarea>
        </label>
        <div><button class="btn little" disabled=${locked}>Save the instructions</button></div>
      </form>
      <${Section} title="Used so far">
        <dl class="facts">
          <dt>Read</dt>
          <dd>
            ${formatCount(usage?.input_tokens)} tokens
            ${usage?.cached_tokens ? ` (${formatCount(usage.cached_tokens)} from the cache)` : ""}
          </dd>
          <dt>Written</dt>
          <dd>${formatCount(usage?.output_tokens)} tokens</dd>
          ${usage && "cost" in usage && html`<dt>Cost</dt><dd>${formatMoney(usage.cost)}</dd>`}
        </dl>
      <//>
      ${
        hasScope("chat") &&
        html`
          <${Section}
            title="Erase"
            note=${
              "What was said here is removed from the log for good, and so is what I remember " +
              "of it alone. Files that were made stay."
            }
          >
            <div>
              <${ConfirmButton}
                label="Erase this conversation"
                confirm="Yes, erase it for good"
                onYes=${() => eraseSession(name)}
                little=${false}
              />
            </div>
          <//>
        `
      }
    </div>
  `;
}
