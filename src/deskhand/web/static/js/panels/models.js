// Which model answers, what agents can do, and the prompts and skills that are ready.

import { post } from "../api.js";
import { formatCount } from "../format.js";
import { t, tCount, tServer } from "../language.js";
import { html, useState } from "../lib.js";
import { announce, attempt, hasScope } from "../state.js";
import { Empty, Loaded, Rows, Section, submitFields, useFetch } from "./parts.js";
import { StepButton } from "./suggestion.js";

const MANY_CHARS = 120; // of a sentence: from there on it lists what the model may give

export function Models() {
  const found = useFetch("/api/models");
  const skills = useFetch("/api/skills");
  const presets = useFetch("/api/presets");
  const tools = useFetch("/api/tools");
  const [query, setQuery] = useState("");
  const [writing, setWriting] = useState(false);
  const selectModel = (id) =>
    attempt(async () => {
      await post("/api/models/select", { model_id: id });
      announce(t("Now using {id}", { id }));
      found.reload();
    });
  return html`
    <div class="stack wide">
      <${Section}
        title=${t("Model")}
        note=${t("The default for every conversation; one can have its own in its options.")}
      >
        <${Loaded} result=${found} what=${t("models")}>
          ${(data) => {
            const now = modelName(data.current);
            const shown = data.models.filter(
              (one) => !one.id.includes("*") && one.id.toLowerCase().includes(query.toLowerCase()),
            );
            const ready = shown.filter((one) => one.ready);
            const others = shown.filter((one) => !one.ready);
            return html`
              ${
                data.models.length > 8 &&
                html`
                  <input
                    class="input"
                    type="search"
                    aria-label=${t("Find a model")}
                    placeholder=${t("Find a model")}
                    value=${query}
                    onInput=${(event) => setQuery(event.target.value)}
                  />
                `
              }
              <ul class="rows">
                ${ready.slice(0, 40).map((one) => drawModel(one, now, selectModel))}
              </ul>
              ${
                !ready.length &&
                html`
                  <${Empty}>
                    <span>${query ? t("No matching model is ready.") : t("No model is ready yet.")}</span>
                    <${StepButton} step="model">${t("Set up a model")}<//>
                  <//>
                `
              }
              ${
                others.length > 0 &&
                html`
                  <details>
                    <summary class="small">
                      ${tCount(others.length, "{count} needs setup", "{count} need setup")}
                    </summary>
                    <ul class="rows">${others.slice(0, 60).map(drawUnready)}</ul>
                  </details>
                `
              }
            `;
          }}
        <//>
      <//>
      <${Section}
        title=${t("Skills")}
        note=${t(
          "Instructions that an agent reads when a task calls for them, such as how your weekly report is written.",
        )}
        action=${
          hasScope("admin") &&
          html`
            <button
              type="button"
              class="btn little"
              aria-expanded=${String(writing)}
              onClick=${() => setWriting(!writing)}
            >
              ${t("Write a skill")}
            </button>
          `
        }
      >
        ${writing && drawSkillForm(skills, setWriting)}
        <${Loaded} result=${skills} what=${t("skills")}>
          ${(all) =>
            all.length
              ? html`<${Rows} rows=${all} draw=${drawSkill} />`
              : html`<${Empty}>${t("There are no skills yet. Write one for what you would otherwise explain again and again.")}<//>`}
        <//>
      <//>
      <${Section}
        title=${t("Presets")}
        note=${t("Prompts that are ready; choose one in the options of a conversation.")}
      >
        <${Loaded} result=${presets} what=${t("presets")}>
          ${(all) =>
            all.length
              ? html`
                  <ul class="rows">
                    ${all.map(
                      (one) => html`
                        <li key=${one.name}>
                          <span class="grow">
                            <strong>${one.name}</strong>
                            <span class="small muted">${one.description}</span>
                          </span>
                        </li>
                      `,
                    )}
                  </ul>
                `
              : html`<${Empty}>${t(
                  "There are no presets. A file prompts/NAME/PROMPT.md in Deskhand’s folder is one.",
                )}<//>`}
        <//>
      <//>
      <${Section}
        title=${t("Tools")}
        note=${t("What an agent can do, and what that does to the world.")}
      >
        <${Loaded} result=${tools} what=${t("tools")}>
          ${(all) => html`<${Rows} rows=${all} draw=${drawTool} />`}
        <//>
      <//>
    </div>
  `;
}

function drawModel(one, now, selectModel) {
  return html`
    <li key=${one.id} class=${one.id === now ? "chosen" : ""}>
      <span class="grow">
        <strong class="cut">${one.id}</strong>
        <span class="small muted">${describeModel(one)}</span>
      </span>
      ${
        one.id === now
          ? html`<span class="tag good">${t("answers now")}</span>`
          : html`
              <button
                type="button"
                class="btn little"
                disabled=${!hasScope("admin")}
                onClick=${() => selectModel(one.id)}
                aria-label=${t("Use {id}", { id: one.id })}
              >
                ${t("Use")}
              </button>
            `
      }
    </li>
  `;
}

function drawUnready(one) {
  return html`
    <li key=${one.id}>
      <span class="grow">
        <strong class="cut">${one.id}</strong>
        <span class="small muted">${tServer(one.why_not) || t("not ready")}</span>
      </span>
    </li>
  `;
}

function drawSkillForm(skills, setWriting) {
  return html`
    <form
      class="stack box"
      onSubmit=${submitFields(async (fields) => {
        const made = await post("/api/skills", fields);
        skills.reload();
        setWriting(false);
        announce(t("The skill {name} is there", { name: made.name }));
        return made;
      })}
    >
      <label class="field">
        <span>${t("Name")}</span>
        <input
          class="input"
          name="name"
          required
          pattern="[a-z0-9\\-]+"
          placeholder=${t("weekly-report")}
        />
      </label>
      <label class="field">
        <span>${t("When to use it")}</span>
        <input class="input" name="description" required />
      </label>
      <label class="field">
        <span>${t("What to do")}</span>
        <textarea class="input" name="body" rows="5" required></textarea>
      </label>
      <div><button class="btn main little">${t("Save the skill")}</button></div>
    </form>
  `;
}

function drawSkill(one) {
  return html`
    <li key=${one.name}>
      <span class="grow">
        <strong>${one.name}</strong>
        <span class="small muted">${one.description}</span>
      </span>
      ${one.source && html`<span class="tag">${one.source}</span>`}
    </li>
  `;
}

function drawTool(one) {
  return html`
    <li key=${one.name}>
      <span class="grow">
        <strong>${one.name}</strong>
        <span class="small muted">${firstSentence(one.description)}</span>
      </span>
      <span class="tag">${EFFECTS[one.effect] ?? one.effect}</span>
    </li>
  `;
}

/** What a tool is for; the rest of the description is for the model. */
function firstSentence(description) {
  const words = description.split(/\n\s*\n/)[0].replace(/\s+/g, " ");
  const sentence = /^.*?[.](?=\s|$)/.exec(words)?.[0] ?? words;
  return sentence.length > MANY_CHARS ? sentence.replace(/: .*/, ".") : sentence;
}

const EFFECTS = {
  none: t("looks only"),
  local_write: t("writes files"),
  send_owner: t("writes to you"),
  send_other: t("writes to others"),
  fetch: t("reads the web"),
  network: t("goes online"),
  host: t("runs commands"),
  irreversible: t("cannot be undone"),
};

const modelName = (model) => [model.provider, model.model_id].filter(Boolean).join("/");

function describeModel(one) {
  const price = one.price
    ? t("{read} read, {written} written, for a million tokens", {
        read: `$${one.price[0]}`,
        written: `$${one.price[1]}`,
      })
    : "";
  const context = one.window
    ? t("{amount} tokens of context", { amount: formatCount(one.window) })
    : "";
  return [one.provider, context, price].filter(Boolean).join(" · ");
}
