// A page that the server writes in English and that says one thing: in the reader's language.

import { serverTexts, tServer } from "./language.js";

await serverTexts;

for (const said of document.querySelectorAll("[data-said]"))
  said.textContent = tServer(said.textContent);
document.title = tServer(document.title);
