// A dialog over the page: Esc and a click beside it close it, and the focus goes back to where it was.

import { html, useLayoutEffect, useRef } from "./lib.js";

export function Modal({ class: name, label, close, children }) {
  const box = useRef();
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal(); // before the next key is pressed
    return () => before?.focus?.();
  }, []);
  return html`
    <dialog
      class=${name}
      ref=${box}
      aria-label=${label}
      onCancel=${(event) => {
        event.preventDefault();
        close();
      }}
      onClick=${(event) => event.target === box.current && close()}
    >
      ${children}
    </dialog>
  `;
}
