"""What a conversation looks like: items of `Door.follow` in, lines for the screen out. No terminal
is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

import msgspec

from ..models.chain import SILENT_WAIT_S
from ..types import events as e
from ..types.diffs import CallDiff
from ..types.door import Progress
from ..types.events import Recorded
from ..types.marked_texts import mark_text
from ..types.messages import Audio, File, Image, Message, ToolCall, ToolResult, Usage
from .asks import BECAUSE
from .diffs import DIFF_HEADING, render_diff
from .paint import Paint, begun_length, stable_length
from .plain import cell_width, shorten_line
from .rehearsals import describe_arguments, describe_result, style_question
from .terminal_language import Say

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STATUS_MARKS = {"ok": ("✓", "good")}
FAILED_MARK = ("✗", "bad")
TAIL_CHARS = 3000
"""Of a block that grows longer only the end is shown while it is written."""
BEGUN_ROWS = 4
"""So many rows of a long block are put above at once, when they are certain: what is below them is
drawn again with each line."""
CONTEXT_LINES = 40
"""So many lines of code before a row say how it is coloured."""
MAX_NAMES = 3
MAX_NAME_CELLS = 30
"""So many files of a result are named, and so much of each name."""
CHOICE_LABELS = {
    "once": mark_text("allowed once"),
    "always": mark_text("always allowed (this exact call)"),
    "no": mark_text("denied"),
    "never": mark_text("never allowed (this exact call)"),
    "each": mark_text("split into one request per call"),
}
SINGLE_ASK_KEYS = (
    ("y", mark_text("once")),
    ("a", mark_text("always (this exact call)")),
    ("n", mark_text("no")),
    ("N", mark_text("never")),
)
JOINT_ASK_KEYS = (("y", mark_text("once")), ("e", mark_text("one by one")), ("n", mark_text("no")))
"""What answers a question about one call, and about several."""


_SENDER = mark_text("{person_name} on {channel_name}:")
_REWOUND = mark_text("{person} rewound to event {event_number}")
_CONTINUED = mark_text("continued from {name}, event {event_number}")
_SHORTENED = mark_text("the older part of this conversation was shortened")
_ERASED = mark_text("erased ({name})")
_BROKEN_OFF = mark_text("the answer broke off; starting again")
_CUT_SHORT = mark_text("stopped in mid-sentence")
_RETRYING = mark_text("retrying")
_NEXT_MODEL = mark_text("continuing with {model_name}")
_RETRYING_AT = mark_text("retrying at {time_text}")
_NEXT_MODEL_AT = mark_text("continuing with {model_name} at {time_text}")
_ALLOW_CALLS = mark_text("allow these {count_number} calls?")
_ALLOW_CALL = mark_text("allow this call?")
_USED = mark_text("{read_number} tokens read ({cached_number} cached), {written_number} written")
_QUEUED = mark_text("queued")
_THINKING = mark_text("thinking")
_WAITING = mark_text("waiting for the model")
_ANSWER = mark_text("Answer with a number or in words.")
_ALLOW_ALL = mark_text("Allow all of them?")
_ALLOW = mark_text("Allow?")
_ONE_FILE = mark_text("1 file")
_FILES = mark_text("{count_number} files")
_NO_OUTPUT = mark_text("no output")
_MORE_LINES = mark_text("{count_number} lines")


class RunningCall(msgspec.Struct):
    """A call without a result. `at` is when it was made, `output` the last line that it said.
    `status` and `ended` are set when it is over and those beside it are not."""

    call: ToolCall
    at: float
    output: str = ""
    status: str = ""
    ended: float | None = None


class ShownAsk(msgspec.Struct, frozen=True):
    """What waits for a person: an approval, of several calls `together` or of one, or a question
    with these choices. `at`: when it appeared here."""

    id: str
    call_id: str
    approval: bool
    choices: tuple[str, ...]
    at: float
    together: bool = False


class View:
    """Folds a session into what is shown of it. `now` gives seconds for how long something takes,
    `zone` and `say` are those of the person: what Deskhand itself says, `say` says in their
    language."""

    def __init__(
        self,
        paint: Paint,
        now: Callable[[], float],
        *,
        here: str = "terminal",
        usage: bool = False,
        zone: tzinfo = UTC,
        say: Say = str,
    ) -> None:
        self._paint = paint
        self._now = now
        self._here = here
        self._usage = usage
        self._zone = zone
        self._say = say
        self.calls: dict[str, RunningCall] = {}
        self.ask: ShownAsk | None = None
        self.working = False
        self.since = 0.0
        self.model = ""
        self.queued: dict[int, str] = {}
        self._text = ""
        self._printed = 0
        self._begun = 0
        self._thought = ""
        self._status = ""
        self._blank = True
        self._spent = Usage()

    # ------------------------------------------------------------------ for good

    def render(self, item: Recorded | Progress, diff: CallDiff | None = None) -> list[str]:
        """The lines that this item adds to what was said, for good; never two empty ones in a row
        between them. `diff` is what an edit changed, or would change."""
        lines = self._render(item, diff)
        if lines and not lines[0] and self._blank:
            del lines[0]
        if lines:
            self._blank = not lines[-1]
        return lines

    def _render(  # noqa: C901 -- one case for each kind of event
        self, item: Recorded | Progress, diff: CallDiff | None
    ) -> list[str]:
        if isinstance(item, Progress):
            return self._apply_progress(item)
        event = item.event
        inbox_id = getattr(event, "inbox_id", 0)  # those events that take in something have it
        self.queued.pop(inbox_id, None)
        match event:
            case e.MessageReceived():
                return self._render_received(event)
            case e.ModelReplied():
                return self._render_reply(event)
            case e.ModelFailed():
                return self._render_model_failure(event, item.at)
            case e.ToolFinished(result=result):
                return [*self._render_result(result), *self._render_diff(diff)]
            case e.CallClosed(call_id=call_id, status=status, reason=reason):
                return self._render_closed_call(call_id, status, reason)
            case e.ApprovalAsked() | e.QuestionAsked():
                return self._render_ask(event, diff)
            case e.ApprovalAnswered() | e.QuestionAnswered():
                return self._render_answer(event)
            case e.CommandRun(reply=""):
                return []
            case e.CommandRun(reply=reply, principal=principal) if principal.kind == "system":
                return ["", *self._paint.text(self._say(reply), "quiet"), ""]
            case e.CommandRun(name=name, args=args, reply=reply):
                typed = self._paint.line((f"> /{name} {args}".rstrip(), "you"))
                return ["", typed, *self._paint.text(self._say(reply), "quiet"), ""]
            case e.TurnEnded():
                return self._render_turn_end(event)
            case e.Undone(principal=principal, to_n=to_n):
                return ["", self._note(_REWOUND.format(person=principal.id, event_number=to_n)), ""]
            case e.Branched(of=of, at_n=at_n):
                return [self._note(_CONTINUED.format(name=of, event_number=at_n))]
            case e.Compacted(dropped=0, note=""):
                return []
            case e.Compacted():
                return [self._note(_SHORTENED)]
            case e.Erased(of=of):
                return [self._note(_ERASED.format(name=of))]
            case _:
                return []

    def _note(self, text: str, style: str = "quiet") -> str:
        """A line about the conversation itself."""
        return self._paint.line((f"· {self._say(text)}", style))

    def _begin_turn(self) -> None:
        if self.working:
            return
        self.working = True
        self.since = self._now()
        self._spent = Usage()

    def _render_received(self, event: e.MessageReceived) -> list[str]:
        self._begin_turn()
        sender = ""
        if event.address.channel != self._here:
            sender = self._say(_SENDER).format(
                person_name=event.principal.id, channel_name=event.address.channel
            )
            sender = f"{sender} "
        lines = self._paint.text(sender + _message_text(event.message), "you", "  ")
        return ["", "> " + lines[0][2:], *lines[1:], ""]

    def _apply_progress(self, item: Progress) -> list[str]:
        match item.kind:
            case "text" if item.offset == len(self._text):
                self._text += item.text
                self._thought = ""
                return self._render_settled() if "\n" in item.text else []
            case "snapshot":
                self._begin_turn()
                self._text = item.text
                return self._render_settled()
            case "thinking":
                self._thought = (self._thought + item.text)[-400:]
            case "tool_output" if item.call_id in self.calls:
                lines = [line for line in item.text[-2000:].splitlines() if line.strip()]
                if lines:
                    self.calls[item.call_id].output = lines[-1]
            case "tool_result" if item.call_id in self.calls:
                running = self.calls[item.call_id]
                running.status = item.status
                running.ended = self._now()
                said = describe_result(running.call.name, item.text)
                running.output = _summarize_text(said, self._paint.width - 24, self._say)
            case "status":
                self._status = item.text
            case "reset":
                was_shown = self._printed + self._begun > 0
                self._forget_text()
                if was_shown:
                    return [self._note(_BROKEN_OFF, "warn")]
            case _:
                pass
        return []

    def _render_settled(self) -> list[str]:
        """Print the rows of the answer that cannot change any more: whole blocks, and the beginning
        of a long one."""
        lines: list[str] = []
        tail = self._text[self._printed :]
        done = stable_length(tail)
        if done:
            lines += [*self._render_rest(tail[:done]), ""]
            self._printed += done
            self._begun = 0
            tail = tail[done:]

        begun = begun_length(tail)
        if begun > self._begun:
            rows = self._render_rest(tail[:begun])
            if len(rows) >= BEGUN_ROWS:
                self._begun = begun
                lines += rows
        return lines

    def _render_rest(self, tail: str) -> list[str]:
        """The rows of this Markdown that are not above yet."""
        above = tail[: self._begun]
        if not above:
            return self._paint.markdown(tail)
        before = above
        if above.startswith(("```", "~~~")):
            fence, *code = above.splitlines()
            before = "\n".join([fence, *code[-CONTEXT_LINES:], ""])
        rows = self._paint.markdown(before + tail[self._begun :])
        return rows[len(self._paint.markdown(before)) :]

    def _render_reply(self, event: e.ModelReplied) -> list[str]:
        text = event.message.text
        if not text.startswith(self._text[: self._printed + self._begun]):
            self._printed = 0
            self._begun = 0
        rest = text[self._printed :]
        rows = self._render_rest(rest) if rest.strip() else []
        self._forget_text()
        self.model = event.model
        self._spent += event.usage
        now = self._now()
        self.calls = {call.id: RunningCall(call, now) for call in event.message.calls}
        lines = [*rows, ""] if rows else []
        if event.finish == "interrupted":
            lines.append(self._note(_CUT_SHORT, "warn"))
        return lines

    def _forget_text(self) -> None:
        """The answer that was being written is over."""
        self._text = ""
        self._printed = 0
        self._begun = 0
        self._thought = ""

    def _render_model_failure(self, event: e.ModelFailed, at: float) -> list[str]:
        self._forget_text()
        if not event.next_model:
            return []
        is_same = event.next_model == event.model
        then = _RETRYING if is_same else _NEXT_MODEL
        clock = ""
        if event.retry_at is not None and event.retry_at - at > SILENT_WAIT_S:
            then = _RETRYING_AT if is_same else _NEXT_MODEL_AT
            clock = f"{datetime.fromtimestamp(event.retry_at, self._zone):%H:%M %Z}"
        then = self._say(then.format(model_name=event.next_model, time_text=clock))
        return self._paint.text(f"· {self._say(event.detail)} ({then})", "warn")

    def _render_result(self, result: ToolResult) -> list[str]:
        running = self.calls.pop(result.call_id, None)
        if running is None:
            return []
        mark, style = STATUS_MARKS.get(result.status, FAILED_MARK)
        head = self._paint.line((f"{mark} ", style), *self._style_call(running.call))
        said = summarize_result(running.call, result, self._paint.width - 24, self._say)
        return [head, self._paint.line(("  ", ""), (said, "quiet"), self._style_duration(running))]

    def _render_diff(self, diff: CallDiff | None) -> list[str]:
        """What an edit changed, beneath its line."""
        lines = render_diff(diff) if diff is not None else []
        return [self._paint.line(("    ", ""), (text, style)) for text, style in lines]

    def _render_closed_call(self, call_id: str, status: str, reason: str) -> list[str]:
        running = self.calls.pop(call_id, None)
        if self.ask is not None and self.ask.call_id == call_id:
            self.ask = None
        if running is None:
            return []
        call = self._style_call(running.call)
        return [
            self._paint.line(("✗ ", "bad"), *call, (f"  {status}: {self._say(reason)}", "quiet"))
        ]

    def _render_ask(
        self, event: e.ApprovalAsked | e.QuestionAsked, diff: CallDiff | None
    ) -> list[str]:
        if isinstance(event, e.ApprovalAsked):
            return self._render_approval(event, diff)

        self.ask = ShownAsk(event.ask_id, event.call_id, False, event.choices, self._now())
        lines = ["", *self._paint.text(f"? {event.question}", "warn")]
        for number, choice in enumerate(event.choices, 1):
            lines += self._paint.text(f"  {number}  {choice}")
        return lines

    def _render_approval(self, event: e.ApprovalAsked, diff: CallDiff | None) -> list[str]:
        together = bool(event.others)
        self.ask = ShownAsk(event.ask_id, event.call_id, True, (), self._now(), together)

        calls = event.question.split("\n") if together else [event.question]
        if diff is not None:
            heading = self._say(DIFF_HEADING)
            asked = [(event.question, ""), ("", ""), (heading, ""), *render_diff(diff)]
        else:
            asked = style_question("\n\n".join(map(spell_out_call, calls)))
        asked_of = _ALLOW_CALLS.format(count_number=len(calls)) if together else _ALLOW_CALL
        title = self._say(asked_of)
        return ["", *self._paint.panel(asked, title), *self._render_reason(event.reason)]

    def _render_reason(self, reason: str) -> list[str]:
        because = self._say(BECAUSE.format(reason_text=reason))
        return self._paint.text(because, "quiet") if reason else []

    def _render_answer(self, event: e.ApprovalAnswered | e.QuestionAnswered) -> list[str]:
        self.ask = None
        if isinstance(event, e.QuestionAnswered):
            return self._paint.text(f"> {event.message.text}", "you")
        yes = event.choice in ("once", "always")
        answer = self._say(CHOICE_LABELS[event.choice])
        return [self._paint.line((f"  {answer}", "good" if yes else "bad"))]

    def _render_turn_end(self, event: e.TurnEnded) -> list[str]:
        self.working = False
        self.ask = None
        self.calls = {}
        self._status = ""
        self._forget_text()
        lines: list[str] = []
        if event.said:
            is_done = event.reason == "done"
            said = event.said if is_done else self._say(event.said)
            lines += self._paint.text(said, "" if is_done else "warn")
        if event.note:
            lines += self._paint.text(self._say(event.note), "warn")
        if self._usage and self._spent != Usage():
            spent = self._spent
            used = _USED.format(
                read_number=f"{spent.input_tokens:,}",
                cached_number=f"{spent.cached_tokens:,}",
                written_number=f"{spent.output_tokens:,}",
            )
            lines.append(self._note(used))
        return lines

    # ------------------------------------------------------------------ for now

    def render_live(self, height: int) -> list[str]:
        """What is going on, at most `height` lines: the end of the answer, calls, what waits."""
        lines: list[str] = []
        spin = SPINNER[int(self._now() * 5) % len(SPINNER)]
        tail = self._text[self._printed :]
        if tail.strip():
            lines += self._render_tail(tail, height)
        elif self.ask is not None:
            lines.append(self._render_answer_keys(self.ask))
        elif self.calls:
            for running in list(self.calls.values())[:4]:
                lines += self._render_running_call(running, spin)
        elif self.working:
            lines.append(self._render_waiting(spin))
        for text in self.queued.values():
            lines.append(self._paint.line((f"  {self._say(_QUEUED)}: {text}", "quiet")))
        return lines[-height:]

    def _render_tail(self, tail: str, height: int) -> list[str]:
        """As much of the block that is being written as can be seen; what is long would be drawn
        slowly each time."""
        if self._begun:
            return self._render_rest(tail)
        rows = tail[-TAIL_CHARS:].split("\n")
        if len(tail) <= TAIL_CHARS and len(rows) <= height:
            return self._paint.markdown(tail)
        fence = tail.split("\n", 1)[0] if tail.startswith(("```", "~~~")) else ""
        return self._paint.markdown("\n".join([fence, *rows[-height:]]))

    def _render_waiting(self, spin: str) -> str:
        thought = ""
        if self._thought.strip():
            thought = shorten_line(self._thought.splitlines()[-1], 200)
        doing = self._say(self._status or (_THINKING if self._thought else _WAITING))
        return self._paint.line(
            (f"{spin} {doing} {self._format_seconds(self.since)}", "quiet"),
            (f"  {thought}", "quiet"),
        )

    def _render_answer_keys(self, ask: ShownAsk) -> str:
        if not ask.approval:
            return self._paint.line((self._say(_ANSWER), "warn"))
        pieces = [(self._say(_ALLOW_ALL if ask.together else _ALLOW), "warn")]
        for key, means in JOINT_ASK_KEYS if ask.together else SINGLE_ASK_KEYS:
            pieces += ((f"  {key} ", "tool"), (self._say(means), ""))
        return self._paint.line(*pieces)

    def _render_running_call(self, running: RunningCall, spin: str) -> list[str]:
        mark, style = spin, "warn"
        if running.status:
            mark, style = STATUS_MARKS.get(running.status, FAILED_MARK)
        call = self._style_call(running.call)
        lines = [self._paint.line((f"{mark} ", style), *call, self._style_duration(running))]
        if running.output:
            lines.append(self._paint.line(("  ", ""), (running.output, "quiet")))
        return lines

    def _style_call(self, call: ToolCall) -> tuple[tuple[str, str], tuple[str, str]]:
        width = max(self._paint.width - len(call.name) - 14, 10)
        return (call.name, "tool"), (f"  {summarize_call(call, width)}", "")

    def _style_duration(self, running: RunningCall) -> tuple[str, str]:
        took = self._format_seconds(running.at, running.ended)
        return (f"  {took}" if took else "", "quiet")

    def _format_seconds(self, since: float, until: float | None = None) -> str:
        seconds = (self._now() if until is None else until) - since
        return f"{seconds:.0f} s" if seconds >= 1 else ""


def _message_text(message: Message) -> str:
    """What a person wrote and attached."""
    pieces = [message.text]
    for part in message.parts:
        match part:
            case Image(name=name) | File(name=name):
                pieces.append(f"[{name or 'a picture'}]")
            case Audio():
                pieces.append("[a voice message]")
            case _:
                pass
    return " ".join(piece for piece in pieces if piece)


def summarize_call(call: ToolCall, width: int) -> str:
    """The arguments on one line: the value itself where there is but one."""
    words = describe_arguments(call)
    if words is not None:
        return shorten_line(words, width)
    raw = bytes(call.arguments).decode(errors="replace")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return shorten_line(raw, width)
    if isinstance(data, dict):
        if call.name in ("write_file", "edit_file") and isinstance(data.get("path"), str):
            return shorten_line(data["path"], width)  # what is written there, the diff shows
        values = [value if isinstance(value, str) else json.dumps(value) for value in data.values()]
        if len(values) == 1:
            return shorten_line(values[0], width)
        pairs = zip(data, values, strict=True)
        raw = "  ".join(f"{key}={value}" for key, value in pairs)
    return shorten_line(raw, width)


def summarize_result(call: ToolCall, result: ToolResult, width: int, say: Say = str) -> str:
    """The first line of a result, how much more there is, and the files that came with it."""
    files = [part for part in result.parts if isinstance(part, Image | File)]
    if not files:
        return _summarize_text(describe_result(call.name, result.text), width, say)
    names = ", ".join(shorten_line(part.name, MAX_NAME_CELLS) for part in files if part.name)
    if len(files) > MAX_NAMES or not names:
        names = say(_FILES.format(count_number=len(files)) if len(files) > 1 else _ONE_FILE)
    room = width - cell_width(names) - 3
    return f"{_summarize_text(describe_result(call.name, result.text), room, say)} [{names}]"


def _summarize_text(text: str, width: int, say: Say) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return say(_NO_OUTPUT)
    first = shorten_line(lines[0], max(width, 20))
    more = say(_MORE_LINES.format(count_number=len(lines) - 1))
    return f"{first} (+{more})" if len(lines) > 1 else first


def spell_out_call(question: str) -> str:
    """The exact call, and, where its bytes hide line ends or letters behind escapes, what they
    spell."""
    name, _, raw = question.partition(" ")
    if "\\" not in raw:
        return question
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return question
    if not isinstance(data, dict):
        return question
    spelled = "\n".join(
        f"  {key}\n    " + str(value).replace("\n", "\n    ") for key, value in data.items()
    )
    return f"{question}\n\nTool: {name}\n{spelled}"
