// The form for a new job: choose its kind, then fill in its fields.

import { post } from "../api.js";
import { formatDateTime } from "../format.js";
import { t, tData, tServer } from "../language.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { attempt, hasScope } from "../state.js";
import { Loaded, useFetch } from "./parts.js";

const OWN = new Set(["web", "api", "terminal", "door", "job"]);

const HEAD = "---\nschedule: daily 09:00\ndescription: \n---\n\n";
const EMPTY = `${HEAD}${t("What the agent should do.")}\n`;

const KINDS = { time: "time", number: "number", url: "url" };

const OWN_KIND = {
  name: "own",
  title: t("Something else"),
  description: t("Write its file yourself: when, for whom, and what is to be done."),
  when: t("as you write it"),
  forecast: t("Shown before you create it."),
};

/** A new job: choose its kind, then fill in its form. `focused`: the first kind has the focus. */
export function NewJob({ onMade, focused }) {
  const all = useFetch("/api/blueprints");
  const [chosen, setChosen] = useState("");
  const root = useRef();
  useEffect(() => {
    if (focused && !chosen) root.current.querySelector(".blueprint button")?.focus();
  }, [focused, all.data, chosen]);
  return html`
    <div class="stack" ref=${root}>
      <${Loaded} result=${all} what=${t("blueprints")}>
        ${(found) => {
          const one = found.find((each) => each.name === chosen);
          if (one || chosen === "own")
            return html`
              <div class="box">
                <${JobForm}
                  key=${chosen}
                  one=${one ?? null}
                  onBack=${() => setChosen("")}
                  onMade=${onMade}
                />
              </div>
            `;
          return html`
            <ul class="blueprints" aria-label=${t("Kinds of jobs")}>
              ${[...found, OWN_KIND].map(
                (each) => html`
                  <${BlueprintCard} key=${each.name} of=${each} choose=${() => setChosen(each.name)} />
                `,
              )}
            </ul>
          `;
        }}
      <//>
    </div>
  `;
}

/** The forecast without what it is called, as it stands beside that. */
function describeCosts(forecast) {
  const called = t("Forecast: ");
  const said = tServer(forecast).replaceAll("`", "");
  return said.startsWith(called) ? said.slice(called.length) : said;
}

/** What a kind of job is good for, when it runs and what it costs; the button opens its form. */
function BlueprintCard({ of, choose }) {
  return html`
    <li class="blueprint">
      <h4>${tData(of.title)}</h4>
      <p>${tData(of.description)}</p>
      <dl class="small">
        <div><dt>${t("Runs")}</dt><dd>${tData(of.when)}</dd></div>
        <div><dt>${t("Costs")}</dt><dd>${describeCosts(of.forecast)}</dd></div>
      </dl>
      ${
        hasScope("chat") &&
        html`
          <button
            type="button"
            class="btn little"
            aria-label=${t("Set up {title}", { title: tData(of.title) })}
            onClick=${choose}
          >
            ${t("Set up")}
          </button>
        `
      }
    </li>
  `;
}

function JobForm({ one, onBack, onMade }) {
  const [shown, setShown] = useState(null);
  const [refused, setRefused] = useState("");
  const root = useRef();
  const talks = useFetch("/api/sessions?brief=true");
  const readDraft = (form) => {
    const { _to, _name, _text, ...fields } = Object.fromEntries(new FormData(form));
    return {
      name: _name ?? "",
      to: _to ?? "",
      ...(one ? { blueprint: one.name, slots: fields } : { text: _text }),
    };
  };
  const showPreview = async (form) => {
    try {
      setShown(await post("/api/blueprints/preview", readDraft(form)));
      setRefused("");
    } catch (error) {
      setShown(null);
      setRefused(error.message);
    }
  };
  const createJob = async (event) => {
    event.preventDefault();
    const answer = await attempt(() => post("/api/jobs", readDraft(event.target)));
    if (answer) onMade(answer.job.name);
  };
  const isRequired = (name) => one.form.required.includes(name);
  const isFilled = (form) =>
    !one || one.form.required.every((name) => form.elements[name].value.trim());
  const handleChange = (event) => {
    const form = event.currentTarget;
    if (isFilled(form)) showPreview(form);
  };
  useEffect(() => {
    if (one && isFilled(root.current)) showPreview(root.current);
  }, []);
  return html`
    <form class="stack" ref=${root} onSubmit=${createJob} onChange=${handleChange}>
      <div class="row">
        <button type="button" class="btn little" onClick=${onBack}>${t("Back")}</button>
        <strong>${one ? tData(one.title) : t("Something else")}</strong>
      </div>
      ${
        one
          ? Object.entries(one.form.properties).map(([name, blank]) =>
              drawField(name, blank, isRequired(name)),
            )
          : drawOwnFields()
      }
      <label class="field">
        <span>${t("Send answers to")}</span>
        <select class="input" name="_to">
          ${listDestinations(talks.data?.sessions ?? []).map(
            ([value, label]) => html`<option key=${value} value=${value}>${label}</option>`,
          )}
        </select>
      </label>
      ${refused && html`<p class="note warn" role="alert">${refused}</p>`}
      ${
        shown &&
        html`
          <div class="small" role="status">
            <p><strong>${tServer(shown.when)}</strong></p>
            <p class="muted">${shown.next_at.map(formatDateTime).join(" · ")}</p>
            <p>${tServer(shown.forecast)}</p>
            ${shown.command && html`<p><code class="wrap">${shown.command}</code></p>`}
          </div>
        `
      }
      <div><button class="btn main">${t("Create job")}</button></div>
    </form>
  `;
}

function drawField(name, blank, required) {
  return html`
    <label class="field" key=${name}>
      <span>${tData(blank.title)}</span>
      ${
        blank.enum
          ? html`
              <select class="input" name=${name}>
                ${blank.enum.map(
                  (each) =>
                    html`
<option key=${each} value=${each} selected=${each === blank.default}>${tData(each)}</option>`,
                )}
              </select>
            `
          : html`
              <input
                class="input"
                name=${name}
                type=${KINDS[blank.format] ?? "text"}
                required=${required}
                defaultValue=${blank.default ?? ""}
                placeholder=${blank.examples?.[0] ?? ""}
              />
            `
      }
    </label>
  `;
}

function drawOwnFields() {
  return html`
    <label class="field">
      <span>${t("Its name")}</span>
      <input
        class="input"
        name="_name"
        required
        pattern="[A-Za-z0-9][A-Za-z0-9_.\\-]*"
        placeholder=${t("look-around")}
      />
    </label>
    <label class="field">
      <span>${t("Its file")}</span>
      <textarea
        class="input mono"
        name="_text"
        rows="9"
        spellcheck="false"
        required
        defaultValue=${EMPTY}
      ></textarea>
    </label>
  `;
}

/** A conversation on this page, or one of the chats in which there were conversations. */
function listDestinations(sessions) {
  const chats = sessions
    .filter((one) => one.channel && !OWN.has(one.channel))
    .map((one) => one.key.slice(one.key.indexOf("/") + 1).split(":"));
  const known = [...new Set(chats.map(([channel, ...rest]) => `${channel}:${rest.at(-1)}`))];
  return [
    ["web:jobs", t("here, in the conversation jobs")],
    ...known.map((each) => [each, each]),
    ["", t("nowhere: it stays in the job's own conversation")],
  ];
}
