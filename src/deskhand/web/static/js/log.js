// Parts of a long log: what lies before, behind and around what is here.
import { ApiError, get, sessionPath } from "./api.js";
import { EMPTY, fold } from "./fold.js";
import { loadEvents } from "./storage.js";

/** Events that are loaded at once. */
export const PAGE_EVENTS = 120;
export const MAX_DRAWN_EVENTS = 960;
const AMENDMENT_TYPES = new Set(["undone", "message_edited", "reacted"]);

/** Whether it changes how earlier events are shown. */
export const isAmendment = (recorded) => AMENDMENT_TYPES.has(recorded.event.type);

/**
 * All events after number `after` up to number `last`, in as many requests as that takes. Without
 * the server, those that this browser has kept.
 */
export async function fetchEvents(name, after, last) {
  const found = [];
  try {
    for (let from = after; from < last; from = found.at(-1).n) {
      const page = await get(
        sessionPath(name, `/log?after=${from}&limit=${Math.min(last - from, 1000)}`),
      );
      if (!page.length) break;
      found.push(...page);
    }
    return found;
  } catch (error) {
    const kept =
      error instanceof ApiError && error.status === 0
        ? (await loadEvents(name)).filter((recorded) => recorded.n > after && recorded.n <= last)
        : [];
    if (kept.length !== last - after) throw error;
    return kept;
  }
}

/** All undos, edits and reactions of this log; null where the server is not reached. */
export async function fetchAmendments(name) {
  const found = [];
  try {
    for (let page; !page || page.length; found.push(...page))
      page = await get(sessionPath(name, `/amendments?after=${found.at(-1)?.n ?? 0}&limit=1000`));
    return found;
  } catch (error) {
    if (error instanceof ApiError && error.status === 0) return null;
    throw error;
  }
}

export const foldEvents = (events) => events.reduce(fold, EMPTY);
