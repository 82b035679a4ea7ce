// What is to be done in this conversation, and how far it is.

import { sessionPath } from "../api.js";
import { language, t } from "../language.js";
import { html, useEffect } from "../lib.js";
import { route } from "../state.js";
import { talk } from "../talk.js";
import { Empty, Loaded, useFetch } from "./parts.js";
import { Suggestion } from "./suggestion.js";
import { Team } from "./team.js";

const MARKS = { pending: "[ ]", in_progress: "[>]", completed: "[x]", blocked: "[!]" };
const SAID = {
  pending: t("to be done"),
  in_progress: t("being done"),
  completed: t("done"),
  blocked: t("blocked"),
};
const SOON_MS = 400;
const STATES = {
  planning: t("It is planning, and changes nothing before you approve."),
  working: t("It is working."),
  asking: t("It waits for your answer."),
  blocked: t("It waits for you: tasks are blocked."),
  stopped: t("It was stopped. Send a message to continue."),
  resting: t("It is idle."),
  spent: t("Its tokens are used up. /deep on adds as many again."),
  done: t("All tasks are done."),
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
      <${Loaded} result=${found} what=${t("tasks")}>
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
                      aria-label=${t("How much is done")}
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
                  <span>
                    ${t(
                      "No tasks yet. Write /deep and a request: it is planned, broken into tasks, and worked on until it is done.",
                    )}
                  </span>
                  <${Suggestion}
                    text=${t("/deep Plan a weekend in Lisbon for two. Compare how to get there, where to sleep and what to see, and write it down as a document.")}
                  >
                    ${t("Try an example")}
                  <//>
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
        <strong>${work.deep ? t("Deep work") : t("Goal")}</strong>${" "}
        <span role="status">${STATES[work.state]}</span>
      </p>
      ${
        work.deep &&
        html`
          <p class="small muted">
            ${t("{used} of {most} tokens used, {left} left.", {
              used: formatNumber(work.used),
              most: formatNumber(work.most),
              left: formatNumber(Math.max(work.most - work.used, 0)),
            })}
          </p>
        `
      }
      ${
        work.goal &&
        html`
          <p class="small">${work.deep ? t("Goal: {goal}", { goal: work.goal }) : work.goal}</p>
          <p class="small muted">
            ${t("Worked on again {round} of {rounds} times, {used} of {most} tokens used.", {
              round: work.round,
              rounds: work.rounds,
              used: formatNumber(work.goal_used),
              most: formatNumber(work.goal_most),
            })}
          </p>
        `
      }
    </div>
  `;
}

const formatNumber = (number) => number.toLocaleString(language);

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
