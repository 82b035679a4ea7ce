// The log of a session as what is shown of it: a pure fold. `fold(state, recorded)` takes an event, `hear(state, progress)`
// what happens between two of them; both give a new state and leave the old one as it was. A fold may begin in the midst of
// a log: `first` is the number of its first event.

/** A session of which nothing is known yet. */
export const EMPTY = Object.freeze({
  n: 0,
  first: 0,
  session: "",
  title: "",
  turns: [],
  live: null,
  outputs: {},
  results: {},
  asks: [],
  open: false,
  status: "",
  options: {},
  usage: { read: 0, written: 0, cached: 0 },
  model: "",
  branch: null,
  seen: [],
  broke: null,
});
const OUTPUT_CHARS = 16000;

export const textOf = (message) =>
  (message?.parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");
export const attached = (message) =>
  (message?.parts ?? []).filter((part) => ["image", "file", "audio"].includes(part.type));

/** The state after this event. What was seen already changes nothing. */
export function fold(state, recorded) {
  if (recorded.n <= state.n) return state;
  const event = recorded.event;
  const next = {
    ...state,
    n: recorded.n,
    first: state.first || recorded.n,
    session: recorded.session,
    status: "",
  };
  if (event.inbox_id) next.seen = [...state.seen.slice(-63), event.inbox_id];
  (EVENTS[event.type] ?? unknown)(next, event, recorded);
  return next;
}

/** The state with this piece of progress in it. */
export function hear(state, piece) {
  switch (piece.kind) {
    case "text":
    case "thinking":
    case "snapshot":
      return speak(state, piece);
    case "tool_output": {
      const before = state.outputs[piece.call_id] ?? "";
      return {
        ...state,
        outputs: {
          ...state.outputs,
          [piece.call_id]: (before + (piece.text ?? "")).slice(-OUTPUT_CHARS),
        },
      };
    }
    case "tool_result":
      return {
        ...state,
        results: {
          ...state.results,
          [piece.call_id]: { status: piece.status ?? "ok", text: piece.text ?? "" },
        },
      };
    case "status":
      return { ...state, status: piece.text ?? "" };
    case "reset":
      return { ...state, live: null };
    default:
      return state;
  }
}

function speak(state, piece) {
  if (piece.n <= state.n) return state;
  const attempt = piece.attempt ?? 0,
    offset = piece.offset ?? 0;
  const same = state.live && state.live.n === piece.n && state.live.attempt === attempt;
  const live = same ? { ...state.live } : { n: piece.n, attempt, text: "", thinking: "" };
  if (piece.kind === "thinking") live.thinking += piece.text ?? "";
  else if (piece.kind === "snapshot") live.text = piece.text ?? "";
  else if (offset <= live.text.length) live.text = live.text.slice(0, offset) + (piece.text ?? "");
  else return state; // a gap: a snapshot or the event itself closes it
  return { ...state, live };
}

// ------------------------------------------------------------------ turns

function begin(next, recorded) {
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
function current(next, recorded) {
  const last = next.turns.at(-1);
  if (!last || last.end !== null) return begin(next, recorded);
  const copy = { ...last, items: [...last.items], last: recorded.n };
  next.turns = [...next.turns.slice(0, -1), copy];
  return copy;
}

function add(next, recorded, item) {
  current(next, recorded).items.push({
    key: `${recorded.n}.${item.kind}`,
    n: recorded.n,
    at: recorded.at,
    ...item,
  });
}

/** Something that stands by itself between turns. */
function aside(next, recorded, item) {
  if (next.open) return add(next, recorded, item);
  const turn = begin(next, recorded);
  turn.items.push({ key: `${recorded.n}.${item.kind}`, n: recorded.n, at: recorded.at, ...item });
  Object.assign(turn, { end: recorded.at, reason: "aside" });
}

/** Change the items of the open turn that `which` names. */
function change(next, recorded, which, change) {
  const turn = current(next, recorded);
  turn.items = turn.items.map((item) => (which(item) ? { ...item, ...change } : item));
}

function without(map, key) {
  if (!(key in map)) return map;
  const { [key]: _, ...rest } = map;
  return rest;
}

function close(next, recorded, callId, status, text, parts, why = "") {
  change(next, recorded, (item) => item.kind === "tool" && item.callId === callId, {
    status,
    text,
    parts,
    why,
    end: recorded.at,
    endN: recorded.n,
  });
  change(next, recorded, (item) => item.kind === "ask" && item.callId === callId && !item.answer, {
    answer: "closed",
    why,
  });
  next.asks = next.asks.filter((ask) => ask.callId !== callId);
  next.outputs = without(next.outputs, callId);
  next.results = without(next.results, callId);
}

function ask(next, event, recorded, more) {
  const call = current(next, recorded).items.find(
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
  add(next, recorded, item);
  change(next, recorded, (other) => other.kind === "tool" && calls.includes(other.callId), {
    status: "waits",
  });
  next.asks = [...next.asks, { ...item, n: recorded.n, at: recorded.at }];
}

function answered(next, event, recorded, answer) {
  const found = next.asks.find((one) => one.id === event.ask_id);
  next.asks = next.asks.filter((one) => one.id !== event.ask_id);
  change(next, recorded, (item) => item.kind === "ask" && item.id === event.ask_id, {
    answer,
    by: event.principal?.id ?? "",
    answeredAt: recorded.at,
  });
  if (found)
    change(
      next,
      recorded,
      (item) =>
        item.kind === "tool" && found.calls.includes(item.callId) && item.status === "waits",
      { status: "running", since: recorded.at },
    );
}

function said(event, more = {}) {
  const message = event.message;
  return {
    kind: "user",
    text: textOf(message),
    parts: attached(message),
    by: event.principal?.id ?? "",
    channel: event.address?.channel ?? "",
    externalId: event.external_id ?? "",
    ...more,
  };
}

function reply(next, recorded, message, more) {
  const thinking = message.parts
    .filter((part) => part.type === "thinking")
    .map((part) => part.text)
    .join("\n\n");
  const text = textOf(message);
  if (text || thinking || more.finish === "interrupted")
    add(next, recorded, { kind: "answer", text, thinking, ...more });
  for (const part of message.parts)
    if (part.type === "tool_call")
      add(next, recorded, {
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

// ------------------------------------------------------------------ one line for each kind of event

const EVENTS = {
  message_received(next, event, recorded) {
    next.open = true;
    add(next, recorded, said(event, { inboxId: event.inbox_id }));
  },
  message_edited(next, event) {
    next.turns = next.turns.map((turn) =>
      turn.items.some((item) => item.externalId && item.externalId === event.of)
        ? {
            ...turn,
            items: turn.items.map((item) =>
              item.externalId === event.of
                ? { ...item, text: textOf(event.message), edited: true }
                : item,
            ),
          }
        : turn,
    );
  },
  reacted(next, event) {
    next.turns = next.turns.map((turn) =>
      turn.items.some((item) => item.externalId && item.externalId === event.of)
        ? {
            ...turn,
            items: turn.items.map((item) =>
              item.externalId === event.of
                ? { ...item, emoji: event.added ? event.emoji : "" }
                : item,
            ),
          }
        : turn,
    );
  },
  command_run(next, event, recorded) {
    if (event.name === "stop" && !event.reply) return;
    aside(next, recorded, {
      kind: "command",
      text: event.principal?.kind === "system" ? "" : `/${event.name} ${event.args ?? ""}`.trim(),
      reply: event.reply ?? "",
    });
  },
  model_replied(next, event, recorded) {
    next.live = null;
    next.open = true; // also where the fold began behind the message that opened the turn
    const usage = event.usage ?? {},
      turn = current(next, recorded);
    turn.usage = {
      read: turn.usage.read + (usage.input_tokens ?? 0),
      written: turn.usage.written + (usage.output_tokens ?? 0),
    };
    turn.model = next.model = event.model;
    next.usage = {
      read: next.usage.read + (usage.input_tokens ?? 0),
      written: next.usage.written + (usage.output_tokens ?? 0),
      cached: next.usage.cached + (usage.cached_tokens ?? 0),
    };
    reply(next, recorded, event.message, { model: event.model, finish: event.finish ?? "stop" });
  },
  model_failed(next, event, recorded) {
    next.live = null;
    const after = !event.next_model
      ? ""
      : event.next_model === event.model
        ? "Trying again."
        : `Going on with ${event.next_model}.`;
    add(next, recorded, {
      kind: "note",
      tone: after ? "warn" : "bad",
      text: event.detail || event.error,
      after,
      error: event.error,
      model: event.model,
      retryAt: event.retry_at ?? null,
    });
  },
  asked_aside(next, event) {
    const usage = event.usage ?? {};
    next.usage = {
      read: next.usage.read + (usage.input_tokens ?? 0),
      written: next.usage.written + (usage.output_tokens ?? 0),
      cached: next.usage.cached + (usage.cached_tokens ?? 0),
    };
  },
  tool_started(next, event, recorded) {
    change(next, recorded, (item) => item.kind === "tool" && item.callId === event.call_id, {
      since: recorded.at,
    });
  },
  tool_finished(next, event, recorded) {
    const { call_id, parts = [], status = "ok" } = event.result;
    close(
      next,
      recorded,
      call_id,
      status,
      textOf(event.result),
      parts.filter((part) => part.type !== "text"),
    );
    const source = parts.find((part) => part.label?.source)?.label.source;
    if (source)
      change(next, recorded, (item) => item.kind === "tool" && item.callId === call_id, { source });
  },
  call_closed(next, event, recorded) {
    close(next, recorded, event.call_id, event.status, event.reason, [], event.reason);
  },
  approval_asked(next, event, recorded) {
    ask(next, event, recorded, {
      approval: true,
      reason: event.reason,
      choices: event.others?.length ? ["once", "each", "no"] : ["once", "always", "no", "never"],
    });
  },
  question_asked(next, event, recorded) {
    ask(next, event, recorded, { approval: false, reason: "", choices: event.choices ?? [] });
  },
  approval_answered(next, event, recorded) {
    answered(next, event, recorded, event.choice);
  },
  question_answered(next, event, recorded) {
    answered(next, event, recorded, textOf(event.message) || "answered");
  },
  history_message(next, event, recorded) {
    tell(next, recorded, event.message);
    const turn = next.turns.at(-1);
    const over =
      event.message.role === "assistant" &&
      !event.message.parts.some((part) => part.type === "tool_call");
    if (over && turn?.end === null) Object.assign(turn, { end: recorded.at, reason: "kept" });
  },
  calls_handed_over() {},
  results_returned(next) {
    next.open = true;
  },
  hinted() {},
  masked() {},
  recalled() {},
  compacted(next, event, recorded) {
    if (next.broke === recorded.n - 1) return kept(next, event, recorded); // it belongs to what stands before it
    aside(next, recorded, {
      kind: "divider",
      text: "The older part was summed up, so that the model keeps the thread",
      note: event.note,
      dropped: event.dropped,
    });
  },
  turn_ended(next, event, recorded) {
    const turn = current(next, recorded),
      last = turn.items.at(-1);
    Object.assign(turn, { end: recorded.at, reason: event.reason });
    const repeated = last?.kind === "answer" && last.text === event.said;
    if (event.said && !repeated && event.said !== "Stopped.") {
      // the line under the turn says that
      const tone = event.reason === "failed" || event.reason === "dead" ? "bad" : "warn";
      const item =
        event.reason === "done"
          ? { kind: "answer", text: event.said, thinking: "", finish: "stop" }
          : { kind: "note", tone, text: event.said, after: "" };
      turn.items = [
        ...turn.items.filter((one) => !(one.kind === "note" && one.tone === "bad")),
        { key: `${recorded.n}.end`, n: recorded.n, at: recorded.at, ...item },
      ];
    }
    if (event.note)
      turn.items = [
        ...turn.items,
        {
          key: `${recorded.n}.note`,
          n: recorded.n,
          at: recorded.at,
          kind: "note",
          tone: "warn",
          text: event.note,
          after: "",
        },
      ];
    turn.items = turn.items.map((item) =>
      item.kind === "ask" && !item.answer
        ? { ...item, answer: "closed", why: "the turn is over" }
        : item,
    );
    Object.assign(next, { open: false, live: null, asks: [], outputs: {}, results: {} });
  },
  message_delivered(next, event) {
    const n = Number(/#(\d+)\./.exec(event.key)?.[1] ?? 0);
    if (event.mark)
      next.turns = next.turns.map((turn) =>
        turn.first <= n && n <= turn.last ? { ...turn, mark: event.mark } : turn,
      );
  },
  erased(next, event, recorded) {
    aside(next, recorded, {
      kind: "divider",
      text: `Erased on request (${event.of.replaceAll("_", " ")})`,
    });
  },
  options_set(next, event) {
    const set = Object.fromEntries(
      Object.entries(event.options ?? {}).filter(([, value]) => value !== null),
    );
    next.options = { ...next.options, ...set };
    if (set.title !== undefined) next.title = set.title;
  },
  undone(next, event, recorded) {
    next.turns = next.turns.map((turn) =>
      turn.first > event.to_n ? { ...turn, undone: true, end: turn.end ?? recorded.at } : turn,
    );
    Object.assign(next, { open: false, live: null, asks: [], broke: recorded.n });
  },
  branched(next, event, recorded) {
    Object.assign(next, {
      branch: { of: event.of, n: event.at_n, times: event.times ?? [] },
      broke: recorded.n,
      title: event.title ?? "",
    });
  },
};

/** A message that was said elsewhere, in its place. */
function tell(next, there, message) {
  if (message.role === "user") {
    if (next.turns.at(-1)?.end === null)
      Object.assign(current(next, there), { end: there.at, reason: "kept" });
    add(next, there, said({ message: undated(message) }));
  } else if (message.role === "assistant")
    reply(next, there, message, { model: "", finish: "stop" });
  else
    for (const part of message.parts)
      close(next, there, part.call_id, part.status ?? "ok", textOf(part), []);
}

/** A branch begins with the messages that it took along. */
function kept(next, event, recorded) {
  if (!next.branch || next.turns.length) return;
  for (const [i, [n, message]] of (event.kept ?? []).entries())
    tell(next, { n, at: next.branch.times[i] ?? recorded.at }, message);
  if (next.turns.at(-1)?.end === null)
    Object.assign(current(next, { ...recorded }), { end: recorded.at, reason: "kept" });
  aside(next, recorded, {
    kind: "divider",
    text: "Branched here: from now on this is a conversation of its own",
  });
}

/** What a person wrote, without the date that the model was shown before it. */
function undated(message) {
  const [first, ...rest] = message.parts;
  return first?.type === "text" && rest.length && /^\[[^\]]*\] $/.test(first.text)
    ? { ...message, parts: rest }
    : message;
}

function unknown() {}

// ------------------------------------------------------------------ what I did

const READS = new Set([
  "read_file",
  "list_files",
  "search_files",
  "list_symbols",
  "find_references",
  "read_output",
  "survey_files",
]);
const WRITES = new Set(["write_file", "edit_file"]);
const OTHERWISE_TOLD = new Set(["shell", "think", "ask_user", "run_program", "rehearse_program"]);

/** One sentence on what a turn did, from its calls and nothing else. '' where it called no tool. */
export function whatIDid(turn) {
  const calls = turn.items.filter((item) => item.kind === "tool"),
    done = calls.filter((call) => call.status === "ok");
  const files = (names) =>
    [
      ...new Set(done.filter((call) => names.has(call.name)).map((call) => call.args?.path ?? "")),
    ].filter(Boolean);
  const byPrograms = done
    .filter((call) => call.name === "run_program")
    .flatMap((call) => call.args?.changes ?? [])
    .map((one) => one?.to || one?.path)
    .filter(Boolean);
  const read = files(new Set(["read_file"])),
    changed = [...new Set([...files(WRITES), ...byPrograms])];
  const rehearsed = done.filter((call) => call.name === "rehearse_program").length;
  const looked = done.filter((call) => READS.has(call.name) && call.name !== "read_file").length;
  const ran = calls.filter((call) => call.name === "shell" && call.status !== "denied").length;
  const others = {};
  for (const call of done)
    if (!READS.has(call.name) && !WRITES.has(call.name) && !OTHERWISE_TOLD.has(call.name))
      others[call.name] = (others[call.name] ?? 0) + 1;
  const denied = calls.filter((call) => call.status === "denied").length;
  const failed = calls.filter((call) => call.status === "error" && call.name !== "shell").length;
  const said = [];
  const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  if (read.length)
    said.push(`read ${read.length === 1 ? short(read[0]) : plural(read.length, "file")}`);
  if (looked) said.push(`looked around ${looked === 1 ? "once" : `${looked} times`}`);
  if (rehearsed) said.push(`rehearsed ${plural(rehearsed, "program")}`);
  if (changed.length)
    said.push(
      `changed ${changed.length <= 2 ? changed.map(short).join(" and ") : plural(changed.length, "file")}`,
    );
  if (ran) said.push(`ran ${plural(ran, "command")}`);
  for (const [name, times] of Object.entries(others))
    said.push(`used ${name}${times > 1 ? ` ${times} times` : ""}`);
  if (failed) said.push(`${plural(failed, "call")} failed`);
  if (denied) said.push(`${plural(denied, "call")} not allowed`);
  const line = said.join(", ");
  return line && line[0].toUpperCase() + line.slice(1);
}

function short(path) {
  return String(path).split("/").at(-1);
}
