// One memory: where it comes from, its earlier versions, and what can be done with it.

import { formatDateTime, pluralize } from "../format.js";
import { html, useEffect, useState } from "../lib.js";
import { currentUser, hasScope, searchTarget, sessionHref } from "../state.js";
import { Loaded, useFetch } from "./parts.js";

const MAX_CHARS = 2_000;
const WRITERS = {
  tool: "an agent, in a conversation",
  harvester: "Deskhand, from what was said",
  cleaner: "Deskhand, from several memories",
  reflection: "Deskhand, looking back at a conversation",
  file: "a file of notes",
  import: "an import",
  person: "a person, by hand",
};
const nameSpeaker = (name) => (name === currentUser.value.user ? "you" : name);

export function FactDetail({ fact, changeFact }) {
  const found = useFetch(`/api/memories/${fact.id}`);
  const mayChange = fact.may_change && hasScope("chat");
  useEffect(() => {
    found.reload();
  }, [fact]);
  return html`
    <div class="grow stack">
      <${Loaded} result=${found} what="this memory">
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
    Before this was noted, ${fact.outside}${" "}
    ${
      "had been read in that conversation. Somebody there may have wanted it to be remembered: " +
      "read it before you approve it."
    }
  </p>
`;

function drawWhyNot(fact) {
  if (fact.closed_at !== null) return null;
  return html`
    <p class="small muted">
      ${
        hasScope("chat")
          ? "Only an owner can change this, because others are told it, too."
          : "You may read memories, but not change them."
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
        in this conversation, event ${data.said_n || data.n}
      </a>
    `;
  return html`
    <dl class="facts">
      <dt>Noted by</dt>
      <dd>${WRITERS[fact.writer] ?? fact.writer}, ${formatDateTime(fact.at)}</dd>
      ${
        data.said
          ? html`
              <dt>Said by</dt>
              <dd>
                ${nameSpeaker(data.said_by)}, ${formatDateTime(data.said_at)} ${place}
                <br />“${data.said}”
              </dd>
            `
          : place && html`<dt>Said</dt><dd>${place}</dd>`
      }
      ${
        data.file &&
        html`
          <dt>File</dt>
          <dd><code>${data.file}</code>: what you change here does not change its lines</dd>
        `
      }
      ${data.readers.length > 0 && html`<dt>Readers</dt><dd>${data.readers.join(", ")}</dd>`}
      <dt>Used</dt>
      <dd>
        ${
          data.uses
            ? `${pluralize(data.uses, "time")}, last ${formatDateTime(data.used_at)}`
            : "not yet"
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
    const said = "It is corrected. The earlier version is kept.";
    if (await change("correct", { text }, said, takeNew)) setCorrecting(false);
  };
  const shareFact = () =>
    change(
      "share",
      { shared: !shared },
      shared
        ? "It is told to nobody but you from now on."
        : waits
          ? "It is shared as soon as an owner approves it."
          : "It is told to everybody from now on.",
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
            onClick=${() => change("approve", {}, "It is kept, and agents are shown it.")}
          >
            ${fact.held ? "Approve" : "Keep"}
          </button>
        `
      }
      <button
        type="button"
        class="btn little"
        aria-expanded=${String(correcting)}
        onClick=${() => setCorrecting(!correcting)}
      >
        Correct
      </button>
      ${
        !fact.held &&
        html`
          <button type="button" class="btn little" onClick=${shareFact}>
            ${shared ? "Make private" : "Share with everybody"}
          </button>
          <button
            type="button"
            class="btn little"
            onClick=${() =>
              change(
                "pin",
                { pinned: !fact.pinned },
                fact.pinned
                  ? "It is shown only where it fits."
                  : "It is in the prompt of every conversation in which it may be shown.",
              )}
          >
            ${fact.pinned ? "Only where it fits" : "Put in every prompt"}
          </button>
        `
      }
      <button
        type="button"
        class="btn little bad"
        onClick=${() => change("forget", {}, "It is forgotten.", () => fact.id)}
      >
        Forget
      </button>
    </div>
    ${
      correcting &&
      html`
        <${TextForm}
          label="What is right"
          button="Save the correction"
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
      <h4>Other versions</h4>
      <ul class="rows" aria-label="Other versions">
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
          { said: "That version holds again.", undo: (answer) => answer.fact.id },
        )
      : changeFact(one.id, "undo", {}, { said: "It is remembered again." });
  return html`
    <li key=${one.id}>
      <span class="grow">
        <span>${one.text}</span>
        <span class="small muted">
          from ${formatDateTime(one.at)}
          ${one.closed_at === null ? "" : ` to ${formatDateTime(one.closed_at)}`}
          ${one.closed_why && !replaced ? ` · ${one.closed_why}` : ""}
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
            aria-label=${`Use again: ${one.text}`}
            onClick=${useAgain}
          >
            ${replaced ? "Use again" : "Bring back"}
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
      { said: "The two are one memory now.", undo: (answer) => answer.fact.id },
    );
  return html`
    <div class="stack">
      <h4>Similar memories</h4>
      <ul class="rows" aria-label="Similar memories">
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
                aria-label=${`Merge with: ${one.text}`}
                aria-expanded=${String(chosen?.id === one.id)}
                onClick=${() => setChosen(chosen?.id === one.id ? null : one)}
              >
                Merge
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
            label=${`One sentence for this and “${chosen.text}”`}
            button="Merge the two"
            text=${fact.text}
            send=${mergeFacts}
          />
        `
      }
    </div>
  `;
}
