// A folder outside the workspace that a call could not use: an owner can allow it here.

import { call } from "../api.js";
import { t, tRich } from "../language.js";
import { html, useState } from "../lib.js";
import { currentAgent } from "../preview.js";
import { sendMessage } from "../sending.js";
import { attempt } from "../state.js";
import { useFetch } from "./parts.js";

// What other tools give back may be made to look like this.
const FILE_TOOLS = new Set([
  "read_file",
  "write_file",
  "edit_file",
  "list_files",
  "search_files",
  "send_file",
  "find_references",
  "list_symbols",
  // the names of other systems for these
  "read_file_range",
  "view_file",
  "create_file",
  "patch_file",
  "str_replace",
  "apply_patch",
  "list_directory",
  "list_dir",
  "search_code",
  "grep",
]);
const REFUSED =
  /is outside the workspace, so it is not (?:read|written)\. The owner can allow it: deskhand allow path (.+?)( --write)?$/s;

/** The folder that was refused, and whether it was to be written to; null for another text. */
function parseRefusal({ name }, text) {
  const found = FILE_TOOLS.has(name) && REFUSED.exec(text.trim());
  if (!found) return null;
  const [, word, write] = found;
  const isQuoted = word.startsWith("'") && word.endsWith("'");
  const path = isQuoted ? word.slice(1, -1).replaceAll("'\"'\"'", "'") : word;
  return { path, write: Boolean(write) };
}

/** Whether this folder lies in one that was allowed so. */
const isCovered = ({ path, write }, agent, folders) =>
  folders.some(
    (each) =>
      each.agent === agent &&
      (each.write || !write) &&
      (path === each.path || path.startsWith(`${each.path.replace(/\/$/, "")}/`)),
  );

export function FolderAccess({ item, text }) {
  const refused = parseRefusal(item, text);
  return refused && html`<${Request} refused=${refused} />`;
}

function Request({ refused }) {
  const access = useFetch("/api/access");
  const [busy, setBusy] = useState(false);
  if (!access.data) return null;
  const agent = currentAgent() || access.data.agents[0];
  const folder = html`<code>${refused.path}</code>`;
  if (isCovered(refused, agent, access.data.folders))
    return html`
      <p class="folder-access small muted">
        ${tRich("It may use {folder} now. Take that back in Settings, Approvals.", { folder })}
      </p>
    `;
  const allowFolder = async (write) => {
    setBusy(true);
    await attempt(async () => {
      await call("PUT", "/api/access/folders", { agent, path: refused.path, write });
      access.reload();
      await sendMessage(
        write
          ? t("You may read and write in {folder} now. Go on.", { folder: refused.path })
          : t("You may read {folder} now. Go on.", { folder: refused.path }),
        [],
        "steer",
      );
    });
    setBusy(false);
  };
  return html`
    <div class="folder-access" role="group" aria-label=${t("A folder outside the workspace")}>
      <p class="small">
        ${
          refused.write
            ? tRich("It wants to write in {folder}, which is outside its workspace.", { folder })
            : tRich("It wants to read {folder}, which is outside its workspace.", { folder })
        }
      </p>
      <div class="row">
        ${
          !refused.write &&
          html`
            <button
              type="button"
              class="btn little main"
              disabled=${busy}
              onClick=${() => allowFolder(false)}
            >
              ${t("Always allow reading this folder")}
            </button>
          `
        }
        <button
          type="button"
          class=${`btn little ${refused.write ? "main" : ""}`}
          disabled=${busy}
          onClick=${() => allowFolder(true)}
        >
          ${t("Always allow reading and writing there")}
        </button>
      </div>
    </div>
  `;
}
