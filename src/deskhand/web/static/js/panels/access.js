// Folders, hosts and sign-ins that agents may use beyond their workspace: seen, allowed and taken
// back.

import { call } from "../api.js";
import { formatDateTime } from "../format.js";
import { t } from "../language.js";
import { html, useState } from "../lib.js";
import { announce, attempt } from "../state.js";
import { ConfirmButton, Empty, Loaded, Section, useFetch } from "./parts.js";

export function Access() {
  const access = useFetch("/api/access");
  const [open, setOpen] = useState(false);
  const revoke = (kind, fields) =>
    attempt(async () => {
      await call("DELETE", `/api/access/${kind}?${new URLSearchParams(fields)}`);
      announce(t("Taken back"));
      access.reload();
    });
  const showAllowed = () => {
    announce(t("Allowed"));
    setOpen(false);
    access.reload();
  };
  return html`
    <${Section}
      title=${t("Folders, hosts and sign-ins")}
      note=${t("What agents may use beyond their workspace, without asking each time.")}
      action=${html`
        <button
          type="button"
          class="btn little"
          aria-expanded=${String(open)}
          onClick=${() => setOpen(!open)}
        >
          ${t("Allow a folder")}
        </button>
      `}
    >
      <${Loaded} result=${access} what=${t("folders, hosts and sign-ins")}>
        ${({ agents, folders, hosts, sign_ins: signIns }) => html`
          ${open && html`<${FolderForm} agents=${agents} onAllowed=${showAllowed} />`}
          ${
            folders.length + hosts.length + signIns.length
              ? html`
                  <ul class="rows">
                    ${folders.map((one) => drawFolder(one, revoke))}
                    ${hosts.map((one) => drawHost(one, revoke))}
                    ${signIns.map((one) => drawSignIn(one, revoke))}
                  </ul>
                `
              : html`
                  <${Empty}>
                    ${t(
                      "Agents read and write in their workspace alone, and commands reach no host. Allow a folder here, or when an agent asks for it.",
                    )}
                  <//>
                `
          }
        `}
      <//>
    <//>
  `;
}

function FolderForm({ agents, onAllowed }) {
  const [refused, setRefused] = useState("");
  const allowFolder = async (event) => {
    event.preventDefault();
    const { agent, path, write } = Object.fromEntries(new FormData(event.target));
    try {
      await call("PUT", "/api/access/folders", { agent, path, write: write === "yes" });
      onAllowed();
    } catch (error) {
      setRefused(error.message);
    }
  };
  return html`
    <form class="stack" onSubmit=${allowFolder}>
      <label class="field">
        <span>${t("Folder on this machine")}</span>
        <input class="input" name="path" required maxlength="4096" placeholder="~/Downloads" spellcheck="false" />
      </label>
      ${
        agents.length > 1
          ? html`
              <label class="field">
                <span>${t("Agent")}</span>
                <select class="input" name="agent">
                  ${agents.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
                </select>
              </label>
            `
          : html`<input type="hidden" name="agent" value=${agents[0]} />`
      }
      <label class="row">
        <input type="checkbox" name="write" value="yes" />
        ${t("It may write there, too")}
      </label>
      <p class="small muted">
        ${t(
          "What it changes there is listed for your review. After it has read something untrusted, it cannot write there.",
        )}
      </p>
      ${refused && html`<p class="note warn" role="alert">${refused}</p>`}
      <div class="row"><button type="submit" class="btn main">${t("Allow")}</button></div>
    </form>
  `;
}

function drawFolder(one, revoke) {
  const facts = [one.agent, t("{name} said so", { name: one.by }), formatDateTime(one.at)];
  return html`
    <li key=${`${one.agent} ${one.path}`}>
      <span class="grow">
        <code>${one.shown}</code>
        <span class="small muted">${facts.join(" · ")}</span>
      </span>
      <span class="tag">${one.write ? t("read and write") : t("read")}</span>
      <${ConfirmButton}
        label=${t("Revoke")}
        confirm=${t("Yes, take it back")}
        onYes=${() => revoke("folders", { agent: one.agent, path: one.path })}
      />
    </li>
  `;
}

function drawHost(one, revoke) {
  const where = one.session ? t("one conversation") : t("all conversations");
  const facts = [one.agent || t("all agents"), where, t("{name} said so", { name: one.by })];
  return html`
    <li key=${`${one.host} ${one.agent} ${one.session}`}>
      <span class="grow">
        <code>${one.host}</code>
        <span class="small muted">${facts.join(" · ")}</span>
      </span>
      <span class="tag">${t("commands reach it")}</span>
      <${ConfirmButton}
        label=${t("Revoke")}
        confirm=${t("Yes, take it back")}
        onYes=${() => revoke("hosts", { agent: one.agent, host: one.host })}
      />
    </li>
  `;
}

function drawSignIn(one, revoke) {
  const given = one.at
    ? t("given on {time}", { time: formatDateTime(one.at) })
    : t("it cannot be read: give it anew");
  return html`
    <li key=${`sign-in ${one.site}`}>
      <span class="grow">
        <code>${one.site}</code>
        <span class="small muted">${[given, t("asks before it is used")].join(" · ")}</span>
      </span>
      <span class="tag">${t("your account")}</span>
      <${ConfirmButton}
        label=${t("Delete")}
        confirm=${t("Yes, delete it")}
        onYes=${() => revoke("sign-ins", { site: one.site })}
      />
    </li>
  `;
}
