// One conversation in the list, and what can be done with it there.

import { call, get, sessionPath } from "./api.js";
import { formatDateTime } from "./format.js";
import { IconButton } from "./icons.js";
import { t } from "./language.js";
import { html } from "./lib.js";
import { activity, folders, holdRows } from "./list.js";
import { openMenu } from "./menu.js";
import { newOptions } from "./new-options.js";
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
  terminal: t("terminal"),
  telegram: "Telegram",
  discord: "Discord",
  slack: "Slack",
  api: "API",
};
const FOLDER_CHARS = 60;

const DRAGGED = "application/x-deskhand-conversation";

/** Handlers of what takes a conversation that is dragged there: it is given this `place`. */
export const takesSessions = (place, said) => ({
  onDragOver: (event) => {
    if (!event.dataTransfer.types.includes(DRAGGED)) return;
    event.preventDefault();
    event.currentTarget.classList.add("over");
  },
  onDragLeave: (event) => event.currentTarget.classList.remove("over"),
  onDrop: (event) => {
    event.currentTarget.classList.remove("over");
    const name = event.dataTransfer.getData(DRAGGED);
    if (!name) return;
    event.preventDefault();
    attempt(() => updateSession(name, place).then(() => announce(said)));
  },
});

export function SessionEntry({ one }) {
  const doing = activity.value[one.key];
  const chosen = one.name === route.value.name;
  const from = one.channel === "web" ? "" : (CHANNELS[one.channel] ?? one.channel);
  const title = one.title || t("Untitled");
  return html`
    <div class="entry-row">
      <a
        class="entry"
        href=${sessionHref(one.name)}
        aria-current=${chosen ? "page" : null}
        title=${`${title} · ${formatDateTime(one.last_at)}`}
        onDragStart=${(event) => {
          if (!hasScope("chat")) return;
          event.dataTransfer.setData(DRAGGED, one.name);
          holdRows();
        }}
        onContextMenu=${(event) => {
          if (!hasScope("chat") || event.shiftKey) return;
          event.preventDefault();
          openSessionMenu(event.currentTarget.nextElementSibling, one);
        }}
      >
        <span class="cut grow">${title}</span>
        ${from && html`<span class="tag">${from}</span>`}
        ${
          doing === "running" &&
          html`<span class="dot runs" role="img" aria-label=${t("running")}></span>`
        }
        ${
          doing === "asking" &&
          html`<span class="dot asks" role="img" aria-label=${t("waits for your answer")}></span>`
        }
      </a>
      ${
        hasScope("chat") &&
        html`
          <${IconButton}
            name="more"
            little
            label=${t("Conversation menu")}
            aria-haspopup="menu"
            onClick=${(event) => openSessionMenu(event.currentTarget, one)}
          />
        `
      }
    </div>
  `;
}

/** Rename, pin, move, archive, export, erase; before them `first`. */
export function openSessionMenu(anchor, one, first = []) {
  const put = (place, said) =>
    attempt(() => updateSession(one.name, place).then(() => announce(said)));
  openMenu(anchor, one.title || t("Untitled"), [
    ...first,
    { label: t("Rename"), icon: "edit", run: () => renameSession(one) },
    one.pinned
      ? { label: t("Unpin"), icon: "pin", run: () => put({ pinned: false }, t("Unpinned")) }
      : {
          label: t("Pin to the top"),
          icon: "pin",
          run: () => put({ pinned: true, archived: false }, t("Pinned")),
        },
    { label: t("Move to folder"), icon: "files", items: listTargets(one, put) },
    one.archived
      ? {
          label: t("Back to the list"),
          icon: "archive",
          run: () => put({ archived: false }, t("Back in the list")),
        }
      : {
          label: t("Move to archive"),
          icon: "archive",
          note: t("Comes back when somebody writes in it"),
          run: () => put({ archived: true, pinned: false }, t("Archived")),
        },
    { label: t("Share"), icon: "share", run: () => openShare(one) },
    { label: t("Save as a file"), icon: "download", items: listExports(one) },
    {
      label: t("Erase"),
      icon: "trash",
      bad: true,
      confirm: t("Yes, erase it for good"),
      run: () => eraseSession(one.name),
    },
  ]);
}

function listTargets(one, put) {
  const move = (folder) => put({ folder, archived: false }, t("Moved to {folder}", { folder }));
  return [
    ...(folders.value ?? []).map(({ name }) => ({
      label: name,
      checked: name === one.folder,
      run: () => move(name),
    })),
    one.folder && { label: t("No folder"), run: () => put({ folder: "" }, t("In no folder")) },
    {
      label: t("New folder …"),
      icon: "plus",
      run: async () => {
        const name = await promptText({
          title: t("New folder"),
          label: t("Name"),
          button: t("Create"),
          maxlength: FOLDER_CHARS,
        });
        if (name) move(name);
      },
    },
  ];
}

const EXPORTS = [
  ["markdown", "Markdown", t("To read and to edit")],
  ["html", t("Web page"), t("To read in any browser")],
  ["json", "JSON", t("Everything, for programs")],
];

const listExports = (one) =>
  EXPORTS.map(([format, label, note]) => ({
    label,
    note,
    href: sessionPath(one.name, `/export?format=${format}`),
  }));

async function renameSession(one) {
  const title = await promptText({
    title: t("Rename this conversation"),
    label: t("Title"),
    value: one.title,
    button: t("Save"),
  });
  if (title && title !== one.title) attempt(() => updateSession(one.name, { title }));
}

/** Erase a conversation for good, here and on the server. */
export const eraseSession = (name) =>
  attempt(async () => {
    const gone = await call("DELETE", sessionPath(name));
    await deleteEvents(name);
    if (route.value.name === name) openSession("");
    announce(
      gone.memories
        ? t("Erased, with {count} of my memories", { count: gone.memories })
        : t("Erased"),
    );
  });

const CARRIED = ["model", "thinking", "preset", "system_prompt"];

/** Begin a conversation in a folder, held as the latest one in it. */
async function beginInFolder(folder) {
  const query = `limit=1&brief=true&archived=false&folder=${encodeURIComponent(folder)}`;
  const [latest] = (await get(`/api/sessions?${query}`)).sessions;
  const held = latest ? await get(sessionPath(latest.name, "/options")) : {};
  const carried = CARRIED.filter((key) => held[key]).map((key) => [key, held[key]]);
  openSession("");
  newOptions.value = { ...Object.fromEntries(carried), folder };
}

/** Begin a conversation in a folder, rename it, or delete it: what is in it stays. */
export function openFolderMenu(anchor, folder) {
  const path = `/api/folders/${encodeURIComponent(folder)}`;
  openMenu(anchor, folder, [
    {
      label: t("New conversation here"),
      note: t("With the model, preset and instructions of the latest one"),
      icon: "plus",
      run: () => attempt(() => beginInFolder(folder)),
    },
    {
      label: t("Rename"),
      icon: "edit",
      run: async () => {
        const name = await promptText({
          title: t("Rename this folder"),
          label: t("Name"),
          value: folder,
          button: t("Save"),
          maxlength: FOLDER_CHARS,
        });
        if (name && name !== folder) attempt(() => call("PATCH", path, { name }));
      },
    },
    {
      label: t("Delete the folder"),
      note: t("Its conversations stay"),
      icon: "trash",
      run: () => attempt(() => call("DELETE", path)),
    },
  ]);
}
