import { html } from "../lib.js";
export function Approvals() { return html`<p class="muted">Soon.</p>`; }
