// The configuration as it holds, and the keys that may be changed from here.
import { html, useState } from "../lib.js";
import { call } from "../api.js";
import { announce, attempt, may } from "../state.js";
import { Loaded, Section, useAsk } from "./parts.js";

export function Settings() {
  const found = useAsk("/api/settings"), [query, setQuery] = useState("");
  return html`<${Loaded} of=${found} what="the configuration">${(data) => {
    const { keys } = data, shown = keys.filter((key) => key.includes(query.toLowerCase()));
    return html`<div class="stack wide">
      <${Section} title="File" note="You can also edit this file. Most changes apply immediately, the others at the next start."><p><code class="wrap">${data.file}</code></p>${(data.warnings ?? []).map((warning) => html`<p class="note warn" key=${warning}>${warning}</p>`)}<//>
      ${keys.length > 0 && html`<${Section} title="Change a key" note="It is checked before it is kept.">${keys.length > 8 && html`<input class="input" type="search" aria-label="Find a key" placeholder="Find a key" value=${query} onInput=${(event) => setQuery(event.target.value)} />`}<ul class="rows">${shown.map((key) => html`<li key=${key}><${Key} name=${key} value=${valueAt(data.config, key)} again=${found.again} /></li>`)}</ul><//>`}
      <${Section} title="All of it" note="Without secrets."><pre class="as-is plain" tabindex="0">${JSON.stringify(data.config, null, 2)}</pre><//>
    </div>`;
  }}<//>`;
}

const valueAt = (config, key) => key.split(".").reduce((value, part) => value?.[part], config);

function Key({ name, value, again }) {
  const shown = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value), [text, setText] = useState(null);
  const save = (event) => {
    event.preventDefault();
    let wanted = text;
    try { wanted = JSON.parse(text); } catch { /* then it is a word */ }
    attempt(async () => { await call("PATCH", "/api/settings", { key: name, value: wanted }); setText(null); announce(`${name} is set`); again(); });
  };
  return html`<form class="row grow key" onSubmit=${save}><label class="grow cut" for=${`key-${name}`} title=${name}><code>${name}</code></label><input class="input" id=${`key-${name}`} value=${text ?? shown} placeholder="as built in" disabled=${!may("admin")} onInput=${(event) => setText(event.target.value)} /><button class="btn little" disabled=${text === null || text === shown}>Save</button></form>`;
}
