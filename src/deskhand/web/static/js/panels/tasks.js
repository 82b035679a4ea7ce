// What is to be done in this conversation, and how far it is.

import { sessionPath } from "../api.js";
import { html, useEffect } from "../lib.js";
import { route } from "../state.js";
import { talk } from "../talk.js";
import { Empty, Loaded, useFetch } from "./parts.js";
import { Team } from "./team.js";

const MARKS = { pending: "[ ]", in_progress: "[>]", completed: "[x]", blocked: "[!]" };
const SAID = {
  pending: "to be done",
  in_progress: "being done",
  completed: "done",
  blocked: "blocked",
};
const SOON_MS = 400;
const STATES = {
  planning: "It is planning, and changes nothing before you approve.",
  working: "It is working.",
  asking: "It waits for your answer.",
  blocked: "It waits for you: tasks are blocked.",
  stopped: "It was stopped. Send a message to continue.",
  resting: "It is idle.",
  spent: "Its tokens are used up. /deep on adds as many again.",
  done: "All tasks are done.",
};

export function Tasks() {
  const found = useFetch(sessionPath(route.value.name, "/tasks"));
  const lastEvent = talk.value.n;
  useEffect(() => {
    const timer = setTimeout(found.reload, SOON_MS);
    return () => clearTimeout(timer);
  }, [lastEvent]);
  return html`
    <div class="stack">
      <${Team} name=${route.value.name} lastEvent=${lastEvent} />
      <${Loaded} result=${found} what="tasks">
        ${(data) =>
          data.tasks.length || data.work
            ? html`
                ${data.work && html`<${Work} work=${data.work} />`}
                ${
                  data.tasks.length > 0 &&
                  html`
                    <p class="small" role="status">${data.summary}</p>
                    <progress
                      class="how-far"
                      max="100"
                      value=${data.percent}
                      aria-label="How much is done"
                    ></progress>
                  `
                }
                <ul class="tasks">
                  ${orderTasks(data.tasks).map(
                    ([task, depth]) => html`<${Task} key=${task.id} task=${task} depth=${depth} />`,
                  )}
                </ul>
              `
            : html`
                <${Empty}>
                  ${
                    "No tasks yet. Write /deep and a request: it is planned, broken into tasks, " +
                    "and worked on until it is done."
                  }
                <//>
              `}
      <//>
    </div>
  `;
}

/** What goes on by itself: what it is at, and what it has used of what it may. */
function Work({ work }) {
  return html`
    <div class="work">
      <p>
        <strong>${work.deep ? "Deep work" : "Goal"}</strong>${" "}
        <span role="status">${STATES[work.state]}</span>
      </p>
      ${
        work.deep &&
        html`
          <p class="small muted">
            ${formatNumber(work.used)} of ${formatNumber(work.most)} tokens used,${" "}
            ${formatNumber(Math.max(work.most - work.used, 0))} left.
          </p>
        `
      }
      ${
        work.goal &&
        html`
          <p class="small">${work.deep && "Goal: "}${work.goal}</p>
          <p class="small muted">
            Worked on again ${work.round} of ${work.rounds} times,${" "}
            ${formatNumber(work.goal_used)} of ${formatNumber(work.goal_most)} tokens used.
          </p>
        `
      }
    </div>
  `;
}

const formatNumber = (number) => number.toLocaleString("en");

function Task({ task, depth }) {
  return html`
    <li class=${task.status} style=${{ paddingLeft: `${Math.min(depth, 6)}em` }}>
      <code aria-hidden="true">${MARKS[task.status]}</code>${" "}
      <span class="sr">${SAID[task.status]}: </span>
      <span>
        #${task.id} ${task.title}
        ${
          task.result &&
          task.status !== "pending" &&
          html` <span class="small muted">${task.result}</span>`
        }
      </span>
    </li>
  `;
}

/** Each task with its depth, parents before their children. */
function orderTasks(tasks) {
  const ids = new Set(tasks.map((task) => task.id));
  const beneath = new Map();
  for (const task of tasks) {
    const parent = ids.has(task.parent_id) ? task.parent_id : null;
    beneath.set(parent, [...(beneath.get(parent) ?? []), task]);
  }
  const found = [];
  const left = (beneath.get(null) ?? []).map((task) => [task, 0]).reverse();
  while (left.length) {
    const [task, depth] = left.pop();
    found.push([task, depth]);
    left.push(...(beneath.get(task.id) ?? []).map((child) => [child, depth + 1]).reverse());
  }
  return found;
}
