"""The log as what is shown of it: real logs and made ones go through the page's own fold, in the
browser."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from playwright.sync_api import Page

from deskhand.types import events as e
from deskhand.types.door import Progress
from deskhand.types.events import Recorded
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import Label
from deskhand.types.messages import Audio, Message, Text, Thinking, ToolCall, ToolResult, Usage

pytestmark = pytest.mark.timeout(120)
OWNER = Principal("owner", ("owner",))
HERE = Address("web", "owner", "x")
FOLD = """async (items) => {
  const { EMPTY, fold, hear, whatIDid } = await import("/js/fold.js");
  let state = EMPTY;
  for (const item of items) {
    const before = JSON.stringify(state);
    const next = "event" in item ? fold(state, item) : hear(state, item);
    if (JSON.stringify(state) !== before) throw new Error("the old state was changed");
    state = next;
  }
  return { ...state, did: state.turns.map(whatIDid) };
}"""


def folded(page: Page, *items: e.AnyEvent | Progress) -> Any:
    """The state after these, which are numbered and timed in their order."""
    told = []
    n = 0
    for item in items:
        if isinstance(item, Progress):
            told.append(msgspec.to_builtins(item))
        else:
            n += 1
            told.append(
                msgspec.json.decode(
                    msgspec.json.encode(Recorded(n, "default/web:owner:x", n, 1000.0 + n, item))
                )
            )
    return page.evaluate(FOLD, told)


def received(text: str, inbox_id: int = 1) -> e.MessageReceived:
    return e.MessageReceived(
        inbox_id, OWNER, HERE, Message("user", (Text(text),)), f"owner:m{inbox_id}"
    )


def replied(text: str, *calls: tuple[str, str, str]) -> e.ModelReplied:
    parts = tuple(ToolCall(id_, name, msgspec.Raw(raw.encode())) for id_, name, raw in calls)
    message = Message("assistant", (*((Text(text),) if text else ()), *parts))
    return e.ModelReplied(message, "scripted/x", "calls" if calls else "stop", Usage(1000, 50))


def finished(call_id: str, text: str = "fine", **more: Any) -> e.ToolFinished:
    return e.ToolFinished(
        ToolResult(call_id, (Text(text, Label("untrusted", source="https://a.test")),), **more)
    )


def kinds(turn: Any) -> list[str]:
    return [item["kind"] for item in turn["items"]]


def test_a_turn_with_tools_and_its_line(page: Page) -> None:
    state = folded(
        page,
        received("do it"),
        replied(
            "I look.",
            ("c1", "read_file", '{"path":"a.txt"}'),
            ("c2", "read_file", '{"path":"b/c.txt"}'),
            ("c3", "write_file", '{"path":"notes.txt","content":"x"}'),
        ),
        finished("c1"),
        finished("c2"),
        finished("c3"),
        replied(
            "",
            ("c4", "shell", '{"command":"ls"}'),
            ("c5", "shell", '{"command":"false"}'),
            ("c6", "ping", "{}"),
        ),
        finished("c4"),
        finished("c5", "exit code 1", status="error"),
        e.CallClosed("c6", "denied", "no rule allows it"),
        replied("Done."),
        e.TurnEnded("done", (1,)),
    )
    (turn,) = state["turns"]
    assert kinds(turn) == [
        "user",
        "answer",
        "tool",
        "tool",
        "tool",
        "tool",
        "tool",
        "tool",
        "answer",
    ]
    assert state["did"] == ["Read 2 files, changed notes.txt, ran 2 commands, 1 call not allowed"]
    assert [item["status"] for item in turn["items"] if item["kind"] == "tool"] == ["ok"] * 4 + [
        "error",
        "denied",
    ]
    assert turn["items"][2]["source"] == "https://a.test"
    assert turn["usage"] == {"read": 3000, "written": 150}
    assert (state["open"], turn["reason"], turn["end"] - turn["at"]) == (False, "done", 10)


def test_what_happens_between_two_events(page: Page) -> None:
    state = folded(
        page,
        received("say it"),
        Progress("thinking", 2, text="hm "),
        Progress("text", 2, text="The "),
        Progress("text", 2, offset=4, text="end"),
        Progress("text", 2, offset=4, text="end"),
        Progress("text", 2, offset=90, text="lost"),
    )
    assert state["live"] == {"n": 2, "attempt": 0, "text": "The end", "thinking": "hm "}
    assert state["open"]
    again = folded(
        page,
        received("x"),
        Progress("text", 2, text="first"),
        Progress("reset", 2),
        Progress("text", 2, 1, text="second"),
    )
    assert again["live"]["text"] == "second"
    late = folded(
        page,
        received("x"),
        Progress("snapshot", 2, text="all of it"),
        Progress("text", 2, offset=9, text="!"),
    )
    assert late["live"]["text"] == "all of it!"
    running = folded(
        page,
        received("x"),
        replied("", ("c1", "shell", "{}"), ("c2", "shell", "{}")),
        Progress("tool_output", 2, text="line\n", call_id="c1"),
        Progress("tool_result", 2, text="over", call_id="c2", status="error"),
    )
    assert running["outputs"] == {"c1": "line\n"}
    assert running["results"] == {"c2": {"status": "error", "text": "over"}}
    done = folded(
        page,
        received("x"),
        Progress("text", 2, text="old"),
        replied("new"),
        Progress("text", 2, text="late"),
    )
    assert done["live"] is None, "what comes after its event is void"


def test_approvals_and_questions(page: Page) -> None:
    asked = e.ApprovalAsked("a1", "c1", "h", 'post {"to":"Ada"}', "it was asked for", 9e9)
    start = (received("post"), replied("", ("c1", "post", '{"to":"Ada"}')), asked)
    waiting = folded(page, *start)
    assert [ask["id"] for ask in waiting["asks"]] == ["a1"]
    assert waiting["turns"][0]["items"][1]["status"] == "waits"
    answered = folded(page, *start, e.ApprovalAnswered(2, "a1", "always", OWNER), finished("c1"))
    tool, ask = answered["turns"][0]["items"][1:]
    assert answered["asks"] == []
    assert (tool["status"], ask["answer"], ask["by"]) == ("ok", "always", "owner")
    expired = folded(page, *start, e.CallClosed("c1", "denied", "nobody answered"))
    assert expired["asks"] == []
    assert expired["turns"][0]["items"][2]["answer"] == "closed"
    several = e.ApprovalAsked(
        "a2", "c1", "h", "post\npost", "why", 9e9, others=(e.BoundCall("c2", "h2"),)
    )
    both = (received("post"), replied("", ("c1", "post", "{}"), ("c2", "post", "{}")), several)
    rests = folded(page, *both)
    assert (rests["asks"][0]["calls"], rests["asks"][0]["choices"]) == (
        ["c1", "c2"],
        ["once", "each", "no"],
    )
    assert [item["status"] for item in rests["turns"][0]["items"] if item["kind"] == "tool"] == [
        "waits",
        "waits",
    ]
    goes_on = folded(page, *both, e.ApprovalAnswered(2, "a2", "once", OWNER))
    assert [item["status"] for item in goes_on["turns"][0]["items"] if item["kind"] == "tool"] == [
        "running"
    ] * 2
    question = e.QuestionAsked("q1", "c1", "Which?", ("red", "blue"), 9e9)
    chosen = e.QuestionAnswered(3, "q1", OWNER, Message("user", (Text("red"),)))
    told = folded(page, *start[:2], question, chosen)
    assert told["turns"][0]["items"][2]["answer"] == "red"


def test_stopped_failed_and_said_at_the_end(page: Page) -> None:
    failed = e.ModelFailed("scripted/x", "BadKey", "the key is wrong")
    state = folded(
        page,
        received("one"),
        e.ModelFailed("scripted/x", "Overloaded", "too busy", 1.0, "scripted/y"),
        failed,
        e.TurnEnded("failed", (1,), "Sorry, I could not answer: the key is wrong"),
        received("two", 2),
        e.ModelReplied(Message("assistant", (Text("I beg"),)), "scripted/x", "interrupted"),
        e.TurnEnded("stopped", (2,)),
        received("three", 3),
        e.TurnEnded("done", (3,), "This is said as it is"),
    )
    one, two, three = state["turns"]
    assert [(item["tone"], item["after"]) for item in one["items"][1:]] == [
        ("warn", "Going on with scripted/y."),
        ("bad", ""),
    ], "the failure is told once"
    assert two["items"][1]["finish"] == "interrupted"
    assert three["items"][1]["text"] == "This is said as it is"


def test_undone_branched_compacted_and_marked(page: Page) -> None:
    turns = (received("one"), replied("1"), e.TurnEnded("done", (1,)))
    more = (received("two", 2), replied("2"), e.TurnEnded("done", (2,)))
    kept = e.Compacted(
        ((2, Message("user", (Text("one"),))), (3, Message("assistant", (Text("1"),)))),
        "",
        0,
        e.Ledger(),
    )
    undone = folded(page, *turns, *more, e.Undone(3, OWNER, 3), kept, received("other", 4))
    assert [turn["undone"] for turn in undone["turns"]] == [False, True, False]
    assert undone["open"]
    branch = folded(
        page, e.Branched("default/web:owner:y", 3, OWNER, "A branch"), kept, received("on", 1)
    )
    assert [kinds(turn) for turn in branch["turns"]] == [["user", "answer"], ["divider"], ["user"]]
    assert branch["branch"] == {"of": "default/web:owner:y", "n": 3, "times": []}
    assert branch["title"] == "A branch"
    dated = folded(page, e.Branched("default/web:owner:y", 3, OWNER, "A branch", (7.0, 8.0)), kept)
    assert [item["at"] for item in dated["turns"][0]["items"]] == [7.0, 8.0]
    shorter = folded(page, *turns, e.Compacted((), "what was", 7, e.Ledger()))
    assert shorter["turns"][1]["items"][0]["dropped"] == 7
    marked = folded(
        page, *turns, e.MessageDelivered("default/web:owner:x#2.0", "77", "may be a duplicate")
    )
    assert marked["turns"][0]["mark"] == "may be a duplicate"


def test_what_was_heard_stands_where_the_recording_is(page: Page) -> None:
    sound, other = Audio("sha256:a", "audio/ogg"), Audio("sha256:b", "audio/ogg")
    said = e.MessageReceived(1, OWNER, HERE, Message("user", (sound, other)), "owner:m1")
    state = folded(
        page,
        said,
        Progress("status", 2, text="listening: 40%"),
        e.Transcribed("sha256:a", "buy milk", language="en", seconds=2.5),
        e.Transcribed("sha256:b", problem="nothing hears here"),
    )
    heard = [part["heard"] for part in state["turns"][0]["items"][0]["parts"]]
    assert heard == [
        {"text": "buy milk", "problem": "", "seconds": 2.5},
        {"text": "", "problem": "nothing hears here", "seconds": 0},
    ]
    assert (state["status"], state["open"]) == ("", True)
    waiting = folded(page, said, Progress("status", 2, text="listening: 40%"))
    assert waiting["status"] == "listening: 40%"


def test_thinking_commands_edits_and_reactions(page: Page) -> None:
    thought = Message("assistant", (Thinking("Let me see.", "anthropic"), Text("Yes.")))
    state = folded(
        page,
        received("one"),
        e.ModelReplied(thought, "scripted/x"),
        e.TurnEnded("done", (1,)),
        e.CommandRun(2, OWNER, "status", "", "Nothing is going on."),
        e.MessageEdited(3, "owner:m1", Message("user", (Text("won"),))),
        e.Reacted(4, OWNER, "owner:m1", "👍", True),
        e.MessageDeleted(5, OWNER, "owner:m1", "won"),
    )
    user, said = state["turns"][0]["items"]
    assert user["deleted"] is True
    assert (user["text"], user["edited"], user["emoji"]) == ("won", True, "👍")
    assert said["thinking"] == "Let me see."
    assert state["turns"][1]["items"][0]["text"] == "/status"


def test_every_kind_of_event_is_known(page: Page) -> None:
    tags = {str(kind.__struct_config__.tag) for kind in e.AnyEvent.__args__}
    source = page.request.get("/js/fold.js").text()
    assert [tag for tag in tags if f"  {tag}(" not in source] == []


def test_a_history_that_a_program_tells_is_shown_as_earlier_turns(page: Page) -> None:
    def told(role: Any, *parts: Any) -> e.HistoryMessage:
        return e.HistoryMessage(1, OWNER, Message(role, parts))

    call = ToolCall("c1", "weather", msgspec.Raw(b"{}"))
    history = (
        told("user", Text("Weather?")),
        told("assistant", call),
        told("tool", ToolResult("c1", (Text("rain"),))),
        told("assistant", Text("It rains.")),
    )
    state = folded(page, *history, received("And now?"))
    assert [[item["kind"] for item in turn["items"]] for turn in state["turns"]] == [
        ["user", "tool", "answer"],
        ["user"],
    ]
    assert state["turns"][0]["items"][1]["text"] == "rain" and state["open"]
    handed = (replied("", ("c2", "weather", "{}")), e.CallsHandedOver({"c2": "call_5f"}, 9e9))
    back = (
        finished("c2", "sun"),
        e.ResultsReturned(2, OWNER, ("call_5f",)),
        replied("Sunny."),
        e.TurnEnded("done", (1, 2)),
    )
    state = folded(page, *history, received("And now?"), *handed, *back)
    assert [item["kind"] for item in state["turns"][1]["items"]] == [
        "user",
        "tool",
        "answer",
    ] and not state["open"]
