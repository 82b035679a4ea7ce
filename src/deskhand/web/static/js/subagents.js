// The sub-agents that a call has begun, below it: a line for each, which opens what it began itself.

import { call, get } from "./api.js";
import { formatDuration } from "./format.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { html, signal, useEffect, useState } from "./lib.js";
import { ConfirmButton } from "./panels/parts.js";
import { announce, attempt, hasScope, route, sessionHref } from "./state.js";

const LOOK_MS = 1500;
const WORDS = {
  wanted: t("about to begin"),
  running: t("works"),
  done: t("done"),
  error: t("failed"),
  stopped: t("stopped"),
};
const TONES = { wanted: "", running: "", error: "bad", stopped: "warn" };

/** The tasks of the conversation that is shown; asked for once for all of its calls. */
const shown = signal({ name: "", tasks: [], loading: false });

async function load(name) {
  if (shown.value.loading && shown.value.name === name) return;
  const known = shown.value.name === name ? shown.value.tasks : [];
  shown.value = { name, tasks: known, loading: true };
  const tasks = await fetchTasks(name).catch(() => known);
  if (shown.value.name === name) shown.value = { name, tasks, loading: false };
}

const fetchTasks = (name) => get(`/api/subagents?all=true&session=${encodeURIComponent(name)}`);
const isLive = (task) => task.state === "wanted" || task.state === "running";

/** Look again while `active`, and once when that ends. */
function useLooking(active, look) {
  useEffect(() => {
    look();
    if (!active) return;
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [active]);
}

/** Those that this call has begun; nothing where it has begun none. */
export function Subagents({ item, running }) {
  const { name } = route.value;
  const tasks = shown.value.name === name ? shown.value.tasks : [];
  const own = tasks.filter((task) => task.call_id === item.callId);
  useLooking(running || own.some(isLive), () => load(name));
  return html`<${TaskList} tasks=${own} look=${() => load(name)} />`;
}

function TaskList({ tasks, look }) {
  if (!tasks.length) return null;
  return html`
    <ul class="subagents" aria-label=${t("Sub-agents")}>
      ${tasks.map((task) => html`<${Task} key=${task.id + task.at} task=${task} look=${look} />`)}
    </ul>
  `;
}

function Task({ task, look }) {
  const [open, setOpen] = useState(false);
  const live = isLive(task);
  const took = (task.ended_at ?? Date.now() / 1000) - task.at;
  const stop = () =>
    attempt(async () => {
      await call("DELETE", `/api/subagents/${encodeURIComponent(task.id)}`);
      announce(t("Stopping"));
      look();
    });
  return html`
    <li class=${`subagent ${task.state}`}>
      <div class="line">
        <button
          type="button"
          class="btn little quiet"
          aria-expanded=${String(open)}
          aria-label=${t("What {title} has begun", { title: task.title })}
          onClick=${() => setOpen(!open)}
        >
          <${Icon} name=${open ? "down" : "right"} />
        </button>
        ${live && html`<span class="spin"></span>`}
        <a class="cut grow" href=${sessionHref(task.name)}>${task.title}</a>
        <span class=${`tag ${TONES[task.state] ?? ""}`}>${WORDS[task.state]}</span>
        <span class="tiny muted">${formatDuration(took)}</span>
        ${
          live &&
          hasScope("chat") &&
          html`<${ConfirmButton} label=${t("Stop")} confirm=${t("Stop it")} onYes=${stop} />`
        }
      </div>
      ${live && task.doing && html`<p class="doing cut">${task.doing}</p>`}
      ${
        task.outcome &&
        html`<p class=${`outcome cut ${TONES[task.state] ?? ""}`} title=${task.outcome}>${task.outcome}</p>`
      }
      ${open && html`<${Below} name=${task.name} active=${live} />`}
    </li>
  `;
}

function Below({ name, active }) {
  const [tasks, setTasks] = useState(null);
  const look = () => fetchTasks(name).then(setTasks, () => setTasks((known) => known ?? []));
  useLooking(active, look);
  if (tasks === null) return html`<p class="small muted"><span class="spin"></span></p>`;
  if (!tasks.length) return html`<p class="small muted">${t("It has begun no others.")}</p>`;
  return html`<${TaskList} tasks=${tasks} look=${look} />`;
}
