// Whether the list of conversations gives its room to what is beside the conversation.

import { computed, signal } from "./lib.js";
import { beside, previewedFile } from "./preview.js";
import { narrow, panel, route } from "./state.js";

/** Below this width there is no room for the list, 480 px of a conversation, and a panel. */
const mediumScreen = matchMedia("(max-width: 1220px)");
const medium = signal(mediumScreen.matches);
mediumScreen.addEventListener("change", () => {
  medium.value = mediumScreen.matches;
});

/** Whether the list is a drawer: on a narrow screen, and beside an open panel on a medium one. */
export const folded = computed(() => {
  if (narrow.value) return true;
  const hasPanel = panel.value || (previewedFile.value && beside.value);
  return medium.value && route.value.place === "talk" && Boolean(hasPanel);
});
