// What Deskhand remembers: searched, corrected, forgotten, and told to others or to nobody else.

import { post } from "../api.js";
import { formatDateTime, pluralize } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { More, usePages } from "../more.js";
import { announce, attempt, hasScope } from "../state.js";
import { Contradictions } from "./contradictions.js";
import { FactDetail } from "./memory-fact.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";

const LIMIT = 50;
const WAIT_MS = 250;
const ROW_CHARS = 280;
const NAME_CHARS = 60;
const CHOICES = [
  ["all", "All"],
  ["own", "About you"],
  ["shared", "Shared"],
  ["pinned", "In every prompt"],
  ["held", "Waiting"],
  ["forgotten", "Forgotten"],
];
const NOTHING = {
  own: "Nothing is remembered about you yet.",
  shared: "Nothing is remembered that everybody is told.",
  pinned:
    "No memory is in every prompt. Open one to choose it: agents are then told it in each " +
    "conversation.",
  held: "No memory waits for approval.",
  forgotten: "Nothing was forgotten. What you forget can be brought back here.",
};

const readPage = ({ facts, more }) => ({ rows: facts, next: more });
const isSameFact = (one, other) => one.id === other.id;

/** Whether a fact belongs in the list of this choice. */
function isListed(fact, which) {
  if (which === "forgotten") return fact.closed_at !== null && fact.replaced_by === null;
  if (fact.closed_at !== null) return false;
  if (which === "own") return fact.scope === "user";
  if (which === "shared") return fact.scope !== "user";
  if (which === "pinned") return fact.pinned;
  return which === "held" ? fact.held : true;
}

/** What is known of facts since they were listed, after this answer to a change. */
function noteChanges(known, { fact, history }) {
  const next = { ...known };
  for (const one of [fact, ...history]) next[one.id] = one;
  // What an undone fact had replaced holds again, as it was listed.
  if (fact.closed_why === "undone") for (const id of fact.replaces) delete next[id];
  return next;
}

const shorten = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

export function Memories() {
  const [which, setWhich] = useState("all");
  const [words, setWords] = useState("");
  const [query, setQuery] = useState("");
  const [open, setOpen] = useState(0);
  const [notice, setNotice] = useState(null);
  const [changed, setChanged] = useState({}); // by id: what became of a fact since it was listed
  const asked = `which=${which}&q=${encodeURIComponent(query)}`;
  const found = usePages(`/api/memories?limit=${LIMIT}&${asked}`, readPage);
  const held = useFetch("/api/memories?which=held&limit=200");
  const contradictions = useFetch("/api/memories/contradictions");
  useEffect(() => {
    const timer = setTimeout(() => setQuery(words.trim()), WAIT_MS);
    return () => clearTimeout(timer);
  }, [words]);

  /** Change a fact. `said` is shown together with a way to undo the change to `undo(answer)`. */
  const changeFact = (id, what, body, { said, undo }) =>
    attempt(async () => {
      const answer = await post(`/api/memories/${id}/${what}`, body);
      setChanged((was) => noteChanges(was, answer));
      setNotice({ text: said, undo: undo ? undo(answer) : 0 });
      announce(said);
      if (open) setOpen(answer.fact.closed_at === null ? answer.fact.id : 0);
      found.renew(isSameFact);
      held.reload();
      contradictions.reload();
      return answer;
    });
  const undoChange = () => changeFact(notice.undo, "undo", {}, { said: "That change is undone." });

  const waiting = held.data?.facts.length ?? 0;
  const rows = found.rows
    ?.map((one) => changed[one.id] ?? one)
    .filter((one) => isListed(one, which));
  return html`
    <div class="stack wide">
      ${
        notice &&
        html`
          <${Notice} notice=${notice} undoChange=${undoChange} close=${() => setNotice(null)} />
        `
      }
      <${Contradictions} found=${contradictions} changeFact=${changeFact} />
      <${Section}
        title="What Deskhand remembers"
        note=${
          "Agents are shown a memory when a message is about the same thing. What is about you " +
          "is shown only where you are alone with an agent."
        }
      >
        <input
          class="input"
          type="search"
          aria-label="Search memories"
          placeholder="Search memories"
          value=${words}
          onInput=${(event) => setWords(event.target.value)}
        />
        <div class="tabs" role="tablist" aria-label="Which memories">
          ${CHOICES.filter(([id]) => id !== "held" || waiting || which === "held").map(
            ([id, label]) => html`
              <button
                key=${id}
                type="button"
                role="tab"
                aria-selected=${String(id === which)}
                onClick=${() => setWhich(id)}
              >
                ${label}${id === "held" && waiting > 0 ? ` (${waiting})` : ""}
              </button>
            `,
          )}
        </div>
        <${Loaded} result=${{ ...found, data: rows, reload: () => found.renew(isSameFact) }} what="memory">
          ${() => html`
            ${held.data?.enabled === false && drawSwitchedOff()}
            ${
              rows.length
                ? html`
                    <ul class="rows" aria-label="Memories">
                      ${rows.map(
                        (one) => html`
                          <${FactRow}
                            key=${one.id}
                            fact=${one}
                            open=${open === one.id}
                            toggle=${() => setOpen(open === one.id ? 0 : one.id)}
                            changeFact=${changeFact}
                          />
                        `,
                      )}
                    </ul>
                  `
                : !found.more && drawNothing(which, query)
            }
            ${found.more && html`<${More} key=${found.next} more=${found.more} />`}
          `}
        <//>
      <//>
    </div>
  `;
}

function Notice({ notice, undoChange, close }) {
  const { text, undo } = notice;
  const root = useRef();
  // The row with the button that was pressed may be gone: the keyboard goes on from here.
  useEffect(() => {
    if (document.activeElement === document.body) root.current.querySelector("button").focus();
  }, [notice]);
  return html`
    <p class="note row stays" role="status" ref=${root}>
      <span class="grow">${text}</span>
      ${
        undo > 0 &&
        html`<button type="button" class="btn little" onClick=${undoChange}>Undo</button>`
      }
      <button type="button" class="btn little quiet" onClick=${close}>Close</button>
    </p>
  `;
}

const drawSwitchedOff = () => html`
  <p class="note warn">
    Memory is switched off (<code>memory.enabled</code>). These memories are kept, and agents are
    shown none of them.
  </p>
`;

function drawNothing(which, query) {
  if (query) return html`<${Empty}>No matching memories.<//>`;
  if (which !== "all") return html`<${Empty}>${NOTHING[which]}<//>`;
  return html`
    <div class="none">
      <p><strong>Nothing is remembered yet.</strong></p>
      <p>
        ${
          "Memory saves you from saying things twice. Tell an agent “Remember that I am allergic " +
          "to nuts” or “The garage code is 7719”, and it knows in every later conversation."
        }
      </p>
      <p>
        ${
          "Deskhand also notes facts by itself from what you say, if a model that is large enough " +
          "is set up. You can read, correct and forget all of them here."
        }
      </p>
    </div>
  `;
}

function FactRow({ fact, open, toggle, changeFact }) {
  const canRestore = fact.closed_at !== null && fact.may_change && hasScope("chat");
  const restore = () =>
    changeFact(
      fact.id,
      "undo",
      {},
      { said: `“${shorten(fact.text, NAME_CHARS)}” is remembered again.` },
    );
  return html`
    <li class=${open ? "wrap tall" : ""}>
      <button type="button" class="grow plainly" aria-expanded=${String(open)} onClick=${toggle}>
        <strong>${open ? fact.text : shorten(fact.text, ROW_CHARS)}</strong>
        <span class="small muted">${describeFact(fact)}</span>
      </button>
      ${drawTags(fact)}
      ${
        canRestore &&
        html`
          <button
            type="button"
            class="btn little"
            aria-label=${`Bring back: ${shorten(fact.text, NAME_CHARS)}`}
            onClick=${restore}
          >
            Bring back
          </button>
        `
      }
      ${open && html`<${FactDetail} fact=${fact} changeFact=${changeFact} />`}
    </li>
  `;
}

function describeFact(fact) {
  const audiences = { user: "only to you", agent: `to everybody who talks to ${fact.owner}` };
  const audience = audiences[fact.scope] ?? "to everybody";
  return [
    formatDateTime(fact.at),
    fact.held ? `told to nobody yet, then ${audience}` : `told ${audience}`,
    fact.replaces.length > 0 && pluralize(fact.replaces.length, "earlier version"),
    fact.closed_at !== null && `${fact.closed_why} on ${formatDateTime(fact.closed_at)}`,
    fact.closed_at === null &&
      fact.forgotten_at !== null &&
      `forgotten on ${formatDateTime(fact.forgotten_at)} unless you keep it`,
  ]
    .filter(Boolean)
    .join(" · ");
}

const drawTags = (fact) => html`
  ${fact.outside && html`<span class="tag warn">untrusted</span>`}
  ${fact.held && html`<span class="tag warn">waits for approval</span>`}
  ${fact.pinned && html`<span class="tag good">in every prompt</span>`}
  ${fact.scope !== "user" && html`<span class="tag">shared</span>`}
`;
