import { html } from "../lib.js";
export function Health() { return html`<p class="muted">Soon.</p>`; }
