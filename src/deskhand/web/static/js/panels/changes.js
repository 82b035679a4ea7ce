// What agents changed in files and key-values, with an undo for each change.

import { get, post } from "../api.js";
import { displayPath, FileChanges } from "../diff.js";
import { formatDateTime } from "../format.js";
import { t, tCount } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { activity } from "../list.js";
import { announce, attempt, hasScope, sessionHref } from "../state.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const LIMIT = 50;
const DID = { made: t("made"), changed: t("changed"), removed: t("removed") };
const LABELS = { undo: t("Undo"), redo: t("Redo") };

export function Changes() {
  const [before, setBefore] = useState(0);
  const [said, setSaid] = useState(null);
  const found = useFetch(`/api/changes?limit=${LIMIT}${before ? `&before=${before}` : ""}`);
  useEffect(() => {
    found.reload();
  }, [activity.value]);
  const undoChange = (one, force) =>
    attempt(async () => {
      const done = await post(`/api/changes/${one.n}/undo`, { force });
      setSaid({ n: one.n, message: done.message, canForce: done.change === null });
      announce(done.message);
      found.reload();
    });
  return html`
    <div class="stack wide">
      <${Section}
        title=${t("What was changed")}
        note=${t(
          "The latest first. What somebody changed since is not overwritten, and an undo can be taken back.",
        )}
      >
        <${Loaded} result=${found} what=${t("changes")}>
          ${(data) => html`
            ${
              data.changes.length
                ? html`
                    <ul class="rows">
                      ${data.changes.map(
                        (one) => html`
                          <${Change}
                            key=${one.n}
                            one=${one}
                            said=${said?.n === one.n ? said : null}
                            take=${undoChange}
                          />
                        `,
                      )}
                    </ul>
                  `
                : html`
                    <${Empty}>
                      <span>
                        ${
                          before
                            ? t("Nothing was changed before that.")
                            : t(
                                "Nothing was changed yet. Each file that an agent writes, changes or removes is listed here, and you can undo it with one click.",
                              )
                        }
                      </span>
                      ${
                        !before &&
                        html`
                          <${Suggestion}
                            text=${t("Write a packing list for a weekend by the sea into a file.")}
                          >
                            ${t("Try an example")}
                          <//>
                        `
                      }
                    <//>
                  `
            }
            ${
              (data.more || before > 0) &&
              html`
                <p class="row">
                  ${
                    before > 0 &&
                    html`
                      <button type="button" class="btn little" onClick=${() => setBefore(0)}>
                        ${t("The latest")}
                      </button>
                    `
                  }
                  ${
                    data.more &&
                    html`
                      <button
                        type="button"
                        class="btn little"
                        onClick=${() => setBefore(data.more)}
                      >
                        ${t("Earlier")}
                      </button>
                    `
                  }
                </p>
              `
            }
          `}
        <//>
      <//>
    </div>
  `;
}

function describePlace({ did, kept }) {
  const what = DID[did] ?? did;
  return kept ? what : t("{what}, not kept", { what });
}

function Change({ one, said, take }) {
  const [places, setPlaces] = useState(null);
  const gone = one.undone_at !== null;
  const togglePlaces = () =>
    places
      ? setPlaces(null)
      : attempt(async () => {
          const [{ places: all }, diff] = await Promise.all([
            get(`/api/changes/${one.n}`),
            get(`/api/changes/${one.n}/diff`),
          ]);
          const drawn = new Set(diff.files.map((file) => file.place));
          setPlaces({
            diff: { ...diff, more: 0 },
            rest: all.filter((each) => !drawn.has(each.place)),
            more: one.count - all.length,
          });
        });
  return html`
    <li>
      <span class="grow">
        <strong>${one.tool || t("changed")}</strong>${" "}
        <span class=${`cut ${gone ? "muted" : ""}`}>${one.what}</span>
        <span class="small muted">
          ${formatDateTime(one.at)} ·${" "}
          <button
            type="button"
            class="link"
            aria-expanded=${String(places !== null)}
            onClick=${togglePlaces}
          >
            ${tCount(one.count, "{count} change", "{count} changes")}
          </button>
          ${one.session && html` · <a href=${sessionHref(one.session)}>${t("conversation")}</a>`}
          ${one.person ? ` · ${t("for {person}", { person: one.person })}` : ""}
        </span>
        ${
          places &&
          html`
            <div class="places">
              <${FileChanges} diff=${places.diff} />
              ${
                (places.rest.length > 0 || places.more > 0) &&
                html`
                  <ul class="small">
                    ${places.rest.map(
                      (each) => html`
                        <li key=${each.place}>
                          <code>${displayPath(each.place)}</code>${" "}
                          <span class="muted">${describePlace(each)}</span>
                        </li>
                      `,
                    )}
                    ${
                      places.more > 0 &&
                      html`
                        <li class="muted">${t("and {count} more", { count: places.more })}</li>
                      `
                    }
                  </ul>
                `
              }
            </div>
          `
        }
        ${
          said &&
          html`
            <span class="small" role="status">
              ${said.message}${" "}
              ${
                said.canForce &&
                hasScope("chat") &&
                html`
                  <button type="button" class="btn little bad" onClick=${() => take(one, true)}>
                    ${t("Undo anyway and keep a copy")}
                  </button>
                `
              }
            </span>
          `
        }
      </span>
      ${gone && html`<span class="tag">${t("undone")}</span>`}
      ${
        one.can &&
        hasScope("chat") &&
        html`
          <button
            type="button"
            class="btn little"
            aria-label=${`${LABELS[one.can]}: ${one.tool} ${one.what}`}
            onClick=${() => take(one, false)}
          >
            ${LABELS[one.can]}
          </button>
        `
      }
    </li>
  `;
}
