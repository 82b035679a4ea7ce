"""What clients of agent_computer and openagent-core read of our events: pure, from lists."""

from __future__ import annotations

from typing import Any

import msgspec

from deskhand.agent.state import State as Session
from deskhand.types import events as e
from deskhand.types.door import Progress
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage
from deskhand.types.options import SessionOptions
from deskhand.web import dialect_computer as computer
from deskhand.web import dialect_openagent as openagent

ANN = Principal("ann", ("owner",))


def said(text: str) -> e.MessageReceived:
    return e.MessageReceived(1, ANN, Address("web", "ann", "a"), Message("user", (Text(text),)))


def replied(text: str = "", *names: str, finish: e.Finish = "stop") -> e.ModelReplied:
    calls = tuple(ToolCall(f"c-{name}", name, msgspec.Raw(b'{"path": "a.txt"}')) for name in names)
    parts = ((Text(text),) if text else ()) + calls
    return e.ModelReplied(Message("assistant", parts), "m/x", finish, Usage(10, 5))


def finished(name: str, text: str = "fine", status: Any = "ok") -> e.ToolFinished:
    return e.ToolFinished(ToolResult(f"c-{name}", (Text(text),), status))


def asked(name: str) -> e.ApprovalAsked:
    return e.ApprovalAsked("ask1", f"c-{name}", "hash", "Run it?", "it writes", 99.0)


def answered(choice: Any) -> e.ApprovalAnswered:
    return e.ApprovalAnswered(2, "ask1", choice, ANN)


def recorded(*events: Any) -> list[e.Recorded | Progress]:
    """In a row, a second after each other; progress as it is."""
    found: list[e.Recorded | Progress] = []
    for event in events:
        n = 1 + sum(isinstance(each, e.Recorded) for each in found)
        found.append(event if isinstance(event, Progress) else e.Recorded(n, "s", n, float(n), event))
    return found


def as_computer(*events: Any) -> list[dict[str, Any]]:
    state = computer.State()
    return [message for item in recorded(*events) for message in computer.translate(state, item)]


def as_openagent(*events: Any, traced: bool = False) -> list[dict[str, Any]]:
    state = openagent.State(tools=("shell",), traced=Session("s") if traced else None)
    return [message for item in recorded(*events) for message in openagent.translate(state, item)]


def test_a_turn_for_agent_computer() -> None:
    used = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    assert as_computer(
        said("hi"),
        replied("Looking.", "read_file"),
        finished("read_file", "x" * 900),
        replied("Done."),
        e.TurnEnded("done"),
    ) == [
        {"type": "thinking", "iteration": 1},
        {"type": "text", "text": "Looking."},
        {"type": "tool_call", "tool": "read_file", "input": {"path": "a.txt"}, "tool_call_id": "c-read_file"},
        {
            "type": "tool_result",
            "tool": "read_file",
            "result_preview": "x" * 500,
            "duration_ms": 1000,
            "success": True,
            "tool_call_id": "c-read_file",
        },
        {"type": "thinking", "iteration": 2},
        {"type": "text", "text": "Done."},
        {
            "type": "done",
            "text": "Done.",
            "iterations": 2,
            "model": "m/x",
            "usage": used,
            "mode": "bounded",
            "reason": "done",
        },
    ]


def test_approvals_for_agent_computer() -> None:
    found = as_computer(said("hi"), replied("", "shell"), asked("shell"), answered("once"), finished("shell"))
    assert found[2] == {
        "type": "approval_request",
        "tool_call_id": "c-shell",
        "tool": "shell",
        "question": "Run it?",
        "reason": "it writes",
        "until": 99.0,
    }
    assert found[3] == {"type": "approval_resolved", "tool_call_id": "c-shell", "approved": True, "reason": ""}
    no = as_computer(
        said("hi"), replied("", "shell"), asked("shell"), answered("never"), finished("shell", "no", "denied")
    )
    assert no[3]["approved"] is False and no[3]["reason"] and no[4]["success"] is False


def test_modes_errors_and_commands_for_agent_computer() -> None:
    deep, bounded = SessionOptions(mode="deep_work"), SessionOptions(mode="normal")
    options = as_computer(
        e.OptionsSet(1, ANN, deep), e.OptionsSet(1, ANN, bounded), e.OptionsSet(1, ANN, SessionOptions())
    )
    assert [message["mode"] for message in options] == ["deep_work", "bounded"]
    assert as_computer(e.CommandRun(1, ANN, "start"), e.CommandRun(1, ANN, "help", "", "words")) == [
        {"type": "cleared"},
        {"type": "text", "text": "words"},
    ]
    system = Principal("system", ("owner",), "system")
    spent = e.CommandRun(1, system, "deep_work_spent", "", "used up")
    assert as_computer(spent) == [{"type": "error", "message": "used up"}]
    failed = as_computer(
        said("hi"), e.ModelFailed("m/x", "ModelKeyRefused", "no key"), e.TurnEnded("failed", (), "No key.")
    )
    assert [message["type"] for message in failed] == ["thinking", "error", "error", "done"]
    again = as_computer(said("hi"), e.ModelFailed("m/x", "ModelOverloaded", "busy", 5.0))
    assert [message["type"] for message in again] == ["thinking"]


def test_a_turn_for_openagent() -> None:
    found = as_openagent(
        said("hi"),
        Progress("text", 2, text="Look"),
        Progress("thinking", 2, text="hm"),
        replied("Looking.", "write_file"),
        finished("write_file"),
        Progress("text", 4, text="Done"),
        Progress("snapshot", 4, text="Done."),
        replied("Done."),
        e.TurnEnded("done"),
    )
    assert found == [
        {"type": "text_delta", "content": "Look"},
        {"type": "thinking_delta", "content": "hm"},
        {"type": "text_delta", "content": "ing."},
        {"type": "tool_call", "tool": "write_file", "input": {"path": "a.txt"}, "id": "c-write_file"},
        {"type": "tool_result", "tool": "write_file", "result": "fine", "id": "c-write_file", "status": "ok"},
        {"type": "text_delta", "content": "Done"},
        {"type": "text_delta", "content": "."},
        {"type": "done", "usage": {"input_tokens": 20, "output_tokens": 10}, "files": ["a.txt"], "reason": "done"},
    ]


def test_a_try_that_failed_is_taken_back_for_openagent() -> None:
    reset = as_openagent(
        said("hi"),
        Progress("text", 2, text="Wro"),
        Progress("reset", 2, 1),
        Progress("text", 2, 1, text="Right"),
        replied("Right"),
    )
    assert reset == [
        {"type": "text_delta", "content": "Wro"},
        {"type": "text_reset"},
        {"type": "text_delta", "content": "Right"},
    ]


def test_an_interrupt_for_openagent() -> None:
    found = as_openagent(
        said("one"), replied("Half", finish="interrupted"), said("two"), replied("All."), e.TurnEnded("done")
    )
    assert [message["type"] for message in found] == ["text_delta", "interrupted", "text_delta", "done"]
    assert found[1]["usage"] == found[3]["usage"] == {"input_tokens": 10, "output_tokens": 5}
    closed = as_openagent(
        said("one"), replied("", "shell"), e.CallClosed("c-shell", "interrupted", "overtaken"), said("two")
    )
    assert [message["type"] for message in closed] == ["tool_call", "tool_result", "interrupted"]
    steered = as_openagent(said("one"), replied("", "shell"), said("two"))
    assert [message["type"] for message in steered] == ["tool_call"]


def test_approvals_for_openagent() -> None:
    found = as_openagent(
        said("hi"), replied("", "shell"), asked("shell"), answered("no"), finished("shell", "no", "denied")
    )
    tool = {"name": "shell", "input": {"path": "a.txt"}, "id": "c-shell"}
    assert found[1] == {"type": "tool_approval_request", "tools": [tool], "question": "Run it?", "reason": "it writes"}
    assert found[2] == {"type": "tool_approval_result", "decision": "deny", "tools": [tool]}
    assert found[3]["status"] == "denied"


def test_plans_for_openagent() -> None:
    for choice, told in (("once", "plan_approved"), ("no", "plan_rejected")):
        found = as_openagent(said("hi"), replied("", "exit_plan_mode"), asked("exit_plan_mode"), answered(choice))
        assert [message["type"] for message in found] == [
            *("tool_call", "plan_ready", "tool_approval_request", "tool_approval_result", told),
        ]
        assert found[1] == {"type": "plan_ready", "plan": "", "id": "c-exit_plan_mode"}


def test_toggles_and_compaction_for_openagent() -> None:
    options = SessionOptions(teams=True, approval=True, plan_mode=False)
    found = as_openagent(
        e.OptionsSet(1, ANN, options), e.Compacted((), "", 7, e.Ledger()), e.Compacted((), "", 0, e.Ledger())
    )
    assert found[0] == {"type": "plan_mode_changed", "enabled": False}
    assert found[1]["type"] == "teams_changed" and "not yet" in found[1]["not_yet"]
    assert found[2] == {"type": "approval_changed", "enabled": True}
    assert [message["type"] for message in found[3:]] == ["compact"]


def test_calls_of_the_model_are_shown_when_traced() -> None:
    found = as_openagent(said("hi"), replied("", "shell"), finished("shell"), replied("Done."), traced=True)
    requests = [message for message in found if message["type"] == "llm_request"]
    assert [(each["seq"], len(each["messages"]), each["tools"]) for each in requests] == [
        (1, 1, ["shell"]),
        (2, 3, ["shell"]),
    ]
    answers = [message for message in found if message["type"] == "llm_response"]
    assert [(each["seq"], each["done"], len(each["tool_calls"])) for each in answers] == [(1, False, 1), (2, True, 0)]
    assert not any(message["type"].startswith("llm_") for message in as_openagent(said("hi"), replied("Done.")))


def test_secrets_are_taken_out() -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[KEY]")

    events = recorded(
        said("hi"), replied("hunter2", "shell"), asked("shell"), finished("shell", "hunter2"), e.TurnEnded("done")
    )
    for state, translate in (
        (computer.State(redact), computer.translate),
        (openagent.State(redact), openagent.translate),
    ):
        out = [message for item in events for message in translate(state, item)]  # type: ignore[arg-type]
        assert "hunter2" not in str(out) and "[KEY]" in str(out)
