// Keys: browsers that are signed in, and tokens for programs.

import { call, post } from "../api.js";
import { formatDateTime } from "../format.js";
import { t } from "../language.js";
import { html, useState } from "../lib.js";
import { announce, attempt } from "../state.js";
import { copyText } from "../text.js";
import { ConfirmButton, Empty, Loaded, Rows, Section, submitFields } from "./parts.js";

const SCOPES = {
  read: t("read"),
  "read,chat": t("read and talk"),
  "read,chat,approve": t("read, talk and approve"),
  "read,chat,approve,admin": t("everything"),
};

export function Tokens({ found }) {
  const [made, setMade] = useState(null);
  const [adding, setAdding] = useState(false);
  const makeToken = async (fields) => {
    const answer = await post("/api/tokens", {
      name: fields.name,
      scopes: fields.scopes.split(","),
      ...(fields.days ? { days: Number(fields.days) } : {}),
    });
    setMade(answer);
    setAdding(false);
    found.reload();
    return answer;
  };
  const revokeToken = (id) =>
    attempt(async () => {
      await call("DELETE", `/api/tokens/${encodeURIComponent(id)}`);
      announce(t("Revoked"));
      found.reload();
    });
  return html`
    <${Section}
      title=${t("Browsers and access tokens")}
      note=${t(
        "The browsers that are signed in, and the tokens with which programs use Deskhand. What you revoke is signed out at once.",
      )}
      action=${html`
        <button
          type="button"
          class="btn little"
          aria-expanded=${String(adding)}
          onClick=${() => setAdding(!adding)}
        >
          ${t("Make a token")}
        </button>
      `}
    >
      ${adding && drawTokenForm(makeToken)}
      ${made && drawSecret(made, setMade)}
      <${Loaded} result=${found} what=${t("keys")}>
        ${(all) =>
          all.length
            ? html`<${Rows} rows=${all} draw=${(one) => drawToken(one, revokeToken)} />`
            : html`<${Empty}>${t(
                "No browser is signed in, and there is no token. Make one for a program or a script of yours that should use Deskhand.",
              )}<//>`}
      <//>
    <//>
  `;
}

function drawTokenForm(make) {
  return html`
    <form class="box row wrap" onSubmit=${submitFields(make)}>
      <label class="field grow">
        <span>${t("What it is for")}</span>
        <input class="input" name="name" required placeholder=${t("script on my laptop")} />
      </label>
      <label class="field">
        <span>${t("It may")}</span>
        <select class="input" name="scopes">
          ${Object.entries(SCOPES).map(
            ([scopes, label]) => html`
              <option key=${scopes} value=${scopes} selected=${scopes === "read,chat"}>${label}</option>
            `,
          )}
        </select>
      </label>
      <label class="field">
        <span>${t("Days")}</span>
        <input class="input short" name="days" type="number" min="1" placeholder=${t("no end")} />
      </label>
      <button class="btn main">${t("Make")}</button>
    </form>
  `;
}

function drawSecret(made, setMade) {
  return html`
    <div class="box stack" role="status">
      <p><strong>${t("Copy it now: it is not shown again.")}</strong></p>
      <code class="wrap">${made.secret}</code>
      <div class="row">
        <button type="button" class="btn little" onClick=${() => copyText(made.secret)}>
          ${t("Copy")}
        </button>
        <button type="button" class="btn little" onClick=${() => setMade(null)}>${t("Done")}</button>
      </div>
    </div>
  `;
}

/** A browser that came by a link has no name of its own: it is called "browser". */
function nameToken({ kind, name }) {
  if (kind === "browser" && (!name || name === "browser")) return t("Browser");
  return name || t("Token");
}

function drawToken(one, revokeToken) {
  return html`
    <li key=${one.id}>
      <span class="grow">
        <strong>${nameToken(one)}</strong>
        <span class="small muted">
          ${one.user} ·${" "}
          ${t("may: {what}", { what: SCOPES[one.scopes.join(",")] ?? one.scopes.join(", ") })} ·${" "}
          ${t("used {time}", { time: formatDateTime(one.last_used_at) })}
          ${one.expires_at ? ` · ${t("until {time}", { time: formatDateTime(one.expires_at) })}` : ""}
        </span>
        ${
          one.current &&
          html`
            <span class="small muted">
              ${t("You are using it now. To sign out here, use the button below the list of conversations.")}
            </span>
          `
        }
      </span>
      ${
        one.current
          ? html`<span class="tag good">${t("this browser")}</span>`
          : html`
              <span class="tag">${one.kind === "browser" ? t("browser") : t("token")}</span>
              <${ConfirmButton}
                label=${t("Revoke")}
                confirm=${t("Yes, revoke it")}
                onYes=${() => revokeToken(one.id)}
              />
            `
      }
    </li>
  `;
}
