// The step of a model: one on this machine, or one at a provider, whose key is tested first.

import { get, post } from "../api.js";
import { formatBytes, formatDuration } from "../format.js";
import { t, tServer } from "../language.js";
import { html, useState } from "../lib.js";
import { announce, attempt } from "../state.js";
import { submitFields } from "./parts.js";

const describePull = ({ model, done, size }) =>
  t("Fetching {model}: {done} of {size}", {
    model,
    done: formatBytes(done),
    size: formatBytes(size),
  });

function describeProbe({ model, first_s, said, tools }) {
  const values = { model, time: formatDuration(first_s), answer: said };
  if (tools && !said) return t("{model} answered after {time}, and it calls tools.", values);
  return tools
    ? t("{model} answered after {time}: “{answer}”, and it calls tools.", values)
    : t(
        "{model} answered after {time}: “{answer}”. It did not call a tool: files and commands will be hard for it.",
        values,
      );
}

export function ModelStep({ view, setView }) {
  const [probed, setProbed] = useState(null);
  const selectModel = (model) =>
    attempt(async () => {
      setView(await post("/api/setup/model", { model }));
      announce(t("Now using {model}", { model }));
    });
  const probeModel = (model) =>
    attempt(async () => setProbed(await post("/api/setup/probe", { model })));
  const testKey = async ({ sees, ...fields }) => {
    const answer = await post("/api/setup/key", {
      ...fields,
      vision: sees ? sees === "yes" : null,
    });
    setProbed(
      answer.ok
        ? answer
        : {
            ...answer,
            problem: t("Nothing was changed. {problem}", { problem: tServer(answer.problem) }),
          },
    );
    setView(await get("/api/setup"));
    return answer.ok ? answer : undefined;
  };
  return html`
    ${
      view.pull &&
      html`
        <div class="box">
          <p>${tServer(view.pull.problem) || describePull(view.pull)}</p>
          <progress
            value=${view.pull.done}
            max=${view.pull.size || 1}
            aria-label=${t("Download")}
          ></progress>
        </div>
      `
    }
    <ul class="rows">${view.offers.map((one) => drawOffer(one, view, selectModel))}</ul>
    ${drawKeyForm(view, testKey)}
    <div class="row">
      <button
        type="button"
        class="btn little"
        disabled=${!view.model || view.demo}
        onClick=${() => probeModel(view.model)}
      >
        ${t("Try the model")}
      </button>
    </div>
    ${
      probed &&
      html`
        <p class=${`note ${probed.ok ? "" : "bad"}`} role="status">
          ${probed.ok ? describeProbe(probed) : tServer(probed.problem)}
        </p>
      `
    }
  `;
}

function drawOffer(one, view, selectModel) {
  return html`
    <li key=${one.model + one.kind}>
      <span class="grow">
        <strong>${one.title}</strong>
        <span class="small muted">${tServer(one.detail)}</span>
      </span>
      ${
        one.model === view.model
          ? html`<span class="tag good">${t("answers now")}</span>`
          : html`
              <button
                type="button"
                class=${`btn little ${one.ready ? "main" : ""}`}
                onClick=${() => selectModel(one.model)}
              >
                ${one.ready ? t("Use") : t("Fetch and use")}
              </button>
            `
      }
    </li>
  `;
}

function drawKeyForm(view, testKey) {
  return html`
    <form class="box stack" onSubmit=${submitFields(testKey)}>
      <div class="row wrap">
        <label class="field">
          <span>${t("Or a key for")}</span>
          <input class="input" name="provider" list="providers" required placeholder="openai" />
          <datalist id="providers">
            ${view.providers.map(
              (one) => html`
                <option key=${one.name} value=${one.name}>${one.has_key ? t("has a key") : ""}</option>
              `,
            )}
          </datalist>
        </label>
        <label class="field grow">
          <span>${t("Key")}</span>
          <input class="input" name="key" type="password" autocomplete="off" />
        </label>
        <button class="btn main">${t("Test and save")}</button>
      </div>
      <details>
        <summary>${t("Another address or model")}</summary>
        <div class="row wrap">
          <label class="field grow">
            <span>${t("Base URL")}</span>
            <input class="input" name="base_url" type="url" placeholder=${t("the usual one")} />
          </label>
          <label class="field">
            <span>${t("Model")}</span>
            <input class="input" name="model" placeholder=${t("the usual one")} />
          </label>
          <label class="field">
            <span>${t("Sees pictures")}</span>
            <select class="input" name="sees">
              <option value="">${t("as known")}</option>
              <option value="yes">${t("yes")}</option>
              <option value="no">${t("no")}</option>
            </select>
          </label>
        </div>
      </details>
      <p class="small muted">
        ${t("The key is tested first. Where the test fails, everything stays as it is.")}
      </p>
    </form>
  `;
}
