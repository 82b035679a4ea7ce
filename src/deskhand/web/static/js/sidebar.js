// The list of conversations, the search over all that was said, and the ways to everything else.
import { html, useEffect, useRef, useState } from "./lib.js";
import { get } from "./api.js";
import { activity, chooseTheme, developer, drawer, go, health, here, hrefOf, me, sessions, signOut, sought, theme } from "./state.js";
import { day, moment } from "./format.js";
import { Icon, IconButton } from "./icons.js";

const CHANNELS = { web: "", terminal: "terminal", telegram: "Telegram", discord: "Discord", slack: "Slack", api: "API" };

export function Sidebar() {
  const [query, setQuery] = useState("");
  const list = useRef();
  const narrow = matchMedia("(max-width: 760px)").matches;
  return html`<nav class=${`side ${drawer.value ? "open" : ""}`} aria-label="Conversations" inert=${narrow && !drawer.value}>
    <div class="side-top">
      <a class="brand" href="#/" aria-label="Deskhand, a new conversation"><img src="/icon.svg" alt="" width="24" height="24" /><span>Deskhand</span></a>
      <${IconButton} name="close" label="Close the list" class="ib only-narrow" onClick=${() => { drawer.value = false; }} />
    </div>
    <button type="button" class="btn new" onClick=${() => { drawer.value = false; go(""); requestAnimationFrame(() => document.getElementById("composer")?.focus()); }}><${Icon} name="plus" />New conversation</button>
    <label class="search"><${Icon} name="search" /><span class="sr">Search everything that was said</span>
      <input id="search" type="search" placeholder="Search" autocomplete="off" value=${query} onInput=${(event) => setQuery(event.target.value)}
        onKeyDown=${(event) => { if (event.key === "Escape" && query) { event.preventDefault(); setQuery(""); } if (event.key === "ArrowDown") { event.preventDefault(); list.current.querySelector("a")?.focus(); } }} />
      <kbd aria-hidden="true">/</kbd></label>
    <div class="side-list" ref=${list} onKeyDown=${arrows}>${query.trim() ? html`<${Found} query=${query.trim()} />` : html`<${List} />`}</div>
    <${Foot} />
  </nav>`;
}

function arrows(event) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const links = [...event.currentTarget.querySelectorAll("a")], next = links[links.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
  event.preventDefault();
  (next ?? document.getElementById("search")).focus();
}

function List() {
  if (sessions.value === null) return html`<p class="hint">One moment …</p>`;
  if (!sessions.value.length) return html`<p class="hint">Your conversations will be listed here. The ones from the terminal and from chat programs are too.</p>`;
  const groups = [];
  for (const one of sessions.value) {
    const name = day(one.last_at);
    if (groups.at(-1)?.name !== name) groups.push({ name, all: [] });
    groups.at(-1).all.push(one);
  }
  return groups.map((group) => html`<section key=${group.name} aria-label=${group.name}><h3 class="side-head">${group.name}</h3><ul>${group.all.map((one) => html`<li key=${one.key}><${Entry} one=${one} /></li>`)}</ul></section>`);
}

function Entry({ one }) {
  const doing = activity.value[one.key], chosen = one.name === here.value.name;
  const from = one.channel === "web" ? "" : CHANNELS[one.channel] ?? one.channel;
  return html`<a class="entry" href=${hrefOf(one.name)} aria-current=${chosen ? "page" : null} title=${`${one.title || "Untitled"} · ${moment(one.last_at)}`}>
    <span class="cut grow">${one.title || "Untitled"}</span>
    ${from && html`<span class="tag">${from}</span>`}
    ${doing === "running" && html`<span class="dot runs" role="img" aria-label="running"></span>`}
    ${doing === "asking" && html`<span class="dot asks" role="img" aria-label="waits for your answer"></span>`}
  </a>`;
}

function Found({ query }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    let void_ = false;
    const timer = setTimeout(() => get(`/api/search?limit=30&q=${encodeURIComponent(query)}`).then((hits) => !void_ && setFound({ hits }), (error) => !void_ && setFound({ error })), 160);
    return () => { void_ = true; clearTimeout(timer); };
  }, [query]);
  const titles = (sessions.value ?? []).filter((one) => one.title.toLowerCase().includes(query.toLowerCase()));
  const hits = found?.hits ?? [];
  return html`<div role="region" aria-label="What was found" aria-live="polite">
    ${titles.length > 0 && html`<h3 class="side-head">Titles</h3><ul>${titles.slice(0, 8).map((one) => html`<li key=${one.key}><${Entry} one=${one} /></li>`)}</ul>`}
    ${hits.length > 0 && html`<h3 class="side-head">In conversations</h3><ul>${hits.map((hit) => html`<li key=${`${hit.name}.${hit.n}`}><a class="entry tall" href=${hrefOf(hit.name)} onClick=${() => { sought.value = { name: hit.name, n: hit.n }; }}><span class="cut">${hit.title || "Untitled"}</span><span class="hit"><${Marked} text=${hit.excerpt} /></span></a></li>`)}</ul>`}
    ${found?.error && !found.error.missing && html`<p class="hint">${found.error.message}</p>`}
    ${found?.error?.missing && html`<p class="hint">This server searches titles only.</p>`}
    ${found && !hits.length && !titles.length && html`<p class="hint">Nothing has “${query}” in it. Try fewer or other words.</p>`}
  </div>`;
}

/** Hits stand between U+E000 and U+E001. */
export function Marked({ text }) {
  return text.split("\uE000").map((piece, i) => {
    const [hit, rest] = i ? piece.split("\uE001") : ["", piece];
    return html`${hit && html`<mark>${hit}</mark>`}${rest}`;
  });
}

function Foot() {
  const worst = health.value?.status;
  return html`<div class="side-foot">
    <a class="entry" href="#/house/models" aria-current=${here.value.place === "house" ? "page" : null}><${Icon} name="gear" /><span class="grow">Settings</span>
      ${worst && worst !== "ok" && html`<span class="tag warn">${worst}</span>`}</a>
    <div class="row">
      <button type="button" class="entry grow" role="switch" aria-checked=${developer.value} onClick=${() => { developer.value = !developer.value; }}
        title="The developer view shows traces, raw events, arguments and the slider over a session"><${Icon} name="code" /><span class="grow">Developer view</span><span class="switch" aria-checked=${String(developer.value)} aria-hidden="true"></span></button>
    </div>
    <div class="row who"><span class="avatar" aria-hidden="true">${(me.value.user[0] ?? "?").toUpperCase()}</span><span class="grow cut">${me.value.user}</span>
      <${IconButton} name=${theme.value === "dark" ? "sun" : "moon"} label=${theme.value === "dark" ? "Use light colours" : "Use dark colours"} onClick=${() => chooseTheme(theme.value === "dark" ? "light" : "dark")} />
      <${IconButton} name="out" label="Sign out of this browser" onClick=${signOut} /></div>
  </div>`;
}
