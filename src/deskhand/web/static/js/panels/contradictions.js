// Pairs of memories that cannot both hold: a person keeps one of them, or both.

import { capitalize, formatDateTime } from "../format.js";
import { t } from "../language.js";
import { html } from "../lib.js";
import { hasScope } from "../state.js";
import { Section } from "./parts.js";

export function Contradictions({ found, changeFact }) {
  if (!found.data?.length) return null;
  return html`
    <${Section}
      title=${t("Which is right?")}
      note=${t(
        "These contradict each other by their form: the same thing, with another value. No model was asked, so contradictions in other words are not found.",
      )}
    >
      <ul class="rows" aria-label=${t("Contradictions")}>
        ${found.data.map(
          (pair) => html`
            <${ContradictionRow}
              key=${`${pair.older.id} ${pair.newer.id}`}
              pair=${pair}
              changeFact=${changeFact}
            />
          `,
        )}
      </ul>
    <//>
  `;
}

function ContradictionRow({ pair, changeFact }) {
  const { older, newer } = pair;
  const mayChange = older.may_change && hasScope("chat");
  const keepBoth = () =>
    changeFact(
      newer.id,
      "decide",
      { other: older.id, both: true },
      { said: t("Both are kept, and you are not asked again.") },
    );
  return html`
    <li class="tall">
      <div class="grow">
        <strong>${capitalize(pair.about)}</strong>
        ${drawSide(older, newer, mayChange, changeFact)}
        ${drawSide(newer, older, mayChange, changeFact)}
        ${
          mayChange
            ? html`
                <div class="row">
                  <button type="button" class="btn little quiet" onClick=${keepBoth}>
                    ${t("Both are right")}
                  </button>
                </div>
              `
            : html`<span class="small muted">${t("Only an owner can decide.")}</span>`
        }
      </div>
    </li>
  `;
}

function drawSide(fact, other, mayChange, changeFact) {
  const keepThis = () =>
    changeFact(
      fact.id,
      "decide",
      { other: other.id },
      {
        said: t("“{text}” is kept. The other one is closed.", { text: fact.text }),
        undo: () => other.id,
      },
    );
  return html`
    <div class="row">
      <span class="grow">
        ${fact.text}${" "}
        <span class="small muted">${formatDateTime(fact.at)}</span>
      </span>
      ${
        mayChange &&
        html`
          <button
            type="button"
            class="btn little"
            aria-label=${t("Keep: {text}", { text: fact.text })}
            onClick=${keepThis}
          >
            ${t("Keep this")}
          </button>
        `
      }
    </div>
  `;
}
