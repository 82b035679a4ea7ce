// Files that are held back from prompts: the reason, the text of each, and an owner's approval.

import { post } from "../api.js";
import { t, tServer } from "../language.js";
import { html, useState } from "../lib.js";
import { announce, attempt } from "../state.js";
import { ConfirmButton, Loaded, Section, Toggle, useFetch } from "./parts.js";

export function HeldFiles() {
  const found = useFetch("/api/held");
  const [open, setOpen] = useState("");
  return html`
    <${Loaded} result=${found} what=${t("held back files")}>
      ${(all) =>
        all.length > 0 &&
        html`
          <${Section}
            title=${t("Held back files")}
            note=${t(
              "They would tell an agent what to do, and are left out until you have read and approved them.",
            )}
          >
            <ul class="rows" aria-label=${t("Held back files")}>
              ${all.map(
                (one) => html`
                  <li key=${one.path} class=${open === one.path ? "wrap tall" : ""}>
                    <button
                      type="button"
                      class="grow plainly"
                      aria-expanded=${String(open === one.path)}
                      onClick=${() => setOpen(open === one.path ? "" : one.path)}
                    >
                      <strong>${one.shown}</strong>
                      <span class="small muted">
                        ${[one.agent && t("for {agent}", { agent: one.agent }), tServer(one.why)]
                          .filter(Boolean)
                          .join(" · ")}
                      </span>
                    </button>
                    ${
                      open === one.path &&
                      html`
                        <${HeldFile}
                          path=${one.path}
                          shown=${one.shown}
                          reload=${() => {
                            setOpen("");
                            found.reload();
                          }}
                        />
                      `
                    }
                  </li>
                `,
              )}
            </ul>
          <//>
        `}
    <//>
  `;
}

function HeldFile({ path, shown, reload }) {
  const found = useFetch(`/api/held/file?path=${encodeURIComponent(path)}`);
  const [read, setRead] = useState(false);
  const approveFile = (digest) =>
    attempt(async () => {
      await post("/api/held/approve", { path, digest });
      announce(t("{name} is approved", { name: shown }));
      reload();
    });
  return html`
    <div class="grow stack">
      <${Loaded} result=${found} what=${t("this file")}>
        ${(one) => html`
          <div class="field">
            <span>${t("All of its text")}</span>
            <pre
              class="exact whole"
              tabindex="0"
              aria-label=${t("The text of {name}", { name: shown })}
            >
              ${one.text}
            </pre>
          </div>
          ${
            one.digest
              ? html`
                  <p class="small muted">
                    SHA-256 <code>${one.digest}</code>.${" "}
                    ${
                      one.bound
                        ? t("If it changes, it is held back until you approve it again.")
                        : t(
                            "Deskhand writes this file itself, so a change alone does not hold it back.",
                          )
                    }
                  </p>
                  <${Toggle}
                    enabled=${read}
                    label=${t("I have read all of it")}
                    note=${t(
                      "From now on I am responsible for what it says, for everybody who talks to this agent.",
                    )}
                    set=${setRead}
                  />
                  <div class="row">
                    ${
                      read &&
                      html`
                        <${ConfirmButton}
                          label=${t("Approve it")}
                          confirm=${t("Yes, exactly this")}
                          onYes=${() => approveFile(one.digest)}
                        />
                      `
                    }
                  </div>
                `
              : html`
                  <p class="note warn">
                    ${t("It cannot be approved: {problem}.", { problem: tServer(one.problem) })}
                  </p>
                `
          }
        `}
      <//>
    </div>
  `;
}
