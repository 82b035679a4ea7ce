// Who may use this Deskhand, by what they are known, and the keys they hold.

import { call, post } from "../api.js";
import { moment } from "../format.js";
import { html, useState } from "../lib.js";
import { announce, attempt, may, me } from "../state.js";
import { copy } from "../text.js";
import { Loaded, None, picture, Section, Sure, submit, useAsk } from "./parts.js";

const ROLES = ["viewer", "member", "approver", "owner"];
const ME = "this is me";
const user = (name) => `/api/users/${encodeURIComponent(name)}`;

export function People() {
  const users = useAsk("/api/users"),
    pairings = useAsk("/api/pairings"),
    tokens = useAsk("/api/tokens");
  return html`<div class="stack wide"><${Phone} /><${Pairings} found=${pairings} users=${users} /><${Users} found=${users} /><${Tokens} found=${tokens} /></div>`;
}

function Phone() {
  const [made, setMade] = useState(null);
  const make = () => attempt(async () => setMade(await post("/api/logins")));
  return html`<${Section} title="Use it on your phone" note="A link that signs in one browser, once, for ten minutes. The phone must reach this machine." action=${html`<button type="button" class="btn little" onClick=${make}>Make a link</button>`}>
    ${made && !made.qr_svg && html`<${FromHere} url=${made.url} />`}
    ${made?.qr_svg && html`<div class="row qr"><img src=${picture(made.qr_svg)} alt="The link as a QR code" width="168" height="168" /><div class="stack"><code class="wrap">${made.url}</code><div><button type="button" class="btn little" onClick=${() => copy(made.url)}>Copy</button></div></div></div>`}<//>`;
}

/** A phone would look for 127.0.0.1 in itself: what to do before it can come. */
function FromHere({ url }) {
  const { port } = location;
  return html`<div class="box stack" role="status"><p><strong>This page is open under an address of this machine alone, so a phone cannot follow the link.</strong></p>
    <p>Put TLS in front of Deskhand, tell it the name, start it again, and open this page under that name. With Tailscale:</p>
    <pre tabindex="0">tailscale serve --bg ${port}${"\n"}deskhand config set web.hosts '[MACHINE.TAILNET.ts.net]'</pre>
    <p class="small muted">Caddy or nginx do as well; see “From another machine” in docs/serve.md. In another browser on this machine, this link works: <code class="wrap">${url}</code></p>
    <div><button type="button" class="btn little" onClick=${() => copy(url)}>Copy</button></div></div>`;
}

function Pairings({ found, users }) {
  const settle = (work, said) =>
    attempt(async () => {
      await work();
      announce(said);
      found.again();
      users.again();
    });
  const approve = (code) => (event) => {
    event.preventDefault();
    const role = new FormData(event.target).get("role");
    settle(() => post(`/api/pairings/${code}`, role === ME ? { owner: true } : { role }), "Let in");
  };
  const nobody = (users.data || []).every((one) => one.name !== "owner" || !one.identities.length);
  return html`<${Section} title="Pairing requests" note="Somebody new who writes to your bot gets a code, and is listed here. Compare it with the code that they tell you.">
    <${Loaded} of=${found} what="pairing">${(all) =>
      all.length
        ? html`<ul class="rows">${all.map(
            (
              one,
            ) => html`<li key=${one.code}><span class="grow"><strong><code>${one.code}</code> ${one.name}</strong><span class="small muted">${one.channel} · ${one.external_id} · until ${moment(one.expires_at)}</span></span>
      <form class="row" onSubmit=${approve(one.code)}><select class="input" name="role" required aria-label="As">${nobody && html`<option value="">who is it?</option><option value=${ME}>this is me</option>`}${ROLES.map((role) => html`<option key=${role} selected=${!nobody && role === "member"}>${role}</option>`)}</select><button class="btn main little">Let in</button></form><button type="button" class="btn little" onClick=${() => settle(() => call("DELETE", `/api/pairings/${one.code}`), "Turned away")}>Turn away</button></li>`,
          )}</ul>`
        : html`<${None}>Nobody is asking.<//>`}<//><//>`;
}

function Users({ found }) {
  const [adding, setAdding] = useState(false);
  const settle = (work, said) =>
    attempt(async () => {
      await work();
      announce(said);
      found.again();
      return true;
    });
  return html`<${Section} title="People" note="Viewers read, members talk, approvers answer for risky calls, owners manage the settings." action=${may("admin") && html`<button type="button" class="btn little" aria-expanded=${String(adding)} onClick=${() => setAdding(!adding)}>Add somebody</button>`}>
    ${
      adding &&
      html`<form class="box row wrap" onSubmit=${submit((fields) =>
        settle(() => post("/api/users", fields), "Added").then((done) => {
          if (done) setAdding(false);
          return done;
        }),
      )}><label class="field grow"><span>Name</span><input class="input" name="name" required pattern="[a-z0-9.\\-]+" title="Small letters, digits, . and -" placeholder="ada" /></label><label class="field"><span>Role</span><select class="input" name="role">${ROLES.map((role) => html`<option key=${role} selected=${role === "member"}>${role}</option>`)}</select></label><button class="btn main">Add</button></form>`
    }
    <${Loaded} of=${found} what="people">${(all) =>
      html`<ul class="rows">${all.map(
        (
          one,
        ) => html`<li key=${one.name} class="wrap"><span class="avatar" aria-hidden="true">${one.name[0].toUpperCase()}</span><span class="grow"><strong>${one.name}</strong><span class="small muted">${one.identities.map((known) => `${known.channel}: ${known.external_id}`).join(" · ") || (one.name === me.value.user ? "you, in this browser" : "no chat account linked")}</span></span>
      ${one.roles.map((role) => html`<span key=${role} class="tag">${role}${may("admin") && one.roles.length > 1 && html`<button type="button" class="x" aria-label=${`Take the role ${role} from ${one.name}`} onClick=${() => settle(() => call("DELETE", `${user(one.name)}/roles/${role}`), "Role taken")}>×</button>`}</span>`)}
      ${
        may("admin") &&
        html`<select class="input short" aria-label=${`Give ${one.name} a role`} value="" onChange=${(
          event,
        ) => {
          const role = event.target.value;
          event.target.value = "";
          settle(() => post(`${user(one.name)}/roles/${role}`), "Role given");
        }}><option value="">give a role</option>${ROLES.filter((role) => !one.roles.includes(role)).map((role) => html`<option key=${role} value=${role}>${role}</option>`)}</select>${one.name !== me.value.user && html`<${Sure} label="Remove" sure="Yes, with all their keys" onYes=${() => settle(() => call("DELETE", user(one.name)), "Removed")} />`}`
      }</li>`,
      )}</ul>`}<//><//>`;
}

function Tokens({ found }) {
  const [made, setMade] = useState(null),
    [adding, setAdding] = useState(false);
  const make = async (fields) => {
    const answer = await post("/api/tokens", {
      name: fields.name,
      scopes: fields.scopes.split(","),
      ...(fields.days ? { days: Number(fields.days) } : {}),
    });
    setMade(answer);
    setAdding(false);
    found.again();
    return answer;
  };
  const revoke = (id) =>
    attempt(async () => {
      await call("DELETE", `/api/tokens/${encodeURIComponent(id)}`);
      announce("Revoked");
      found.again();
    });
  return html`<${Section} title="Keys" note="Browsers that are signed in, and tokens for programs. Whoever holds one acts as its user." action=${html`<button type="button" class="btn little" aria-expanded=${String(adding)} onClick=${() => setAdding(!adding)}>Make a token</button>`}>
    ${adding && html`<form class="box row wrap" onSubmit=${submit(make)}><label class="field grow"><span>What it is for</span><input class="input" name="name" required placeholder="script on my laptop" /></label><label class="field"><span>It may</span><select class="input" name="scopes"><option value="read">read</option><option value="read,chat" selected>read and talk</option><option value="read,chat,approve">… and approve</option><option value="read,chat,approve,admin">everything</option></select></label><label class="field"><span>Days</span><input class="input short" name="days" type="number" min="1" placeholder="no end" /></label><button class="btn main">Make</button></form>`}
    ${made && html`<div class="box stack" role="status"><p><strong>Copy it now: it is not shown again.</strong></p><code class="wrap">${made.secret}</code><div class="row"><button type="button" class="btn little" onClick=${() => copy(made.secret)}>Copy</button><button type="button" class="btn little" onClick=${() => setMade(null)}>I have it</button></div></div>`}
    <${Loaded} of=${found} what="keys">${(all) => (all.length ? html`<ul class="rows">${all.map((one) => html`<li key=${one.id}><span class="grow"><strong>${one.name || (one.kind === "browser" ? "Browser" : "Token")}</strong><span class="small muted">${one.user} · ${one.scopes.join(", ")} · used ${moment(one.last_used_at)}${one.expires_at ? ` · until ${moment(one.expires_at)}` : ""}</span></span><span class="tag">${one.kind === "browser" ? "browser" : "token"}</span><${Sure} label="Revoke" sure="Yes, revoke it" onYes=${() => revoke(one.id)} /></li>`)}</ul>` : html`<${None}>There are none.<//>`)}<//><//>`;
}
