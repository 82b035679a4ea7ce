import { html } from "../lib.js";
export function Usage() { return html`<p class="muted">Soon.</p>`; }
