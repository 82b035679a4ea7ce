"""A trace: events in, calls out."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.assembly.trace import Trace, TraceSpan
from deskhand.secrets.redaction import find_environment_secrets
from deskhand.types import events as e
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, ResultStatus, Text, ToolCall, ToolResult, Usage
from deskhand.types.secret_search import SecretSearch

ANN = Principal("ann", ("owner",))
PLACE = Address("chat", chat="1")
Timed = tuple[float, e.AnyEvent]


def got(at: float) -> Timed:
    return at, e.MessageReceived(round(at), ANN, PLACE, Message("user", (Text("hello"),)))


def reply(at: float, *calls: ToolCall, tokens: int = 10) -> Timed:
    message = Message("assistant", (Text("yes"), *calls))
    return at, e.ModelReplied(message, "p/m", "calls" if calls else "stop", Usage(tokens, 2, 3))


def call(call_id: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, f"tool_{call_id}", msgspec.Raw(arguments.encode()))


def result(at: float, call_id: str, status: ResultStatus = "ok", text: str = "fine") -> Timed:
    return at, e.ToolFinished(ToolResult(call_id, (Text(text),), status))


def traced(
    *timed: Timed, environment: dict[str, str] | None = None
) -> tuple[list[TraceSpan], list[TraceSpan]]:
    """Those that ended, and those that run."""
    trace = Trace(
        SecretSearch(
            {
                value: f"[{name}]"
                for value, name in find_environment_secrets(environment or {}).items()
            }
        ).redact
    )
    events = [e.Recorded(100 + n, "s", n, at, event) for n, (at, event) in enumerate(timed, 1)]
    return [span for recorded in events for span in trace.add(recorded)], trace.open_spans("s")


def calls(spans: list[TraceSpan]) -> list[TraceSpan]:
    return [span for span in spans if span.kind != "agent_run"]


def test_a_turn() -> None:
    spans, running = traced(
        got(10.0),
        reply(12.0, call("a", '{"x":1}'), call("b")),
        result(15.0, "a"),
        result(15.0, "b", "error", "\nno such file\nmore"),
        (15.5, e.MessageDelivered("k", "1")),
        reply(16.0),
        (16.0, e.TurnEnded("done", (1,))),
        got(100.0),
        reply(101.0),
    )
    assert [
        (s.seq, s.n, s.kind, s.name, s.took_s, s.status, s.parent, s.detail) for s in spans
    ] == [
        (102, 2, "llm_call", "p/m", 2.0, "calls", 0, ""),
        (103, 3, "tool_call", "tool_a", 3.0, "ok", 2, '{"x":1}'),
        (104, 4, "tool_call", "tool_b", 3.0, "error", 2, "no such file"),
        (106, 6, "llm_call", "p/m", 1.0, "stop", 0, ""),
        (107, 7, "agent_run", "s", 6.0, "done", 0, ""),
        (109, 9, "llm_call", "p/m", 1.0, "stop", 0, ""),
    ]
    assert (spans[0].input_tokens, spans[0].output_tokens, spans[0].cached_tokens) == (10, 2, 3)
    assert (spans[4].input_tokens, spans[4].output_tokens, spans[4].preview) == (20, 4, "yes")
    assert [(s.began_at, s.at) for s in spans] == [
        (10, 12),
        (12, 15),
        (12, 15),
        (15, 16),
        (10, 16),
        (100, 101),
    ]
    assert [s.seq for s in spans] == sorted(s.seq for s in spans)
    assert [(s.kind, s.status, s.began_at) for s in running] == [("agent_run", "running", 100.0)]


def test_who_called_whom() -> None:
    """Ids that stay the same however often the log is read, and that no two spans share."""
    timed = [
        got(10.0),
        reply(12.0, call("a")),
        (13.0, e.AskedAside("a", "p/cheap", Usage(5, 1), 0.5)),
        result(14.0, "a"),
        reply(16.0),
        (16.0, e.TurnEnded("done", (1,))),
        got(20.0),
        reply(21.0, call("a")),
    ]
    ended, open_ = traced(*timed)
    first, aside, tool, answer, turn, second = ended
    assert first.parent_id == answer.parent_id == turn.span_id and turn.parent_id == ""
    assert tool.parent_id == first.span_id and aside.parent_id == tool.span_id
    assert {s.trace_id for s in (first, aside, tool, answer, turn)} == {turn.trace_id}
    running, still = open_
    assert running.parent_id == second.span_id and second.parent_id == still.span_id
    assert {s.trace_id for s in (second, running, still)} == {still.trace_id} != {turn.trace_id}
    ids = [s.span_id for s in (*ended, *open_)]
    assert (
        len(set(ids)) == len(ids)
        and {len(each) for each in ids} == {16}
        and len(turn.trace_id) == 32
    )
    assert traced(*timed) == (ended, open_)
    assert running.span_id == traced(*timed, result(30.0, "a"))[0][-1].span_id, (
        "it is the same when it has ended"
    )


def test_what_a_tool_measured_counts() -> None:
    """Results of calls that ran side by side are written together, when the last of them is
    over."""
    fast = ToolResult("a", (Text("fine"),))
    slow = ToolResult("b", (Text("fine"),))
    spans, _ = traced(
        got(10.0),
        reply(12.0, call("a"), call("b")),
        (42.0, e.ToolFinished(fast, took_s=1.5)),
        (42.01, e.ToolFinished(slow, took_s=30.0)),
        (52.0, e.AskedAside("", "p/cheap", Usage(900, 80), 8.0)),
        reply(82.0),
    )
    assert [(s.name, s.took_s) for s in spans] == [
        ("p/m", 2.0),
        ("tool_a", 1.5),
        ("tool_b", 30.0),
        ("p/cheap", 8.0),
        ("p/m", 30.0),
    ]


def test_a_preview_is_short() -> None:
    spans, _ = traced(got(10.0), reply(12.0, call("a")), result(13.0, "a", text="  " + "x" * 1000))
    assert spans[-1].preview == "x" * 200


def test_going_back_ends_a_turn() -> None:
    spans, running = traced(got(10.0), reply(12.0, call("a")), (14.0, e.Undone(3, ANN, 0)))
    assert (spans[-1].kind, spans[-1].status, running) == ("agent_run", "undone", [])


def test_a_failure_and_the_next_try() -> None:
    spans, _ = traced(
        got(10.0),
        (12.0, e.ModelFailed("p/m", "ModelTimeout", "too slow", retry_at=20.0, next_model="p/n")),
        reply(25.0),
    )
    assert [(s.name, s.status, s.took_s, s.detail) for s in spans] == [
        ("p/m", "failed", 2.0, "ModelTimeout: too slow"),
        ("p/m", "stop", 5.0, ""),
    ]


def test_the_time_in_which_a_person_thinks_is_not_the_tools() -> None:
    asked = e.ApprovalAsked("ask_1", "a", "x", "may I?", "", 1e9)
    yes = e.ApprovalAnswered(2, "ask_1", "once", ANN)
    begun: list[Timed] = [got(10.0), reply(12.0, call("a"), call("b")), (12.0, asked)]
    assert [(s.name, s.status) for s in traced(*begun)[1]] == [
        ("tool_a", "waits"),
        ("tool_b", "running"),
        ("s", "waits"),
    ]
    spans, running = traced(*begun, (900.0, yes), (900.0, e.ToolStarted("a")), result(903.0, "a"))
    assert (spans[-1].took_s, [s.status for s in running]) == (3.0, ["running", "running"])


def test_calls_that_are_asked_about_together_wait_together() -> None:
    asked = e.ApprovalAsked("ask_1", "a", "x", "a\nb", "", 1e9, others=(e.BoundCall("b", "y"),))
    begun: list[Timed] = [got(10.0), reply(12.0, call("a"), call("b"), call("c")), (12.0, asked)]
    assert [span.status for span in calls(traced(*begun)[1])] == ["waits", "waits", "running"]
    answered = e.ApprovalAnswered(2, "ask_1", "once", ANN)
    assert [span.status for span in calls(traced(*begun, (20.0, answered))[1])] == ["running"] * 3


def test_calls_that_were_closed() -> None:
    spans, running = traced(
        got(10.0),
        reply(12.0, call("a")),
        (14.0, e.CallClosed("a", "interrupted", "stopped")),
        result(15.0, "unknown"),
    )
    assert (spans[-1].status, spans[-1].detail, spans[-1].took_s) == ("interrupted", "stopped", 2.0)
    assert calls(running) == [] and len(spans) == 2


SECRET = 'a"secret\\key'


@pytest.mark.parametrize("place", ["arguments", "result", "failure", "running"])
def test_no_secret_is_shown(place: str) -> None:
    long = "x" * 1983 + SECRET  # cut in its middle, half of it would be left
    arguments = msgspec.json.encode({"command": SECRET}).decode()
    events: dict[str, list[Timed]] = {
        "arguments": [reply(1.0, call("a", arguments)), result(2.0, "a")],
        "result": [reply(1.0, call("a")), result(2.0, "a", "error", long)],
        "failure": [(1.0, e.ModelFailed("m", "ModelError", long))],
        "running": [reply(1.0, call("a", arguments))],
    }
    spans, running = traced(
        got(0.0), *events[place], environment={"MY_KEY": SECRET, "HOME": "/home"}
    )
    shown = msgspec.json.encode([spans, running]).decode()
    assert "secret" not in shown and ("[MY_KEY]" in shown or "[MY_K" in shown)
