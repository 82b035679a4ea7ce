import { html } from "../lib.js";
export function People() { return html`<p class="muted">Soon.</p>`; }
