// Settings: everything about the house that is not one conversation.

import { Icon, IconButton } from "./icons.js";
import { useLater } from "./later.js";
import { html, useEffect, useRef } from "./lib.js";
import { asks } from "./list.js";
import { drawer, here } from "./state.js";

/** id, name, icon, and what brings what is drawn: it is loaded when it is opened. */
export const PAGES = [
  ["setup", "Set up", "check", async () => (await import("./panels/setup.js")).Setup],
  ["models", "Models and skills", "spark", async () => (await import("./panels/models.js")).Models],
  [
    "proposals",
    "Proposed skills",
    "book",
    async () => (await import("./panels/proposals.js")).Proposals,
  ],
  ["jobs", "Jobs", "time", async () => (await import("./panels/jobs.js")).Jobs],
  ["activity", "Activity", "trace", async () => (await import("./panels/activity.js")).Activity],
  ["changes", "Changes", "undo", async () => (await import("./panels/changes.js")).Changes],
  [
    "approvals",
    "Approvals",
    "shield",
    async () => (await import("./panels/approvals.js")).Approvals,
  ],
  [
    "people",
    "People and pairing",
    "people",
    async () => (await import("./panels/people.js")).People,
  ],
  ["usage", "Usage and cost", "chart", async () => (await import("./panels/usage.js")).Usage],
  ["health", "Health", "pulse", async () => (await import("./panels/health.js")).Health],
  [
    "settings",
    "Configuration",
    "tune",
    async () => (await import("./panels/settings.js")).Settings,
  ],
];

export function House() {
  const { page } = here.value,
    [wanted, label, , load] = PAGES.find(([id]) => id === page) ?? PAGES[0],
    top = useRef();
  const Drawn = useLater(wanted, load);
  useEffect(() => top.current?.focus({ preventScroll: true }), [page]);
  return html`<div class="house">
    <header class="head"><${IconButton} name="menu" label="Show the conversations" class="ib only-narrow" onClick=${() => {
      drawer.value = true;
    }} /><h1 class="title">Settings</h1></header>
    <div class="house-body">
      <nav class="pages" aria-label="Settings">${PAGES.map(([id, name, icon]) => html`<a key=${id} class="entry" href=${`#/house/${id}`} aria-current=${name === label ? "page" : null}><${Icon} name=${icon} /><span class="grow">${name}</span>${id === "approvals" && asks.value.length > 0 && html`<span class="tag warn">${asks.value.length}<span class="sr"> waiting</span></span>`}</a>`)}</nav>
      <div class="page" id="page" role="region" aria-label=${label} tabindex="-1" ref=${top}><h2>${label}</h2>${Drawn && html`<${Drawn} key=${page} />`}</div>
    </div>
  </div>`;
}
