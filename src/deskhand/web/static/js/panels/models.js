// Which model answers, what agents can do, and the prompts and skills that are ready.

import { post } from "../api.js";
import { formatCount } from "../format.js";
import { html, useState } from "../lib.js";
import { announce, attempt, hasScope } from "../state.js";
import { Empty, Loaded, Section, submitFields, useFetch } from "./parts.js";

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
      announce(`Now using ${id}`);
      found.reload();
    });
  return html`
    <div class="stack wide">
      <${Section}
        title="Model"
        note="The default for every conversation; one can have its own in its options."
      >
        <${Loaded} result=${found} what="models">
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
                    aria-label="Find a model"
                    placeholder="Find a model"
                    value=${query}
                    onInput=${(event) => setQuery(event.target.value)}
                  />
                `
              }
              <ul class="rows">
                ${ready.slice(0, 40).map((one) => drawModel(one, now, selectModel))}
              </ul>
              ${!ready.length && html`<${Empty}>No matching model. You can add one in Set up.<//>`}
              ${
                others.length > 0 &&
                html`
                  <details>
                    <summary class="small">
                      ${others.length} ${others.length === 1 ? "needs" : "need"} setup
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
        title="Skills"
        note="Instructions that an agent reads when a task calls for them."
        action=${
          hasScope("admin") &&
          html`
            <button
              type="button"
              class="btn little"
              aria-expanded=${String(writing)}
              onClick=${() => setWriting(!writing)}
            >
              Write one
            </button>
          `
        }
      >
        ${writing && drawSkillForm(skills, setWriting)}
        <${Loaded} result=${skills} what="skills">
          ${(all) =>
            all.length
              ? html`<ul class="rows">${all.map(drawSkill)}</ul>`
              : html`<${Empty}>There are no skills yet.<//>`}
        <//>
      <//>
      <${Section}
        title="Presets"
        note="Prompts that are ready; choose one in the options of a conversation."
      >
        <${Loaded} result=${presets} what="presets">
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
              : html`<${Empty}>There are no presets.<//>`}
        <//>
      <//>
      <${Section} title="Tools" note="What an agent can do, and what that does to the world.">
        <${Loaded} result=${tools} what="tools">
          ${(all) => html`<ul class="rows">${all.map(drawTool)}</ul>`}
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
          ? html`<span class="tag good">answers now</span>`
          : html`
              <button
                type="button"
                class="btn little"
                disabled=${!hasScope("admin")}
                onClick=${() => selectModel(one.id)}
                aria-label=${`Use ${one.id}`}
              >
                Use
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
        <span class="small muted">${one.why_not || "not ready"}</span>
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
        announce(`The skill ${made.name} is there`);
        return made;
      })}
    >
      <label class="field">
        <span>Name</span>
        <input
          class="input"
          name="name"
          required
          pattern="[a-z0-9\\-]+"
          placeholder="weekly-report"
        />
      </label>
      <label class="field">
        <span>When to use it</span>
        <input class="input" name="description" required />
      </label>
      <label class="field">
        <span>What to do</span>
        <textarea class="input" name="body" rows="5" required></textarea>
      </label>
      <div><button class="btn main little">Save the skill</button></div>
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
        <span class="small muted">${one.description.split("\n")[0]}</span>
      </span>
      <span class="tag">${EFFECTS[one.effect] ?? one.effect}</span>
    </li>
  `;
}

const EFFECTS = {
  none: "looks only",
  local_write: "writes files",
  send_owner: "writes to you",
  send_other: "writes to others",
  network: "goes online",
  host: "runs commands",
  irreversible: "cannot be undone",
};

const modelName = (model) => [model.provider, model.model_id].filter(Boolean).join("/");

function describeModel(one) {
  const price = one.price
    ? `$${one.price[0]} read, $${one.price[1]} written, for a million tokens`
    : "";
  return [one.provider, one.window ? `${formatCount(one.window)} tokens of context` : "", price]
    .filter(Boolean)
    .join(" · ");
}
