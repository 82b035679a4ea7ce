"""What a conversation looks like, as lists of lines."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.cli.paint import Paint, stable_length
from deskhand.cli.view import View
from deskhand.types import events as e
from deskhand.types.door import Progress
from deskhand.types.events import Recorded
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, ResultStatus, Text, ToolCall, ToolResult, Usage

ME = Principal("owner", ("owner",))
EVIL = "a\x1b[31mb\x1b]0;t\x07c\x9b2J\u202ed"
SGR = re.compile(r"\x1b\[[0-9;]*m")


class Talk:
    """A view with a clock that a test moves, and events in their order."""

    def __init__(self, width: int = 60, colours: str | None = None, *, usage: bool = False) -> None:
        self.time = 0.0
        self.n = 0
        self.view = View(Paint(lambda: width, colours), lambda: self.time, usage=usage)

    def see(self, *items: e.AnyEvent | Progress) -> list[str]:
        lines: list[str] = []
        for item in items:
            self.n += not isinstance(item, Progress)
            whole = item if isinstance(item, Progress) else Recorded(self.n, "s", self.n, 0.0, item)
            lines += self.view.render(whole)
        return [SGR.sub("", line).rstrip() for line in lines]

    def live(self, height: int = 20) -> list[str]:
        return [SGR.sub("", line).rstrip() for line in self.view.render_live(height)]


def said(text: str, channel: str = "terminal") -> e.MessageReceived:
    return e.MessageReceived(1, ME, Address(channel), Message("user", (Text(text),)))


def replied(text: str, *calls: ToolCall, usage: Usage = Usage()) -> e.ModelReplied:  # noqa: B008 -- a frozen value
    return e.ModelReplied(
        Message("assistant", (*((Text(text),) if text else ()), *calls)), "a/b", usage=usage
    )


def call(name: str = "shell", **arguments: object) -> ToolCall:
    return ToolCall("c1", name, msgspec.Raw(msgspec.json.encode(arguments)))


def finished(text: str, status: ResultStatus = "ok") -> e.ToolFinished:
    return e.ToolFinished(ToolResult("c1", (Text(text),), status))


def ended(call_id: str, text: str, status: ResultStatus = "ok") -> Progress:
    return Progress("tool_result", 3, text=text, call_id=call_id, status=status)


def asked(question: str = 'shell {"command":"ls"}') -> e.ApprovalAsked:
    return e.ApprovalAsked("ask_1", "c1", "binds", question, "no rule allows it", 1e9)


def piece(text: str, offset: int, kind: str = "text") -> Progress:
    return Progress(kind, 3, 0, offset, text)  # type: ignore[arg-type]


def test_a_plain_turn() -> None:
    talk = Talk()
    lines = talk.see(said("hello"), replied("Hi **there**"), e.TurnEnded("done", (1,)))
    assert lines == ["> hello", "", "Hi there", ""]
    assert talk.live() == []


def test_a_message_from_elsewhere_names_its_sender() -> None:
    assert Talk().see(said("hello", "telegram"))[0] == "> owner on telegram: hello"


def test_streaming_prints_what_is_certain_and_redraws_the_rest() -> None:
    talk = Talk()
    talk.see(said("go"))
    assert talk.see(piece("First *para", 0), piece("graph*.\n\nSec", 11)) == [
        "First paragraph.",
        "",
    ]
    assert talk.live() == ["Sec"]
    assert talk.see(piece("ond.", 23)) == []
    assert talk.live() == ["Second."]
    assert talk.see(replied("First *paragraph*.\n\nSecond.")) == ["Second.", ""]
    assert talk.live() != ["Second."]


PIECES = ["# h\n", "text\n", "\n", "- a\n", "  - b\n", "1. x\n", "```\n", "| a |\n|---|\n", "> q\n"]


@settings(deadline=None)  # what is asked is what is drawn, not how quickly on a busy machine
@given(st.lists(st.sampled_from(PIECES)))
def test_blocks_that_are_certain_stay_as_they_are(pieces: list[str]) -> None:
    """Whatever follows, the settled beginning of a text renders the same."""
    paint = Paint(lambda: 60)
    text = ""
    settled = 0
    for each in pieces:
        text += each
        assert stable_length(text) >= settled
        settled = stable_length(text)
        assert settled <= len(text)
    assert paint.markdown(text[:settled]) == paint.markdown(text[:settled] + "\n")


def test_a_reset_voids_what_was_shown() -> None:
    talk = Talk()
    talk.see(said("go"), piece("One.\n\nTw", 0))
    assert talk.see(Progress("reset", 3, 0)) == ["· the answer broke off; starting again"]
    assert talk.see(piece("Other", 0)) == []
    assert talk.see(replied("Other")) == ["Other", ""]


def test_dropped_pieces_come_with_the_reply() -> None:
    talk = Talk()
    talk.see(said("go"), piece("One.\n\nTwo.\n\nThr", 0), piece("nine", 40))
    assert talk.see(replied("One.\n\nTwo.\n\nThree and nine")) == ["Three and nine", ""]


def test_who_comes_late_sees_what_was_said() -> None:
    talk = Talk()
    assert talk.see(piece("One.\n\nTwo", 0, "snapshot")) == ["One.", ""]
    assert talk.live() == ["Two"]


def test_a_tool_call() -> None:
    talk = Talk()
    assert talk.see(said("go"), replied("I look.", call(command="ls -la"))) == [
        "> go",
        "",
        "I look.",
        "",
    ]
    talk.time = 3.0
    talk.see(Progress("tool_output", 3, text="a\nb\n", call_id="c1"))
    assert [line[2:] for line in talk.live()] == ["shell  ls -la  3 s", "b"]
    assert talk.see(finished("x\ny\nz")) == ["✓ shell  ls -la", "  x (+2 lines)  3 s"]


@pytest.mark.parametrize(
    ("status", "mark"), [("error", "✗"), ("denied", "✗"), ("interrupted", "✗"), ("ok", "✓")]
)
def test_how_a_call_ended(status: ResultStatus, mark: str) -> None:
    talk = Talk()
    talk.see(said("go"), replied("", call(a=1, b="two")))
    assert talk.see(finished("why", status)) == [f"{mark} shell  a=1 b=two", "  why"]


def test_an_approval_shows_the_exact_bytes() -> None:
    talk = Talk()
    question = 'shell {"command":"rm\\u0020-rf\\n  /tmp/x"}'
    lines = talk.see(said("go"), replied("", call()), asked(question))
    assert question in " ".join(line.strip("│ ") for line in lines)
    assert any("rm -rf" in line for line in lines), "and what they spell"
    assert "because no rule allows it" in lines
    assert talk.live() == ["Allow?  y once  a always (this exact call)  n no  N never"]
    assert talk.view.ask is not None
    assert talk.see(e.ApprovalAnswered(2, "ask_1", "once", ME)) == ["  allowed once"]
    assert talk.view.ask is None


def test_several_calls_in_one_question() -> None:
    talk = Talk()
    both = 'send {"text":"a\\nb"}\nsend {"text":"c"}'
    event = msgspec.structs.replace(asked(both), others=(e.BoundCall("c2", "b2"),))
    lines = [line.strip("│ ") for line in talk.see(said("go"), replied("", call()), event)]
    assert 'send {"text":"a\\nb"}' in lines and 'send {"text":"c"}' in lines
    assert any("allow these 2 calls?" in line for line in lines)
    assert talk.live() == ["Allow all of them?  y once  e one by one  n no"]
    assert talk.see(e.ApprovalAnswered(2, "ask_1", "each", ME)) == [
        "  split into one request per call"
    ]
    assert talk.view.ask is None


def test_a_question_numbers_its_choices() -> None:
    talk = Talk()
    question = e.QuestionAsked("ask_1", "c1", "Which?", ("red", "blue"), 1e9)
    assert talk.see(said("go"), replied("", call()), question)[-3:] == [
        "? Which?",
        "  1  red",
        "  2  blue",
    ]
    assert talk.view.ask is not None
    assert talk.view.ask.choices == ("red", "blue")


def test_how_turns_end() -> None:
    talk = Talk(usage=True)
    talk.see(said("go"), replied("x", usage=Usage(1200, 34, 1000)))
    lines = talk.see(e.TurnEnded("steps", (1,), "I stopped after 5 steps."))
    assert lines == ["I stopped after 5 steps.", "· 1,200 tokens read (1,000 cached), 34 written"]


def test_a_failure_says_what_is_tried_next() -> None:
    talk = Talk()
    talk.see(said("go"))
    failed = e.ModelFailed("a/b", "ModelTimeout", "no answer", 1.0, "c/d")
    assert talk.see(failed) == ["· no answer (continuing with c/d)"]
    assert talk.see(e.ModelFailed("c/d", "ModelTimeout", "no answer")) == []
    busy = e.ModelFailed("c/d", "ModelOverloaded", "too busy", 600.0, "c/d")
    assert talk.see(busy) == ["· too busy (retrying at 00:10 UTC)"]


def test_what_waits_is_shown_until_it_is_taken_in() -> None:
    talk = Talk()
    talk.see(said("go"))
    talk.view.queued[7] = "and this"
    assert talk.live()[-1] == "  queued: and this"
    talk.see(msgspec.structs.replace(said("and this"), inbox_id=7))
    assert talk.view.queued == {}


def test_everything_from_outside_is_made_harmless() -> None:
    """Text of the model, of tools, of people and of questions; only our own colours have an ESC."""
    talk = Talk(colours="truecolor")
    raw: list[str] = []

    def see(item: e.AnyEvent | Progress) -> None:
        talk.n += 1
        whole = item if isinstance(item, Progress) else Recorded(talk.n, "s", talk.n, 0.0, item)
        raw.extend([*talk.view.render(whole), *talk.view.render_live(30)])

    evil_call = ToolCall("c1", f"sh{EVIL}", msgspec.Raw(msgspec.json.encode({"x": EVIL})))
    see(said(EVIL))
    see(piece(EVIL, 0, "thinking"))
    see(piece(f"{EVIL}\n\n```{EVIL}\n{EVIL}\n```\n\n[{EVIL}](http://x/{EVIL})\n\n{EVIL}", 0))
    see(replied(f"{EVIL} `{EVIL}`", evil_call))
    see(Progress("tool_output", 3, text=EVIL, call_id="c1"))
    see(Progress("tool_result", 3, text=EVIL, call_id="c1"))
    see(Progress("status", 3, text=EVIL))
    see(asked(f'sh {{"x":"{EVIL}"}}'))
    see(e.QuestionAsked("ask_2", "c1", EVIL, (EVIL,), 1e9))
    see(e.ToolFinished(ToolResult("c1", (Text(EVIL),), "error")))
    see(e.CommandRun(2, ME, "help", EVIL, EVIL))
    see(e.ModelFailed("a/b", "ModelError", EVIL, 1.0, "c/d"))
    see(e.TurnEnded("failed", (1,), EVIL))
    text = SGR.sub("", "\n".join(raw))
    assert not set(text) & ({*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u202e"} - {"\n"})
    assert "␛[31m" in text


def test_no_colour_where_none_is_wanted() -> None:
    view = View(Paint(lambda: 60, None), lambda: 0.0)
    events = (said("x"), replied("`a` [b](c)"))
    shown = [line for event in events for line in view.render(Recorded(1, "s", 1, 0.0, event))]
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", "".join(shown))


@given(st.integers(1, 200), st.text())
def test_any_width(width: int, text: str) -> None:
    talk = Talk(width)
    talk.see(said(text), piece(text, 0), replied(text, call(x=text)), finished(text), asked(text))
    assert len(talk.live(5)) <= 5


def test_a_long_answer_keeps_within_its_room() -> None:
    talk = Talk()
    talk.see(said("go"), piece("> line\n>\n" * 5000, 0))
    assert 4 <= len(talk.live(10)) <= 10


CODE = [f'x{n} = """{n}' if n % 7 else f'{n}"""  # so' for n in range(90)]
ITEMS = [f"- item {n}\n  - inner\n" if n % 3 else f"- **item** {n}" for n in range(30)]
NUMBERED = [f"{n}. item `{n}`" for n in range(8, 40)]


@pytest.mark.parametrize("lines", [CODE, ITEMS, NUMBERED], ids=["code", "bullets", "numbers"])
@pytest.mark.parametrize("width", [24, 80])
def test_a_long_block_goes_above_while_it_is_written(lines: list[str], width: int) -> None:
    """Row by row, as it would be at once; little of it is drawn again."""
    text = "\n".join(["```python", *lines, "```"] if lines is CODE else lines) + "\n\nThe end."
    whole = Talk(width).see(said("go"), replied(text))[1:]

    talk = Talk(width)
    shown = talk.see(said("go"))[1:]
    above = len(shown)
    for start in range(0, len(text), 9):
        shown += talk.see(piece(text[start : start + 9], start))
        assert len(talk.live(50)) <= 12
    assert len(shown) > above + 20
    assert [*shown, *talk.see(replied(text))] == whole


def test_an_answer_that_breaks_off_in_a_long_block_begins_anew() -> None:
    talk = Talk()
    text = "\n".join(ITEMS)
    talk.see(said("go"), piece(text, 0))
    assert talk.see(Progress("reset", 3)) == ["· the answer broke off; starting again"]
    assert talk.see(piece("- other\n- one\n", 0)) == []
    assert talk.live() == [" • other", " • one"]


def test_calls_side_by_side_are_marked_as_each_one_ends() -> None:
    talk = Talk()
    two = [ToolCall(name, "read_file", msgspec.Raw(b'{"path":"x"}')) for name in ("c1", "c2", "c3")]
    talk.see(said("read them"), replied("", *two))
    talk.time = 2.0
    assert (
        talk.see(
            ended("c2", "two\nlines\n"),
            ended("c3", "no such file", "error"),
            ended("c9", "unknown"),
        )
        == []
    )
    talk.time = 5.0
    live = talk.live()
    assert live[0].endswith("read_file  x  5 s") and not live[0].startswith(("✓", "✗"))
    assert live[1:] == [
        "✓ read_file  x  2 s",
        "  two (+1 lines)",
        "✗ read_file  x  2 s",
        "  no such file",
    ]
    assert talk.see(finished("one")) == ["✓ read_file  x", "  one  5 s"]
    done = e.ToolFinished(ToolResult("c2", (Text("two\nlines"),)))
    assert talk.see(done) == ["✓ read_file  x", "  two (+1 lines)  2 s"]
