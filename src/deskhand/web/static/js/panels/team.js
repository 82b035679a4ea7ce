// The team of this conversation, and the board of its tasks.

import { call, sessionPath } from "../api.js";
import { formatDateTime } from "../format.js";
import { t } from "../language.js";
import { html, signal, useEffect, useRef, useState } from "../lib.js";
import { announce, attempt, hasScope, sessionHref } from "../state.js";
import { ConfirmButton, Empty, Loaded, submitFields, useFetch } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const LOOK_MS = 2000;
const STATUS_WORDS = {
  working: t("works"),
  waiting: t("waits for a word on its plan"),
  idle: t("idle"),
  shutdown: t("shut down"),
};
const DOTS = { working: "runs", waiting: "asks", idle: "", shutdown: "off" };
const COLUMNS = [
  ["pending", t("To do")],
  ["in_progress", t("Doing")],
  ["blocked", t("Blocked")],
  ["completed", t("Done")],
];
const NOBODY = "";

/** The conversation whose board is open, or "". */
const boardOf = signal("");

/** The teammates in the panel, with a way to the board; nothing where there is no team. */
export function Team({ name, lastEvent }) {
  const found = useFetch(sessionPath(name, "/team"));
  useEffect(() => {
    const timer = setInterval(found.reload, LOOK_MS);
    return () => clearInterval(timer);
  }, [name, lastEvent]);
  const team = found.data;
  if (!team?.teammates.length) return null;
  return html`
    <section class="team" aria-label=${t("Team")}>
      <ul class="rows">
        ${team.teammates.map(
          (mate) => html`
            <${Teammate} key=${mate.name} mate=${mate} name=${name} reload=${found.reload} />
          `,
        )}
      </ul>
      <button
        type="button"
        class="btn little"
        onClick=${() => {
          boardOf.value = name;
        }}
      >
        ${t("Open the board")}
      </button>
      ${boardOf.value === name && html`<${Board} name=${name} found=${found} />`}
    </section>
  `;
}

function Teammate({ mate, name, reload }) {
  const path = sessionPath(name, `/team/${encodeURIComponent(mate.name)}`);
  const shutDown = () => attempt(() => call("DELETE", path).then(reload));
  return html`
    <li class="mate">
      <span class=${`dot ${DOTS[mate.status]}`} aria-hidden="true"></span>
      <span class="grow">
        ${
          mate.session
            ? html`<a href=${sessionHref(mate.session)}>${mate.name}</a>`
            : html`<strong>${mate.name}</strong>`
        }
        ${mate.role && html`<span class="muted"> ${mate.role}</span>`}
        <span class="small muted">
          ${" "}${STATUS_WORDS[mate.status]}${mate.doing && `: ${mate.doing}`}
        </span>
      </span>
      ${
        mate.status !== "shutdown" &&
        hasScope("chat") &&
        html`
          <${ConfirmButton}
            label=${t("Shut down")}
            confirm=${t("Shut {name} down", { name: mate.name })}
            onYes=${shutDown}
          />
        `
      }
      ${mate.step && html`<p class="doing cut">${mate.step}</p>`}
      ${mate.outcome && html`<p class="outcome cut" title=${mate.outcome}>${mate.outcome}</p>`}
    </li>
  `;
}

function Board({ name, found }) {
  const box = useRef();
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.isConnected && before.focus?.();
  }, []);
  const closeBoard = () => {
    boardOf.value = "";
  };
  const change = (id, fields, said) =>
    attempt(async () => {
      try {
        await call("PATCH", sessionPath(name, `/tasks/${id}`), fields);
        announce(said);
        return null;
      } finally {
        found.reload();
      }
    });
  return html`
    <dialog
      class="board-box"
      ref=${box}
      aria-label=${t("Board of the team")}
      onKeyDown=${(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        closeBoard();
      }}
      onCancel=${(event) => {
        event.preventDefault();
        closeBoard();
      }}
    >
      <header class="preview-head">
        <h2 class="grow">${t("Board")}</h2>
        <button type="button" class="btn" onClick=${closeBoard}>${t("Close")}</button>
      </header>
      <${Loaded} result=${found} what=${t("tasks")}>
        ${(team) =>
          team.tasks.length
            ? html`
                <${Owners} team=${team} change=${change} />
                <div class="board">
                  ${COLUMNS.map(
                    ([status, label]) => html`
                      <${Column}
                        key=${status}
                        status=${status}
                        label=${label}
                        team=${team}
                        change=${change}
                      />
                    `,
                  )}
                </div>
              `
            : html`
                <${Empty}>
                  <span>
                    ${t(
                      "No tasks yet. When the work is broken into tasks, you see here who does what, and can give a task to somebody else.",
                    )}
                  </span>
                  <${Suggestion}
                    text=${t("Break this work into tasks, and give each of them to a teammate.")}
                    onUse=${closeBoard}
                  >
                    ${t("Try an example")}
                  <//>
                <//>
              `}
      <//>
    </dialog>
  `;
}

/** A place on which a task can be dropped. */
function Drop({ as: tag, class: name, label, onTask, children }) {
  const [over, setOver] = useState(false);
  const canDrop = hasScope("chat");
  return html`
    <${tag}
      class=${`${name}${over ? " over" : ""}`}
      aria-label=${label}
      onDragOver=${(event) => {
        if (!canDrop) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave=${() => setOver(false)}
      onDrop=${(event) => {
        event.preventDefault();
        setOver(false);
        const id = Number(event.dataTransfer.getData("text/plain"));
        if (id) onTask(id);
      }}
    >
      ${children}
    <//>
  `;
}

const activeNames = (team) =>
  team.teammates.filter((mate) => mate.status !== "shutdown").map((mate) => mate.name);

function Owners({ team, change }) {
  const assign = (name) => (id) =>
    change(
      id,
      { owner: name, status: "pending" },
      name ? t("Task {id} is for {name}", { id, name }) : t("Task {id} is for anybody", { id }),
    );
  return html`
    <ul class="owners" aria-label=${t("Drop a task on a name to assign it")}>
      <li class="small muted">${hasScope("chat") && t("Drag a task to a column, or onto a name:")}</li>
      ${[NOBODY, ...activeNames(team)].map(
        (name) => html`
          <${Drop} key=${name} as="li" class="tag" label=${name || t("anybody")} onTask=${assign(name)}>
            ${name || t("anybody")}
          <//>
        `,
      )}
    </ul>
  `;
}

function Column({ status, label, team, change }) {
  const tasks = team.tasks.filter((task) => task.status === status);
  const move = (id) => change(id, { status }, t("Task {id}: {status}", { id, status: label }));
  return html`
    <${Drop} as="section" class="column" label=${label} onTask=${move}>
      <h3>${label} <span class="muted">${tasks.length}</span></h3>
      <ul>
        ${tasks.map(
          (task) => html`<${Card} key=${task.id} task=${task} team=${team} change=${change} />`,
        )}
      </ul>
      ${!tasks.length && html`<p class="none small">${t("Nothing here.")}</p>`}
    <//>
  `;
}

function Card({ task, team, change }) {
  const locked = !hasScope("chat");
  const names = [...new Set([NOBODY, ...activeNames(team), task.owner])];
  const comment = submitFields(({ comment: text }) =>
    change(task.id, { comment: text }, t("Comment added")),
  );
  return html`
    <li
      class=${`card ${task.status}`}
      draggable=${!locked}
      onDragStart=${(event) => event.dataTransfer.setData("text/plain", String(task.id))}
    >
      <p class="card-title"><span class="muted">#${task.id}</span> ${task.title}</p>
      ${task.held && html`<p class="small muted">${t("{name} works on it now.", { name: task.owner })}</p>`}
      ${
        task.waits_for.length > 0 &&
        html`
          <p class="small muted">${t("Waits for {tasks}.", { tasks: task.waits_for.map((id) => `#${id}`).join(", ") })}</p>
        `
      }
      ${task.result && html`<p class="small card-result">${task.result}</p>`}
      <div class="row tight">
        <label>
          <span class="sr">${t("Owner of task {id}", { id: task.id })}</span>
          <select
            class="input little"
            value=${task.owner}
            disabled=${locked}
            onChange=${(event) => change(task.id, { owner: event.target.value }, t("Assigned"))}
          >
            ${names.map((name) => html`<option value=${name}>${name || t("anybody")}</option>`)}
          </select>
        </label>
        <label>
          <span class="sr">${t("Status of task {id}", { id: task.id })}</span>
          <select
            class="input little"
            value=${task.status}
            disabled=${locked}
            onChange=${(event) => change(task.id, { status: event.target.value }, t("Moved"))}
          >
            ${COLUMNS.map(([id, label]) => html`<option value=${id}>${label}</option>`)}
          </select>
        </label>
      </div>
      <details>
        <summary class="small">
          ${task.comments.length ? t("Comments ({count})", { count: task.comments.length }) : t("Comment")}
        </summary>
        ${task.comments.map(
          (one) => html`
            <p class="small">
              <strong>${one.by}</strong>${" "}
              <span class="muted">${formatDateTime(one.at)}</span><br />${one.text}
            </p>
          `,
        )}
        ${
          !locked &&
          html`
            <form class="row tight" onSubmit=${comment}>
              <input
                class="input little grow"
                name="comment"
                maxlength="2000"
                required
                aria-label=${t("Comment on task {id}", { id: task.id })}
              />
              <button class="btn little">${t("Add")}</button>
            </form>
          `
        }
      </details>
    </li>
  `;
}
