import { html } from "../lib.js";
export function Models() { return html`<p class="muted">Soon.</p>`; }
