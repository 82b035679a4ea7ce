// Tokens and money of usage, in words.

import { formatCount, formatMoney } from "../format.js";
import { locale, tCount } from "../language.js";

export const amountOf = (sum, unit) => (unit === "money" ? sum.known_cost : sum.total_tokens);

/** `plus 3 calls of unknown price`, or nothing. */
export const formatUnpriced = (sum) =>
  sum.unpriced_calls
    ? tCount(
        sum.unpriced_calls,
        "plus {count} call of unknown price",
        "plus {count} calls of unknown price",
      )
    : "";

/** What is known of the cost, and how many calls come on top. */
export function formatCost(sum) {
  if (sum.unpriced_calls && sum.unpriced_calls === sum.api_calls)
    return tCount(
      sum.unpriced_calls,
      "{count} call of unknown price",
      "{count} calls of unknown price",
    );
  return [formatMoney(sum.known_cost), formatUnpriced(sum)].filter(Boolean).join(" ");
}

export const formatTokens = (count) =>
  tCount(count, "{count} token", "{count} tokens", { count: formatCount(count) });

export const formatSum = (sum, unit) =>
  unit === "money" ? formatCost(sum) : formatTokens(sum.total_tokens);

/** A value of the scale. Models are so cheap that a cent may be much. */
export function formatScale(value, unit) {
  if (unit === "tokens") return formatCount(value);
  return value > 0 && value < 0.01 ? `$${Number(value.toPrecision(1))}` : formatMoney(value);
}

export const formatDay = (id) =>
  new Date(`${id}T00:00:00Z`).toLocaleDateString(locale, {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });

export function sortByValue(rows, unit) {
  return [...rows].sort(
    (one, two) => amountOf(two, unit) - amountOf(one, unit) || two.total_tokens - one.total_tokens,
  );
}
