// How much is new in the inbox, for the badges: on the link, in the title and on the app's icon.

import { get } from "./api.js";
import { computed, effect, signal } from "./lib.js";
import { asks, endedTurns } from "./list.js";
import { currentUser } from "./state.js";

const SOON_MS = 800;
const unseen = signal(0);
/** Grows when something new is in the inbox: what shows it loads it again. */
export const inboxChanges = signal(0);
/** How many questions wait for this person, and how much finished or failed since they looked. */
export const inboxCount = computed(() => asks.value.length + unseen.value);

let timer;
let countedTo = 0; // the last event that was looked at

effect(() => {
  if (!endedTurns.value) return;
  clearTimeout(timer);
  timer = setTimeout(countInbox, SOON_MS);
});

/** Count what is new: all of it first, then what came since. */
export async function countInbox() {
  try {
    const found = await get(`/api/inbox/count?after=${countedTo}`);
    unseen.value += found.unseen;
    countedTo = found.seq;
    if (found.unseen) inboxChanges.value += 1;
  } catch {
    /* the badge says what it said */
  }
}

export function clearInboxCount() {
  unseen.value = 0;
}

effect(() => {
  const count = currentUser.value ? inboxCount.value : 0;
  if (count) navigator.setAppBadge?.(count).catch(() => undefined);
  else navigator.clearAppBadge?.().catch(() => undefined);
});

effect(() => {
  if (currentUser.value !== null) return;
  unseen.value = 0;
  countedTo = 0;
});
