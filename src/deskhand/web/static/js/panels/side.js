import { html } from "../lib.js";
export function SidePanel() { return html`<aside class="panel">Soon.</aside>`; }
