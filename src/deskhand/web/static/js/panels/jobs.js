// What is done without anybody asking: what comes next, how it went, and making one from a few blanks.

import { call, post } from "../api.js";
import { many, moment } from "../format.js";
import { html, useEffect, useState } from "../lib.js";
import { announce, attempt, checkHealth, hrefOf, may } from "../state.js";
import { Loaded, None, Section, Sure, useAsk } from "./parts.js";

const OWN = new Set(["web", "api", "terminal", "door", "job"]);
const EMPTY = "---\nschedule: daily 09:00\ndescription: \n---\n\nWhat is to be done.\n";
const KINDS = { time: "time", number: "number", url: "url" };
const MOST = 140,
  brief = (text) => (text.length > MOST ? `${text.slice(0, MOST)}…` : text);
const path = (name, rest = "") => `/api/jobs/${encodeURIComponent(name)}${rest}`;

export function Jobs() {
  const found = useAsk("/api/jobs"),
    scheduler = useAsk("/api/scheduler"),
    [open, setOpen] = useState(""),
    [making, setMaking] = useState(false),
    [gone, setGone] = useState("");
  useEffect(() => {
    const timer = setInterval(() => {
      found.again();
      scheduler.again();
    }, 15_000);
    return () => clearInterval(timer);
  }, []);
  const settle = (work, said) =>
    attempt(async () => {
      await work();
      announce(said);
      found.again();
      return true;
    });
  const removed = async (name) => {
    if (await settle(() => call("DELETE", path(name)), "Removed")) setGone(name);
  };
  const bring = async () => {
    if (await settle(() => post(path(gone, "/undo")), `${gone} is back`)) setGone("");
  };
  const resume = () =>
    settle(async () => {
      await post("/api/scheduler/resume");
      scheduler.again();
      checkHealth();
    }, "Jobs run again");
  return html`<div class="stack wide">
    ${scheduler.data?.paused && html`<p class="note warn row" role="status"><span class="grow">All jobs are paused: ${scheduler.data.paused}.</span>${scheduler.data.resumable && may("admin") && html`<button type="button" class="btn little" onClick=${resume}>Resume</button>`}</p>`}
    <${Section} title="What runs by itself" note="Jobs run with their creator's permissions, and ask where their creator would be asked." action=${may("chat") && html`<button type="button" class="btn little" aria-expanded=${String(making)} onClick=${() => setMaking(!making)}>New job</button>`}>
      ${
        making &&
        html`<${Make} made=${(name) => {
          setMaking(false);
          setOpen(name);
          announce(`The job ${name} is there`);
          found.again();
        }} />`
      }
      ${gone && html`<p class="note row" role="status"><span class="grow">${gone} is removed.</span><button type="button" class="btn little" onClick=${bring}>Undo</button></p>`}
      <${Loaded} of=${found} what="jobs">${(all) => {
        const own = all.filter((job) => !job.builtin),
          ours = all.filter((job) => job.builtin);
        return html`${own.length ? html`<ul class="rows">${own.map((job) => html`<${Row} key=${job.name} job=${job} open=${open === job.name} toggle=${() => setOpen(open === job.name ? "" : job.name)} settle=${settle} removed=${removed} again=${found.again} />`)}</ul>` : html`<${None}>There are no jobs yet. A reminder or a morning brief is made in a minute: New job.<//>`}
          ${ours.length > 0 && html`<details><summary class="small">${many(ours.length, "built-in job")}</summary><ul class="rows">${ours.map((job) => html`<${Row} key=${job.name} job=${job} open=${open === job.name} toggle=${() => setOpen(open === job.name ? "" : job.name)} settle=${settle} removed=${removed} again=${found.again} />`)}</ul></details>`}`;
      }}<//><//>
  </div>`;
}

function Row({ job, open, toggle, settle, removed, again }) {
  const flip = () =>
    settle(
      () => post(path(job.name, job.enabled ? "/disable" : "/enable")),
      job.enabled ? "Switched off" : "Switched on",
    );
  const words = job.state === "on" || job.state === "off" ? "" : job.state;
  const broken = job.state.startsWith("cannot run"),
    last = `${job.last_at ? `${moment(job.last_at)}: ` : ""}${brief(job.last_result)}`;
  return html`<li class=${open ? "wrap tall" : ""}>
    <button type="button" class="grow plainly" aria-expanded=${String(open)} onClick=${toggle}><strong>${job.name}${job.person && job.person !== "owner" ? html` <span class="tag">${job.person}</span>` : ""}</strong>
      <span class="small muted">${job.when}${job.next_at ? ` · next ${moment(job.next_at)}` : ""}</span>
      <span class=${`small ${words || job.last_result.startsWith("went wrong") ? "warned" : "muted"}`}>${words || last}</span></button>
    ${may("chat") && !broken && html`<button type="button" class="btn little" aria-label=${`Run ${job.name} now`} onClick=${() => settle(() => post(path(job.name, "/run")), `${job.name} runs`)}>Run now</button>`}
    ${!job.builtin && !broken && html`<button type="button" class="switch" role="switch" aria-checked=${String(job.enabled)} aria-label=${`${job.name} is on`} disabled=${!may("chat")} onClick=${flip}></button>`}
    ${open && html`<${Detail} job=${job} settle=${settle} removed=${removed} again=${again} />`}</li>`;
}

/** How often it ran, failed, was not needed and was skipped; what never happened is left out. */
function counts(job) {
  const counted = [
    [job.errors, "failed"],
    [job.gates, "stopped by its prerun"],
    [job.skips, "skipped"],
  ];
  return [
    many(job.runs, "run"),
    ...counted.filter(([number]) => number).map(([number, what]) => `${number} ${what}`),
  ].join(", ");
}

function Detail({ job, settle, removed, again }) {
  const found = useAsk(path(job.name)),
    [text, setText] = useState(null);
  useEffect(() => {
    found.again();
  }, [job.last_at, job.enabled, job.last_result]);
  const save = async (event) => {
    event.preventDefault();
    if (await settle(() => call("PUT", path(job.name), { text }), "Saved")) {
      setText(null);
      found.again();
      again();
    }
  };
  return html`<div class="grow stack"><${Loaded} of=${found} what="this job">${(data) => html`
    ${data.trouble.map((each) => html`<p class="note warn" key=${each}>${each}</p>`)}
    <p class="small muted">${data.forecast} ${job.to ? `Answers go to ${job.to}.` : "Answers go nowhere; they stand in its conversation."}${data.hook ? ` Webhook: ${data.hook}` : ""}</p>
    <p class="small muted">So far: ${counts(job)}.</p>
    ${data.runs.length > 0 ? html`<ul class="rows">${data.runs.map((run) => html`<li key=${run.slot}><span class="grow"><strong>${run.result}</strong><span class="small muted">${moment(run.due_at)}</span></span>${run.name && html`<a class="link small" href=${hrefOf(run.name)}>read</a>`}</li>`)}</ul>` : html`<p class="small muted">It has not run yet.</p>`}
    ${
      !job.builtin &&
      html`<form class="stack" onSubmit=${save}><label class="field"><span>Its file</span><textarea class="input mono" rows="10" spellcheck="false" disabled=${!may("chat")} value=${text ?? data.text} onInput=${(event) => setText(event.target.value)}></textarea></label>
      ${may("chat") && html`<div class="row"><button class="btn main little" disabled=${text === null || text === data.text}>Save</button><${Sure} label="Remove" sure="Yes, remove it" onYes=${() => removed(job.name)} /></div>`}</form>`
    }`}<//></div>`;
}

/** First which, then its blanks, then what it will come to. */
function Make({ made }) {
  const all = useAsk("/api/blueprints"),
    [chosen, choose] = useState("");
  return html`<div class="box stack"><${Loaded} of=${all} what="blueprints">${(found) => {
    const one = found.find((each) => each.name === chosen);
    if (chosen === "own")
      return html`<${Blanks} key="own" one=${null} back=${() => choose("")} made=${made} />`;
    if (one)
      return html`<${Blanks} key=${one.name} one=${one} back=${() => choose("")} made=${made} />`;
    return html`<div class="cards" role="group" aria-label="Kinds of jobs">${[...found, { name: "own", title: "Something else", description: "Write its file yourself: when, for whom, and what is to be done." }].map((each) => html`<button type="button" key=${each.name} class="option" onClick=${() => choose(each.name)}><strong>${each.title}</strong><span class="small muted">${each.description}</span></button>`)}</div>`;
  }}<//></div>`;
}

function Blanks({ one, back, made }) {
  const [shown, setShown] = useState(null),
    [refused, setRefused] = useState(""),
    talks = useAsk("/api/sessions?brief=true");
  const draft = (form) => {
    const { _to, _name, _text, ...fields } = Object.fromEntries(new FormData(form));
    return {
      name: _name ?? "",
      to: _to ?? "",
      ...(one ? { blueprint: one.name, slots: fields } : { text: _text }),
    };
  };
  const preview = async (form) => {
    try {
      setShown(await post("/api/blueprints/preview", draft(form)));
      setRefused("");
    } catch (error) {
      setShown(null);
      setRefused(error.message);
    }
  };
  const make = async (event) => {
    event.preventDefault();
    const answer = await attempt(() => post("/api/jobs", draft(event.target)));
    if (answer) made(answer.job.name);
  };
  const required = (name) => one.form.required.includes(name);
  const filled = (form) =>
    !one || one.form.required.every((name) => form.elements[name].value.trim());
  const changed = (event) => {
    const form = event.currentTarget;
    if (filled(form)) preview(form);
  };
  return html`<form class="stack" onSubmit=${make} onChange=${changed}>
    <div class="row"><button type="button" class="btn little" onClick=${back}>Back</button><strong>${one ? one.title : "Something else"}</strong></div>
    ${
      one
        ? Object.entries(one.form.properties).map(
            ([name, blank]) =>
              html`<label class="field" key=${name}><span>${blank.title}</span>${blank.enum ? html`<select class="input" name=${name}>${blank.enum.map((each) => html`<option key=${each} selected=${each === blank.default}>${each}</option>`)}</select>` : html`<input class="input" name=${name} type=${KINDS[blank.format] ?? "text"} required=${required(name)} defaultValue=${blank.default ?? ""} placeholder=${blank.examples?.[0] ?? ""} />`}</label>`,
          )
        : html`<label class="field"><span>Its name</span><input class="input" name="_name" required pattern="[A-Za-z0-9][A-Za-z0-9_.\\-]*" placeholder="look-around" /></label><label class="field"><span>Its file</span><textarea class="input mono" name="_text" rows="9" spellcheck="false" required defaultValue=${EMPTY}></textarea></label>`
    }
    <label class="field"><span>Where does it answer?</span><select class="input" name="_to">${places(talks.data?.sessions ?? []).map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select></label>
    ${refused && html`<p class="note warn" role="alert">${refused}</p>`}
    ${shown && html`<div class="small" role="status"><p><strong>${shown.when}</strong></p><p class="muted">${shown.next_at.map(moment).join(" · ")}</p><p>${shown.forecast}</p>${shown.command && html`<p><code class="wrap">${shown.command}</code></p>`}</div>`}
    <div><button class="btn main">Make it</button></div></form>`;
}

/** A conversation on this page, or one of the chats in which there were conversations. */
function places(sessions) {
  const chats = sessions
    .filter((one) => one.channel && !OWN.has(one.channel))
    .map((one) => one.key.slice(one.key.indexOf("/") + 1).split(":"));
  const known = [...new Set(chats.map(([channel, ...rest]) => `${channel}:${rest.at(-1)}`))];
  return [
    ["web:jobs", "here, in the conversation jobs"],
    ...known.map((each) => [each, each]),
    ["", "nowhere: it stands in its own conversation"],
  ];
}
