// The configuration in effect, in groups, and each key with what it does and its default.

import { call } from "../api.js";
import { t, tCount, tData, tRich } from "../language.js";
import { html, signal, useEffect, useMemo, useState } from "../lib.js";
import { announce } from "../state.js";
import { Empty, Loaded, Section, useFetch, useSomeRows } from "./parts.js";
import {
  ALL_KEYS,
  checkTyped,
  describeKey,
  expandKeys,
  findGroup,
  formatSetting,
  GROUPS,
  HIDDEN,
  isChanged,
  nameChoice,
  nameDefault,
  nameSection,
  nameType,
  parseSetting,
  plainProblem,
  readValue,
} from "./settings-keys.js";

const query = signal("");

/** Show the settings in which these words occur when the page is opened. */
export function findSetting(words) {
  query.value = words;
}

export function Settings() {
  const found = useFetch("/api/settings");
  return html`
    <${Loaded} result=${found} what=${t("the configuration")}>
      ${(data) => html`<${Configuration} data=${data} reload=${found.reload} />`}
    <//>
  `;
}

/** All keys with what is known of them, in the order of the groups and their sections. */
function readSettings({ config, keys: writable }) {
  const writableKeys = new Set(expandKeys(writable, config));
  const keys = new Set([...expandKeys(ALL_KEYS, config), ...writableKeys]);
  const settings = [...keys].map((key) => {
    const about = describeKey(key);
    const value = readValue(config, key);
    const shown = { does: tData(about.does), without: nameDefault({ ...about, key }) };
    return {
      ...about,
      key,
      value,
      shown,
      group: findGroup(key),
      section: nameSection(key),
      changed: isChanged(value, about.without),
      writable: writableKeys.has(key),
      words: [key, about.without, about.does, shown.without, shown.does].join(" ").toLowerCase(),
    };
  });
  return GROUPS.map((group) => ({ group, settings: sortBySection(group, settings) }));
}

/** Whether the key is in no section. */
const isGeneral = ({ key }) => !key.includes(".");

/** Of one group, in the order in which it names the sections. */
function sortBySection(group, settings) {
  const begins = group.begins.map((begin) => begin.split(".")[0]);
  const rank = ({ key }) => {
    const [section] = key.split(".");
    const at = begins.indexOf(section === "agents" ? "defaults" : section);
    return at + (section === "agents" ? 0.5 : 0);
  };
  const own = settings.filter((one) => one.group === group);
  const sections = [...new Set(own.map((one) => one.section))];
  return own.sort(
    (one, two) =>
      Number(isGeneral(two)) - Number(isGeneral(one)) ||
      rank(one) - rank(two) ||
      sections.indexOf(one.section) - sections.indexOf(two.section),
  );
}

function Configuration({ data, reload }) {
  const [onlyChanged, setOnlyChanged] = useState(false);
  useEffect(() => () => findSetting(""), []);
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = useMemo(() => readSettings(data), [data]);
  const changed = groups.flatMap(({ settings }) => settings.filter((one) => one.changed)).length;
  const shown = groups
    .map(({ group, settings }) => ({
      group,
      settings: settings.filter(
        (one) => (!onlyChanged || one.changed) && words.every((word) => one.words.includes(word)),
      ),
    }))
    .filter(({ settings }) => settings.length);
  return html`
    <div class="stack wide">
      ${(data.warnings ?? []).map(
        (warning) => html`<p class="note warn" key=${warning}>${warning}</p>`,
      )}
      <div class="row wrap find-setting" role="search">
        <input
          class="input grow"
          type="search"
          aria-label=${t("Find a setting")}
          placeholder=${t("Find a setting, such as time zone or cost")}
          value=${query.value}
          onInput=${(event) => findSetting(event.target.value)}
        />
        <label class="row">
          <input
            type="checkbox"
            checked=${onlyChanged}
            onChange=${(event) => setOnlyChanged(event.target.checked)}
          />
          ${t("Only changed")} <span class="muted">(${changed})</span>
        </label>
      </div>
      ${shown.map(
        ({ group, settings }) => html`
          <${Group}
            key=${group.title}
            group=${group}
            settings=${settings}
            open=${words.length > 0 || onlyChanged}
            reload=${reload}
          />
        `,
      )}
      ${
        !shown.length &&
        html`
          <${Empty}>
            ${onlyChanged && !words.length ? t("Everything has its default.") : t("No matching setting.")}
          <//>
        `
      }
      <${Section}
        title=${t("The file")}
        note=${t(
          "You can also edit this file. Most changes apply at once, those marked “restart” at the next start.",
        )}
      >
        <p><code class="wrap">${data.file}</code></p>
        <details>
          <summary class="small">${t("All that is set, without secrets")}</summary>
          <pre class="as-is plain" tabindex="0">${JSON.stringify(data.config, null, 2)}</pre>
        </details>
      <//>
    </div>
  `;
}

function Group({ group, settings, open, reload }) {
  const [toggled, setToggled] = useState(false);
  const changed = settings.filter((one) => one.changed).length;
  return html`
    <details
      class="group"
      open=${open}
      onToggle=${(event) => setToggled(event.target.open)}
    >
      <summary>
        <span class="grow">
          <strong>${group.title}</strong>
          <span class="small muted">${group.note}</span>
        </span>
        ${changed > 0 && html`<span class="tag good">${t("{count} changed", { count: changed })}</span>`}
        <span class="small muted">${tCount(settings.length, "{count} setting", "{count} settings")}</span>
      </summary>
      ${(open || toggled) && html`<${SettingRows} settings=${settings} reload=${reload} />`}
    </details>
  `;
}

function SettingRows({ settings, reload }) {
  const [shown, more] = useSomeRows(settings, 100);
  const sections = [...new Set(shown.map((one) => one.section))];
  return html`
    ${sections.map(
      (section) => html`
        <section key=${section} aria-label=${section}>
          <h3>${section}</h3>
          <ul class="rows">
            ${shown
              .filter((one) => one.section === section)
              .map((one) => html`<${Setting} key=${one.key} setting=${one} reload=${reload} />`)}
          </ul>
        </section>
      `,
    )}
    ${more}
  `;
}

function Setting({ setting, reload }) {
  const { key, shown, changed, restart } = setting;
  const kind = setting.choices ? "" : nameType(setting.type);
  const id = `key-${key}`;
  return html`
    <li class="setting">
      <div class="row wrap">
        <label for=${setting.writable ? id : null}><code>${key}</code></label>
        ${changed && html`<span class="tag good">${t("changed")}</span>`}
        ${restart && html`<span class="tag" title=${t("Applies at the next start")}>${t("restart")}</span>`}
      </div>
      <p class="small" id=${`${id}-about`}>${shown.does}</p>
      <p class="small muted">
        ${[describeDefault(setting), kind].filter(Boolean).join(" · ")}
      </p>
      ${
        setting.writable
          ? html`<${SettingForm} id=${id} setting=${setting} reload=${reload} />`
          : html`<${Locked} setting=${setting} />`
      }
    </li>
  `;
}

function describeDefault({ without, shown }) {
  if (["", "[]", "{}"].includes(without)) return t("Default: none");
  return t("Default: {value}", { value: shown.without });
}

/** A key that opens the machine or decides who may: it is set where Deskhand runs. */
const Locked = ({ setting }) => html`
  <p class="small">
    ${
      setting.value !== undefined &&
      html`
        ${tRich("Now: {value}.", {
          value: html`
            <code class="wrap">${nameChoice(setting.key, formatSetting(setting.value)) || t("hidden")}</code>
          `,
        })}${" "}
      `
    }
    ${tRich("To change it, type on the machine: {command}", {
      command: html`<code class="wrap">deskhand config set ${setting.key} …</code>`,
    })}
  </p>
`;

function SettingForm({ id, setting, reload }) {
  const { key, value, type, choices } = setting;
  const shown = formatSetting(value);
  const [text, setText] = useState(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async (wanted, said) => {
    setBusy(true);
    setError("");
    try {
      const { config } = await call("PATCH", "/api/settings", { key, value: wanted });
      setText(null);
      announce(said);
      if (wanted === null && readValue(config, key) !== undefined)
        setError(t("The file does not set it any more, but an environment variable does."));
      reload();
    } catch (problem) {
      fail(plainProblem(problem.message));
    }
    setBusy(false);
  };
  const fail = (why) => {
    setError(why);
    announce(why, true);
  };
  const save = (event) => {
    event.preventDefault();
    const wrong = checkTyped(text, type);
    if (wrong) fail(wrong);
    else send(parseSetting(text, type), t("{key} is set", { key }));
  };
  const field = {
    class: "input",
    id,
    disabled: busy,
    "aria-describedby": error ? `${id}-error ${id}-about` : `${id}-about`,
    "aria-invalid": error ? "true" : null,
  };
  const edit = (event) => {
    setText(event.target.value);
    setError("");
  };
  return html`
    <form class="row key" onSubmit=${save}>
      ${
        choices
          ? html`
              <select ...${field} value=${text ?? shown} onChange=${edit}>
                <option value="">${setting.without ? t("Default: {value}", { value: setting.shown.without }) : t("Default")}</option>
                ${listChoices(choices, shown).map(
                  (choice) =>
                    html`<option key=${choice} value=${choice}>${nameChoice(key, choice)}</option>`,
                )}
              </select>
            `
          : html`
              <input
                ...${field}
                value=${text ?? shown}
                placeholder=${value === HIDDEN ? t("hidden") : setting.shown.without}
                onInput=${edit}
              />
            `
      }
      <button class="btn little" disabled=${busy || text === null || text === shown}>${t("Save")}</button>
      ${
        setting.changed &&
        html`
          <button
            type="button"
            class="btn little quiet"
            disabled=${busy}
            aria-label=${t("Reset {key} to the default", { key })}
            onClick=${() => send(null, t("{key} has its default again", { key }))}
          >
            ${t("Reset to default")}
          </button>
        `
      }
    </form>
    ${error && html`<p class="small failed" id=${`${id}-error`}>${error}</p>`}
  `;
}

/** The values that a key allows, and the one that it has. */
const listChoices = (choices, shown) =>
  shown === "" || choices.includes(shown) ? choices : [...choices, shown];
