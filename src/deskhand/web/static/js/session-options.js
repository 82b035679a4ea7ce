// How the open conversation is held: its model, effort and permissions.

import { get, sessionPath } from "./api.js";
import { computed, effect, signal } from "./lib.js";
import { newOptions } from "./new-options.js";
import { attempt, route, updateSession } from "./state.js";
import { talk } from "./talk.js";

const earlier = signal({ name: "", options: {} }); // from before the events that are loaded

export const sessionOptions = computed(() => {
  const { name } = route.value;
  if (!name) return newOptions.value;
  return { ...(earlier.value.name === name ? earlier.value.options : {}), ...talk.value.options };
});

/** Set these; what goes wrong is shown. */
export function setSessionOptions(options) {
  const { name } = route.value;
  if (name) return attempt(() => updateSession(name, options));
  newOptions.value = { ...newOptions.value, ...options };
  return undefined;
}

// Of a long conversation only the end is loaded: what was set before is asked for.
effect(() => {
  const { name } = route.value;
  const isWhole = talk.value.first <= 1;
  if (!name || isWhole || earlier.peek().name === name) return;
  earlier.value = { name, options: {} };
  get(sessionPath(name, "/options")).then(
    (options) => {
      if (earlier.peek().name === name) earlier.value = { name, options };
    },
    () => undefined,
  );
});
