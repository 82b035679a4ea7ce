// The first five minutes in five steps. Each can be skipped, and done again at any time.

import { get, post } from "../api.js";
import { ChoiceGroup } from "../choice-group.js";
import { listSkipped, noteSkipped, STEPS } from "../first-steps.js";
import { Icon } from "../icons.js";
import { t, tData, tRich } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { sendMessage } from "../sending.js";
import { announce, attempt, hasScope } from "../state.js";
import { NewJob } from "./job-form.js";
import { Empty, Loaded, Section, submitFields, useFetch } from "./parts.js";
import { nameMode } from "./policy-names.js";
import { ChannelStep } from "./setup-channel.js";
import { ModelStep } from "./setup-model.js";

const NOTES = {
  model: t("Choose a model: on this machine, or at a provider."),
  person: t("So that it knows what to call you, and what time it is where you are."),
  permissions: t("What it may do without asking."),
  channel: t("Write to it from where you already are. What you give is tried first."),
  job: t("What should it do by itself? A job says before what it will use."),
};

let wanted = ""; // the step with which the page is opened next

/** Have this step open when the page is opened. */
export function openStep(step) {
  wanted = step;
}

export function Setup() {
  const found = useFetch(hasScope("admin") ? "/api/setup" : "");
  const [changed, setChanged] = useState(null);
  const now = changed ?? found.data;
  const pulling = now?.pull && !now.pull.problem && now.pull.done < now.pull.size;
  useEffect(() => {
    if (!pulling) return undefined;
    const timer = setInterval(() => get("/api/setup").then(setChanged, () => undefined), 1000);
    return () => clearInterval(timer);
  }, [pulling]);
  if (!hasScope("admin")) return html`<${Empty}>${t("Only an owner can set up Deskhand.")}<//>`;
  return html`
    <${Loaded} result=${{ ...found, data: now }} what=${t("the first steps")}>
      ${(view) => html`<${Steps} view=${view} setView=${setChanged} />`}
    <//>
  `;
}

function Steps({ view, setView }) {
  const [skipped, setSkipped] = useState(listSkipped);
  const isBehind = (step) => view.done.includes(step) || skipped.includes(step);
  const next = (after) => {
    const rest = STEPS.slice(STEPS.findIndex(([step]) => step === after) + 1);
    return [...rest, ...STEPS].find(([step]) => step !== after && !isBehind(step))?.[0] ?? "";
  };
  const [open, setOpen] = useState(
    () => wanted || (STEPS.find(([step]) => !isBehind(step))?.[0] ?? ""),
  );
  useEffect(() => {
    if (wanted) document.getElementById(`step-${wanted}`)?.focus();
    wanted = "";
  }, []);
  const leave = (step) => {
    if (!view.done.includes(step)) setSkipped(noteSkipped(step));
    const following = next(step);
    setOpen(following);
    const id = following ? `step-${following}` : "steps-done";
    requestAnimationFrame(() => document.getElementById(id)?.focus());
  };
  const reload = () => get("/api/setup").then(setView, () => undefined);
  return html`
    <div class="stack wide">
      ${
        view.demo &&
        html`<p class="note warn">${t("No model is chosen yet: a script answers in its place.")}</p>`
      }
      ${view.moving && html`<${Moving} moving=${view.moving} />`}
      <${Progress} done=${view.done.length} />
      <ol class="steps">
        ${STEPS.map(
          ([step, title], i) => html`
            <${Step}
              key=${step}
              step=${step}
              title=${title}
              number=${i + 1}
              state=${view.done.includes(step) ? "done" : skipped.includes(step) ? "skipped" : ""}
              about=${describeStep(step, view)}
              isOpen=${open === step}
              toggle=${() => setOpen(open === step ? "" : step)}
              leave=${() => leave(step)}
            >
              ${open === step && drawStep(step, view, setView, reload)}
            <//>
          `,
        )}
      </ol>
      ${STEPS.every(([step]) => isBehind(step)) && html`<${Ready} view=${view} />`}
    </div>
  `;
}

function Progress({ done }) {
  return html`
    <div class="steps-progress">
      <progress value=${done} max=${STEPS.length} aria-label=${t("First steps")}></progress>
      <span class="small muted">${t("{count} of {all} done", { count: done, all: STEPS.length })}</span>
    </div>
  `;
}

/** One step: a button with its number and what stands, and below it what is to be done. */
function Step({ step, title, number, state, about, isOpen, toggle, leave, children }) {
  return html`
    <li class=${`step ${state}`}>
      <h3>
        <button
          type="button"
          class="step-head"
          id=${`step-${step}`}
          aria-expanded=${String(isOpen)}
          onClick=${toggle}
        >
          <span class="step-mark" aria-hidden="true">
            ${state === "done" ? html`<${Icon} name="check" />` : number}
          </span>
          <span class="grow">
            <span class="step-title">
              ${title}${state === "done" && html`<span class="sr">, ${t("done")}</span>`}
            </span>
            <span class="small muted">
              ${state === "skipped" ? t("Skipped") : state === "done" ? about : NOTES[step]}
            </span>
          </span>
          <${Icon} name=${isOpen ? "down" : "right"} />
        </button>
      </h3>
      ${
        isOpen &&
        html`
          <div class="step-body stack">
            ${children}
            <div class="row">
              <button
                type="button"
                class=${`btn ${state === "done" ? "main" : ""}`}
                onClick=${leave}
              >
                ${state === "done" ? t("Next step") : t("Skip this step")}
              </button>
            </div>
          </div>
        `
      }
    </li>
  `;
}

/** What stands at a step that was taken. */
function describeStep(step, view) {
  if (step === "model") return t("{model} answers now.", { model: view.model });
  if (step === "person") return view.person;
  if (step === "permissions") return nameMode(view.permission_mode);
  if (step === "job") return t("At least one is there.");
  const names = view.channels.filter((one) => one.connected).map((one) => one.title);
  return names.join(", ") || view.connected?.name || t("At least one is there.");
}

function drawStep(step, view, setView, reload) {
  const setPermissionMode = (mode) =>
    attempt(async () => {
      setView(await post("/api/setup/permission-mode", { permission_mode: mode }));
      announce(t("Saved"));
    });
  const savePerson = submitFields(async (fields) => {
    const answer = await post("/api/setup/person", fields);
    setView(answer);
    announce(t("Saved"));
    return answer;
  });
  if (step === "model") return html`<${ModelStep} view=${view} setView=${setView} />`;
  if (step === "person") return drawPersonForm(view, savePerson);
  if (step === "channel") return html`<${ChannelStep} view=${view} onConnected=${reload} />`;
  if (step === "job") return html`<${NewJob} onMade=${reload} />`;
  return html`
    <${ChoiceGroup}
      role="radio"
      class="cards"
      aria-label=${t("Permissions")}
      choices=${Object.entries(view.permission_modes).map(describeMode)}
      chosen=${view.permission_mode}
      choose=${setPermissionMode}
      follows=${false}
    />
  `;
}

const describeMode = ([name, means]) => [
  name,
  html`
    <span>
      <strong>${nameMode(name)}</strong>${" "}<code class="tiny muted">${name}</code>
    </span>
    <span class="small muted">${tData(means)}</span>
  `,
  { class: "option" },
];

function drawPersonForm(view, savePerson) {
  return html`
    <form class="row wrap" onSubmit=${savePerson}>
      <label class="field grow">
        <span>${t("Name")}</span>
        <input class="input" name="name" value=${view.person} />
      </label>
      <label class="field grow">
        <span>${t("Time zone")}</span>
        <input
          class="input"
          name="timezone"
          value=${view.timezone || Intl.DateTimeFormat().resolvedOptions().timeZone}
        />
      </label>
      <button class="btn">${t("Save")}</button>
    </form>
  `;
}

/** What else was used here before. */
function Moving({ moving }) {
  return html`
    <p class="note">
      <span>
        ${moving}${" "}
        ${tRich(
          "Your conversations, jobs and memories can come with you. In a terminal, {command} says what would be taken over, and takes nothing yet.",
          { command: html`<code>deskhand import</code>` },
        )}
      </span>
    </p>
  `;
}

/** All is set: what the script showed is asked again, of the model that was chosen. */
function Ready({ view }) {
  return html`
    <${Section}
      title=${html`<span id="steps-done" tabindex="-1">${t("Ready")}</span>`}
      note=${
        view.demo
          ? t("You can come back to each step at any time. A script still answers.")
          : t("You can come back to each step at any time. Now give it something to do.")
      }
    >
      <ul class="examples">
        ${view.examples.map((text) => {
          const said = view.demo ? text : tData(text); // the script knows the English words alone
          return html`
            <li key=${text}>
              <button type="button" onClick=${() => sendMessage(said, [], "steer", "")}>
                <strong>${tData(text)}</strong>
              </button>
            </li>
          `;
        })}
      </ul>
      <p class="small">
        <a href="#/settings/health">${t("See whether all is well")}</a>
      </p>
    <//>
  `;
}
