// Buttons with which an empty page begins: an example request, or a step of the setup.

import { addToDraft } from "../composer.js";
import { html } from "../lib.js";
import { hasScope } from "../state.js";

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
        addToDraft(text, { first: true });
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
