// A dialog that asks for one line of text.

import { html, signal, useLayoutEffect, useRef } from "./lib.js";

const asked = signal(null); // {title, label, value, button, resolve}

/** The trimmed line that was written; "" where there is none, or it was cancelled. */
export const promptText = (question) =>
  new Promise((resolve) => {
    asked.value = { ...question, resolve };
  });

/** What draws the question; it stands once in the page. */
export function PromptLayer() {
  return asked.value && html`<${Prompt} ...${asked.value} />`;
}

function Prompt({ title, label, value = "", button, maxlength = 80, resolve }) {
  const box = useRef();
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    box.current.querySelector("input").select();
    return () => before?.focus?.();
  }, []);
  const answer = (text) => {
    asked.value = null;
    resolve(text.trim());
  };
  return html`
    <dialog
      class="prompt"
      ref=${box}
      aria-labelledby="prompt-title"
      onCancel=${(event) => {
        event.preventDefault();
        answer("");
      }}
      onClick=${(event) => event.target === box.current && answer("")}
    >
      <form
        class="stack"
        onSubmit=${(event) => {
          event.preventDefault();
          answer(new FormData(event.target).get("text"));
        }}
      >
        <h2 id="prompt-title">${title}</h2>
        <label class="field">
          <span>${label}</span>
          <input class="input" name="text" maxlength=${maxlength} defaultValue=${value} required />
        </label>
        <div class="row end">
          <button type="button" class="btn" onClick=${() => answer("")}>Cancel</button>
          <button class="btn main">${button}</button>
        </div>
      </form>
    </dialog>
  `;
}
