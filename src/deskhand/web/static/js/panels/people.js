// Who may use this Deskhand, their chat accounts and their roles.

import { call, post } from "../api.js";
import { formatDateTime } from "../format.js";
import { t, tRich } from "../language.js";
import { html, useState } from "../lib.js";
import { announce, attempt, currentUser, hasScope } from "../state.js";
import { copyText } from "../text.js";
import {
  ConfirmButton,
  Empty,
  Loaded,
  Rows,
  Section,
  submitFields,
  svgDataUrl,
  useFetch,
} from "./parts.js";
import { BUILT_IN_ROLES, nameRole } from "./policy-names.js";
import { StepButton } from "./suggestion.js";
import { Tokens } from "./tokens.js";

const SELF = "this is me";
const userPath = (name) => `/api/users/${encodeURIComponent(name)}`;

export function People() {
  const users = useFetch("/api/users");
  const pairings = useFetch("/api/pairings");
  const tokens = useFetch("/api/tokens");
  return html`
    <div class="stack wide">
      <${Phone} />
      <${Pairings} found=${pairings} users=${users} />
      <${Users} found=${users} />
      <${Tokens} found=${tokens} />
    </div>
  `;
}

function Phone() {
  const [made, setMade] = useState(null);
  const makeLink = () => attempt(async () => setMade(await post("/api/logins")));
  return html`
    <${Section}
      title=${t("Use it on your phone")}
      note=${t(
        "A link that signs in one browser, once, for ten minutes. The phone must reach this machine.",
      )}
      action=${html`
        <button type="button" class="btn little" onClick=${makeLink}>${t("Make a link")}</button>
      `}
    >
      ${made && html`<${LoginLink} made=${made} />`}
    <//>
  `;
}

/** A link that signs in, as a code for a camera and in letters. */
function LoginLink({ made }) {
  if (!made.qr_svg) return html`<${LocalLinkHelp} url=${made.url} />`;
  return html`
    <div class="row qr">
      <img src=${svgDataUrl(made.qr_svg)} alt=${t("The link as a QR code")} width="168" height="168" />
      <div class="stack">
        <code class="wrap">${made.url}</code>
        <div>
          <button type="button" class="btn little" onClick=${() => copyText(made.url)}>${t("Copy")}</button>
        </div>
      </div>
    </div>
  `;
}

/** A phone cannot reach 127.0.0.1 of this machine: what to set up first. */
function LocalLinkHelp({ url }) {
  const { port } = location;
  return html`
    <div class="box stack" role="status">
      <p>
        <strong>
          ${t(
            "This page is open under an address of this machine alone, so a phone cannot follow the link.",
          )}
        </strong>
      </p>
      <p>
        ${t(
          "Put TLS in front of Deskhand, tell it the name, start it again, and open this page under that name. With Tailscale:",
        )}
      </p>
      <pre tabindex="0">
        ${`tailscale serve --bg ${port}\ndeskhand config set web.hosts '[MACHINE.TAILNET.ts.net]'`}
      </pre>
      <p class="small muted">
        ${tRich(
          "Caddy or nginx do as well; see “From another machine” in docs/serve.md. In another browser on this machine, this link works: {link}",
          { link: html`<code class="wrap">${url}</code>` },
        )}
      </p>
      <div>
        <button type="button" class="btn little" onClick=${() => copyText(url)}>${t("Copy")}</button>
      </div>
    </div>
  `;
}

function Pairings({ found, users }) {
  const applyChange = (work, said) =>
    attempt(async () => {
      await work();
      announce(said);
      found.reload();
      users.reload();
    });
  const approvePairing = (code) => (event) => {
    event.preventDefault();
    const role = new FormData(event.target).get("role");
    applyChange(
      () => post(`/api/pairings/${code}`, role === SELF ? { owner: true } : { role }),
      t("Approved"),
    );
  };
  const nobody = (users.data || []).every((one) => one.name !== "owner" || !one.identities.length);
  return html`
    <${Section}
      title=${t("Pairing requests")}
      note=${t(
        "People who write to your bot for the first time get a code and are listed here. Compare it with the code that they tell you.",
      )}
    >
      <${Loaded} result=${found} what=${t("pairing")}>
        ${(all) =>
          all.length
            ? html`
                <ul class="rows">
                  ${all.map((one) => drawPairing(one, { approvePairing, nobody, applyChange }))}
                </ul>
              `
            : html`
                <${Empty}>
                  <span>
                    ${t("No pairing requests. They come once Deskhand is in a chat program, such as Telegram.")}
                  </span>
                  <${StepButton} step="channel">${t("Connect a chat program")}<//>
                <//>
              `}
      <//>
    <//>
  `;
}

function drawPairing(one, { approvePairing, nobody, applyChange }) {
  return html`
    <li key=${one.code}>
      <span class="grow">
        <strong><code>${one.code}</code> ${one.name}</strong>
        <span class="small muted">
          ${one.channel} · ${one.external_id} ·${" "}
          ${t("until {time}", { time: formatDateTime(one.expires_at) })}
        </span>
      </span>
      <form class="row" onSubmit=${approvePairing(one.code)}>
        <select class="input" name="role" required aria-label=${t("Role")}>
          ${
            nobody &&
            html`<option value="">${t("choose a role")}</option><option value=${SELF}>${t("this is me")}</option>`
          }
          ${BUILT_IN_ROLES.map(
            (role) =>
              html`
                <option key=${role} value=${role} selected=${!nobody && role === "member"}>
                  ${nameRole(role)}
                </option>
              `,
          )}
        </select>
        <button class="btn main little">${t("Approve")}</button>
      </form>
      <button
        type="button"
        class="btn little"
        onClick=${() =>
          applyChange(() => call("DELETE", `/api/pairings/${one.code}`), t("Turned away"))}
      >
        ${t("Reject")}
      </button>
    </li>
  `;
}

function Users({ found }) {
  const [adding, setAdding] = useState(false);
  const [link, setLink] = useState(null); // {user, made}: how somebody signs in
  const applyChange = (work, said) =>
    attempt(async () => {
      await work();
      announce(said);
      found.reload();
      return true;
    });
  const makeLink = (user) =>
    attempt(async () => setLink({ user, made: await post("/api/logins", { user }) }));
  return html`
    <${Section}
      title=${t("People")}
      note=${t(
        "Viewers read, members talk, approvers answer for risky calls, owners manage the settings.",
      )}
      action=${
        hasScope("admin") &&
        html`
          <button
            type="button"
            class="btn little"
            aria-expanded=${String(adding)}
            onClick=${() => setAdding(!adding)}
          >
            ${t("Add person")}
          </button>
        `
      }
    >
      ${adding && drawUserForm(applyChange, setAdding, makeLink)}
      ${
        link &&
        html`
          <div class="box stack" role="status">
            <p>
              ${t("Give this link to {user}: it signs in one browser, once, within ten minutes.", { user: link.user })}
            </p>
            <${LoginLink} made=${link.made} />
          </div>
        `
      }
      <${Loaded} result=${found} what=${t("people")}>
        ${(all) => html`
          <${Rows} rows=${all} draw=${(one) => drawUser(one, applyChange, makeLink)} />
        `}
      <//>
    <//>
  `;
}

function drawUserForm(applyChange, setAdding, makeLink) {
  return html`
    <form
      class="box row wrap"
      onSubmit=${submitFields((fields) =>
        applyChange(() => post("/api/users", fields), t("Added")).then((done) => {
          if (!done) return done;
          setAdding(false);
          makeLink(fields.name);
          return done;
        }),
      )}
    >
      <label class="field grow">
        <span>${t("Name")}</span>
        <input
          class="input"
          name="name"
          required
          pattern="[a-z0-9.\\-]+"
          title=${t("Small letters, digits, . and -")}
          placeholder="ada"
        />
      </label>
      <label class="field">
        <span>${t("Role")}</span>
        <select class="input" name="role">
          ${BUILT_IN_ROLES.map(
            (role) => html`
              <option key=${role} value=${role} selected=${role === "member"}>${nameRole(role)}</option>
            `,
          )}
        </select>
      </label>
      <button class="btn main">${t("Add")}</button>
    </form>
  `;
}

function drawUser(one, applyChange, makeLink) {
  return html`
    <li key=${one.name} class="wrap">
      <span class="avatar" aria-hidden="true">${one.name[0].toUpperCase()}</span>
      <span class="grow">
        <strong>${one.name}</strong>
        <span class="small muted">
          ${
            one.identities.map((known) => `${known.channel}: ${known.external_id}`).join(" · ") ||
            (one.name === currentUser.value.user
              ? t("you, in this browser")
              : t("no chat account linked"))
          }
        </span>
      </span>
      ${one.roles.map(
        (role) => html`
          <span key=${role} class="tag" title=${role}>
            ${nameRole(role)}
            ${
              hasScope("admin") &&
              one.roles.length > 1 &&
              html`
                <button
                  type="button"
                  class="x"
                  aria-label=${t("Take the role {role} from {name}", {
                    role: nameRole(role),
                    name: one.name,
                  })}
                  onClick=${() =>
                    applyChange(
                      () => call("DELETE", `${userPath(one.name)}/roles/${role}`),
                      t("Role removed"),
                    )}
                >
                  ×
                </button>
              `
            }
          </span>
        `,
      )}
      ${
        hasScope("admin") &&
        html`
          <select
            class="input short"
            aria-label=${t("Give {name} a role", { name: one.name })}
            value=""
            onChange=${(event) => {
              const role = event.target.value;
              event.target.value = "";
              applyChange(() => post(`${userPath(one.name)}/roles/${role}`), t("Role added"));
            }}
          >
            <option value="">${t("give a role")}</option>
            ${BUILT_IN_ROLES.filter((role) => !one.roles.includes(role)).map(
              (role) => html`<option key=${role} value=${role}>${nameRole(role)}</option>`,
            )}
          </select>
          ${
            one.name !== currentUser.value.user &&
            html`
              <button type="button" class="btn little" onClick=${() => makeLink(one.name)}>
                ${t("Sign-in link")}
              </button>
              <${ConfirmButton}
                label=${t("Remove")}
                confirm=${t("Yes, with all their keys")}
                onYes=${() => applyChange(() => call("DELETE", userPath(one.name)), t("Removed"))}
              />
            `
          }
        `
      }
    </li>
  `;
}
