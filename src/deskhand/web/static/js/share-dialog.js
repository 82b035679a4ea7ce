// The dialog that shares a conversation: a link under which anybody may read what was said, until a day.

import { call, get, post, sessionPath } from "./api.js";
import { formatDateTime } from "./format.js";
import { Icon } from "./icons.js";
import { t, tCount } from "./language.js";
import { html, useEffect, useState } from "./lib.js";
import { Modal } from "./modal.js";
import { announce, attempt } from "./state.js";

const DAYS = [1, 7, 30];

/** The links of this conversation: {name, title}. */
export function ShareDialog({ one, close }) {
  const title = one.title || t("Untitled");
  const [days, setDays] = useState(7);
  const [files, setFiles] = useState(false);
  const [address, setAddress] = useState("");
  const [links, setLinks] = useState([]);
  const loadLinks = () =>
    attempt(async () => {
      const all = await get("/api/shares");
      setLinks(all.filter((link) => link.name === one.name));
    });
  useEffect(() => {
    loadLinks();
  }, []);
  const createLink = () =>
    attempt(async () => {
      const made = await post(sessionPath(one.name, "/shares"), { days, files });
      setAddress(location.origin + made.path);
      announce(t("The link is ready"));
      await loadLinks();
    });
  const revoke = (link) =>
    attempt(async () => {
      await call("DELETE", `/api/shares/${encodeURIComponent(link.id)}`);
      setAddress("");
      announce(t("The link does not work any more"));
      await loadLinks();
    });
  return html`
    <${Modal} class="prompt" label=${t("Share “{title}”", { title })} close=${close}>
      <div class="stack">
        <h2>${t("Share “{title}”", { title })}</h2>
        <p class="small muted">
          ${t(
            "Anybody with the link can read what was said until now, but nothing that is said later. Tool calls are left out, and known secrets are blacked out.",
          )}
        </p>
        ${
          address
            ? html`<${Link} address=${address} />`
            : html`
                <fieldset class="row">
                  <legend class="small">${t("The link works for")}</legend>
                  ${DAYS.map(
                    (count) => html`
                      <label key=${count} class="row tight">
                        <input
                          type="radio"
                          name="days"
                          checked=${days === count}
                          onChange=${() => setDays(count)}
                        />
                        ${tCount(count, "{count} day", "{count} days")}
                      </label>
                    `,
                  )}
                </fieldset>
                <div>
                  <label class="row tight">
                    <input
                      type="checkbox"
                      checked=${files}
                      aria-describedby="share-files-note"
                      onChange=${(event) => setFiles(event.target.checked)}
                    />
                    ${t("With pictures and files")}
                  </label>
                  <p class="small muted" id="share-files-note">
                    ${t(
                      "Everything that was attached, and what the agent sent. Known secrets are blacked out in texts, but not in pictures and other files such as PDFs.",
                    )}
                  </p>
                </div>
                <div>
                  <button type="button" class="btn main" onClick=${createLink}>
                    ${t("Create the link")}
                  </button>
                </div>
              `
        }
        ${
          links.length > 0 &&
          html`
            <ul class="rows" aria-label=${t("Links that work")}>
              ${links.map(
                (link) => html`
                  <li key=${link.id}>
                    <span class="grow small">
                      ${t("Made {at}, works until {until}", {
                        at: formatDateTime(link.at),
                        until: formatDateTime(link.until),
                      })}
                      ${link.files && html` · ${t("with pictures and files")}`}
                    </span>
                    <button type="button" class="btn little bad" onClick=${() => revoke(link)}>
                      ${t("Revoke")}
                    </button>
                  </li>
                `,
              )}
            </ul>
          `
        }
        <div class="row end">
          <button type="button" class="btn" onClick=${close}>${t("Close")}</button>
        </div>
      </div>
    <//>
  `;
}

function Link({ address }) {
  const isLocal = /^(localhost|127\.|\[::1\])/.test(location.hostname);
  const copy = () =>
    attempt(async () => {
      await navigator.clipboard.writeText(address);
      announce(t("Copied"));
    });
  return html`
    <div class="row">
      <input
        class="input grow"
        readonly
        aria-label=${t("The link")}
        value=${address}
        onFocus=${(event) => event.target.select()}
      />
      <button type="button" class="btn" onClick=${copy}><${Icon} name="copy" />${t("Copy")}</button>
    </div>
    ${
      isLocal &&
      html`
        <p class="note warn">
          ${t(
            "This address works only on this machine. For others, serve the page under a name with TLS (web.hosts), open it there, and make the link there.",
          )}
        </p>
      `
    }
  `;
}
