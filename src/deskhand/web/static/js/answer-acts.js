// What buttons of figures, pages and tables in an answer do.

import { answerFile, openPreview } from "./preview.js";
import { announce } from "./state.js";
import { sortTable, tableCsv } from "./tables.js";
import { copyText, readCode } from "./text.js";

/** By the name that a button has: each is called with its button. */
export const ACTS = {
  open(button) {
    const { className } = button.closest(".code").querySelector("code");
    const component = /language-([jt]sx)/.exec(className)?.[1];
    const name = component ? `component.${component}` : "page.html";
    openPreview(answerFile(name, readCode(button), component ?? "html"));
  },

  source(button) {
    const shown = button.closest(".figure").classList.toggle("as-source");
    button.setAttribute("aria-pressed", String(shown));
  },

  csv(button) {
    const before = button.closest(".table-bar")?.previousElementSibling;
    copyText(tableCsv((before ?? button.parentElement).querySelector("table")), button);
  },

  sort: (button) => announce(sortTable(button)),
};
