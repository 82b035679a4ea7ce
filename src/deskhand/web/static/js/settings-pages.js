// Settings: everything that does not belong to one conversation.

import { DrawerButton } from "./drawer-button.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { useLazyComponent } from "./lazy-component.js";
import { html, useEffect, useRef } from "./lib.js";
import { asks } from "./list.js";
import { route } from "./state.js";

/** Id, name and icon of each page, in their order. */
export const PAGES = [
  ["setup", t("Set up"), "check"],
  ["models", t("Models and skills"), "spark"],
  ["proposals", t("Proposed skills"), "book"],
  ["servers", t("MCP servers"), "tool"],
  ["jobs", t("Jobs"), "time"],
  ["activity", t("Activity"), "trace"],
  ["changes", t("Changes"), "undo"],
  ["approvals", t("Approvals"), "shield"],
  ["people", t("People and pairing"), "people"],
  ["memory", t("Memory"), "memory"],
  ["voice", t("Voice"), "mic"],
  ["usage", t("Usage and cost"), "chart"],
  ["health", t("Health"), "pulse"],
  ["settings", t("Configuration"), "tune"],
];
/** What draws each page: it is loaded when the page is opened. */
const LOADERS = {
  setup: async () => (await import("./panels/setup.js")).Setup,
  models: async () => (await import("./panels/models.js")).Models,
  proposals: async () => (await import("./panels/proposals.js")).Proposals,
  servers: async () => (await import("./panels/servers.js")).Servers,
  jobs: async () => (await import("./panels/jobs.js")).Jobs,
  activity: async () => (await import("./panels/activity.js")).Activity,
  changes: async () => (await import("./panels/changes.js")).Changes,
  approvals: async () => (await import("./panels/approvals.js")).Approvals,
  people: async () => (await import("./panels/people.js")).People,
  memory: async () => (await import("./panels/memory.js")).Memories,
  voice: async () => (await import("./panels/voice.js")).VoiceSettings,
  usage: async () => (await import("./panels/usage.js")).Usage,
  health: async () => (await import("./panels/health.js")).Health,
  settings: async () => (await import("./panels/settings.js")).Settings,
};

export function SettingsView() {
  const { page } = route.value;
  const [wanted, label] = PAGES.find(([id]) => id === page) ?? PAGES[0];
  const top = useRef();
  const Drawn = useLazyComponent(wanted, LOADERS[wanted]);
  const now = useRef();
  useEffect(() => {
    top.current?.focus({ preventScroll: true });
    now.current?.scrollIntoView({ block: "nearest", inline: "center" }); // on a phone it is a long row
  }, [page]);
  return html`
    <div class="settings-view">
      <header class="head">
        <${DrawerButton} />
        <h1 class="title">${t("Settings")}</h1>
      </header>
      <div class="settings-view-body">
        <nav class="pages" aria-label=${t("Settings")}>
          ${PAGES.map(
            ([id, name, icon]) => html`
              <a
                key=${id}
                class="entry"
                href=${`#/settings/${id}`}
                aria-current=${id === wanted ? "page" : null}
                ref=${id === wanted ? now : null}
              >
                <${Icon} name=${icon} />
                <span class="grow">${name}</span>
                ${
                  id === "approvals" &&
                  asks.value.length > 0 &&
                  html`
                    <span class="tag warn">
                      ${asks.value.length}
                      <span class="sr"> ${t("waiting")}</span>
                    </span>
                  `
                }
              </a>
            `,
          )}
        </nav>
        <div class="page" id="page" role="region" aria-label=${label} tabindex="-1" ref=${top}>
          <h2>${label}</h2>
          ${Drawn && html`<${Drawn} key=${page} />`}
        </div>
      </div>
    </div>
  `;
}
