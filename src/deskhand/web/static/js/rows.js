// The rows of the list of conversations: its pages, and events in between. Pure functions.
import { textOf } from "./fold-items.js";

const TITLE_CHARS = 80;
const SLACK_S = 60; // the server writes `last_at` to the minute while a turn goes on

/** As the server sorts: the latest first, of the same time by key, descending. */
function compareRows(one, other) {
  const byTime = other.last_at - one.last_at;
  if (byTime) return byTime;
  if (one.key === other.key) return 0;
  return one.key < other.key ? 1 : -1;
}

/** `rows`, with those that are in `found` replaced, and the others of `found` added. */
export function put(rows, found) {
  const keys = new Set(found.map((row) => row.key));
  return [...rows.filter((row) => !keys.has(row.key)), ...found].sort(compareRows);
}

/** The rows above `edge`, where the loaded pages end; undefined: all pages are loaded. */
export function listed(rows, edge) {
  if (!edge) return rows;
  const space = edge.indexOf(" ");
  const last = { last_at: Number(edge.slice(0, space)), key: edge.slice(space + 1) };
  return rows.filter((row) => compareRows(row, last) <= 0);
}

/**
 * What is known after the first page was loaded again: `{rows, edge}`. A row that the page should
 * name and does not is gone. Where the page does not reach the known rows, these are dropped.
 */
export function renewed(known, page, more, edge) {
  const last = page.at(-1);
  const newest = known[0];
  if (!more || !newest || last.last_at > newest.last_at - SLACK_S)
    return { rows: page, edge: more };
  const behind = known.filter((row) => compareRows(row, last) > 0);
  return { rows: put(behind, page), edge };
}

function makeTitle(message) {
  const words = textOf(message)
    .slice(0, 2 * TITLE_CHARS)
    .split(/\s+/);
  return words.filter(Boolean).join(" ").slice(0, TITLE_CHARS);
}

export const isPinned = (row) => Boolean(row.pinned && !row.archived);

/** Whether the row is listed among the days. */
export const isInDays = (row) => !(row.pinned || row.folder || row.archived);

const LISTED = ["title", "pinned", "folder", "archived"];

function withOptions(row, options) {
  const set = LISTED.filter((key) => options[key] != null);
  return set.length
    ? { ...row, ...Object.fromEntries(set.map((key) => [key, options[key]])) }
    : row;
}

/** Whether this event moves the row to another folder, or into the archive or out of it. */
export function movesRow(row, event) {
  if (event.type === "message_received") return Boolean(row?.archived);
  const { folder, archived } = event.options ?? {};
  return event.type === "options_set" && (folder != null || archived != null);
}

/** The row after this event, without a request. */
export function told(row, recorded) {
  const { event, at: timestamp } = recorded;
  switch (event.type) {
    case "message_received":
      return {
        ...row,
        last_at: timestamp,
        title: row.title || makeTitle(event.message),
        archived: false,
      };
    case "turn_ended":
      return { ...row, last_at: timestamp };
    case "options_set":
      return withOptions(row, event.options ?? {});
    default:
      return row;
  }
}
