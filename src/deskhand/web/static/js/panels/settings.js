// The configuration in effect, and the keys that may be changed here, each with its description.

import { call } from "../api.js";
import { pluralize } from "../format.js";
import { html, useState } from "../lib.js";
import { announce, attempt, hasScope } from "../state.js";
import { KEYS } from "./keys.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";

/** The groups by their first words, and what they are called. */
const GROUPS = [
  ["Agents and models", ["defaults", "agents", "permission_mode", "bindings"]],
  ["Budgets and long work", ["budgets", "deep_work", "processes"]],
  ["Memory and learning", ["memory", "reflection", "skills_review"]],
  ["The web", ["web_fetch", "web_search", "egress"]],
  ["Jobs", ["jobs", "heartbeat"]],
  ["Undo", ["undo"]],
];
const REST = "Deskhand itself";

export function Settings() {
  const found = useFetch("/api/settings");
  const [query, setQuery] = useState("");
  return html`
    <${Loaded} result=${found} what="the configuration">
      ${(data) => {
        const wanted = query.trim().toLowerCase();
        const keys = data.keys.flatMap((key) => expandKey(key, data.config));
        const shown = keys.filter((key) =>
          `${key} ${explainKey(key).join(" ")}`.toLowerCase().includes(wanted),
        );
        const groups = [...GROUPS.map(([title]) => title), REST]
          .map((title) => [title, shown.filter((key) => findGroup(key) === title)])
          .filter(([, all]) => all.length);
        return html`
          <div class="stack wide">
            <${Section}
              title="File"
              note=${
                "You can also edit this file. Most changes apply immediately, the others at the " +
                "next start."
              }
            >
              <p><code class="wrap">${data.file}</code></p>
              ${(data.warnings ?? []).map(
                (warning) => html`<p class="note warn" key=${warning}>${warning}</p>`,
              )}
            <//>
            ${
              keys.length > 0 &&
              html`
                <${Section}
                  title="Change a setting"
                  note="It is checked before it is kept. An empty field is the default."
                >
                  <input
                    class="input"
                    type="search"
                    aria-label="Find a setting"
                    placeholder="Find a setting"
                    value=${query}
                    onInput=${(event) => setQuery(event.target.value)}
                  />
                  ${groups.map(
                    ([title, all]) => html`
                      <details
                        key=${title}
                        open=${
                          Boolean(wanted) ||
                          all.some((key) => readValue(data.config, key) !== undefined)
                        }
                      >
                        <summary>
                          ${title}${" "}
                          <span class="small muted">${pluralize(all.length, "setting")}</span>
                        </summary>
                        <ul class="rows">
                          ${all.map(
                            (key) => html`
                              <li key=${key}>
                                <${SettingField}
                                  name=${key}
                                  value=${readValue(data.config, key)}
                                  reload=${found.reload}
                                />
                              </li>
                            `,
                          )}
                        </ul>
                      </details>
                    `,
                  )}
                  ${!groups.length && html`<${Empty}>No matching setting.<//>`}
                <//>
              `
            }
            <${Section} title="All of it" note="Without secrets.">
              <pre class="as-is plain" tabindex="0">${JSON.stringify(data.config, null, 2)}</pre>
            <//>
          </div>
        `;
      }}
    <//>
  `;
}

const readValue = (config, key) => key.split(".").reduce((value, part) => value?.[part], config);

/** A key with NAME in it, once for each name that the configuration has. */
function expandKey(key, config) {
  const [group, place, ...rest] = key.split(".");
  return place === "NAME"
    ? Object.keys(config[group] ?? {}).map((name) => [group, name, ...rest].join("."))
    : [key];
}

const findGroup = (key) =>
  (GROUPS.find(([, words]) => words.includes(key.split(".")[0])) ?? [REST])[0];

/** What applies without this key, and what the key does. */
function explainKey(key) {
  const [group, , ...rest] = key.split(".");
  return (
    KEYS[key] ??
    KEYS[`${group}.NAME.${rest.join(".")}`] ??
    KEYS[`defaults.${rest.join(".")}`] ?? ["", ""]
  );
}

function formatSetting(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function SettingField({ name, value, reload }) {
  const shown = formatSetting(value);
  const [text, setText] = useState(null);
  const [without, does] = explainKey(name);
  const saveSetting = (event) => {
    event.preventDefault();
    let wanted = text.trim() === "" ? null : text;
    try {
      wanted = JSON.parse(text);
    } catch {
      /* then it is a word */
    }
    attempt(async () => {
      await call("PATCH", "/api/settings", { key: name, value: wanted });
      setText(null);
      announce(`${name} is set`);
      reload();
    });
  };
  return html`
    <form class="row wrap grow key" onSubmit=${saveSetting}>
      <label class="grow" for=${`key-${name}`}>
        <code>${name}</code>
        ${does && html`<span class="small muted">${does}</span>`}
      </label>
      <input
        class="input"
        id=${`key-${name}`}
        value=${text ?? shown}
        placeholder=${without ? `default: ${without}` : "not set"}
        disabled=${!hasScope("admin")}
        onInput=${(event) => setText(event.target.value)}
      />
      <button class="btn little" disabled=${text === null || text === shown}>Save</button>
    </form>
  `;
}
