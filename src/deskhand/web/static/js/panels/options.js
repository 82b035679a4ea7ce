// How this one conversation is held: model, thinking, preset, what it may do unasked.

import { newId, sessionPath } from "../api.js";
import { formatCount, formatMoney } from "../format.js";
import { t } from "../language.js";
import { html } from "../lib.js";
import { eraseSession } from "../session-row.js";
import { announce, attempt, hasScope, openSession, route, updateSession } from "../state.js";
import { talk } from "../talk.js";
import { ConfirmButton, Section, submitFields, Toggle, useFetch } from "./parts.js";

const EFFORTS = [
  ["", t("default")],
  ["off", t("off")],
  ["low", t("low")],
  ["medium", t("medium")],
  ["high", t("high")],
  ["max", t("maximum")],
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
        ${t(
          "Model, thinking, preset and what it may do unasked can be set before the first message.",
        )}
      </p>
      <div>
        <button type="button" class="btn" onClick=${createSession}>
          ${t("Set up a new conversation")}
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
    attempt(() => updateSession(name, more).then(() => announce(t("Saved"))));
  const locked = !hasScope("chat");
  const saveChoice = (field) => (event) => saveOptions({ [field]: event.target.value });
  return html`
    <div class="stack wide">
      <label class="field">
        <span>${t("Model")}</span>
        <select
          class="input"
          value=${options.model ?? ""}
          disabled=${locked}
          onChange=${saveChoice("model")}
        >
          <option value="">${t("default")}</option>
          ${(models.data?.models ?? [])
            .filter((one) => one.ready && !one.id.includes("*"))
            .map((one) => html`<option key=${one.id} value=${one.id}>${one.id}</option>`)}
        </select>
      </label>
      <label class="field">
        <span>${t("Effort")}</span>
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
        <span>${t("Preset")}</span>
        <select
          class="input"
          value=${options.preset ?? ""}
          disabled=${locked}
          onChange=${saveChoice("preset")}
        >
          <option value="">${t("none")}</option>
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
          label=${t("Ask before each tool")}
          note=${t("When off, your usual permissions apply")}
          enabled=${options.approval}
          disabled=${locked}
          set=${(enabled) => saveOptions({ approval: enabled })}
        />
        <${Toggle}
          label=${t("Plan first")}
          note=${t("It says what it will do before it does it")}
          enabled=${options.plan_mode}
          disabled=${locked}
          set=${(enabled) => saveOptions({ plan_mode: enabled })}
        />
        <${Toggle}
          label=${t("Deep work")}
          note=${t("It goes on by itself while tasks are open")}
          enabled=${options.mode === "deep_work"}
          disabled=${locked}
          set=${(enabled) =>
            saveOptions({ mode: enabled ? "deep_work" : "normal", plan_mode: enabled })}
        />
        <${Toggle}
          label=${t("Team")}
          note=${t("It may take other agents into a team")}
          enabled=${options.teams}
          disabled=${locked}
          set=${(enabled) => saveOptions({ teams: enabled })}
        />
        <${Toggle}
          label=${t("Tracing")}
          note=${t("Keeps what was sent to the model, for the trace")}
          enabled=${options.tracing}
          disabled=${locked}
          set=${(enabled) => saveOptions({ tracing: enabled })}
        />
      </div>
      <form
        class="stack"
        onSubmit=${submitFields((fields) =>
          updateSession(name, { system_prompt: fields.prompt }).then(() => {
            announce(t("Saved"));
            return null;
          }),
        )}
      >
        <label class="field">
          <span>${t("Instructions for this conversation")}</span>
          <textarea
            class="input"
            name="prompt"
            rows="4"
            disabled=${locked}
            placeholder=${t("What it should keep in mind here")}
            defaultValue=${options.system_prompt ?? ""}
          ></textarea>
        </label>
        <div>
          <button class="btn little" disabled=${locked}>${t("Save the instructions")}</button>
        </div>
      </form>
      <${Section} title=${t("Used so far")}>
        <dl class="facts">
          <dt>${t("Read by the model")}</dt>
          <dd>
            ${
              usage?.cached_tokens
                ? t("{amount} tokens ({cached} from the cache)", {
                    amount: formatCount(usage.input_tokens),
                    cached: formatCount(usage.cached_tokens),
                  })
                : t("{amount} tokens", { amount: formatCount(usage?.input_tokens) })
            }
          </dd>
          <dt>${t("Written by the model")}</dt>
          <dd>${t("{amount} tokens", { amount: formatCount(usage?.output_tokens) })}</dd>
          ${
            usage &&
            "cost" in usage &&
            html`<dt>${t("Cost")}</dt><dd>${formatMoney(usage.cost)}</dd>`
          }
        </dl>
      <//>
      ${
        hasScope("chat") &&
        html`
          <${Section}
            title=${t("Erase")}
            note=${t(
              "What was said here is removed from the log for good, and so is what I remember of it alone. Files that were made stay.",
            )}
          >
            <div>
              <${ConfirmButton}
                label=${t("Erase this conversation")}
                confirm=${t("Yes, erase it for good")}
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
