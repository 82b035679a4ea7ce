// Times, sizes and counts, as people read them.

export function took(seconds) {
  if (seconds < 0.95) return `${Math.max(0.1, seconds).toFixed(1)} s`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function count(n) {
  if (n == null) return "–";
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  return n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} KB` : `${(n / 1e6).toFixed(1)} MB`;
}

export const money = (usd) =>
  usd == null ? "unknown" : usd < 0.01 && usd > 0 ? "< $0.01" : `$${usd.toFixed(2)}`;
export const many = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;

export function clock(at) {
  return new Date(at * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

export function moment(at) {
  return at
    ? new Date(at * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })
    : "never";
}

/** `Today`, `Yesterday`, `This week`, or the month: what a list is grouped by. */
export function day(at, now = Date.now() / 1000) {
  const midnight = new Date(now * 1000).setHours(0, 0, 0, 0) / 1000;
  if (at >= midnight) return "Today";
  if (at >= midnight - 86400) return "Yesterday";
  if (at >= midnight - 6 * 86400) return "This week";
  return new Date(at * 1000).toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

/** The value itself where a call has but one argument, else `key=value`s, on one line. */
export function brief(args, most = 120) {
  if (args == null || typeof args !== "object") return one(args == null ? "" : String(args), most);
  const entries = Object.entries(args);
  const word = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  if (entries.length === 1) return one(word(entries[0][1]), most);
  const path = args.path ?? args.command ?? args.url;
  return one(
    typeof path === "string"
      ? path
      : entries.map(([key, value]) => `${key}=${word(value)}`).join("  "),
    most,
  );
}

function one(text, most) {
  const line = text
    .slice(0, most * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
