// The list of conversations: what waits, what is pinned, folders, the days, and the archive.

import { nameDay } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { t } from "./language.js";
import { html, useState } from "./lib.js";
import {
  archivedCount,
  asks,
  folders,
  moreSessions,
  pinnedSessions,
  placesChanged,
  renewedRow,
  sessions,
} from "./list.js";
import { Block, More, usePages } from "./more.js";
import { openFolderMenu, SessionEntry, takesSessions } from "./session-row.js";
import { hasScope } from "./state.js";

const BLOCK_ROWS = 40;

export function SessionList() {
  const all = sessions.value;
  const more = moreSessions.value;
  if (all === null) return html`<p class="hint">${t("One moment …")}</p>`;
  const isEmpty = !(
    all.length ||
    more ||
    pinnedSessions.value.length ||
    folders.value?.length ||
    archivedCount.value
  );
  if (isEmpty)
    return html`
      <p class="hint">
        ${t(
          "Your conversations will be listed here. The ones from the terminal and from chat programs are too.",
        )}
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
    <${PinnedSessions} />
    <${Folders} />
    ${groups.map(
      (group) => html`
        <section
          key=${group.name}
          aria-label=${group.name}
          ...${takesSessions({ folder: "", pinned: false, archived: false }, t("Back in the list"))}
        >
          <h3 class="side-head">${group.name}</h3>
          <${SessionRows} rows=${group.all} />
        </section>
      `,
    )}
    ${
      more &&
      html`<${More} key=${all.at(-1).key} more=${more} label=${t("Show older conversations")} />`
    }
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
    <section aria-label=${t("Waiting for you")}>
      <h3 class="side-head">${t("Waiting for you")}</h3>
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

function PinnedSessions() {
  const pinned = pinnedSessions.value;
  if (!pinned.length) return null;
  return html`
    <section
      aria-label=${t("Pinned")}
      ...${takesSessions({ pinned: true, archived: false }, t("Pinned"))}
    >
      <h3 class="side-head">${t("Pinned")}</h3>
      <ul>
        ${pinned.map((one) => html`<li key=${one.key}><${SessionEntry} one=${one} /></li>`)}
      </ul>
    </section>
  `;
}

function Folders() {
  if (!folders.value?.length && !archivedCount.value) return null;
  return html`
    <section aria-label=${t("Folders")}>
      <h3 class="side-head">${t("Folders")}</h3>
      ${(folders.value ?? []).map((one) => html`<${Folder} key=${one.name} ...${one} />`)}
      ${archivedCount.value > 0 && html`<${Archive} />`}
    </section>
  `;
}

function Folder({ name, sessions: count }) {
  const path = `/api/sessions?limit=60&brief=true&archived=false&folder=${encodeURIComponent(name)}`;
  return html`
    <${Shelf}
      label=${name}
      count=${count}
      path=${path}
      icon="files"
      takes=${takesSessions({ folder: name, archived: false }, t("Moved to {folder}", { folder: name }))}
    >
      ${
        hasScope("chat") &&
        html`
          <${IconButton}
            name="more"
            little
            label=${t("Folder menu")}
            aria-haspopup="menu"
            onClick=${(event) => openFolderMenu(event.currentTarget, name)}
          />
        `
      }
    <//>
  `;
}

function Archive() {
  const path = "/api/sessions?limit=60&brief=true&archived=true";
  return html`
    <${Shelf}
      label=${t("Archive")}
      count=${archivedCount.value}
      path=${path}
      icon="archive"
      takes=${takesSessions({ archived: true, pinned: false }, t("Archived"))}
    />
  `;
}

/** Conversations that are loaded when a person opens what holds them. */
function Shelf({ label, count, path, icon, takes, children }) {
  const [open, setOpen] = useState(false);
  return html`
    <div class="shelf" ...${takes}>
      <div class="entry-row">
        <button
          type="button"
          class="entry"
          aria-expanded=${String(open)}
          onClick=${() => setOpen(!open)}
        >
          <${Icon} name=${open ? "down" : icon} />
          <span class="cut grow">${label}</span>
          ${count !== undefined && html`<span class="tiny muted">${count}</span>`}
        </button>
        ${children}
      </div>
      ${open && html`<${ShelfRows} key=${placesChanged.value} path=${path} />`}
    </div>
  `;
}

const readPage = ({ sessions: rows, more }) => ({ rows, next: more });

function ShelfRows({ path }) {
  const { rows, more, error, next } = usePages(path, readPage);
  if (error) return html`<p class="hint" role="alert">${error.message}</p>`;
  if (rows?.length === 0) return html`<p class="hint">${t("Nothing here.")}</p>`;
  return html`
    <ul>
      ${(rows ?? []).map(
        (one) => html`<li key=${one.key}><${SessionEntry} one=${renewedRow(one)} /></li>`,
      )}
    </ul>
    ${more && html`<${More} key=${next} more=${more} />`}
  `;
}
