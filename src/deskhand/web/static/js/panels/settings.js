import { html } from "../lib.js";
export function Settings() { return html`<p class="muted">Soon.</p>`; }
