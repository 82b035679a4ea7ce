// What permission modes and roles are called, beside the ids that the configuration has.

import { t } from "../language.js";

const MODES = {
  "read-only": t("Read only"),
  "ask-me": t("Ask first"),
  "workspace-free": t("Workspace only"),
  everything: t("Everything"),
};
const ROLES = {
  viewer: t("Viewer"),
  member: t("Member"),
  approver: t("Approver"),
  owner: t("Owner"),
};

/** The roles that there are without any configuration, the least free first. */
export const BUILT_IN_ROLES = Object.keys(ROLES);

export const nameMode = (mode) => MODES[mode] ?? mode;

/** A role of the person's own has the name that they gave it. */
export const nameRole = (role) => ROLES[role] ?? role;
