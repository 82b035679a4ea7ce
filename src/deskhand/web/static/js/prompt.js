// A dialog that asks for one line of text, or for a date.

import { t } from "./language.js";
import { html, signal, useLayoutEffect, useRef } from "./lib.js";
import { Modal } from "./modal.js";

const asked = signal(null); // {title, label, value, type, button, resolve}

/** The trimmed line that was written; "" where there is none, or it was cancelled. */
export const promptText = (question) =>
  new Promise((resolve) => {
    asked.value = { ...question, resolve };
  });

/** What draws the question; it stands once in the page. */
export function PromptLayer() {
  return asked.value && html`<${Prompt} ...${asked.value} />`;
}

function Prompt({ title, label, value = "", button, type = "text", maxlength = 80, resolve }) {
  const field = useRef();
  useLayoutEffect(() => field.current.select(), []);
  const answer = (text) => {
    asked.value = null;
    resolve(text.trim());
  };
  return html`
    <${Modal} class="prompt" label=${title} close=${() => answer("")}>
      <form
        class="stack"
        onSubmit=${(event) => {
          event.preventDefault();
          answer(field.current.value);
        }}
      >
        <h2>${title}</h2>
        <label class="field">
          <span>${label}</span>
          <input
            class="input"
            type=${type}
            ref=${field}
            maxlength=${maxlength}
            defaultValue=${value}
            required
          />
        </label>
        <div class="row end">
          <button type="button" class="btn" onClick=${() => answer("")}>${t("Cancel")}</button>
          <button class="btn main">${button}</button>
        </div>
      </form>
    <//>
  `;
}
