// What the search finds: titles, and what was said.

import { formatDateTime } from "./format.js";
import { t } from "./language.js";
import { html, useEffect, useState } from "./lib.js";
import { More, usePages } from "./more.js";
import { filterParameters, parseSearch } from "./search-filters.js";
import { SessionEntry } from "./session-row.js";
import { searchTarget, sessionHref } from "./state.js";

const HITS = 30;
const readHits = (rows) => ({ rows, next: rows.length < HITS ? null : rows.at(-1).seq });
const readTitles = ({ sessions: rows, more }) => ({ rows, next: more });

/** `write(text)` replaces what stands in the field of the search. */
export function SearchResults({ query, write }) {
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query), 160);
    return () => clearTimeout(timer);
  }, [query]);
  const wanted = parseSearch(asked);
  const { words, problem } = wanted;
  const filters = problem ? "" : filterParameters(wanted);
  const isReady = words && !problem;
  const word = encodeURIComponent(words);
  const titles = usePages(
    isReady && !wanted.from && `/api/sessions?limit=8&brief=true&title=${word}${filters}`,
    readTitles,
  );
  const hits = usePages(
    isReady && `/api/search?limit=${HITS}&order=latest&q=${word}${filters}`,
    readHits,
  );
  const hasTitles = !wanted.from && titles.rows?.length !== 0;
  const isEmpty = isReady && hits.rows?.length === 0 && !hasTitles;
  return html`
    <div role="region" aria-label=${t("What was found")}>
      ${
        titles.rows?.length > 0 &&
        html`
          <h3 class="side-head">${t("Titles")}</h3>
          <ul>
            ${titles.rows.map(
              (one) => html`<li key=${one.key}><${SessionEntry} one=${one} /></li>`,
            )}
          </ul>
          ${
            titles.more &&
            html`
              <p class="more">
                <button type="button" class="btn little quiet" onClick=${titles.more}>
                  ${t("More titles")}
                </button>
              </p>
            `
          }
        `
      }
      ${
        hits.rows?.length > 0 &&
        html`
          <h3 class="side-head">${t("In conversations")}</h3>
          <ul>
            ${hits.rows.map(
              (hit) => html`
                <li key=${`${hit.name}.${hit.n}`}>
                  <a
                    class="entry tall"
                    href=${sessionHref(hit.name)}
                    onClick=${() => {
                      searchTarget.value = { name: hit.name, n: hit.n, query: words };
                    }}
                  >
                    <span class="cut">${hit.title || t("Untitled")}</span>
                    <span class="hit"><${Highlighted} text=${plainCells(hit.excerpt)} /></span>
                    <span class="tiny muted">${nameSpeaker(hit)}${formatDateTime(hit.at)}</span>
                  </a>
                </li>
              `,
            )}
          </ul>
          ${
            hits.more &&
            html`<${More} key=${hits.next} more=${hits.more} label=${t("More hits")} />`
          }
        `
      }
      ${hits.error && html`<p class="hint">${hits.error.message}</p>`}
      <p class="hint" role="status">${describeSearch(wanted, isEmpty, filters)}</p>
      ${
        isEmpty &&
        filters &&
        html`
          <p class="more">
            <button type="button" class="btn little" onClick=${() => write(words)}>
              ${t("Search without filters")}
            </button>
          </p>
        `
      }
    </div>
  `;
}

/** What there is to say of this search: what is wrong with it, what is missing, or that nothing is found. */
function describeSearch({ words, problem }, isEmpty, filters) {
  if (problem) return problem;
  if (!words && filters) return t("Add a word to look for.");
  if (!isEmpty) return "";
  return filters
    ? t("No results for “{words}” with these filters.", { words })
    : t("No results for “{words}”. Try fewer or other words.", { words });
}

const nameSpeaker = (hit) => (hit.role === "assistant" ? `${t("The agent")} · ` : "");

/** A piece of Markdown without the lines of its tables. */
const plainCells = (text) =>
  text
    .replace(/\|?(?:\s*:?-{3,}:?\s*\|)+(?:\s*:?-+:?)?/g, " ")
    .replace(/\s*\|\s*/g, "  ")
    .trim();

/** A text in which hits are enclosed in U+E000 and U+E001. */
export function Highlighted({ text }) {
  return text.split("\uE000").map((piece, i) => {
    const [hit, rest] = i ? piece.split("\uE001") : ["", piece];
    return html`${hit && html`<mark>${hit}</mark>`}${rest}`;
  });
}
