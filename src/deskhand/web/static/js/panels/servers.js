// MCP servers: the tools that they bring, whether they answer, and a yes to what has changed.

import { post } from "../api.js";
import { Diff, escapeInvisible } from "../diff.js";
import { t, tCount } from "../language.js";
import { html, useState } from "../lib.js";
import { announce, attempt } from "../state.js";
import { copyText } from "../text.js";
import { ConfirmButton, Empty, Loaded, Section, useFetch } from "./parts.js";
import { Suggestion } from "./suggestion.js";

const EXAMPLE = "deskhand mcp add time -- uvx mcp-server-time";

export function Servers() {
  const servers = useFetch("/api/mcp-servers");
  return html`
    <div class="stack wide">
      <${Section}
        title=${t("Servers")}
        note=${t(
          "An MCP server brings tools of another program: an issue tracker, a calendar, a database. A program runs in the sandbox, and what a server says is not trusted.",
        )}
      >
        <${Loaded} result=${servers} what=${t("MCP servers")}>
          ${(all) =>
            all.length
              ? html`
                  ${all.map((one) => html`<${Server} key=${one.name} one=${one} reload=${servers.reload} />`)}
                `
              : html`
                  <${Empty}>
                    <span>
                      ${t("There is none yet. The command below adds one that knows the time in every place.")}
                    </span>
                    <${Suggestion}
                      text=${t("Which MCP server would help me to look into my calendar, and how do I add it?")}
                    >
                      ${t("Ask which one would help")}
                    <//>
                  <//>
                `}
        <//>
      <//>
      <${Section}
        title=${t("Add a server")}
        note=${t(
          "A server can be any program, so it is added on the machine itself. In a terminal there, type this; it is tried first, and you see its tools.",
        )}
      >
        <pre class="command">${EXAMPLE}</pre>
        <div class="row">
          <button type="button" class="btn little" onClick=${() => copyText(EXAMPLE)}>
            ${t("Copy the command")}
          </button>
        </div>
      <//>
    </div>
  `;
}

function Server({ one, reload }) {
  const [busy, setBusy] = useState(false);
  const waiting = one.tools.filter((tool) => tool.state !== "accepted");
  const path = `/api/mcp-servers/${encodeURIComponent(one.name)}`;
  const tryServer = async () => {
    setBusy(true);
    try {
      const { tools } = await post(`${path}/try`);
      announce(
        tCount(tools.length, "It answers, with {count} tool", "It answers, with {count} tools"),
      );
    } catch (error) {
      announce(error.message); // it is shown with the server as well
    }
    setBusy(false);
    reload();
  };
  const acceptTools = () =>
    attempt(async () => {
      const tools = waiting.map(({ name, digest }) => ({ name, digest }));
      await post(`${path}/accept`, { tools });
      announce(t("Accepted"));
    }).then(reload);
  return html`
    <section class="server-card" aria-label=${one.name}>
      <div class="row">
        <strong class="grow">${one.name}</strong>
        ${waiting.length > 0 && html`<span class="tag warn">${tCount(waiting.length, "{count} tool to review", "{count} tools to review")}</span>`}
        ${
          one.problem
            ? html`<span class="tag bad">${t("does not answer")}</span>`
            : html`<span class="tag ${one.enabled ? "good" : ""}">${one.enabled ? t("on") : t("off")}</span>`
        }
        ${
          one.enabled &&
          html`
            <button type="button" class="btn little" disabled=${busy} onClick=${tryServer}>
              ${busy ? t("Trying …") : t("Try it")}
            </button>
          `
        }
      </div>
      <p class="small muted wrap"><code>${one.where}</code></p>
      <p class="small muted">${describeReach(one)}</p>
      ${one.problem && html`<p class="note bad pre">${one.problem}</p>`}
      ${
        waiting.length > 0 &&
        html`
          <p class="note warn">
            ${t(
              "The server describes these tools otherwise than when they were accepted, or they are new. They rest until you accept them.",
            )}
          </p>
          ${waiting.map(
            (tool) => html`
              <details key=${tool.name} open=${waiting.length === 1}>
                <summary class="small">
                  <code>${escapeInvisible(tool.name)}</code>${" "}
                  ${tool.state === "new" ? t("is new") : t("has changed")}
                </summary>
                <${Diff} text=${tool.change} />
              </details>
            `,
          )}
          <div class="row">
            <${ConfirmButton}
              label=${tCount(waiting.length, "Accept {count} tool", "Accept {count} tools")}
              confirm=${t("Yes, as shown")}
              onYes=${acceptTools}
            />
          </div>
        `
      }
      <details>
        <summary class="small">
          ${tCount(one.tools.length, "{count} tool", "{count} tools")}
        </summary>
        <ul class="rows">
          ${one.tools.map(
            (tool) => html`
              <li key=${tool.name}>
                <span class="grow">
                  <code>${escapeInvisible(tool.name)}</code>
                  <span class="small muted">${tool.description}</span>
                </span>
              </li>
            `,
          )}
        </ul>
      </details>
    </section>
  `;
}

function describeReach({ kind, hosts, folders, trusted }) {
  const trust = trusted ? t("What it says is trusted.") : t("What it says is not trusted.");
  if (kind === "web") return `${t("What is sent to it leaves this machine.")} ${trust}`;
  const named = hosts.length ? hosts.join(", ") : t("no hosts");
  const seen = folders.length ? folders.join(", ") : t("no folders of yours");
  return `${t("It runs in the sandbox and reaches {hosts}; it sees {folders}.", { hosts: named, folders: seen })} ${trust}`;
}
