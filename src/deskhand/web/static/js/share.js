// Share a conversation: which one is shared, and the dialog for it, which is loaded on its first use.

import { useLazyComponent } from "./lazy-component.js";
import { html, signal } from "./lib.js";

const shared = signal(null); // {name, title}
const loadDialog = async () => (await import("./share-dialog.js")).ShareDialog;

export function openShare(one) {
  shared.value = one;
}

/** What draws the dialog; it stands once in the page. */
export function ShareLayer() {
  const one = shared.value;
  const Dialog = useLazyComponent(one ? "share" : "", one ? loadDialog : null);
  const close = () => {
    shared.value = null;
  };
  return one && Dialog && html`<${Dialog} key=${one.name} one=${one} close=${close} />`;
}
