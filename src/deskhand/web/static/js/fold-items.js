// The turns and their items, as the fold of the log changes them.

import { t } from "./language.js";

export const textOf = (message) =>
  (message?.parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");

const attachmentsOf = (message) =>
  (message?.parts ?? []).filter((part) => ["image", "file", "audio"].includes(part.type));

/** Whether this part is a recording to which nobody has listened yet. */
export const isUnheard = (part) =>
  part.type === "audio" && !part.heard && part.transcript === undefined;

/** What was said in the recordings of a message, as far as it is known. */
export const heardText = (item) =>
  item.parts
    .map((part) => part.heard?.text ?? part.transcript ?? "")
    .filter(Boolean)
    .join("\n");

/** What was written and said in a message. */
export const allText = (item) => [item.text, heardText(item)].filter(Boolean).join("\n");

function beginTurn(next, recorded) {
  const turn = {
    id: recorded.n,
    first: recorded.n,
    last: recorded.n,
    at: recorded.at,
    end: null,
    items: [],
    reason: "",
    usage: { read: 0, written: 0 },
    model: "",
    undone: false,
  };
  next.turns = [...next.turns, turn];
  return turn;
}

/** The turn that this event belongs to, as a copy that may be changed. */
export function copyOpenTurn(next, recorded) {
  const last = next.turns.at(-1);
  if (!last || last.end !== null) return beginTurn(next, recorded);
  const copy = { ...last, items: [...last.items], last: recorded.n };
  next.turns = [...next.turns.slice(0, -1), copy];
  return copy;
}

export function addItem(next, recorded, item) {
  copyOpenTurn(next, recorded).items.push({
    key: `${recorded.n}.${item.kind}`,
    n: recorded.n,
    at: recorded.at,
    ...item,
  });
}

/** Something that stands by itself between turns. */
export function addAside(next, recorded, item) {
  if (next.open) return addItem(next, recorded, item);
  const turn = beginTurn(next, recorded);
  turn.items.push({ key: `${recorded.n}.${item.kind}`, n: recorded.n, at: recorded.at, ...item });
  Object.assign(turn, { end: recorded.at, reason: "aside" });
}

/** Change the items of the open turn that `which` names. */
export function changeItems(next, recorded, which, change) {
  const turn = copyOpenTurn(next, recorded);
  turn.items = turn.items.map((item) => (which(item) ? { ...item, ...change } : item));
}

/** Put what was heard in a recording, or why it was not, where the recording is. */
export function hearRecording(next, { blob, text = "", problem = "", seconds = 0 }, recorded) {
  const turn = copyOpenTurn(next, recorded);
  const hear = (part) =>
    isUnheard(part) && part.blob === blob ? { ...part, heard: { text, problem, seconds } } : part;
  turn.items = turn.items.map((item) =>
    item.kind === "user" ? { ...item, parts: item.parts.map(hear) } : item,
  );
}

function omitKey(map, key) {
  if (!(key in map)) return map;
  const { [key]: omitted, ...rest } = map;
  return rest;
}

export function closeCall(next, recorded, callId, status, text, parts, why = "") {
  changeItems(next, recorded, (item) => item.kind === "tool" && item.callId === callId, {
    status,
    text,
    parts,
    why,
    end: recorded.at,
    endN: recorded.n,
  });
  changeItems(
    next,
    recorded,
    (item) => item.kind === "ask" && item.callId === callId && !item.answer,
    {
      answer: "closed",
      why,
    },
  );
  next.asks = next.asks.filter((asked) => asked.callId !== callId);
  next.outputs = omitKey(next.outputs, callId);
  next.results = omitKey(next.results, callId);
}

export function addAsk(next, event, recorded, more) {
  const call = copyOpenTurn(next, recorded).items.find(
    (one) => one.kind === "tool" && one.callId === event.call_id,
  );
  const calls = [event.call_id, ...(event.others ?? []).map((one) => one.call_id)];
  const item = {
    kind: "ask",
    id: event.ask_id,
    callId: event.call_id,
    calls,
    question: event.question,
    until: event.until,
    answer: "",
    ...more,
    ...(call && more.approval && { call: { name: call.name, args: call.args, n: call.n } }),
  };
  addItem(next, recorded, item);
  changeItems(next, recorded, (other) => other.kind === "tool" && calls.includes(other.callId), {
    status: "waits",
  });
  next.asks = [...next.asks, { ...item, n: recorded.n, at: recorded.at }];
}

export function closeAsk(next, event, recorded, answer) {
  const found = next.asks.find((one) => one.id === event.ask_id);
  next.asks = next.asks.filter((one) => one.id !== event.ask_id);
  changeItems(next, recorded, (item) => item.kind === "ask" && item.id === event.ask_id, {
    answer,
    by: event.principal?.id ?? "",
    answeredAt: recorded.at,
  });
  if (found)
    changeItems(
      next,
      recorded,
      (item) =>
        item.kind === "tool" && found.calls.includes(item.callId) && item.status === "waits",
      { status: "running", since: recorded.at },
    );
}

export function makeUserItem(event, more = {}) {
  const message = event.message;
  return {
    kind: "user",
    text: textOf(message),
    parts: attachmentsOf(message),
    by: event.principal?.id ?? "",
    channel: event.address?.channel ?? "",
    externalId: event.external_id ?? "",
    ...more,
  };
}

export function addReply(next, recorded, message, more) {
  const thinking = message.parts
    .filter((part) => part.type === "thinking")
    .map((part) => part.text)
    .join("\n\n");
  const text = textOf(message);
  if (text || thinking || more.finish === "interrupted")
    addItem(next, recorded, { kind: "answer", text, thinking, ...more });
  for (const part of message.parts)
    if (part.type === "tool_call")
      addItem(next, recorded, {
        kind: "tool",
        key: `${recorded.n}.${part.id}`,
        callId: part.id,
        name: part.name,
        args: part.arguments,
        status: "running",
        text: "",
        parts: [],
        why: "",
        end: null,
        since: recorded.at,
      });
}

export function describeNextTry(event) {
  if (!event.next_model) return "";
  return event.next_model === event.model
    ? t("Trying again.")
    : t("Going on with {model}.", { model: event.next_model });
}

/** Add a message that was said elsewhere. */
export function addMessage(next, there, message) {
  if (message.role === "user") {
    if (next.turns.at(-1)?.end === null)
      Object.assign(copyOpenTurn(next, there), { end: there.at, reason: "kept" });
    addItem(next, there, makeUserItem({ message: stripDate(message) }));
  } else if (message.role === "assistant")
    addReply(next, there, message, { model: "", finish: "stop" });
  else
    for (const part of message.parts)
      closeCall(next, there, part.call_id, part.status ?? "ok", textOf(part), []);
}

/** A branch begins with the messages that it took along. */
export function addKeptMessages(next, event, recorded) {
  if (!next.branch || next.turns.length) return;
  for (const [i, [number, message]] of (event.kept ?? []).entries())
    addMessage(next, { n: number, at: next.branch.times[i] ?? recorded.at }, message);
  if (next.turns.at(-1)?.end === null)
    Object.assign(copyOpenTurn(next, { ...recorded }), { end: recorded.at, reason: "kept" });
  addAside(next, recorded, {
    kind: "divider",
    text: t("Branched here: from now on this is a conversation of its own"),
  });
}

/** What a person wrote, without the date that the model was shown before it. */
function stripDate(message) {
  const [first, ...rest] = message.parts;
  return first?.type === "text" && rest.length && /^\[[^\]]*\] $/.test(first.text)
    ? { ...message, parts: rest }
    : message;
}
