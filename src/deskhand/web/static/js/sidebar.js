// The list of conversations, the search in all of them, and the links to everything else.

import { formatDateTime, nameDay } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { html, useEffect, useRef, useState } from "./lib.js";
import { activity, asks, moreSessions, sessions } from "./list.js";
import { Block, More, usePages } from "./more.js";
import {
  currentUser,
  developer,
  drawer,
  health,
  narrow,
  openSession,
  route,
  searchTarget,
  sessionHref,
  setTheme,
  signOut,
  theme,
} from "./state.js";

const CHANNELS = {
  web: "",
  terminal: "terminal",
  telegram: "Telegram",
  discord: "Discord",
  slack: "Slack",
  api: "API",
};

export function Sidebar() {
  const [query, setQuery] = useState("");
  const list = useRef();
  return html`
    <nav
      class=${`side ${drawer.value ? "open" : ""}`}
      aria-label="Conversations"
      inert=${narrow.value && !drawer.value}
    >
      <div class="side-top">
        <a class="brand" href="#/" aria-label="Deskhand, a new conversation">
          <img src="/icon.svg" alt="" width="24" height="24" />
          <span>Deskhand</span>
        </a>
        <${IconButton}
          name="close"
          label="Close the list"
          class="ib only-narrow"
          onClick=${() => {
            drawer.value = false;
          }}
        />
      </div>
      <button
        type="button"
        class="btn new"
        onClick=${() => {
          drawer.value = false;
          openSession("");
          requestAnimationFrame(() => document.getElementById("composer")?.focus());
        }}
      >
        <${Icon} name="plus" />New conversation
      </button>
      <label class="search">
        <${Icon} name="search" />
        <span class="sr">Search everything that was said</span>
        <input
          id="search"
          type="search"
          placeholder="Search"
          autocomplete="off"
          value=${query}
          onInput=${(event) => setQuery(event.target.value)}
          onKeyDown=${(event) => {
            if (event.key === "Escape" && query) {
              event.preventDefault();
              setQuery("");
            }
            if (event.key === "ArrowDown") {
              event.preventDefault();
              list.current.querySelector("a")?.focus();
            }
          }}
        />
        <kbd aria-hidden="true">Ctrl /</kbd>
      </label>
      <div class="side-list" ref=${list} onKeyDown=${moveFocus}>
        ${
          query.trim() ? html`<${SearchResults} query=${query.trim()} />` : html`<${SessionList} />`
        }
      </div>
      <${SidebarFooter} />
    </nav>
  `;
}

/** Call `then` once new rows are drawn: one frame brings them into sight, the next draws them. */
const afterDrawn = (then) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(then)));

/**
 * Arrow keys move to the next and the previous link, Home and End to the first and the last. Beside
 * a link that was scrolled out of sight nothing is drawn: it is brought back into sight first.
 */
function moveFocus(event) {
  const { key, currentTarget: box } = event;
  if (!["ArrowDown", "ArrowUp", "Home", "End"].includes(key)) return;
  event.preventDefault();
  if (box.dataset.moves) return; // rows are being drawn for the key before
  const move = () => {
    delete box.dataset.moves;
    const links = [...box.querySelectorAll("a")];
    const index = links.indexOf(document.activeElement);
    const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: -1 }[key];
    const leaves = key === "ArrowUp" && next === -1;
    (leaves ? document.getElementById("search") : links.at(next))?.focus();
  };
  if (key.startsWith("Arrow") && isInSight(document.activeElement, box)) {
    move();
    return;
  }
  box.dataset.moves = "yes";
  if (key.startsWith("Arrow")) document.activeElement.scrollIntoView({ block: "nearest" });
  else box.scrollTop = key === "Home" ? 0 : box.scrollHeight;
  afterDrawn(move);
}

function isInSight(element, box) {
  const row = element.getBoundingClientRect();
  const shown = box.getBoundingClientRect();
  return row.bottom > shown.top && row.top < shown.bottom;
}

const BLOCK_ROWS = 40;

function SessionList() {
  const all = sessions.value;
  const more = moreSessions.value;
  if (all === null) return html`<p class="hint">One moment …</p>`;
  if (!all.length)
    return html`
      <p class="hint">
        ${
          "Your conversations will be listed here. The ones from the terminal and from chat " +
          "programs are too."
        }
      </p>
    `;
  const groups = [];
  for (const one of all) {
    const name = nameDay(one.last_at);
    if (groups.at(-1)?.name !== name) groups.push({ name, all: [] });
    groups.at(-1).all.push(one);
  }
  return html`
    <${WaitingSessions} />
    ${groups.map(
      (group) => html`
        <section key=${group.name} aria-label=${group.name}>
          <h3 class="side-head">${group.name}</h3>
          <${SessionRows} rows=${group.all} />
        </section>
      `,
    )}
    ${more && html`<${More} key=${all.at(-1).key} more=${more} label="Show older conversations" />`}
  `;
}

/** Whether a block begins with this row: one of BLOCK_ROWS does, by a hash of its key (FNV-1a). */
function startsBlock(key) {
  let hash = 2166136261;
  for (const char of key.slice(-12)) hash = Math.imul(hash ^ char.codePointAt(0), 16777619);
  return hash % BLOCK_ROWS === 0;
}

/**
 * The rows of a group in blocks, which stay the same while rows are added at the top and at the
 * end: a row that is drawn again loses the focus.
 */
function SessionRows({ rows }) {
  const blocks = [{ key: "", entries: [] }];
  for (const one of rows) {
    if (startsBlock(one.key)) blocks.push({ key: one.key, entries: [] });
    blocks.at(-1).entries.push(one);
  }
  return blocks
    .filter(({ entries }) => entries.length)
    .map(
      ({ key, entries }) => html`
        <${Block} key=${key}>
          ${() =>
            entries.map((one) => html`<li key=${one.key}><${SessionEntry} one=${one} /></li>`)}
        <//>
      `,
    );
}

/** The conversations that wait for an answer, however old they are. */
function WaitingSessions() {
  const waiting = new Map(asks.value.map((ask) => [ask.key, ask]));
  if (!waiting.size) return null;
  return html`
    <section aria-label="Waiting for you">
      <h3 class="side-head">Waiting for you</h3>
      <ul>
        ${[...waiting.values()].map(
          (one) => html`
            <li key=${one.key}>
              <${SessionEntry} one=${{ channel: "web", last_at: one.asked_at, ...one }} />
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}

function SessionEntry({ one }) {
  const doing = activity.value[one.key];
  const chosen = one.name === route.value.name;
  const from = one.channel === "web" ? "" : (CHANNELS[one.channel] ?? one.channel);
  return html`
    <a
      class="entry"
      href=${sessionHref(one.name)}
      aria-current=${chosen ? "page" : null}
      title=${`${one.title || "Untitled"} · ${formatDateTime(one.last_at)}`}
    >
      <span class="cut grow">${one.title || "Untitled"}</span>
      ${from && html`<span class="tag">${from}</span>`}
      ${doing === "running" && html`<span class="dot runs" role="img" aria-label="running"></span>`}
      ${
        doing === "asking" &&
        html`<span class="dot asks" role="img" aria-label="waits for your answer"></span>`
      }
    </a>
  `;
}

const HITS = 30;
const readHits = (rows) => ({ rows, next: rows.length < HITS ? null : rows.at(-1).seq });
const readTitles = ({ sessions: rows, more }) => ({ rows, next: more });

function SearchResults({ query }) {
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

function SidebarFooter() {
  const worst = health.value?.status;
  const called = currentUser.value.name || currentUser.value.user;
  return html`
    <div class="side-foot">
      <a
        class="entry"
        href="#/settings/models"
        aria-current=${route.value.place === "settings" ? "page" : null}
      >
        <${Icon} name="gear" />
        <span class="grow">Settings</span>
        ${asks.value.length > 0 && html`<span class="tag warn">${asks.value.length} waiting</span>`}
        ${worst && worst !== "ok" && html`<span class="tag warn">${worst}</span>`}
      </a>
      <div class="row">
        <button
          type="button"
          class="entry grow"
          role="switch"
          aria-checked=${developer.value}
          onClick=${() => {
            developer.value = !developer.value;
          }}
          title=${
            "The developer view shows traces, raw events, arguments and the slider over a " +
            "session"
          }
        >
          <${Icon} name="code" />
          <span class="grow">Developer view</span>
          <span class="switch" aria-checked=${String(developer.value)} aria-hidden="true"></span>
        </button>
      </div>
      <div class="row who">
        <span class="avatar" aria-hidden="true">${(called[0] ?? "?").toUpperCase()}</span>
        <span class="grow cut" title=${currentUser.value.user}>${called}</span>
        <${IconButton}
          name=${theme.value === "dark" ? "sun" : "moon"}
          label=${theme.value === "dark" ? "Use light colours" : "Use dark colours"}
          onClick=${() => setTheme(theme.value === "dark" ? "light" : "dark")}
        />
        <${IconButton} name="out" label="Sign out of this browser" onClick=${signOut} />
      </div>
    </div>
  `;
}
