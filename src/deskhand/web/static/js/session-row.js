// One conversation in the list, and what can be done with it there.

import { call, sessionPath } from "./api.js";
import { formatDateTime } from "./format.js";
import { IconButton } from "./icons.js";
import { html } from "./lib.js";
import { activity, folders } from "./list.js";
import { openMenu } from "./menu.js";
import { promptText } from "./prompt.js";
import { openShare } from "./share.js";
import {
  announce,
  attempt,
  hasScope,
  openSession,
  route,
  sessionHref,
  updateSession,
} from "./state.js";
import { deleteEvents } from "./storage.js";

const CHANNELS = {
  web: "",
  terminal: "terminal",
  telegram: "Telegram",
  discord: "Discord",
  slack: "Slack",
  api: "API",
};
const FOLDER_CHARS = 60;

export function SessionEntry({ one }) {
  const doing = activity.value[one.key];
  const chosen = one.name === route.value.name;
  const from = one.channel === "web" ? "" : (CHANNELS[one.channel] ?? one.channel);
  const title = one.title || "Untitled";
  return html`
    <div class="entry-row">
      <a
        class="entry"
        href=${sessionHref(one.name)}
        aria-current=${chosen ? "page" : null}
        title=${`${title} · ${formatDateTime(one.last_at)}`}
        onContextMenu=${(event) => {
          if (!hasScope("chat") || event.shiftKey) return;
          event.preventDefault();
          openSessionMenu(event.currentTarget.nextElementSibling, one);
        }}
      >
        <span class="cut grow">${title}</span>
        ${from && html`<span class="tag">${from}</span>`}
        ${doing === "running" && html`<span class="dot runs" role="img" aria-label="running"></span>`}
        ${
          doing === "asking" &&
          html`<span class="dot asks" role="img" aria-label="waits for your answer"></span>`
        }
      </a>
      ${
        hasScope("chat") &&
        html`
          <${IconButton}
            name="more"
            little
            label="Conversation menu"
            aria-haspopup="menu"
            onClick=${(event) => openSessionMenu(event.currentTarget, one)}
          />
        `
      }
    </div>
  `;
}

/** Rename, pin, move, archive, export, erase. */
export function openSessionMenu(anchor, one) {
  const put = (place, said) =>
    attempt(() => updateSession(one.name, place).then(() => announce(said)));
  openMenu(anchor, one.title || "Untitled", [
    { label: "Rename", icon: "edit", run: () => renameSession(one) },
    one.pinned
      ? { label: "Unpin", icon: "pin", run: () => put({ pinned: false }, "Unpinned") }
      : {
          label: "Pin to the top",
          icon: "pin",
          run: () => put({ pinned: true, archived: false }, "Pinned"),
        },
    { label: "Move to folder", icon: "files", items: listTargets(one, put) },
    one.archived
      ? {
          label: "Back to the list",
          icon: "archive",
          run: () => put({ archived: false }, "Back in the list"),
        }
      : {
          label: "Archive",
          icon: "archive",
          note: "Comes back when somebody writes in it",
          run: () => put({ archived: true, pinned: false }, "Archived"),
        },
    { label: "Share", icon: "share", run: () => openShare(one) },
    { label: "Save as a file", icon: "download", items: listExports(one) },
    {
      label: "Erase",
      icon: "trash",
      bad: true,
      confirm: "Yes, erase it for good",
      run: () => eraseSession(one.name),
    },
  ]);
}

function listTargets(one, put) {
  const move = (folder) => put({ folder, archived: false }, `Moved to ${folder}`);
  return [
    ...(folders.value ?? []).map(({ name }) => ({
      label: name,
      checked: name === one.folder,
      run: () => move(name),
    })),
    one.folder && { label: "No folder", run: () => put({ folder: "" }, "In no folder") },
    {
      label: "New folder …",
      icon: "plus",
      run: async () => {
        const name = await promptText({
          title: "New folder",
          label: "Name",
          button: "Create",
          maxlength: FOLDER_CHARS,
        });
        if (name) move(name);
      },
    },
  ];
}

const EXPORTS = [
  ["markdown", "Markdown", "To read and to edit"],
  ["html", "Web page", "To read in any browser"],
  ["json", "JSON", "Everything, for programs"],
];

const listExports = (one) =>
  EXPORTS.map(([format, label, note]) => ({
    label,
    note,
    href: sessionPath(one.name, `/export?format=${format}`),
  }));

async function renameSession(one) {
  const title = await promptText({
    title: "Rename this conversation",
    label: "Title",
    value: one.title,
    button: "Save",
  });
  if (title && title !== one.title) attempt(() => updateSession(one.name, { title }));
}

/** Erase a conversation for good, here and on the server. */
export const eraseSession = (name) =>
  attempt(async () => {
    const gone = await call("DELETE", sessionPath(name));
    await deleteEvents(name);
    if (route.value.name === name) openSession("");
    announce(gone.memories ? `Erased, with ${gone.memories} of my memories` : "Erased");
  });

/** Rename a folder, or delete it: what is in it stays. */
export function openFolderMenu(anchor, folder) {
  const path = `/api/folders/${encodeURIComponent(folder)}`;
  openMenu(anchor, folder, [
    {
      label: "Rename",
      icon: "edit",
      run: async () => {
        const name = await promptText({
          title: "Rename this folder",
          label: "Name",
          value: folder,
          button: "Save",
          maxlength: FOLDER_CHARS,
        });
        if (name && name !== folder) attempt(() => call("PATCH", path, { name }));
      },
    },
    {
      label: "Delete the folder",
      note: "Its conversations stay",
      icon: "trash",
      run: () => attempt(() => call("DELETE", path)),
    },
  ]);
}
