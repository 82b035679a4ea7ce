// Jobs: when each runs next, and how its last runs went.

import { call, post } from "../api.js";
import { formatDateTime } from "../format.js";
import { t, tCount, tServer } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { announce, attempt, checkHealth, hasScope, sessionHref } from "../state.js";
import { NewJob } from "./job-form.js";
import { ConfirmButton, Empty, Loaded, Section, useFetch } from "./parts.js";

const MAX_CHARS = 140;
const shorten = (text) => (text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text);
const jobPath = (name, rest = "") => `/api/jobs/${encodeURIComponent(name)}${rest}`;

export function Jobs() {
  const found = useFetch("/api/jobs");
  const scheduler = useFetch("/api/scheduler");
  const [open, setOpen] = useState("");
  const [making, setMaking] = useState(false);
  const [gone, setGone] = useState("");
  useEffect(() => {
    const timer = setInterval(() => {
      found.reload();
      scheduler.reload();
    }, 15_000);
    return () => clearInterval(timer);
  }, []);
  const applyChange = (work, said) =>
    attempt(async () => {
      await work();
      announce(said);
      found.reload();
      return true;
    });
  const removeJob = async (name) => {
    if (await applyChange(() => call("DELETE", jobPath(name)), t("Removed"))) setGone(name);
  };
  const restoreJob = async () => {
    if (await applyChange(() => post(jobPath(gone, "/undo")), t("{name} is back", { name: gone })))
      setGone("");
  };
  const resumeScheduler = () =>
    applyChange(async () => {
      await post("/api/scheduler/resume");
      scheduler.reload();
      checkHealth();
    }, t("Jobs run again"));
  const showMade = (name) => {
    setMaking(false);
    setOpen(name);
    announce(t("The job {name} is there", { name }));
    found.reload();
  };
  const isEmpty = found.data?.every((job) => job.builtin);
  const drawRows = (jobs) => html`
    <ul class="rows">
      ${jobs.map(
        (job) => html`
          <${JobRow}
            key=${job.name}
            job=${job}
            open=${open === job.name}
            toggle=${() => setOpen(open === job.name ? "" : job.name)}
            applyChange=${applyChange}
            removeJob=${removeJob}
            reload=${found.reload}
          />
        `,
      )}
    </ul>
  `;
  return html`
    <div class="stack wide">
      ${
        scheduler.data?.paused &&
        html`
          <p class="note warn row" role="status">
            <span class="grow">
              ${t("All jobs are paused: {reason}.", { reason: tServer(scheduler.data.paused) })}
            </span>
            ${
              scheduler.data.resumable &&
              hasScope("admin") &&
              html`
                <button type="button" class="btn little" onClick=${resumeScheduler}>
                  ${t("Resume")}
                </button>
              `
            }
          </p>
        `
      }
      <${Section}
        title=${t("What runs by itself")}
        note=${t(
          "Jobs run with their creator's permissions, and ask where their creator would be asked.",
        )}
        action=${
          hasScope("chat") &&
          html`
            <button
              type="button"
              class="btn little"
              aria-expanded=${String(making || Boolean(isEmpty))}
              onClick=${() => setMaking(isEmpty || !making)}
            >
              ${t("New job")}
            </button>
          `
        }
      >
        ${
          isEmpty &&
          html`
            <${Empty}>
              ${t(
                "There are no jobs yet. Choose one to begin with: you can change it before it is made.",
              )}
            <//>
          `
        }
        ${(making || isEmpty) && html`<${NewJob} onMade=${showMade} focused=${making} />`}
        ${
          gone &&
          html`
            <p class="note row" role="status">
              <span class="grow">${t("{name} is removed.", { name: gone })}</span>
              <button type="button" class="btn little" onClick=${restoreJob}>${t("Undo")}</button>
            </p>
          `
        }
        <${Loaded} result=${found} what=${t("jobs")}>
          ${(all) => {
            const own = all.filter((job) => !job.builtin);
            const builtin = all.filter((job) => job.builtin);
            return html`
              ${own.length > 0 && drawRows(own)}
              ${
                builtin.length > 0 &&
                html`
                  <details>
                    <summary class="small">
                      ${tCount(builtin.length, "{count} built-in job", "{count} built-in jobs")}
                    </summary>
                    ${drawRows(builtin)}
                  </details>
                `
              }
            `;
          }}
        <//>
      <//>
    </div>
  `;
}

function JobRow({ job, open, toggle, applyChange, removeJob, reload }) {
  const toggleEnabled = () =>
    applyChange(
      () => post(jobPath(job.name, job.enabled ? "/disable" : "/enable")),
      job.enabled ? t("Switched off") : t("Switched on"),
    );
  const words = job.state === "on" || job.state === "off" ? "" : tServer(job.state);
  const { broken } = job;
  const lastRun = job.last_at ? `${formatDateTime(job.last_at)}: ` : "";
  const last = `${lastRun}${shorten(tServer(job.last_result))}`;
  const warned = words || job.last_state === "error";
  return html`
    <li class=${open ? "wrap tall" : ""}>
      <button type="button" class="grow plainly" aria-expanded=${String(open)} onClick=${toggle}>
        <strong>
          ${job.name}
          ${
            job.person && job.person !== "owner"
              ? html` <span class="tag">${job.person}</span>`
              : ""
          }
        </strong>
        <span class="small muted">
          ${tServer(job.when)}
          ${job.next_at ? ` · ${t("next {date}", { date: formatDateTime(job.next_at) })}` : ""}
        </span>
        <span class=${`small ${warned ? "warned" : "muted"}`}>${words || last}</span>
      </button>
      ${
        hasScope("chat") &&
        !broken &&
        html`
          <button
            type="button"
            class="btn little"
            aria-label=${t("Run {name} now", { name: job.name })}
            onClick=${() =>
              applyChange(
                () => post(jobPath(job.name, "/run")),
                t("{name} runs", { name: job.name }),
              )}
          >
            ${t("Run now")}
          </button>
        `
      }
      ${
        !job.builtin &&
        !broken &&
        html`
          <button
            type="button"
            class="switch"
            role="switch"
            aria-checked=${String(job.enabled)}
            aria-label=${t("{name} is on", { name: job.name })}
            disabled=${!hasScope("chat")}
            onClick=${toggleEnabled}
          ></button>
        `
      }
      ${
        open &&
        html`
          <${JobDetail}
            job=${job}
            applyChange=${applyChange}
            removeJob=${removeJob}
            reload=${reload}
          />
        `
      }
    </li>
  `;
}

/** How often it ran, failed, was stopped and was skipped; zeros are left out. */
function describeCounts(job) {
  return [
    tCount(job.runs, "{count} run", "{count} runs"),
    job.errors && t("{count} failed", { count: job.errors }),
    job.gates && t("{count} stopped by its prerun", { count: job.gates }),
    job.skips && t("{count} skipped", { count: job.skips }),
  ]
    .filter(Boolean)
    .join(", ");
}

function JobDetail({ job, applyChange, removeJob, reload }) {
  const found = useFetch(jobPath(job.name));
  const [text, setText] = useState(null);
  useEffect(() => {
    found.reload();
  }, [job.last_at, job.enabled, job.last_result]);
  const saveText = async (event) => {
    event.preventDefault();
    if (await applyChange(() => call("PUT", jobPath(job.name), { text }), t("Saved"))) {
      setText(null);
      found.reload();
      reload();
    }
  };
  return html`
    <div class="grow stack">
      <${Loaded} result=${found} what=${t("this job")}>
        ${(data) => html`
          ${data.trouble.map((each) => html`<p class="note warn" key=${each}>${tServer(each)}</p>`)}
          <p class="small muted">
            ${tServer(data.forecast)}${" "}
            ${
              job.to
                ? t("Answers go to {destination}.", { destination: job.to })
                : t("Answers stay in the job's own conversation.")
            }
            ${data.hook ? ` ${t("Webhook: {hook}", { hook: data.hook })}` : ""}
          </p>
          <p class="small muted">${t("So far: {counts}.", { counts: describeCounts(job) })}</p>
          ${
            data.runs.length > 0
              ? html`<ul class="rows">${data.runs.map(drawRun)}</ul>`
              : html`<p class="small muted">${t("It has not run yet.")}</p>`
          }
          ${!job.builtin && drawFileForm({ saveText, text, data, setText, removeJob, job })}
        `}
      <//>
    </div>
  `;
}

function drawRun(run) {
  return html`
    <li key=${run.slot}>
      <span class="grow">
        <strong>${tServer(run.result)}</strong>
        <span class="small muted">${formatDateTime(run.due_at)}</span>
      </span>
      ${run.name && html`<a class="link small" href=${sessionHref(run.name)}>${t("read")}</a>`}
    </li>
  `;
}

function drawFileForm({ saveText, text, data, setText, removeJob, job }) {
  return html`
    <form class="stack" onSubmit=${saveText}>
      <label class="field">
        <span>${t("Its file")}</span>
        <textarea
          class="input mono"
          rows="10"
          spellcheck="false"
          disabled=${!hasScope("chat")}
          value=${text ?? data.text}
          onInput=${(event) => setText(event.target.value)}
        ></textarea>
      </label>
      ${
        hasScope("chat") &&
        html`
          <div class="row">
            <button class="btn main little" disabled=${text === null || text === data.text}>
              ${t("Save")}
            </button>
            <${ConfirmButton}
              label=${t("Remove")}
              confirm=${t("Yes, remove it")}
              onYes=${() => removeJob(job.name)}
            />
          </div>
        `
      }
    </form>
  `;
}
