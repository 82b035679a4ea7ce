// Whether all is well, in a sentence; what to do about what is not; and, folded, the details.

import { capitalize, formatDateTime } from "../format.js";
import { language, t, tCount, tRich, tServer } from "../language.js";
import { html, useEffect } from "../lib.js";
import { hasScope, health } from "../state.js";
import { Folded, Loaded, useFetch } from "./parts.js";

const TONES = { ok: "good", starting: "", degraded: "warn", down: "bad" };
const LEVELS = { good: "good", note: "warn", bad: "bad" };
/** What is said for the state of a part, and for the level of a check. */
const STATES = {
  ok: t("ok"),
  starting: t("starting"),
  degraded: t("degraded"),
  down: t("down"),
  good: t("good"),
  note: t("note"),
  bad: t("bad"),
};
/**
 * What to do about a part that is not well, by the beginning of its name: the title, the advice, and
 * the page of the settings or the command that does it. A check of the same name knows better.
 */
const ADVICE = [
  {
    begin: "store",
    title: t("The database cannot be written, or the disk is almost full"),
    advice: t("Free some space on the disk of this machine."),
  },
  {
    begin: "owed",
    title: t("Messages wait to be sent"),
    advice: t("They are sent as soon as their channel works again. Check its token."),
    page: ["setup", t("Set up")],
  },
  {
    begin: "channel ",
    title: t("A channel does not work"),
    advice: t("Check its token. Deskhand tries again by itself."),
    page: ["setup", t("Set up")],
  },
  {
    begin: "model ",
    title: t("A provider of models does not answer"),
    advice: t("Test its key, or choose another model."),
    page: ["setup", t("Set up")],
  },
  {
    begin: "configuration",
    title: t("Not all of the configuration is in use"),
    advice: t(
      "Correct a value that is named here; the file is read again by itself. Else restart.",
    ),
    page: ["settings", t("Configuration")],
  },
  {
    begin: "jobs",
    title: t("Jobs are paused"),
    advice: t("Resume them when the reason is gone."),
    page: ["jobs", t("Jobs")],
  },
  {
    begin: "alerts",
    title: t("Alerts reached nobody"),
    advice: t("Read them, and connect a channel so that they reach you."),
    command: "deskhand alerts",
  },
  {
    begin: "people",
    title: t("Users cannot be read"),
    advice: t("Look at who may do what."),
    command: "deskhand pair list",
  },
  {
    begin: "sandbox",
    title: t("Commands cannot be run"),
    advice: t("Let the examination find out why."),
    command: "deskhand doctor",
  },
  {
    begin: "workers",
    title: t("No server runs"),
    advice: t("Start it."),
    command: "deskhand serve",
  },
  {
    begin: "",
    title: t("A part does not work"),
    advice: t("Read the log."),
    command: "deskhand logs",
  },
];
/** What the parts and the checks are called. */
const NAMES = {
  home: t("home folder"),
  disk: t("disk"),
  store: t("database"),
  database: t("database"),
  configuration: t("configuration"),
  people: t("people"),
  channels: t("channels"),
  models: t("models"),
  sandbox: t("sandbox"),
  documents: t("documents"),
  search: t("search"),
  secrets: t("secrets"),
  tools: t("tools"),
  packages: t("packages"),
  desktop: t("desktop"),
  voice: t("voice"),
  clock: t("clock"),
  owed: t("messages to send"),
  web: t("page"),
  jobs: t("jobs"),
  alerts: t("alerts"),
};
// In English they are called as in a terminal.
const nameOf = ({ name }) => (language === "en" ? name : (NAMES[name] ?? name));
/** Where on these pages something can be done about a check. */
const CHECK_PAGES = {
  models: ["models", t("Models and skills")],
  channels: ["setup", t("Set up")],
  people: ["people", t("People and pairing")],
  configuration: ["settings", t("Configuration")],
};

export function Health() {
  const found = useFetch("/health");
  const checks = useFetch(hasScope("admin") ? "/api/setup/checks" : "");
  const status = useFetch("/api/status");
  useEffect(() => {
    if (found.data) health.value = found.data;
  }, [found.data]);
  const reload = () => {
    found.reload();
    checks.reload();
    status.reload();
  };
  return html`
    <div class="stack wide">
      <${Loaded} result=${found} what=${t("health")}>
        ${(data) => html`<${Report} data=${data} checks=${checks} reload=${reload} />`}
      <//>
      <div class="stack">
        ${found.data && html`<${Parts} parts=${found.data.components} />`}
        ${hasScope("admin") && html`<${Checks} checks=${checks} />`}
        <${Folded} summary=${t("Version, model and agents")}>
          ${() => html`
            <${Loaded} result=${status} what=${t("the status")}>
              ${(data) => html`<${Facts} data=${data} />`}
            <//>
          `}
        <//>
      </div>
    </div>
  `;
}

// ------------------------------------------------------------------ what needs somebody

/** What is wrong, the worst first: `{id, title, text, advice, page, command, bad}`. */
function listFindings(parts, checks) {
  const wrong = parts.filter((one) => one.state === "degraded" || one.state === "down");
  const failed = checks.filter((one) => one.level === "bad");
  const twin = (part) => failed.find((one) => one.name === part.name);
  const findings = [
    ...wrong.map((part) => describePart(part, twin(part))),
    ...failed
      .filter((one) => !wrong.some((part) => part.name === one.name))
      .map((one, i) => describeCheck(one, i)),
  ];
  return findings.sort((one, two) => Number(two.bad) - Number(one.bad));
}

function describePart(part, check) {
  const known = ADVICE.find(({ begin }) => part.name.startsWith(begin));
  const { title, advice, page, command } = known;
  const name = known.begin.endsWith(" ") ? part.name.slice(known.begin.length) : "";
  return {
    id: part.name,
    title: name ? `${title}: ${name}` : known.begin ? title : `${title}: ${part.name}`,
    text: [part.detail, part.last_error].filter(Boolean).map(tServer).join(". "),
    when: part.last_error_at,
    advice,
    page,
    command: tServer(check?.remedy) || command,
    bad: part.state === "down",
  };
}

const describeCheck = (check, i) => ({
  id: `${check.name} ${i}`,
  title: capitalize(nameOf(check)),
  text: tServer(check.text),
  advice: check.remedy ? "" : t("Correct this, and look again."),
  page: CHECK_PAGES[check.name],
  command: tServer(check.remedy),
  bad: true,
});

function Report({ data, checks, reload }) {
  const examined = !hasScope("admin") || checks.data !== undefined || checks.error;
  const findings = listFindings(data.components, checks.data ?? []);
  return html`
    <section class="section" aria-label=${t("Now")}>
      <header>
        <p class="verdict" role="status">${describeAll(data, findings, examined)}</p>
        <button type="button" class="btn little" onClick=${reload}>${t("Look again")}</button>
      </header>
      ${
        findings.length > 0 &&
        html`
          <ul class="rows">
            ${findings.map((one) => html`<${Finding} key=${one.id} finding=${one} />`)}
          </ul>
        `
      }
    </section>
  `;
}

function describeAll(data, findings, examined) {
  if (findings.length)
    return html`
      <span class="dot bad"></span>
      <strong>
        ${tCount(findings.length, "{count} thing needs you.", "{count} things need you.")}
      </strong>
    `;
  if (data.status === "starting")
    return html`<span class="spin"></span> <strong>${t("Deskhand is starting.")}</strong>`;
  if (!examined) return html`<span class="spin"></span> ${t("Looking at everything …")}`;
  return html`<span class="dot good"></span> <strong>${t("All is well.")}</strong>`;
}

const Finding = ({ finding }) => html`
  <li>
    <span class="grow">
      <strong>${finding.title}</strong>
      <span class="small muted">
        ${finding.text}${finding.when ? ` (${formatDateTime(finding.when)})` : ""}
      </span>
      <span class="small">
        ${t("What to do: {advice}", { advice: finding.advice })}
        ${finding.command && html`${" "}<code class="wrap">${finding.command}</code>`}
      </span>
    </span>
    ${
      finding.page &&
      html`<a class="btn little" href=${`#/settings/${finding.page[0]}`}>${finding.page[1]}</a>`
    }
  </li>
`;

// ------------------------------------------------------------------ details

const Parts = ({ parts }) => html`
  <${Folded}
    summary=${tCount(parts.length, "{count} part, one by one", "{count} parts, one by one")}
  >
    ${() => html`<${PartRows} parts=${parts} />`}
  <//>
`;

const PartRows = ({ parts }) => html`
    <ul class="rows">
      ${parts.map(
        (one) => html`
          <li key=${one.name}>
            <span class="grow">
              <strong>${nameOf(one)}</strong>
              <span class="small muted">
                ${[
                  tServer(one.detail),
                  one.last_success_at
                    ? t("last worked {date}", { date: formatDateTime(one.last_success_at) })
                    : "",
                  one.restarts ? t("restarted {count}×", { count: one.restarts }) : "",
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
              ${
                one.last_error &&
                html`
                  <span class="small failed">
                    ${tServer(one.last_error)}
                    ${one.last_error_at ? ` (${formatDateTime(one.last_error_at)})` : ""}
                  </span>
                `
              }
            </span>
            <span class=${`tag ${TONES[one.state] ?? ""}`}>${STATES[one.state] ?? one.state}</span>
          </li>
        `,
      )}
    </ul>
`;

/** What could be better without being wrong, and what passed. */
function Checks({ checks }) {
  const of = (all, level) => all.filter((one) => one.level === level);
  return html`
    <${Loaded} result=${checks} what=${t("the checks")}>
      ${(all) =>
        [
          ["note", (count) => tCount(count, "{count} suggestion", "{count} suggestions")],
          ["good", (count) => tCount(count, "{count} check passed", "{count} checks passed")],
        ]
          .filter(([level]) => of(all, level).length)
          .map(
            ([level, count]) => html`
              <${Folded} key=${level} summary=${count(of(all, level).length)}>
                ${() => html`<${CheckRows} checks=${of(all, level)} />`}
              <//>
            `,
          )}
    <//>
  `;
}

const CheckRows = ({ checks }) => html`
  <ul class="rows">
    ${checks.map(
      (one, i) => html`
        <li key=${i}>
          <span class="grow">
            <strong>${nameOf(one)}</strong>
            <span class="small muted">${tServer(one.text)}</span>
            ${
              one.remedy &&
              html`
                <span class="small">
                  ${tRich("To do: {command}", {
                    command: html`<code class="wrap">${tServer(one.remedy)}</code>`,
                  })}
                </span>
              `
            }
          </span>
          <span class=${`tag ${LEVELS[one.level] ?? ""}`}>${STATES[one.level] ?? one.level}</span>
        </li>
      `,
    )}
  </ul>
`;

const Facts = ({ data }) => html`
  <dl class="facts">
    <dt>${t("Version of Deskhand")}</dt>
    <dd>${data.version || "–"}</dd>
    <dt>${t("Model")}</dt>
    <dd>${data.provider ? `${data.provider}/${data.model}` : data.model || t("none")}</dd>
    <dt>${t("Agents")}</dt>
    <dd>${data.agents.join(", ")}</dd>
    <dt>${t("Conversations")}</dt>
    <dd>${data.sessions}</dd>
    <dt>${t("Running since")}</dt>
    <dd>${formatDateTime(data.started_at)}</dd>
  </dl>
`;
