// The first steps: a model, permissions, your name, a chat program. All can be skipped or repeated.

import { get, post } from "../api.js";
import { capitalize, formatBytes } from "../format.js";
import { t, tData, tRich } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { announce, attempt, hasScope } from "../state.js";
import { Empty, Loaded, Section, submitFields, svgDataUrl, useFetch } from "./parts.js";

const describePull = ({ model, done, size }) =>
  t("Fetching {model}: {done} of {size}", {
    model,
    done: formatBytes(done),
    size: formatBytes(size),
  });

function describeProbe({ model, first_s, said, tools }) {
  const values = { model, seconds: first_s.toFixed(1), answer: said };
  return tools
    ? t("{model} answered after {seconds} s: “{answer}”, and it calls tools.", values)
    : t(
        "{model} answered after {seconds} s: “{answer}”. It did not call a tool: files and commands will be hard for it.",
        values,
      );
}

export function Setup() {
  const found = useFetch(hasScope("admin") ? "/api/setup" : "");
  const [changed, setChanged] = useState(null);
  const [probed, setProbed] = useState(null);
  const [connected, setConnected] = useState(null);
  const [kind, setKind] = useState("telegram");
  const now = changed ?? found.data;
  const pulling = now?.pull && !now.pull.problem && now.pull.done < now.pull.size;
  useEffect(() => {
    if (!pulling) return undefined;
    const timer = setInterval(() => get("/api/setup").then(setChanged, () => undefined), 1000);
    return () => clearInterval(timer);
  }, [pulling]);
  if (!hasScope("admin")) return html`<${Empty}>${t("Only an owner can set up Deskhand.")}<//>`;
  const selectModel = (model) =>
    attempt(async () => {
      setChanged(await post("/api/setup/model", { model }));
      announce(t("Now using {model}", { model }));
    });
  const probeModel = (model) =>
    attempt(async () => setProbed(await post("/api/setup/probe", { model })));
  const setPermissionMode = (mode) =>
    attempt(async () =>
      setChanged(await post("/api/setup/permission-mode", { permission_mode: mode })),
    );
  const testKey = async ({ sees, ...fields }) => {
    const answer = await post("/api/setup/key", {
      ...fields,
      vision: sees ? sees === "yes" : null,
    });
    setProbed(
      answer.ok
        ? answer
        : { ...answer, problem: t("Nothing was changed. {problem}", { problem: answer.problem }) },
    );
    setChanged(await get("/api/setup"));
    return answer.ok ? answer : undefined;
  };
  const saveStep = (path) =>
    submitFields(async (fields) => {
      const answer = await post(`/api/setup/${path}`, fields);
      setChanged(answer);
      announce(t("Saved"));
      return answer;
    });
  return html`
    <${Loaded} result=${{ ...found, data: now }} what=${t("the first steps")}>
      ${(view) => html`
        <div class="stack wide">
          ${
            view.demo &&
            html`<p class="note warn">${t("No model is chosen yet: a script answers in its place.")}</p>`
          }
          ${
            view.moving &&
            html`
              <p class="note">
                <span>
                  ${view.moving}${" "}
                  ${tRich(
                    "Your conversations, jobs and memories can come with you. In a terminal, {command} says what would be taken over, and takes nothing yet.",
                    { command: html`<code>deskhand import</code>` },
                  )}
                </span>
              </p>
            `
          }
          <${Section}
            title=${t("A model")}
            note=${
              view.model
                ? t("{model} answers now.", { model: view.model })
                : t("Choose a model: on this machine, or at a provider.")
            }
          >
            ${
              view.pull &&
              html`
                <div class="box">
                  <p>${view.pull.problem || describePull(view.pull)}</p>
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
                  ${probed.ok ? describeProbe(probed) : probed.problem}
                </p>
              `
            }
          <//>
          <${Section} title=${t("Permissions")} note=${t("What it may do without asking.")}>
            <div class="cards" role="radiogroup" aria-label=${t("Permissions")}>
              ${Object.entries(view.permission_modes).map(([name, means]) =>
                drawPermissionMode(name, means, view.permission_mode === name, setPermissionMode),
              )}
            </div>
          <//>
          <${Section}
            title=${t("You")}
            note=${t("So that it knows what to call you, and what time it is where you are.")}
          >
            ${drawPersonForm(view, saveStep("person"))}
          <//>
          <${Section}
            title=${t("Channels")}
            note=${t("Write to it from where you already are. What you give is tried first.")}
          >
            ${drawChannels(view.channels, kind, setKind)}
            ${drawChannelForm(
              view.channels.find((one) => one.kind === kind),
              setConnected,
            )}
            ${(connected ?? view.connected) && drawConnected(connected ?? view.connected)}
          <//>
        </div>
      `}
    <//>
  `;
}

function drawOffer(one, view, selectModel) {
  return html`
    <li key=${one.model + one.kind}>
      <span class="grow">
        <strong>${one.title}</strong>
        <span class="small muted">${one.detail}</span>
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

function drawPermissionMode(name, means, chosen, setPermissionMode) {
  return html`
    <button
      key=${name}
      type="button"
      role="radio"
      aria-checked=${String(chosen)}
      class="option"
      onClick=${() => setPermissionMode(name)}
    >
      <strong>${name}</strong>
      <span class="small muted">${tData(means)}</span>
    </button>
  `;
}

function drawChannels(channels, kind, setKind) {
  return html`
    <div class="row wrap" role="radiogroup" aria-label=${t("Kind of channel")}>
      ${channels.map(
        (one) => html`
          <button
            key=${one.kind}
            type="button"
            role="radio"
            aria-checked=${String(one.kind === kind)}
            class=${`btn little ${one.kind === kind ? "main" : ""}`}
            onClick=${() => setKind(one.kind)}
          >
            ${one.title}${one.connected ? " ✓" : ""}
          </button>
        `,
      )}
    </div>
  `;
}

function drawChannelForm(guide, setConnected) {
  const connect = async (answers) => {
    const answer = await post("/api/setup/channel", { kind: guide.kind, answers });
    setConnected(answer);
    return answer;
  };
  return html`
    <form key=${guide.kind} class="box stack" onSubmit=${submitFields(connect)}>
      ${guide.connected && html`<p class="small">${t("Connected. To change it, give it anew.")}</p>`}
      ${
        guide.link &&
        html`
          <p class="small">
            ${tRich("Begin at {link}.", {
              link: html`
                <a href=${guide.link} target="_blank" rel="noreferrer noopener">${guide.link}</a>
              `,
            })}
          </p>
        `
      }
      ${guide.needs.map(
        (need) => html`
          <label class="field" key=${need.setting}>
            <span>${tData(need.label)}</span>
            <input
              class="input"
              name=${need.setting}
              type=${need.secret ? "password" : "text"}
              autocomplete="off"
              required=${!need.optional && !(need.secret && guide.connected)}
              placeholder=${need.example}
            />
            <span class="small muted">${capitalize(tData(need.where))}.</span>
          </label>
        `,
      )}
      <div class="row"><button class="btn">${t("Connect {title}", { title: guide.title })}</button></div>
    </form>
  `;
}

function drawConnected(channel) {
  return html`
    <div class="row qr" role="status">
      <img
        src=${svgDataUrl(channel.qr_svg)}
        alt=${t("A QR code that opens it")}
        width="148"
        height="148"
      />
      <p>
        ${tRich("{name} works.", {
          name: html`
            <a href=${channel.link} target="_blank" rel="noreferrer noopener">${channel.name}</a>
          `,
        })}${" "}
        ${tData(channel.after)}
      </p>
    </div>
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
