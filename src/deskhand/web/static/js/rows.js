// The rows of the list of conversations: pages of it, and what happens meanwhile. Pure: nothing here asks or draws.
import { textOf } from "./fold.js";

const TITLE_CHARS = 80,
  SLACK_S = 60; // the server writes `last_at` to the minute while a turn goes on

/** As the server sorts them: the latest first, of the same time by their key. */
const order = (one, other) =>
  other.last_at - one.last_at || (one.key < other.key ? 1 : one.key > other.key ? -1 : 0);

/** These rows with those that were found in the place of what was known of them. */
export function put(rows, found) {
  const keys = new Set(found.map((row) => row.key));
  return [...rows.filter((row) => !keys.has(row.key)), ...found].sort(order);
}

/** Those that stand above `edge`, where the pages that are here end; undefined: all of them are here. */
export function listed(rows, edge) {
  if (!edge) return rows;
  const space = edge.indexOf(" "),
    last = { last_at: Number(edge.slice(0, space)), key: edge.slice(space + 1) };
  return rows.filter((row) => order(row, last) <= 0);
}

/** What is known once the first page was asked for again: `{rows, edge}`. What it does not name and should is gone;
 * where it does not reach down to what was known, everything behind it is asked for anew. */
export function renewed(known, page, more, edge) {
  const last = page.at(-1),
    newest = known[0];
  if (!more || !newest || last.last_at > newest.last_at - SLACK_S)
    return { rows: page, edge: more };
  const behind = known.filter((row) => order(row, last) > 0);
  return { rows: put(behind, page), edge };
}

/** The row after this event, which nobody has to ask the server for. */
export function told(row, { event, at }) {
  switch (event.type) {
    case "message_received":
      return {
        ...row,
        last_at: at,
        title:
          row.title ||
          textOf(event.message)
            .slice(0, 2 * TITLE_CHARS)
            .split(/\s+/)
            .filter(Boolean)
            .join(" ")
            .slice(0, TITLE_CHARS),
      };
    case "turn_ended":
      return { ...row, last_at: at };
    case "options_set":
      return event.options?.title == null ? row : { ...row, title: event.options.title };
    default:
      return row;
  }
}
