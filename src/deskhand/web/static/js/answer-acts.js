// What buttons of figures, pages and tables in an answer do.

import { answerFile, openPreview } from "./preview.js";
import { announce } from "./state.js";
import { sortTable, tableCsv } from "./tables.js";
import { copyText, readCode } from "./text.js";

/** By the name that a button has: each is called with its button. */
export const ACTS = {
  open: (button) => openPreview(answerFile("page.html", readCode(button), "html")),

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
