// Times, sizes and counts, as people read them.

export function formatDuration(seconds) {
  if (seconds < 0.95) return `${Math.max(0.1, seconds).toFixed(1)} s`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
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

export function formatCount(count) {
  if (count == null) return "–";
  if (count < 1000) return String(count);
  if (count < 1e6) return `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

export function formatBytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size / 1e3).toFixed(size < 1e4 ? 1 : 0)} KB`;
  return `${(size / 1e6).toFixed(1)} MB`;
}

export function formatMoney(usd) {
  if (usd == null) return "unknown";
  return usd > 0 && usd < 0.01 ? "< $0.01" : `$${usd.toFixed(2)}`;
}

/** `1 file`, `2 files`. */
export const pluralize = (number, one, more = `${one}s`) =>
  `${number} ${number === 1 ? one : more}`;

export const capitalize = (text) => text && text[0].toUpperCase() + text.slice(1);

// Made once: to make one takes far longer than to use it.
const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const MONTH = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" });

export const formatTime = (timestamp) => TIME.format(timestamp * 1000);

export const formatDateTime = (timestamp) =>
  timestamp ? DATE_TIME.format(timestamp * 1000) : "never";

/** `Today`, `Yesterday`, `This week`, or the month: what a list is grouped by. */
export function nameDay(timestamp, now = Date.now() / 1000) {
  const midnight = new Date(now * 1000).setHours(0, 0, 0, 0) / 1000;
  if (timestamp >= midnight) return "Today";
  if (timestamp >= midnight - 86400) return "Yesterday";
  if (timestamp >= midnight - 6 * 86400) return "This week";
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
