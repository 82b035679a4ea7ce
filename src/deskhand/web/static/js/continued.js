// Begin a conversation of one's own with what a link shows.

import { newId, post, sessionPath } from "./api.js";
import { t } from "./language.js";
import { promptText } from "./prompt.js";
import { openSession } from "./state.js";

/** `link` is the secret in the address of the shared conversation. */
export async function continueShared(link) {
  history.replaceState(null, "", "#/"); // it is a secret: hide it first
  const text = await promptText({
    title: t("Continue the shared conversation"),
    label: t("Your first message"),
    button: t("Send"),
    maxlength: 4000,
  });
  if (!text) return;
  const path = sessionPath(`chat-${newId()}`, "/continue");
  const { name } = await post(path, { link, text });
  openSession(name);
}
