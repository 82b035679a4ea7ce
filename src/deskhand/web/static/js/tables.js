// Tables in answers: sorted by a click on a header, and copied for a spreadsheet.

import { t } from "./language.js";

const NUMBER = /^[-+−]?(?:\d+(?:[.,\s' ]\d+)*|\.\d+)(?:e[-+]?\d+)?$/i;
const UNIT = /^[\p{Sc}\s]+|[\p{Sc}%\s\p{L}/²³°]+$/gu;

/** The number that a cell shows, without its unit; NaN where it shows none. */
function readNumber(cell) {
  const text = cell.trim().replace(UNIT, "");
  if (!NUMBER.test(text)) return Number.NaN;
  return Number.parseFloat(text.replace("−", "-").replace(/[,\s' ](?=\d{3}(?:\D|$))/g, ""));
}

/** Whether one cell comes before another: by number where both are one, else by their words. */
export function compareCells(one = "", other = "") {
  const [left, right] = [readNumber(one), readNumber(other)];
  if (!Number.isNaN(left) && !Number.isNaN(right)) return left - right;
  if (!one.trim() || !other.trim()) return (one.trim() ? 0 : 1) - (other.trim() ? 0 : 1);
  return one.localeCompare(other, undefined, { numeric: true, sensitivity: "base" });
}

/** What a cell says, without the hosts that the page adds to links. */
function readCell(cell) {
  if (!cell?.querySelector(".host")) return cell?.textContent;
  const copy = cell.cloneNode(true);
  for (const host of copy.querySelectorAll(".host")) host.remove();
  return copy.textContent;
}

const places = new WeakMap(); // a row: where it stood before the table was sorted

/** Sort a table by the column of this button: up, down, and as it was. */
export function sortTable(button) {
  const header = button.closest("th");
  const body = button.closest("table").tBodies[0];
  if (!body) return "";
  const column = header.cellIndex;
  const before = header.getAttribute("aria-sort");
  const next = { ascending: "descending", descending: "" }[before] ?? "ascending";
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  const rows = [...body.rows];
  for (const [i, row] of rows.entries()) if (!places.has(row)) places.set(row, i);
  const sign = next === "descending" ? -1 : 1;
  const compare = (one, other) =>
    next
      ? sign * compareCells(readCell(one.cells[column]), readCell(other.cells[column]))
      : places.get(one) - places.get(other);
  body.append(...rows.sort(compare));
  if (next) header.setAttribute("aria-sort", next);
  if (!next) return t("In its first order");
  const values = { column: header.textContent.trim() };
  return next === "descending"
    ? t("Sorted by {column}, descending", values)
    : t("Sorted by {column}, ascending", values);
}

/** A spreadsheet would run what begins so, unless it is a number. */
const FORMULA = /^[=+\-@\t\r]/;

function formatCell(text) {
  const cell = text.trim();
  const safe = FORMULA.test(cell) && Number.isNaN(readNumber(cell)) ? `'${cell}` : cell;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const formatCsv = (rows) => rows.map((row) => row.map(formatCell).join(",")).join("\r\n");

/** A table of the page as CSV, in the order in which it is shown. */
export const tableCsv = (table) =>
  formatCsv([...table.rows].map((row) => [...row.cells].map(readCell)));
