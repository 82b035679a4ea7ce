// The choice of the page's language. A globe stands for it, so that it is found in any language.

import { IconButton } from "./icons.js";
import { chooseLanguage, chosenLanguage, LANGUAGES, t } from "./language.js";
import { html } from "./lib.js";
import { openMenu } from "./menu.js";

export function LanguageButton() {
  const offer = (anchor) =>
    openMenu(anchor, t("Language"), [
      {
        label: t("As in the browser"),
        checked: !chosenLanguage,
        run: () => chooseLanguage(""),
      },
      ...LANGUAGES.map(([code, label]) => ({
        label,
        checked: chosenLanguage === code,
        run: () => chooseLanguage(code),
      })),
    ]);
  return html`
    <${IconButton}
      name="globe"
      label=${t("Language")}
      aria-haspopup="menu"
      onClick=${(event) => offer(event.currentTarget)}
    />
  `;
}
