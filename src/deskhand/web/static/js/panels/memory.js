// What Deskhand remembers: searched, corrected, forgotten, and told to others or to nobody else.

import { post } from "../api.js";
import { ChoiceGroup } from "../choice-group.js";
import { formatDateTime } from "../format.js";
import { t, tCount, tRich } from "../language.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { More, usePages } from "../more.js";
import { announce, attempt, hasScope } from "../state.js";
import { Contradictions } from "./contradictions.js";
import { FactDetail, nameReason } from "./memory-fact.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const LIMIT = 50;
const WAIT_MS = 250;
const ROW_CHARS = 280;
const NAME_CHARS = 60;
const CHOICES = [
  ["all", t("All")],
  ["own", t("About you")],
  ["shared", t("Shared")],
  ["pinned", t("In every prompt")],
  ["held", t("Waiting")],
  ["forgotten", t("Forgotten")],
];
const NOTHING = {
  own: t("Nothing is remembered about you yet."),
  shared: t("Nothing is remembered that everybody is told."),
  pinned: t(
    "No memory is in every prompt. Open one to choose it: agents are then told it in each conversation.",
  ),
  held: t("No memory waits for approval."),
  forgotten: t("Nothing was forgotten. What you forget can be brought back here."),
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
  const undoChange = () =>
    changeFact(notice.undo, "undo", {}, { said: t("That change is undone.") });

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
        title=${t("What Deskhand remembers")}
        note=${t(
          "Agents are shown a memory when a message is about the same thing. What is about you is shown only where you are alone with an agent.",
        )}
      >
        <input
          class="input"
          type="search"
          aria-label=${t("Search memories")}
          placeholder=${t("Search memories")}
          value=${words}
          onInput=${(event) => setWords(event.target.value)}
        />
        <${ChoiceGroup}
          role="tab"
          class="tabs"
          aria-label=${t("Which memories")}
          choices=${CHOICES.filter(([id]) => id !== "held" || waiting || which === "held").map(
            ([id, label]) => [id, `${label}${id === "held" && waiting > 0 ? ` (${waiting})` : ""}`],
          )}
          chosen=${which}
          choose=${setWhich}
        />
        <${Loaded}
          result=${{ ...found, data: rows, reload: () => found.renew(isSameFact) }}
          what=${t("memory")}
        >
          ${() => html`
            ${held.data?.enabled === false && drawSwitchedOff()}
            ${
              rows.length
                ? html`
                    <ul class="rows" aria-label=${t("Memories")}>
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
        html`<button type="button" class="btn little" onClick=${undoChange}>${t("Undo")}</button>`
      }
      <button type="button" class="btn little quiet" onClick=${close}>${t("Close")}</button>
    </p>
  `;
}

const drawSwitchedOff = () => html`
  <p class="note warn">
    ${tRich(
      "Memory is switched off ({setting}). These memories are kept, and agents are shown none of them.",
      { setting: html`<code>memory.enabled</code>` },
    )}
  </p>
`;

function drawNothing(which, query) {
  if (query) return html`<${Empty}>${t("No matching memories.")}<//>`;
  if (which !== "all") return html`<${Empty}>${NOTHING[which]}<//>`;
  return html`
    <div class="none">
      <p><strong>${t("Nothing is remembered yet.")}</strong></p>
      <p>
        ${t(
          "Memory saves you from saying things twice. Tell an agent “Remember that I am allergic to nuts” or “The garage code is 7719”, and it knows in every later conversation.",
        )}
      </p>
      <p>
        ${t(
          "Deskhand also notes facts by itself from what you say, if a model that is large enough is set up. You can read, correct and forget all of them here.",
        )}
      </p>
      <${Suggestion} text=${t("Remember that I like short answers.")}>
        ${t("Try an example")}
      <//>
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
      {
        said: t("“{text}” is remembered again.", { text: shorten(fact.text, NAME_CHARS) }),
      },
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
            aria-label=${t("Bring back: {text}", { text: shorten(fact.text, NAME_CHARS) })}
            onClick=${restore}
          >
            ${t("Bring back")}
          </button>
        `
      }
      ${open && html`<${FactDetail} fact=${fact} changeFact=${changeFact} />`}
    </li>
  `;
}

function describeFact(fact) {
  return [
    formatDateTime(fact.at),
    describeAudience(fact),
    fact.replaces.length > 0 &&
      tCount(fact.replaces.length, "{count} earlier version", "{count} earlier versions"),
    fact.closed_at !== null &&
      t("{why} on {date}", {
        why: nameReason(fact.closed_why),
        date: formatDateTime(fact.closed_at),
      }),
    fact.closed_at === null &&
      fact.forgotten_at !== null &&
      t("forgotten on {date} unless you keep it", { date: formatDateTime(fact.forgotten_at) }),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Who is told a memory, or will be once it is approved. */
function describeAudience({ scope, held, owner }) {
  if (scope === "user")
    return held ? t("told to nobody yet, then only to you") : t("told only to you");
  if (scope === "agent")
    return held
      ? t("told to nobody yet, then to everybody who talks to {agent}", { agent: owner })
      : t("told to everybody who talks to {agent}", { agent: owner });
  return held ? t("told to nobody yet, then to everybody") : t("told to everybody");
}

const drawTags = (fact) => html`
  ${fact.outside && html`<span class="tag warn">${t("untrusted")}</span>`}
  ${fact.held && html`<span class="tag warn">${t("waits for approval")}</span>`}
  ${fact.pinned && html`<span class="tag good">${t("in every prompt")}</span>`}
  ${fact.scope !== "user" && html`<span class="tag">${t("shared")}</span>`}
`;
