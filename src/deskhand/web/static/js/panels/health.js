// Whether all is well, in a sentence; what to do about what is not; and, folded, the details.

import { capitalize, formatDateTime, pluralize } from "../format.js";
import { html, useEffect } from "../lib.js";
import { hasScope, health } from "../state.js";
import { Folded, Loaded, useFetch } from "./parts.js";

const TONES = { ok: "good", starting: "", degraded: "warn", down: "bad" };
const LEVELS = { good: "good", note: "warn", bad: "bad" };
/**
 * What to do about a part that is not well, by the beginning of its name: the title, the advice, and
 * the page of the settings or the command that does it. A check of the same name knows better.
 */
const ADVICE = [
  {
    begin: "store",
    title: "The database cannot be written, or the disk is almost full",
    advice: "Free some space on the disk of this machine.",
  },
  {
    begin: "owed",
    title: "Messages wait to be sent",
    advice: "They are sent as soon as their channel works again. Check its token.",
    page: ["setup", "Set up"],
  },
  {
    begin: "channel ",
    title: "A channel does not work",
    advice: "Check its token. Deskhand tries again by itself.",
    page: ["setup", "Set up"],
  },
  {
    begin: "model ",
    title: "A provider of models does not answer",
    advice: "Test its key, or choose another model.",
    page: ["setup", "Set up"],
  },
  {
    begin: "configuration",
    title: "Not all of the configuration is in use",
    advice: "Correct a value that is named here; the file is read again by itself. Else restart.",
    page: ["settings", "Configuration"],
  },
  {
    begin: "jobs",
    title: "Jobs are paused",
    advice: "Resume them when the reason is gone.",
    page: ["jobs", "Jobs"],
  },
  {
    begin: "alerts",
    title: "Alerts reached nobody",
    advice: "Read them, and connect a channel so that they reach you.",
    command: "deskhand alerts",
  },
  {
    begin: "people",
    title: "Users cannot be read",
    advice: "Look at who may do what.",
    command: "deskhand pair list",
  },
  {
    begin: "sandbox",
    title: "Commands cannot be run",
    advice: "Let the examination find out why.",
    command: "deskhand doctor",
  },
  {
    begin: "workers",
    title: "No server runs",
    advice: "Start it.",
    command: "deskhand serve",
  },
  { begin: "", title: "A part does not work", advice: "Read the log.", command: "deskhand logs" },
];
/** Where on these pages something can be done about a check. */
const CHECK_PAGES = {
  models: ["models", "Models and skills"],
  channels: ["setup", "Set up"],
  people: ["people", "People and pairing"],
  configuration: ["settings", "Configuration"],
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
      <${Loaded} result=${found} what="health">
        ${(data) => html`<${Report} data=${data} checks=${checks} reload=${reload} />`}
      <//>
      <div class="stack">
        ${found.data && html`<${Parts} parts=${found.data.components} />`}
        ${hasScope("admin") && html`<${Checks} checks=${checks} />`}
        <${Folded} summary="Version, model and agents">
          ${() => html`
            <${Loaded} result=${status} what="the status">
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
    text: [part.detail, part.last_error].filter(Boolean).join(". "),
    when: part.last_error_at,
    advice,
    page,
    command: check?.remedy || command,
    bad: part.state === "down",
  };
}

const describeCheck = (check, i) => ({
  id: `${check.name} ${i}`,
  title: capitalize(check.name),
  text: check.text,
  advice: check.remedy ? "" : "Correct this, and look again.",
  page: CHECK_PAGES[check.name],
  command: check.remedy,
  bad: true,
});

function Report({ data, checks, reload }) {
  const examined = !hasScope("admin") || checks.data !== undefined || checks.error;
  const findings = listFindings(data.components, checks.data ?? []);
  return html`
    <section class="section" aria-label="Now">
      <header>
        <p class="verdict" role="status">${describeAll(data, findings, examined)}</p>
        <button type="button" class="btn little" onClick=${reload}>Look again</button>
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
      <strong>${pluralize(findings.length, "thing needs", "things need")} you.</strong>
    `;
  if (data.status === "starting")
    return html`<span class="spin"></span> <strong>Deskhand is starting.</strong>`;
  if (!examined) return html`<span class="spin"></span> Looking at everything…`;
  return html`<span class="dot good"></span> <strong>All is well.</strong>`;
}

const Finding = ({ finding }) => html`
  <li>
    <span class="grow">
      <strong>${finding.title}</strong>
      <span class="small muted">
        ${finding.text}${finding.when ? ` (${formatDateTime(finding.when)})` : ""}
      </span>
      <span class="small">
        What to do: ${finding.advice}
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
  <${Folded} summary=${`${pluralize(parts.length, "part")}, one by one`}>
    ${() => html`<${PartRows} parts=${parts} />`}
  <//>
`;

const PartRows = ({ parts }) => html`
    <ul class="rows">
      ${parts.map(
        (one) => html`
          <li key=${one.name}>
            <span class="grow">
              <strong>${one.name}</strong>
              <span class="small muted">
                ${[
                  one.detail,
                  one.last_success_at ? `last worked ${formatDateTime(one.last_success_at)}` : "",
                  one.restarts ? `restarted ${one.restarts}×` : "",
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
              ${
                one.last_error &&
                html`
                  <span class="small failed">
                    ${one.last_error}
                    ${one.last_error_at ? ` (${formatDateTime(one.last_error_at)})` : ""}
                  </span>
                `
              }
            </span>
            <span class=${`tag ${TONES[one.state] ?? ""}`}>${one.state}</span>
          </li>
        `,
      )}
    </ul>
`;

/** What could be better without being wrong, and what passed. */
function Checks({ checks }) {
  const of = (all, level) => all.filter((one) => one.level === level);
  return html`
    <${Loaded} result=${checks} what="the checks">
      ${(all) =>
        [
          ["note", (count) => pluralize(count, "suggestion")],
          ["good", (count) => `${pluralize(count, "check")} passed`],
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
            <strong>${one.name}</strong>
            <span class="small muted">${one.text}</span>
            ${
              one.remedy &&
              html`<span class="small">To do: <code class="wrap">${one.remedy}</code></span>`
            }
          </span>
          <span class=${`tag ${LEVELS[one.level] ?? ""}`}>${one.level}</span>
        </li>
      `,
    )}
  </ul>
`;

const Facts = ({ data }) => html`
  <dl class="facts">
    <dt>Version</dt>
    <dd>${data.version || "–"}</dd>
    <dt>Model</dt>
    <dd>${data.provider ? `${data.provider}/${data.model}` : data.model || "none"}</dd>
    <dt>Agents</dt>
    <dd>${data.agents.join(", ")}</dd>
    <dt>Conversations</dt>
    <dd>${data.sessions}</dd>
    <dt>Running since</dt>
    <dd>${formatDateTime(data.started_at)}</dd>
  </dl>
`;
