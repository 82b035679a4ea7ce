// Jobs: when each runs next, and how its last runs went.

import { call, post } from "../api.js";
import { formatDateTime, pluralize } from "../format.js";
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
    if (await applyChange(() => call("DELETE", jobPath(name)), "Removed")) setGone(name);
  };
  const restoreJob = async () => {
    if (await applyChange(() => post(jobPath(gone, "/undo")), `${gone} is back`)) setGone("");
  };
  const resumeScheduler = () =>
    applyChange(async () => {
      await post("/api/scheduler/resume");
      scheduler.reload();
      checkHealth();
    }, "Jobs run again");
  const showMade = (name) => {
    setMaking(false);
    setOpen(name);
    announce(`The job ${name} is there`);
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
            <span class="grow">All jobs are paused: ${scheduler.data.paused}.</span>
            ${
              scheduler.data.resumable &&
              hasScope("admin") &&
              html`
                <button type="button" class="btn little" onClick=${resumeScheduler}>Resume</button>
              `
            }
          </p>
        `
      }
      <${Section}
        title="What runs by itself"
        note=${
          "Jobs run with their creator's permissions, and ask where their creator would be " +
          "asked."
        }
        action=${
          hasScope("chat") &&
          html`
            <button
              type="button"
              class="btn little"
              aria-expanded=${String(making || Boolean(isEmpty))}
              onClick=${() => setMaking(isEmpty || !making)}
            >
              New job
            </button>
          `
        }
      >
        ${
          isEmpty &&
          html`
            <${Empty}>
              There are no jobs yet. Choose one to begin with: you can change it before it is made.
            <//>
          `
        }
        ${(making || isEmpty) && html`<${NewJob} onMade=${showMade} focused=${making} />`}
        ${
          gone &&
          html`
            <p class="note row" role="status">
              <span class="grow">${gone} is removed.</span>
              <button type="button" class="btn little" onClick=${restoreJob}>Undo</button>
            </p>
          `
        }
        <${Loaded} result=${found} what="jobs">
          ${(all) => {
            const own = all.filter((job) => !job.builtin);
            const builtin = all.filter((job) => job.builtin);
            return html`
              ${own.length > 0 && drawRows(own)}
              ${
                builtin.length > 0 &&
                html`
                  <details>
                    <summary class="small">${pluralize(builtin.length, "built-in job")}</summary>
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
      job.enabled ? "Switched off" : "Switched on",
    );
  const words = job.state === "on" || job.state === "off" ? "" : job.state;
  const broken = job.state.startsWith("cannot run");
  const lastRun = job.last_at ? `${formatDateTime(job.last_at)}: ` : "";
  const last = `${lastRun}${shorten(job.last_result)}`;
  const warned = words || job.last_result.startsWith("went wrong");
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
          ${job.when}
          ${job.next_at ? ` · next ${formatDateTime(job.next_at)}` : ""}
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
            aria-label=${`Run ${job.name} now`}
            onClick=${() => applyChange(() => post(jobPath(job.name, "/run")), `${job.name} runs`)}
          >
            Run now
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
            aria-label=${`${job.name} is on`}
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
  const counted = [
    [job.errors, "failed"],
    [job.gates, "stopped by its prerun"],
    [job.skips, "skipped"],
  ];
  return [
    pluralize(job.runs, "run"),
    ...counted.filter(([number]) => number).map(([number, what]) => `${number} ${what}`),
  ].join(", ");
}

function JobDetail({ job, applyChange, removeJob, reload }) {
  const found = useFetch(jobPath(job.name));
  const [text, setText] = useState(null);
  useEffect(() => {
    found.reload();
  }, [job.last_at, job.enabled, job.last_result]);
  const saveText = async (event) => {
    event.preventDefault();
    if (await applyChange(() => call("PUT", jobPath(job.name), { text }), "Saved")) {
      setText(null);
      found.reload();
      reload();
    }
  };
  return html`
    <div class="grow stack">
      <${Loaded} result=${found} what="this job">
        ${(data) => html`
          ${data.trouble.map((each) => html`<p class="note warn" key=${each}>${each}</p>`)}
          <p class="small muted">
            ${data.forecast}${" "}
            ${job.to ? `Answers go to ${job.to}.` : "Answers stay in the job's own conversation."}
            ${data.hook ? ` Webhook: ${data.hook}` : ""}
          </p>
          <p class="small muted">So far: ${describeCounts(job)}.</p>
          ${
            data.runs.length > 0
              ? html`<ul class="rows">${data.runs.map(drawRun)}</ul>`
              : html`<p class="small muted">It has not run yet.</p>`
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
        <strong>${run.result}</strong>
        <span class="small muted">${formatDateTime(run.due_at)}</span>
      </span>
      ${run.name && html`<a class="link small" href=${sessionHref(run.name)}>read</a>`}
    </li>
  `;
}

function drawFileForm({ saveText, text, data, setText, removeJob, job }) {
  return html`
    <form class="stack" onSubmit=${saveText}>
      <label class="field">
        <span>Its file</span>
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
              Save
            </button>
            <${ConfirmButton}
              label="Remove"
              confirm="Yes, remove it"
              onYes=${() => removeJob(job.name)}
            />
          </div>
        `
      }
    </form>
  `;
}
