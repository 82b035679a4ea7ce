// Skills that agents propose: the text of each, its results in replays, and a person's decision.

import { post } from "../api.js";
import { formatCount, formatDateTime } from "../format.js";
import { t, tCount, tRich, tServer } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { activity } from "../list.js";
import { announce, attempt, sessionHref } from "../state.js";
import { HeldFiles } from "./held.js";
import { ConfirmButton, Empty, Loaded, Section, Toggle, useFetch } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const STATES = {
  proposed: [t("waits for you"), ""],
  refused: [t("refused"), "bad"],
  accepted: [t("active"), "good"],
  rejected: [t("turned down"), ""],
  reverted: [t("taken out"), ""],
  kept: [t("active, not watched"), "warn"],
};
/** Whether others than an owner may have written it. */
const isUntrusted = (one) => Boolean(one.source) || one.by.length > 0;
const proposalPath = (id, rest = "") => `/api/proposals/${id}${rest}`;

export function Proposals() {
  const found = useFetch("/api/proposals?all=true");
  const [open, setOpen] = useState(0);
  useEffect(() => {
    found.reload();
  }, [activity.value]);
  const listRows = (all) => html`
    <ul class="rows">
      ${all.map(
        (one) => html`
          <${ProposalRow}
            key=${one.id}
            one=${one}
            open=${open === one.id}
            toggle=${() => setOpen(open === one.id ? 0 : one.id)}
            reload=${found.reload}
          />
        `,
      )}
    </ul>
  `;
  return html`
    <div class="stack wide">
      <${Loaded} result=${found} what=${t("proposed skills")}>
        ${(all) => {
          const waiting = all.filter((one) => one.state === "proposed");
          const decided = all.filter((one) => one.state !== "proposed");
          return html`
            <${Section}
              title=${t("Waiting for you")}
              note=${t(
                "An agent thought of these while it worked. None of them is active before you take it in.",
              )}
            >
              ${
                waiting.length
                  ? listRows(waiting)
                  : html`
                      <${Empty}>
                        <span>
                          ${t(
                            "No skill is proposed. An agent proposes one when it has found a way that is worth keeping.",
                          )}
                        </span>
                        <${Suggestion}
                          text=${t("Propose a skill for how my weekly report is written. Ask me what you need to know.")}
                        >
                          ${t("Try an example")}
                        <//>
                      <//>
                    `
              }
            <//>
            <${Section}
              title=${t("Decided")}
              note=${t(
                "If turns that use an active skill fail more often than before, it is removed again, and you are notified.",
              )}
            >
              ${
                decided.length
                  ? listRows(decided)
                  : html`<${Empty}>${t("You have not decided about any yet.")}<//>`
              }
            <//>
          `;
        }}
      <//>
      <${HeldFiles} />
    </div>
  `;
}

function ProposalRow({ one, open, toggle, reload }) {
  const [words, tone] = STATES[one.state] ?? [one.state, ""];
  return html`
    <li class=${open ? "wrap tall" : ""}>
      <button type="button" class="grow plainly" aria-expanded=${String(open)} onClick=${toggle}>
        <strong>${one.name}</strong>
        <span class="small">${one.description}</span>
        <span class="small muted">
          ${[
            t("for {agent}", { agent: one.agent }),
            formatDateTime(one.at),
            !open &&
              (tServer(one.verdict) ||
                (one.state === "proposed" ? t("not tried yet") : tServer(one.why))),
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </button>
      ${isUntrusted(one) && html`<span class="tag warn">${t("untrusted")}</span>`}
      <span class=${`tag ${tone}`}>${words}</span>
      ${open && html`<${ProposalDetail} id=${one.id} state=${one.state} reload=${reload} />`}
    </li>
  `;
}

function describeDecision(state, { decided_at, decided_by }) {
  const values = { decision: STATES[state][0], time: formatDateTime(decided_at), name: decided_by };
  return decided_by ? t("{decision}, {time} by {name}.", values) : t("{decision}, {time}.", values);
}

function describeUses({ uses, bad_uses }) {
  if (!uses) return t("No turn has read it yet.");
  return tCount(
    uses,
    "{count} turn read it, {bad} of them ended badly.",
    "{count} turns read it, {bad} of them ended badly.",
    { bad: bad_uses },
  );
}

function ProposalDetail({ id, state, reload }) {
  const found = useFetch(proposalPath(id));
  useEffect(() => {
    found.reload();
  }, [state]);
  const decide = (rest, body, words) =>
    attempt(async () => {
      await post(proposalPath(id, rest), body);
      announce(words);
      reload();
      found.reload();
    });
  return html`
    <div class="grow stack">
      <${Loaded} result=${found} what=${t("this proposal")}>
        ${({ proposal: one, ...data }) => html`
          ${
            one.by.length > 0 &&
            html`
              <p class="note warn">
                ${t("This was written on the word of {names}: read it to its end.", { names: one.by.join(", ") })}
              </p>
            `
          }
          ${
            one.source &&
            html`
              <p class="note warn">
                ${t(
                  "Before this was thought of, {source} had been read in that conversation. Somebody there may have wanted it: read it to its end.",
                  { source: one.source },
                )}
              </p>
            `
          }
          <p class="small muted">
            ${tRich("From {conversation}.", {
              conversation: html`
                <a href=${sessionHref(one.conversation)}>${t("this conversation")}</a>
              `,
            })}${" "}
            ${data.decided_at ? `${describeDecision(one.state, data)} ` : ""}
            ${one.why ? `${tServer(one.why)}. ` : ""}
            ${["accepted", "kept", "reverted"].includes(one.state) ? describeUses(data) : ""}
          </p>
          <${Findings} all=${data.findings} />
          <${ReplayScores} one=${one} data=${data} />
          <div class="field">
            <span>
              ${
                one.state === "accepted" || one.state === "kept"
                  ? t("Its text, in {file}", { file: data.file })
                  : t("All of its text")
              }
            </span>
            <pre class="exact whole" tabindex="0" aria-label=${t("The text of {name}", { name: one.name })}>
              ${data.body}
            </pre>
          </div>
          <${Decision} one=${one} data=${data} decide=${decide} />
        `}
      <//>
    </div>
  `;
}

function Findings({ all }) {
  if (!all.length)
    return html`
      <p class="small muted">${t("Nothing in it is known from malicious skills.")}</p>
    `;
  return html`
    <ul class="rows" aria-label=${t("What was found in it")}>
      ${all.map(
        (each) => html`
          <li key=${each.words + each.excerpt}>
            <span class="grow">
              <span>${each.words}</span>
              ${each.excerpt && html`<code class="small">${each.excerpt}</code>`}
            </span>
            <span class=${`tag ${each.severity === "bad" ? "bad" : "warn"}`}>
              ${each.severity === "bad" ? t("bad") : t("look")}
            </span>
          </li>
        `,
      )}
    </ul>
  `;
}

/** How it did in replays of recorded turns, in which no tool was run. */
function ReplayScores({ one, data }) {
  if (!one.verdict)
    return one.state === "proposed"
      ? html`
          <p class="small muted">
            ${describeUntried(one)}
          </p>
        `
      : null;
  return html`
    <div class="stack">
      <p class="small">
        ${one.verdict}
        ${data.spent ? ` ${t("Trying it took {count} tokens.", { count: formatCount(data.spent) })}` : ""}
      </p>
      ${
        data.scores.length > 0 &&
        html`
          <ul class="rows" aria-label=${t("Turns it was tried on")}>
            ${data.scores.map((each, i) => drawScore(each, i))}
          </ul>
        `
      }
    </div>
  `;
}

function describeUntried(one) {
  const command = html`<code>deskhand skills try ${one.id}</code>`;
  if (isUntrusted(one))
    return tRich(
      "It was not tried on recorded turns: what comes from others is not tried by itself. In a terminal: {command}",
      { command },
    );
  return tRich("It was not tried on recorded turns yet. In a terminal: {command}", { command });
}

function describeScore(each) {
  return [
    tCount(
      each.calls,
      "{count} call ({before} without it)",
      "{count} calls ({before} without it)",
      { before: each.calls_before },
    ),
    t("{count} tokens ({before})", {
      count: formatCount(each.tokens),
      before: formatCount(each.tokens_before),
    }),
    !each.read && t("did not read it"),
    each.unknown &&
      tCount(
        each.unknown,
        "{count} call without a recorded result",
        "{count} calls without a recorded result",
      ),
  ]
    .filter(Boolean)
    .join(" · ");
}

function drawScore(each, i) {
  return html`
    <li key=${i}>
      <span class="grow">
        <span>${t("“{request}”", { request: each.asked })}</span>
        <span class="small muted">${describeScore(each)}</span>
      </span>
      <span class=${`tag ${each.solved ? "good" : "bad"}`}>
        ${each.solved ? t("solved") : t("not solved")}
      </span>
    </li>
  `;
}

function Decision({ one, data, decide }) {
  const [read, setRead] = useState(false);
  const [why, setWhy] = useState("");
  if (one.state === "accepted" || one.state === "kept")
    return html`
      <div class="row">
        <${ConfirmButton}
          label=${t("Remove")}
          confirm=${t("Yes, take it out")}
          onYes=${() => decide("/revert", {}, t("{name} is taken out", { name: one.name }))}
        />
      </div>
    `;
  if (one.state !== "proposed" && one.state !== "refused") return null;
  const bad = one.state === "refused" || data.findings.some((each) => each.severity === "bad");
  return html`
    <div class="stack">
      ${
        bad &&
        html`
          <p class="small muted">
            ${t(
              "It cannot be taken in as it is. If you want what it says, write a skill of your own under Models and skills.",
            )}
          </p>
        `
      }
      ${
        isUntrusted(one) &&
        !bad &&
        html`
          <${Toggle}
            enabled=${read}
            label=${t("I have read all of it")}
            note=${t("From now on I am responsible for what it says.")}
            set=${setRead}
          />
        `
      }
      <label class="field">
        <span>${t("Reason, if you reject it")}</span>
        <input
          class="input"
          maxlength="1000"
          value=${why}
          onInput=${(event) => setWhy(event.target.value)}
        />
      </label>
      <div class="row">
        ${
          !bad &&
          html`
            <button
              type="button"
              class="btn main little"
              disabled=${isUntrusted(one) && !read}
              onClick=${() =>
                decide(
                  "/accept",
                  { untrusted: isUntrusted(one) },
                  t("{name} is a skill of {agent} now", { name: one.name, agent: one.agent }),
                )}
            >
              ${t("Accept")}
            </button>
          `
        }
        <${ConfirmButton}
          label=${t("Reject")}
          confirm=${t("Yes, reject it")}
          onYes=${() => decide("/reject", { why }, t("{name} is turned down", { name: one.name }))}
        />
      </div>
    </div>
  `;
}
