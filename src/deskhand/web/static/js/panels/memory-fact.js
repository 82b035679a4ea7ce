// One memory: where it comes from, its earlier versions, and what can be done with it.

import { formatDateTime } from "../format.js";
import { t, tCount, tRich } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { currentUser, hasScope, searchTarget, sessionHref } from "../state.js";
import { Loaded, useFetch } from "./parts.js";

const MAX_CHARS = 2_000;
const WRITERS = {
  tool: t("an agent, in a conversation"),
  harvester: t("Deskhand, from what was said"),
  cleaner: t("Deskhand, from several memories"),
  reflection: t("Deskhand, looking back at a conversation"),
  file: t("a file of notes"),
  import: t("an import"),
  person: t("a person, by hand"),
};
const nameSpeaker = (name) => (name === currentUser.value.user ? t("you") : name);
const REASONS = {
  contradicted: t("contradicted"),
  duplicate: t("duplicate"),
  expired: t("expired"),
  forgotten: t("forgotten"),
  merged: t("merged"),
  superseded: t("superseded"),
  undone: t("undone"),
  worthless: t("worthless"),
};
/** Why a memory is closed: a word that is known here, or what somebody wrote. */
export const nameReason = (why) => REASONS[why] ?? why;

export function FactDetail({ fact, changeFact }) {
  const found = useFetch(`/api/memories/${fact.id}`);
  const mayChange = fact.may_change && hasScope("chat");
  useEffect(() => {
    found.reload();
  }, [fact]);
  return html`
    <div class="grow stack">
      <${Loaded} result=${found} what=${t("this memory")}>
        ${(data) => html`
          ${fact.outside && drawOutside(fact)}
          <${Source} data=${data} />
          ${
            mayChange && fact.closed_at === null
              ? html`<${Actions} fact=${fact} changeFact=${changeFact} />`
              : drawWhyNot(fact)
          }
          ${drawVersions(data, mayChange && fact.closed_at === null, changeFact)}
          ${
            mayChange &&
            data.similar.length > 0 &&
            html`<${Similar} fact=${fact} similar=${data.similar} changeFact=${changeFact} />`
          }
        `}
      <//>
    </div>
  `;
}

const drawOutside = (fact) => html`
  <p class="note warn">
    ${t(
      "Before this was noted, {source} had been read in that conversation. Somebody there may have wanted it to be remembered: read it before you approve it.",
      { source: fact.outside },
    )}
  </p>
`;

function drawWhyNot(fact) {
  if (fact.closed_at !== null) return null;
  return html`
    <p class="small muted">
      ${
        hasScope("chat")
          ? t("Only an owner can change this, because others are told it, too.")
          : t("You may read memories, but not change them.")
      }
    </p>
  `;
}

function Source({ data }) {
  const { fact } = data;
  const followLink = () => {
    searchTarget.value = { name: data.conversation, n: data.said_n || data.n };
  };
  const place =
    data.conversation &&
    html`
      <a href=${sessionHref(data.conversation)} onClick=${followLink}>
        ${t("in this conversation, event {number}", { number: data.said_n || data.n })}
      </a>
    `;
  return html`
    <dl class="facts">
      <dt>${t("Noted by")}</dt>
      <dd>${WRITERS[fact.writer] ?? fact.writer}, ${formatDateTime(fact.at)}</dd>
      ${
        data.said
          ? html`
              <dt>${t("Said by")}</dt>
              <dd>
                ${nameSpeaker(data.said_by)}, ${formatDateTime(data.said_at)} ${place}
                <br />${t("“{text}”", { text: data.said })}
              </dd>
            `
          : place && html`<dt>${t("Said")}</dt><dd>${place}</dd>`
      }
      ${
        data.file &&
        html`
          <dt>${t("File")}</dt>
          <dd>
            ${tRich("{file}: what you change here does not change its lines", {
              file: html`<code>${data.file}</code>`,
            })}
          </dd>
        `
      }
      ${
        data.readers.length > 0 && html`<dt>${t("Readers")}</dt><dd>${data.readers.join(", ")}</dd>`
      }
      <dt>${t("Used")}</dt>
      <dd>
        ${
          data.uses
            ? tCount(data.uses, "{count} time, last {date}", "{count} times, last {date}", {
                date: formatDateTime(data.used_at),
              })
            : t("not yet")
        }
      </dd>
    </dl>
  `;
}

function Actions({ fact, changeFact }) {
  const [correcting, setCorrecting] = useState(false);
  const shared = fact.scope !== "user";
  const waits = !shared && !hasScope("admin");
  const change = (what, body, said, undo = undefined) =>
    changeFact(fact.id, what, body, { said, undo });
  const takeNew = (answer) => answer.fact.id;
  const correctFact = async (text) => {
    const said = t("It is corrected. The earlier version is kept.");
    if (await change("correct", { text }, said, takeNew)) setCorrecting(false);
  };
  const shareFact = () =>
    change(
      "share",
      { shared: !shared },
      shared
        ? t("It is told to nobody but you from now on.")
        : waits
          ? t("It is shared as soon as an owner approves it.")
          : t("It is told to everybody from now on."),
      waits ? undefined : takeNew,
    );
  return html`
    <div class="row wrap">
      ${
        (fact.held || fact.forgotten_at !== null) &&
        html`
          <button
            type="button"
            class="btn main little"
            onClick=${() => change("approve", {}, t("It is kept, and agents are shown it."))}
          >
            ${fact.held ? t("Approve") : t("Keep")}
          </button>
        `
      }
      <button
        type="button"
        class="btn little"
        aria-expanded=${String(correcting)}
        onClick=${() => setCorrecting(!correcting)}
      >
        ${t("Correct")}
      </button>
      ${
        !fact.held &&
        html`
          <button type="button" class="btn little" onClick=${shareFact}>
            ${shared ? t("Make private") : t("Share with everybody")}
          </button>
          <button
            type="button"
            class="btn little"
            onClick=${() =>
              change(
                "pin",
                { pinned: !fact.pinned },
                fact.pinned
                  ? t("It is shown only where it fits.")
                  : t("It is in the prompt of every conversation in which it may be shown."),
              )}
          >
            ${fact.pinned ? t("Only where it fits") : t("Put in every prompt")}
          </button>
        `
      }
      <button
        type="button"
        class="btn little bad"
        onClick=${() => change("forget", {}, t("It is forgotten."), () => fact.id)}
      >
        ${t("Forget")}
      </button>
    </div>
    ${
      correcting &&
      html`
        <${TextForm}
          label=${t("What is right")}
          button=${t("Save the correction")}
          text=${fact.text}
          send=${correctFact}
        />
      `
    }
  `;
}

function TextForm({ label, button, text, send }) {
  const [written, setWritten] = useState(text);
  const submit = (event) => {
    event.preventDefault();
    send(written.trim());
  };
  return html`
    <form class="box stack" onSubmit=${submit}>
      <label class="field">
        <span>${label}</span>
        <textarea
          class="input"
          rows="3"
          maxlength=${MAX_CHARS}
          required
          value=${written}
          onInput=${(event) => setWritten(event.target.value)}
        ></textarea>
      </label>
      <div class="row">
        <button class="btn main little" disabled=${!written.trim()}>${button}</button>
      </div>
    </form>
  `;
}

function drawVersions({ fact, history }, mayChange, changeFact) {
  const others = history.filter((one) => one.id !== fact.id).toReversed();
  if (!others.length) return null;
  return html`
    <div class="stack">
      <h4>${t("Other versions")}</h4>
      <ul class="rows" aria-label=${t("Other versions")}>
        ${others.map((one) => drawVersion(one, fact, mayChange, changeFact))}
      </ul>
    </div>
  `;
}

function drawVersion(one, fact, mayChange, changeFact) {
  // What was replaced says the old thing: using it again is one more correction. What was closed
  // for another reason can hold beside the others.
  const replaced = one.closed_why === "superseded";
  const useAgain = () =>
    replaced
      ? changeFact(
          fact.id,
          "correct",
          { text: one.text },
          { said: t("That version holds again."), undo: (answer) => answer.fact.id },
        )
      : changeFact(one.id, "undo", {}, { said: t("It is remembered again.") });
  return html`
    <li key=${one.id}>
      <span class="grow">
        <span>${one.text}</span>
        <span class="small muted">
          ${
            one.closed_at === null
              ? t("from {start}", { start: formatDateTime(one.at) })
              : t("from {start} to {end}", {
                  start: formatDateTime(one.at),
                  end: formatDateTime(one.closed_at),
                })
          }
          ${one.closed_why && !replaced ? ` · ${nameReason(one.closed_why)}` : ""}
        </span>
      </span>
      ${
        mayChange &&
        one.closed_at !== null &&
        one.text !== fact.text &&
        html`
          <button
            type="button"
            class="btn little"
            aria-label=${t("Use again: {text}", { text: one.text })}
            onClick=${useAgain}
          >
            ${replaced ? t("Use again") : t("Bring back")}
          </button>
        `
      }
    </li>
  `;
}

function Similar({ fact, similar, changeFact }) {
  const [chosen, setChosen] = useState(null);
  const mergeFacts = (text) =>
    changeFact(
      fact.id,
      "merge",
      { other: chosen.id, text },
      { said: t("The two are one memory now."), undo: (answer) => answer.fact.id },
    );
  return html`
    <div class="stack">
      <h4>${t("Similar memories")}</h4>
      <ul class="rows" aria-label=${t("Similar memories")}>
        ${similar.map(
          (one) => html`
            <li key=${one.id}>
              <span class="grow">
                <span>${one.text}</span>
                <span class="small muted">${formatDateTime(one.at)}</span>
              </span>
              <button
                type="button"
                class="btn little"
                aria-label=${t("Merge with: {text}", { text: one.text })}
                aria-expanded=${String(chosen?.id === one.id)}
                onClick=${() => setChosen(chosen?.id === one.id ? null : one)}
              >
                ${t("Merge")}
              </button>
            </li>
          `,
        )}
      </ul>
      ${
        chosen &&
        html`
          <${TextForm}
            key=${chosen.id}
            label=${t("One sentence for this and “{text}”", { text: chosen.text })}
            button=${t("Merge the two")}
            text=${fact.text}
            send=${mergeFacts}
          />
        `
      }
    </div>
  `;
}
