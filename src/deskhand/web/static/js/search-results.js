// What the search finds: titles, and what was said.

import { html, useEffect, useState } from "./lib.js";
import { More, usePages } from "./more.js";
import { SessionEntry } from "./session-row.js";
import { searchTarget, sessionHref } from "./state.js";

const HITS = 30;
const readHits = (rows) => ({ rows, next: rows.length < HITS ? null : rows.at(-1).seq });
const readTitles = ({ sessions: rows, more }) => ({ rows, next: more });

export function SearchResults({ query }) {
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query), 160);
    return () => clearTimeout(timer);
  }, [query]);
  const word = encodeURIComponent(asked);
  const titles = usePages(asked && `/api/sessions?limit=8&brief=true&title=${word}`, readTitles);
  const hits = usePages(asked && `/api/search?limit=${HITS}&order=latest&q=${word}`, readHits);
  return html`
    <div role="region" aria-label="What was found">
      ${
        titles.rows?.length > 0 &&
        html`
          <h3 class="side-head">Titles</h3>
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
                  More titles
                </button>
              </p>
            `
          }
        `
      }
      ${
        hits.rows?.length > 0 &&
        html`
          <h3 class="side-head">In conversations</h3>
          <ul>
            ${hits.rows.map(
              (hit) => html`
                <li key=${`${hit.name}.${hit.n}`}>
                  <a
                    class="entry tall"
                    href=${sessionHref(hit.name)}
                    onClick=${() => {
                      searchTarget.value = { name: hit.name, n: hit.n, query };
                    }}
                  >
                    <span class="cut">${hit.title || "Untitled"}</span>
                    <span class="hit"><${Highlighted} text=${hit.excerpt} /></span>
                  </a>
                </li>
              `,
            )}
          </ul>
          ${hits.more && html`<${More} key=${hits.next} more=${hits.more} label="More hits" />`}
        `
      }
      ${hits.error && html`<p class="hint">${hits.error.message}</p>`}
      <p class="hint" role="status">
        ${
          hits.rows && !hits.rows.length && titles.rows && !titles.rows.length
            ? `No results for “${query}”. Try fewer or other words.`
            : ""
        }
      </p>
    </div>
  `;
}

/** A text in which hits are enclosed in U+E000 and U+E001. */
export function Highlighted({ text }) {
  return text.split("\uE000").map((piece, i) => {
    const [hit, rest] = i ? piece.split("\uE001") : ["", piece];
    return html`${hit && html`<mark>${hit}</mark>`}${rest}`;
  });
}
