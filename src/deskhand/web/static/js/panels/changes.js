// What agents changed in files and key-values, with an undo for each change.

import { get, post } from "../api.js";
import { displayPath, FileChanges } from "../diff.js";
import { formatDateTime, pluralize } from "../format.js";
import { html, useEffect, useState } from "../lib.js";
import { activity } from "../list.js";
import { announce, attempt, hasScope, sessionHref } from "../state.js";
import { Empty, Loaded, Section, useFetch } from "./parts.js";

const LIMIT = 50;
const LABELS = { undo: "Undo", redo: "Redo" };

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
        title="What was changed"
        note=${
          "The latest first. What somebody changed since is not overwritten, and an undo can be " +
          "taken back."
        }
      >
        <${Loaded} result=${found} what="changes">
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
                      ${
                        before
                          ? "Nothing was changed before that."
                          : "No file and no key-value was changed yet."
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
                        The latest
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
                        Earlier
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
        <strong>${one.tool || "changed"}</strong>${" "}
        <span class=${`cut ${gone ? "muted" : ""}`}>${one.what}</span>
        <span class="small muted">
          ${formatDateTime(one.at)} ·${" "}
          <button
            type="button"
            class="link"
            aria-expanded=${String(places !== null)}
            onClick=${togglePlaces}
          >
            ${pluralize(one.count, "change")}
          </button>
          ${one.session && html` · <a href=${sessionHref(one.session)}>conversation</a>`}
          ${one.person ? ` · for ${one.person}` : ""}
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
                          <span class="muted">${each.did}${each.kept ? "" : ", not kept"}</span>
                        </li>
                      `,
                    )}
                    ${places.more > 0 && html`<li class="muted">and ${places.more} more</li>`}
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
                    Undo anyway and keep a copy
                  </button>
                `
              }
            </span>
          `
        }
      </span>
      ${gone && html`<span class="tag">undone</span>`}
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
