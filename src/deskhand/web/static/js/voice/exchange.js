// What came of something that was said: what was heard, and the answers to it. Pure.

import { heardText, isUnheard } from "../fold-items.js";

/**
 * `{heard, listening, problem, answers, open}` of the message with this id in the state of a
 * conversation; null where it is not in the log yet. The last of the answers may still grow.
 */
export function findExchange(state, id) {
  const isMeant = (item) => item.kind === "user" && item.externalId.endsWith(id);
  const turn = state.turns.findLast(({ items }) => items.some(isMeant));
  if (!turn) return null;
  const at = turn.items.findLastIndex(isMeant);
  const message = turn.items[at];
  const later = turn.items.slice(at + 1);
  const open = turn.end === null;
  const answers = later
    .filter((item) => item.kind === "answer" && item.text.trim())
    .map(({ text }) => ({ text, done: true }));
  if (open && state.live?.text) answers.push({ text: state.live.text, done: false });
  const failed = later.findLast((item) => item.kind === "note" && item.tone === "bad");
  return {
    heard: heardText(message),
    listening: message.parts.some(isUnheard),
    problem: message.parts.map((part) => part.heard?.problem).find(Boolean) ?? failed?.text ?? "",
    answers,
    open,
  };
}
