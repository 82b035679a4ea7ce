// Settings: everything about the house that is not one conversation.
import { html, useEffect, useRef } from "./lib.js";
import { drawer, here } from "./state.js";
import { Icon, IconButton } from "./icons.js";
import { Setup } from "./panels/setup.js";
import { Models } from "./panels/models.js";
import { People } from "./panels/people.js";
import { Approvals } from "./panels/approvals.js";
import { Changes } from "./panels/changes.js";
import { Proposals } from "./panels/proposals.js";
import { Jobs } from "./panels/jobs.js";
import { Activity } from "./panels/activity.js";
import { Usage } from "./panels/usage.js";
import { Health } from "./panels/health.js";
import { Settings } from "./panels/settings.js";

/** id, name, icon, what is drawn. */
export const PAGES = [
  ["setup", "Set up", "check", Setup],
  ["models", "Models and skills", "spark", Models],
  ["proposals", "Proposed skills", "book", Proposals],
  ["jobs", "Jobs", "time", Jobs],
  ["activity", "Activity", "trace", Activity],
  ["changes", "Changes", "undo", Changes],
  ["approvals", "Approvals", "shield", Approvals],
  ["people", "People and pairing", "people", People],
  ["usage", "Usage and cost", "chart", Usage],
  ["health", "Health", "pulse", Health],
  ["settings", "Configuration", "tune", Settings],
];

export function House() {
  const { page } = here.value, [, label, , Drawn] = PAGES.find(([id]) => id === page) ?? PAGES[0], top = useRef();
  useEffect(() => top.current?.focus({ preventScroll: true }), [page]);
  return html`<div class="house">
    <header class="head"><${IconButton} name="menu" label="Show the conversations" class="ib only-narrow" onClick=${() => { drawer.value = true; }} /><h1 class="title">Settings</h1></header>
    <div class="house-body">
      <nav class="pages" aria-label="Settings">${PAGES.map(([id, name, icon]) => html`<a key=${id} class="entry" href=${`#/house/${id}`} aria-current=${name === label ? "page" : null}><${Icon} name=${icon} /><span>${name}</span></a>`)}</nav>
      <div class="page" role="region" aria-label=${label} tabindex="-1" ref=${top}><h2>${label}</h2><${Drawn} key=${page} /></div>
    </div>
  </div>`;
}
