// The dialog that shares a conversation: a link under which anybody may read what was said, until a day.

import { call, get, post, sessionPath } from "./api.js";
import { formatDateTime } from "./format.js";
import { Icon } from "./icons.js";
import { html, useEffect, useState } from "./lib.js";
import { Modal } from "./modal.js";
import { announce, attempt } from "./state.js";

const DAYS = [
  [1, "1 day"],
  [7, "7 days"],
  [30, "30 days"],
];

/** The links of this conversation: {name, title}. */
export function ShareDialog({ one, close }) {
  const title = one.title || "Untitled";
  const [days, setDays] = useState(7);
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
      const made = await post(sessionPath(one.name, "/shares"), { days });
      setAddress(location.origin + made.path);
      announce("The link is ready");
      await loadLinks();
    });
  const revoke = (link) =>
    attempt(async () => {
      await call("DELETE", `/api/shares/${encodeURIComponent(link.id)}`);
      setAddress("");
      announce("The link does not work any more");
      await loadLinks();
    });
  return html`
    <${Modal} class="prompt" label=${`Share “${title}”`} close=${close}>
      <div class="stack">
        <h2>Share “${title}”</h2>
        <p class="small muted">
          ${
            "Anybody with the link can read what was said until now, but nothing that is said " +
            "later. Files and tool calls are left out, and known secrets are blacked out."
          }
        </p>
        ${
          address
            ? html`<${Link} address=${address} />`
            : html`
                <fieldset class="row">
                  <legend class="small">The link works for</legend>
                  ${DAYS.map(
                    ([count, label]) => html`
                      <label key=${count} class="row tight">
                        <input
                          type="radio"
                          name="days"
                          checked=${days === count}
                          onChange=${() => setDays(count)}
                        />
                        ${label}
                      </label>
                    `,
                  )}
                </fieldset>
                <div>
                  <button type="button" class="btn main" onClick=${createLink}>
                    Create the link
                  </button>
                </div>
              `
        }
        ${
          links.length > 0 &&
          html`
            <ul class="rows" aria-label="Links that work">
              ${links.map(
                (link) => html`
                  <li key=${link.id}>
                    <span class="grow small">
                      Made ${formatDateTime(link.at)}, works until ${formatDateTime(link.until)}
                    </span>
                    <button type="button" class="btn little bad" onClick=${() => revoke(link)}>
                      Revoke
                    </button>
                  </li>
                `,
              )}
            </ul>
          `
        }
        <div class="row end">
          <button type="button" class="btn" onClick=${close}>Close</button>
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
      announce("Copied");
    });
  return html`
    <div class="row">
      <input
        class="input grow"
        readonly
        aria-label="The link"
        value=${address}
        onFocus=${(event) => event.target.select()}
      />
      <button type="button" class="btn" onClick=${copy}><${Icon} name="copy" />Copy</button>
    </div>
    ${
      isLocal &&
      html`
        <p class="note warn">
          ${
            "This address works only on this machine. For others, serve the page under a name " +
            "with TLS (web.hosts), open it there, and make the link there."
          }
        </p>
      `
    }
  `;
}
