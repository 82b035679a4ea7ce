// Times, sizes and counts, as people read them in their language.

import { locale, t } from "./language.js";

// Made once: to make one takes far longer than to use it.
const [WHOLE, TENTH] = [0, 1].map(
  (digits) =>
    new Intl.NumberFormat(locale, {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      useGrouping: false,
    }),
);
const NUMBER = new Intl.NumberFormat(locale, { maximumFractionDigits: 4 });
const USD = new Intl.NumberFormat(locale, {
  style: "currency",
  currency: "USD",
  currencyDisplay: "narrowSymbol",
});
const TIME = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const DATE_TIME = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const MONTH = new Intl.DateTimeFormat(locale, { month: "long", year: "numeric" });
const LIST = new Intl.ListFormat(locale, { type: "conjunction" });

export function formatDuration(seconds) {
  if (seconds < 0.95) return `${TENTH.format(Math.max(0.1, seconds))} s`;
  if (seconds < 60) return `${(seconds < 10 ? TENTH : WHOLE).format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Minutes and seconds, as a clock shows them. */
export function formatClock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** The number itself, its thousands apart. */
export const formatNumber = (number) => NUMBER.format(number);

export function formatCount(count) {
  if (count == null) return "–";
  if (count < 1000) return String(count);
  if (count < 1e6)
    return t("{number}k", { number: (count < 1e4 ? TENTH : WHOLE).format(count / 1e3) });
  return t("{number}M", { number: TENTH.format(count / 1e6) });
}

export function formatBytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size < 1e4 ? TENTH : WHOLE).format(size / 1e3)} KB`;
  return `${TENTH.format(size / 1e6)} MB`;
}

export function formatMoney(usd) {
  if (usd == null) return t("unknown");
  return usd > 0 && usd < 0.01 ? `< ${USD.format(0.01)}` : USD.format(usd);
}

/** `a, b and c`. */
export const formatList = (parts) => LIST.format(parts);

export const capitalize = (text) => text && text[0].toUpperCase() + text.slice(1);

export const formatTime = (timestamp) => TIME.format(timestamp * 1000);

export const formatDateTime = (timestamp) =>
  timestamp ? DATE_TIME.format(timestamp * 1000) : t("never");

/** `Today`, `Yesterday`, `This week`, or the month: what a list is grouped by. */
export function nameDay(timestamp, now = Date.now() / 1000) {
  const midnight = new Date(now * 1000).setHours(0, 0, 0, 0) / 1000;
  if (timestamp >= midnight) return t("Today");
  if (timestamp >= midnight - 86400) return t("Yesterday");
  if (timestamp >= midnight - 6 * 86400) return t("This week");
  return MONTH.format(timestamp * 1000);
}

/** The value itself where a call has but one argument, else `key=value`s, on one line. */
export function summarizeArgs(args, most = 120) {
  if (args == null || typeof args !== "object")
    return shortenLine(args == null ? "" : String(args), most);
  const entries = Object.entries(args);
  const formatValue = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  if (entries.length === 1) return shortenLine(formatValue(entries[0][1]), most);
  const path = args.path ?? args.command ?? args.url;
  return shortenLine(
    typeof path === "string"
      ? path
      : entries.map(([key, value]) => `${key}=${formatValue(value)}`).join("  "),
    most,
  );
}

function shortenLine(text, most) {
  const line = text
    .slice(0, most * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
