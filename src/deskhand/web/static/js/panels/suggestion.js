// Buttons with which an empty page begins: an example request, or a step of the setup.

import { draft } from "../composer.js";
import { html } from "../lib.js";
import { hasScope, narrow, openSession, panel, route } from "../state.js";
import { loadDraft, storeDraft } from "../storage.js";

/** Put a request into the message field: of the conversation beside, or of a new one. What is
 * written there stays below it, and nothing is sent. */
function suggestMessage(text) {
  const { name, place } = route.value;
  const written = loadDraft(name);
  const both = written.includes(text) ? written : [text, written].filter(Boolean).join("\n\n");
  storeDraft(name, both);
  if (place !== "talk") {
    openSession(""); // the field reads it as it is drawn
    return;
  }
  draft.value = both;
  if (narrow.value) panel.value = "";
  document.getElementById("composer")?.focus();
}

/** `onUse` is called before, such as by a window that has to be closed. */
export const Suggestion = ({ text, onUse, children }) =>
  hasScope("chat") &&
  html`
    <button
      type="button"
      class="btn little"
      title=${text}
      onClick=${() => {
        onUse?.();
        suggestMessage(text);
      }}
    >
      ${children}
    </button>
  `;

/** To one step of the setup, which is open then. */
export function StepButton({ step, children }) {
  const openStep = async () => {
    (await import("./setup.js")).openStep(step);
    location.hash = "#/settings/setup";
  };
  return (
    hasScope("admin") &&
    html`<button type="button" class="btn little" onClick=${openStep}>${children}</button>`
  );
}
