// Above a branch: which conversation it comes from, and after which message.

import { sessionPath } from "./api.js";
import { t, tRich } from "./language.js";
import { html } from "./lib.js";
import { sessionName } from "./list.js";
import { useFetch } from "./panels/parts.js";
import { route, searchTarget, sessionHref } from "./state.js";

/** Open a conversation where a branch left it. */
export function showFork(name, n) {
  if (n) searchTarget.value = { name, n };
}

export function BranchOrigin({ branch }) {
  const { data } = useFetch(sessionPath(route.value.name, "/branches"));
  return html`<p class="divider"><span>${describe(branch, data)}</span></p>`;
}

function describe(branch, family) {
  if (!family) return nameOrigin(sessionName(branch.of), branch.n, t("another conversation"));
  const own = family.branches.find((one) => one.current);
  const origin = family.branches.find((one) => one.name === own?.origin);
  if (!origin) return t("A branch of another conversation, which is not here for you");
  return nameOrigin(origin.name, own.from_n, origin.title || t("Untitled"), own.after);
}

function nameOrigin(name, n, title, words = "") {
  const link = html`
    <a dir="auto" href=${sessionHref(name)} onClick=${() => showFork(name, n)}>${title}</a>
  `;
  return words
    ? tRich("A branch of {conversation}, from message “{words}”", { conversation: link, words })
    : tRich("A branch of {conversation}", { conversation: link });
}
