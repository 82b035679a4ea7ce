// At a call that uses the browser or the desktop: a way to watch it.

import { Icon } from "./icons.js";
import { t } from "./language.js";
import { html } from "./lib.js";
import { panel } from "./state.js";

const WATCHED = /^(browser|desktop|computer_task)($|_)/;

export function WatchLink({ item, running }) {
  if (!running || !WATCHED.test(item.name) || panel.value === "screen") return null;
  return html`
    <button
      type="button"
      class="watch-link"
      onClick=${() => {
        panel.value = "screen";
      }}
    >
      <${Icon} name="screen" />${t("Watch")}
    </button>
  `;
}
