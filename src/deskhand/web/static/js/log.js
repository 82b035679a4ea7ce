// Parts of a long log: what lies before, behind and around what is here.
import { ApiError, at, get } from "./api.js";
import { EMPTY, fold } from "./fold.js";
import { remembered } from "./keep.js";

/** So many events come at once, and so many are drawn at most. */
export const PAGE = 120,
  MOST = 960;
const AMENDS = new Set(["undone", "message_edited", "reacted"]);

/** Whether it changes how earlier events are shown. */
export const amends = (recorded) => AMENDS.has(recorded.event.type);

/** The events after number `after` up to number `to`: all of them, however many answers they take. Without the server,
 * those that this browser has kept. */
export async function part(name, after, to) {
  const found = [];
  try {
    for (let from = after; from < to; from = found.at(-1).n) {
      const page = await get(at(name, `/log?after=${from}&limit=${Math.min(to - from, 1000)}`));
      if (!page.length) break;
      found.push(...page);
    }
    return found;
  } catch (error) {
    const kept =
      error instanceof ApiError && error.status === 0
        ? (await remembered(name)).filter(({ n }) => n > after && n <= to)
        : [];
    if (kept.length !== to - after) throw error;
    return kept;
  }
}

/** All undos, edits and reactions of this log; null where the server is not reached. */
export async function amendments(name) {
  const found = [];
  try {
    for (let page; !page || page.length; found.push(...page))
      page = await get(at(name, `/amendments?after=${found.at(-1)?.n ?? 0}&limit=1000`));
    return found;
  } catch (error) {
    if (error instanceof ApiError && error.status === 0) return null;
    throw error;
  }
}

export const folded = (events) => events.reduce(fold, EMPTY);
