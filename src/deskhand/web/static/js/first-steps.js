// The five first steps, and which of them were skipped in this browser. What was done says the
// server.

import { t } from "./language.js";

const STORED = "deskhand.skipped-steps";

/** Id and name of each step, in their order. */
export const STEPS = [
  ["model", t("A model")],
  ["person", t("You")],
  ["permissions", t("Permissions")],
  ["channel", t("A chat program")],
  ["job", t("A first job")],
];

export function listSkipped() {
  try {
    return JSON.parse(localStorage.getItem(STORED)) ?? [];
  } catch {
    return [];
  }
}

/** All that are skipped, with this one. */
export function noteSkipped(step) {
  const all = [...new Set([...listSkipped(), step])];
  localStorage.setItem(STORED, JSON.stringify(all));
  return all;
}

/** How many steps are neither done nor skipped. */
export const countOpen = (done) => {
  const skipped = listSkipped();
  return STEPS.filter(([step]) => !done.includes(step) && !skipped.includes(step)).length;
};
