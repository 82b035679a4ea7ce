// Skills that agents propose: the text of each, its results in replays, and a person's decision.

import { post } from "../api.js";
import { formatCount, formatDateTime, pluralize } from "../format.js";
import { html, useEffect, useState } from "../lib.js";
import { activity } from "../list.js";
import { announce, attempt, sessionHref } from "../state.js";
import { HeldFiles } from "./held.js";
import { ConfirmButton, Empty, Loaded, Section, Toggle, useFetch } from "./parts.js";

const STATES = {
  proposed: ["waits for you", ""],
  refused: ["refused", "bad"],
  accepted: ["active", "good"],
  rejected: ["turned down", ""],
  reverted: ["taken out", ""],
  kept: ["active, not watched", "warn"],
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
      <${Loaded} result=${found} what="proposed skills">
        ${(all) => {
          const waiting = all.filter((one) => one.state === "proposed");
          const decided = all.filter((one) => one.state !== "proposed");
          return html`
            <${Section}
              title="Waiting for you"
              note=${
                "An agent thought of these while it worked. None of them is active before you " +
                "take it in."
              }
            >
              ${
                waiting.length
                  ? listRows(waiting)
                  : html`
                      <${Empty}>
                        ${
                          "No skill is proposed. An agent proposes one when it has found a way " +
                          "that is worth keeping."
                        }
                      <//>
                    `
              }
            <//>
            <${Section}
              title="Decided"
              note=${
                "If turns that use an active skill fail more often than before, it is removed " +
                "again, and you are notified."
              }
            >
              ${
                decided.length
                  ? listRows(decided)
                  : html`<${Empty}>You have not decided about any yet.<//>`
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
            `for ${one.agent}`,
            formatDateTime(one.at),
            !open && (one.verdict || (one.state === "proposed" ? "not tried yet" : one.why)),
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </button>
      ${isUntrusted(one) && html`<span class="tag warn">untrusted</span>`}
      <span class=${`tag ${tone}`}>${words}</span>
      ${open && html`<${ProposalDetail} id=${one.id} state=${one.state} reload=${reload} />`}
    </li>
  `;
}

function describeDecision(state, { decided_at, decided_by }) {
  const author = decided_by ? ` by ${decided_by}` : "";
  return `${STATES[state][0]}, ${formatDateTime(decided_at)}${author}. `;
}

function describeUses({ uses, bad_uses }) {
  if (!uses) return "No turn has read it yet.";
  return `${pluralize(uses, "turn")} read it, ${bad_uses} of them ended badly.`;
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
      <${Loaded} result=${found} what="this proposal">
        ${({ proposal: one, ...data }) => html`
          ${
            one.by.length > 0 &&
            html`
              <p class="note warn">
                This was written on the word of ${one.by.join(", ")}: read it to its end.
              </p>
            `
          }
          ${
            one.source &&
            html`
              <p class="note warn">
                Before this was thought of, ${one.source}${" "}
                ${
                  "had been read in that conversation. Somebody there may have wanted it: read " +
                  "it to its end."
                }
              </p>
            `
          }
          <p class="small muted">
            From <a href=${sessionHref(one.conversation)}>this conversation</a>.${" "}
            ${data.decided_at ? describeDecision(one.state, data) : ""}
            ${one.why ? `${one.why}. ` : ""}
            ${["accepted", "kept", "reverted"].includes(one.state) ? describeUses(data) : ""}
          </p>
          <${Findings} all=${data.findings} />
          <${ReplayScores} one=${one} data=${data} />
          <div class="field">
            <span>
              ${
                one.state === "accepted" || one.state === "kept"
                  ? `Its text, in ${data.file}`
                  : "All of its text"
              }
            </span>
            <pre class="exact whole" tabindex="0" aria-label=${`The text of ${one.name}`}>
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
      <p class="small muted">Nothing in it is known from malicious skills.</p>
    `;
  return html`
    <ul class="rows" aria-label="What was found in it">
      ${all.map(
        (each) => html`
          <li key=${each.words + each.excerpt}>
            <span class="grow">
              <span>${each.words}</span>
              ${each.excerpt && html`<code class="small">${each.excerpt}</code>`}
            </span>
            <span class=${`tag ${each.severity === "bad" ? "bad" : "warn"}`}>
              ${each.severity === "bad" ? "bad" : "look"}
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
            It was not tried on recorded turns
            ${isUntrusted(one) ? ": what comes from others is not tried by itself" : " yet"}
            . In a terminal: <code>deskhand skills try ${one.id}</code>
          </p>
        `
      : null;
  return html`
    <div class="stack">
      <p class="small">
        ${one.verdict}
        ${data.spent ? ` Trying it took ${formatCount(data.spent)} tokens.` : ""}
      </p>
      ${
        data.scores.length > 0 &&
        html`
          <ul class="rows" aria-label="Turns it was tried on">
            ${data.scores.map((each, i) => drawScore(each, i))}
          </ul>
        `
      }
    </div>
  `;
}

function drawScore(each, i) {
  return html`
    <li key=${i}>
      <span class="grow">
        <span>“${each.asked}”</span>
        <span class="small muted">
          ${pluralize(each.calls, "call")} (${each.calls_before} without it) ·${" "}
          ${formatCount(each.tokens)} tokens (${formatCount(each.tokens_before)})
          ${each.read ? "" : " · did not read it"}
          ${each.unknown ? ` · ${pluralize(each.unknown, "call")} without a recorded result` : ""}
        </span>
      </span>
      <span class=${`tag ${each.solved ? "good" : "bad"}`}>
        ${each.solved ? "solved" : "not solved"}
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
          label="Remove"
          confirm="Yes, take it out"
          onYes=${() => decide("/revert", {}, `${one.name} is taken out`)}
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
            ${
              "It cannot be taken in as it is. If you want what it says, write a skill of your " +
              "own under Models and skills."
            }
          </p>
        `
      }
      ${
        isUntrusted(one) &&
        !bad &&
        html`
          <${Toggle}
            enabled=${read}
            label="I have read all of it"
            note="From now on I am responsible for what it says."
            set=${setRead}
          />
        `
      }
      <label class="field">
        <span>Reason, if you reject it</span>
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
                  `${one.name} is a skill of ${one.agent} now`,
                )}
            >
              Accept
            </button>
          `
        }
        <${ConfirmButton}
          label="Reject"
          confirm="Yes, reject it"
          onYes=${() => decide("/reject", { why }, `${one.name} is turned down`)}
        />
      </div>
    </div>
  `;
}
