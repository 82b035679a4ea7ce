// What a person does with the open conversation besides writing: stop, answer, retry, undo, branch.

import { post, sessionPath } from "./api.js";
import { t } from "./language.js";
import { announce, attempt, openSession, route } from "./state.js";

export const stopTurn = () => attempt(() => post(sessionPath(route.value.name, "/stop")));

export const answerAsk = (id, choice) =>
  attempt(() => post(sessionPath(route.value.name, `/asks/${encodeURIComponent(id)}`), { choice }));

export const retryTurn = () => attempt(() => post(sessionPath(route.value.name, "/retry")));

export const rewindSession = (to_n, more = {}) =>
  attempt(() => post(sessionPath(route.value.name, "/rewind"), { to_n, ...more }));

export async function branchSession(at_n) {
  const made = await attempt(() => post(sessionPath(route.value.name, "/branch"), { at_n }));
  if (made) {
    openSession(made.name);
    announce(t("A branch is open"));
  }
}
