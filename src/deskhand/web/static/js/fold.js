// What is shown of a session, from its log: a pure fold. `fold(state, recorded)` takes an event,
// `hear(state, progress)` what happens between two events; both return a new state and leave the
// old one as it was. A fold may begin in the middle of a log: `first` is its first event's number.

import {
  addAside,
  addAsk,
  addItem,
  addKeptMessages,
  addMessage,
  addReply,
  changeItems,
  closeAsk,
  closeCall,
  copyOpenTurn,
  describeNextTry,
  hearRecording,
  makeUserItem,
  textOf,
} from "./fold-items.js";
import { t } from "./language.js";

export { summarizeTurn as whatIDid } from "./turn-summary.js";

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
  if (event.inbox_id)
    next.seen = [...state.seen.slice(-126), event.inbox_id, getMessageId(event.external_id)];
  (EVENTS[event.type] ?? ignoreEvent)(next, event, recorded);
  return next;
}

/** The id under which a page sent this message: the server puts the person before it. */
function getMessageId(externalId = "") {
  return externalId.slice(externalId.indexOf(":") + 1);
}

/** The state with this piece of progress in it. */
export function hear(state, piece) {
  switch (piece.kind) {
    case "text":
    case "thinking":
    case "snapshot":
      return addLiveText(state, piece);
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

function addLiveText(state, piece) {
  if (piece.n <= state.n) return state;
  const attempt = piece.attempt ?? 0;
  const offset = piece.offset ?? 0;
  const same = state.live && state.live.n === piece.n && state.live.attempt === attempt;
  const live = same ? { ...state.live } : { n: piece.n, attempt, text: "", thinking: "" };
  if (piece.kind === "thinking") live.thinking += piece.text ?? "";
  else if (piece.kind === "snapshot") live.text = piece.text ?? "";
  else if (offset <= live.text.length) live.text = live.text.slice(0, offset) + (piece.text ?? "");
  else return state; // a gap: a snapshot or the event itself closes it
  return { ...state, live };
}

// ------------------------------------------------------------------ kinds of events

const EVENTS = {
  message_received(next, event, recorded) {
    next.open = true;
    addItem(next, recorded, makeUserItem(event, { inboxId: event.inbox_id }));
  },
  transcribed(next, event, recorded) {
    hearRecording(next, event, recorded);
  },
  message_edited(next, event) {
    changeMessage(next, event.of, { text: textOf(event.message), edited: true });
  },
  message_deleted(next, event) {
    changeMessage(next, event.of, { deleted: true });
    if (event.withdrawn) next.seen = [...next.seen, event.withdrawn];
  },
  reacted(next, event) {
    changeMessage(next, event.of, { emoji: event.added ? event.emoji : "" });
  },
  command_run(next, event, recorded) {
    if (!event.reply) return;
    addAside(next, recorded, {
      kind: "command",
      text: event.principal?.kind === "system" ? "" : `/${event.name} ${event.args ?? ""}`.trim(),
      reply: event.reply ?? "",
    });
  },
  model_replied(next, event, recorded) {
    next.live = null;
    next.open = true; // also where the fold began behind the message that opened the turn
    const usage = event.usage ?? {};
    const turn = copyOpenTurn(next, recorded);
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
    addReply(next, recorded, event.message, { model: event.model, finish: event.finish ?? "stop" });
  },
  model_failed(next, event, recorded) {
    next.live = null;
    const after = describeNextTry(event);
    addItem(next, recorded, {
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
    changeItems(next, recorded, (item) => item.kind === "tool" && item.callId === event.call_id, {
      since: recorded.at,
    });
  },
  tool_finished(next, event, recorded) {
    const { call_id, parts = [], status = "ok" } = event.result;
    closeCall(
      next,
      recorded,
      call_id,
      status,
      textOf(event.result),
      parts.filter((part) => part.type !== "text"),
    );
    const source = parts.find((part) => part.label?.source)?.label.source;
    if (source)
      changeItems(next, recorded, (item) => item.kind === "tool" && item.callId === call_id, {
        source,
      });
  },
  call_closed(next, event, recorded) {
    closeCall(next, recorded, event.call_id, event.status, event.reason, [], event.reason);
  },
  approval_asked(next, event, recorded) {
    addAsk(next, event, recorded, {
      approval: true,
      reason: event.reason,
      choices: event.others?.length ? ["once", "each", "no"] : ["once", "always", "no", "never"],
    });
  },
  question_asked(next, event, recorded) {
    addAsk(next, event, recorded, { approval: false, reason: "", choices: event.choices ?? [] });
  },
  approval_answered(next, event, recorded) {
    closeAsk(next, event, recorded, event.choice);
  },
  question_answered(next, event, recorded) {
    closeAsk(next, event, recorded, textOf(event.message) || t("answered"));
  },
  history_message(next, event, recorded) {
    addMessage(next, recorded, event.message);
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
    if (next.broke === recorded.n - 1) {
      addKeptMessages(next, event, recorded); // it belongs to the event before it
      return;
    }
    addAside(next, recorded, {
      kind: "divider",
      text: t("The older part was summed up, so that the model keeps the thread"),
      note: event.note,
      dropped: event.dropped,
    });
  },
  turn_ended(next, event, recorded) {
    const turn = copyOpenTurn(next, recorded);
    const last = turn.items.at(-1);
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
        ? { ...item, answer: "closed", why: t("the turn is over") }
        : item,
    );
    Object.assign(next, { open: false, live: null, asks: [], outputs: {}, results: {} });
  },
  message_delivered(next, event) {
    const number = Number(/#(\d+)\./.exec(event.key)?.[1] ?? 0);
    if (event.mark)
      next.turns = next.turns.map((turn) =>
        turn.first <= number && number <= turn.last ? { ...turn, mark: event.mark } : turn,
      );
  },
  erased(next, event, recorded) {
    addAside(next, recorded, {
      kind: "divider",
      text: t("Erased on request ({kind})", { kind: event.of.replaceAll("_", " ") }),
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
      turn.first > event.to_n
        ? {
            ...turn,
            undone: true,
            undoneBy: turn.undoneBy ?? recorded.n,
            end: turn.end ?? recorded.at,
          }
        : turn,
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

/** Change the message that its platform calls this. */
function changeMessage(next, of, change) {
  const isMeant = (item) => Boolean(of) && item.externalId === of;
  next.turns = next.turns.map((turn) =>
    turn.items.some(isMeant)
      ? {
          ...turn,
          items: turn.items.map((item) => (isMeant(item) ? { ...item, ...change } : item)),
        }
      : turn,
  );
}

function ignoreEvent() {}
