// The button that shows the list of conversations where it is folded away.

import { IconButton } from "./icons.js";
import { t } from "./language.js";
import { html } from "./lib.js";
import { drawer } from "./state.js";

export const DrawerButton = () => html`
  <${IconButton}
    name="menu"
    label=${t("Show the conversations")}
    class="ib only-folded"
    onClick=${() => {
      drawer.value = true;
    }}
  />
`;
