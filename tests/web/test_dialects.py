"""What clients of agent_computer and openagent-core read of our events: pure, from lists."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from deskhand.agent.state import State as Session
from deskhand.agent.trace import trace_request
from deskhand.models.base import ContextMessage, Request, ToolSchema
from deskhand.types import events as e
from deskhand.types.door import Progress
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage
from deskhand.types.options import SessionOptions
from deskhand.types.process import Process
from deskhand.types.teams import Teammate
from deskhand.web import blocks, compat_computer
from deskhand.web import dialect_computer as computer
from deskhand.web import dialect_openagent as openagent

ANN = Principal("ann", ("owner",))
SHELL = ToolSchema("shell", "Run a command.", {"type": "object"})


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
        found.append(
            event if isinstance(event, Progress) else e.Recorded(n, "s", n, float(n), event)
        )
    return found


def as_computer(*events: Any) -> list[dict[str, Any]]:
    state = computer.ComputerDialectState()
    return [message for item in recorded(*events) for message in computer.translate(state, item)]


def as_openagent(*events: Any, traced: bool = False) -> list[dict[str, Any]]:
    state = openagent.OpenAgentDialectState(tools=(SHELL,), traced=Session("s") if traced else None)
    return [message for item in recorded(*events) for message in openagent.translate(state, item)]


def thinking(iteration: int, phase: str = "", **more: Any) -> dict[str, Any]:
    return {
        "type": "thinking",
        "iteration": iteration,
        **({"phase": phase} if phase else {}),
        **more,
    }


def calling(tokens: int, iteration: int = 1) -> dict[str, Any]:
    return thinking(iteration, "llm_call", model="m/x", prompt_tokens_estimate=tokens)


def test_a_turn_for_agent_computer() -> None:
    used = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    assert as_computer(
        said("hi"),
        replied("Looking.", "read_file"),
        finished("read_file", "x" * 900),
        replied("Done."),
        e.TurnEnded("done"),
    ) == [
        thinking(0, "memory_search"),
        thinking(0, "memory_search_done", count=0),
        thinking(1),
        calling(0),
        thinking(1, "llm_response", response_tokens=5),
        {"type": "text", "text": "Looking."},
        {
            "type": "tool_call",
            "tool": "read_file",
            "input": {"path": "a.txt"},
            "tool_call_id": "c-read_file",
        },
        {
            "type": "tool_result",
            "tool": "read_file",
            "tool_call_id": "c-read_file",
            "result_preview": "x" * 500,
            "duration_ms": 1000,
            "success": True,
            "result_length": 900,
        },
        thinking(2),
        calling(15 + 900 // 4, 2),
        thinking(2, "llm_response", response_tokens=5),
        {"type": "text", "text": "Done."},
        {
            "type": "done",
            "text": "Done.",
            "iterations": 2,
            "finish_reason": "stop",
            "model": "m/x",
            "usage": used,
            "mode": "bounded",
        },
    ]


@pytest.mark.parametrize("reason", ["steps", "tokens"])
def test_a_turn_that_used_up_what_it_may_is_an_error_for_both(
    reason: Literal["steps", "tokens"],
) -> None:
    """As their clients expect of a limit: an error with the words, and no text. Where the last step
    still made an answer, that is the answer."""
    words = "I stopped there without an answer."
    computer = as_computer(
        said("hi"),
        replied("", "read_file"),
        finished("read_file"),
        e.TurnEnded(reason, (1,), words),
    )
    assert {"type": "error", "message": words} in computer and not [
        m for m in computer if m["type"] == "text"
    ]
    openagent = as_openagent(
        said("hi"),
        replied("", "read_file"),
        finished("read_file"),
        e.TurnEnded(reason, (1,), words),
    )
    assert {"type": "error", "message": words} in openagent and not [
        m for m in openagent if m["type"] == "text_delta"
    ]
    for found in (as_computer, as_openagent):
        answered_after_all = found(said("hi"), replied("so far"), e.TurnEnded(reason, (1,)))
        assert not [message for message in answered_after_all if message["type"] == "error"]


def test_the_phases_of_a_call_are_told_when_they_begin() -> None:
    call = Progress("text", 2, text="Do", model="m/x", recalled=3)
    before = [
        thinking(0, "memory_search"),
        thinking(0, "memory_search_done", count=3),
        thinking(1),
        calling(0),
    ]
    assert as_computer(said("hi"), call) == before
    again = Progress("thinking", 2, attempt=1, text="hm", model="m/x", recalled=3)
    rest = as_computer(said("hi"), call, again, e.Recalled((1, 2, 3), Text("so")), replied("Done."))
    assert rest == [
        *before,
        thinking(1, "llm_response", response_tokens=5),
        {"type": "text", "text": "Done."},
    ]
    late = as_computer(said("hi"), e.Recalled((1, 2), Text("so")), replied("Done."))
    assert late[1] == thinking(0, "memory_search_done", count=2)


def test_results_for_agent_computer() -> None:
    def result(tool: str, text: str, status: Any = "ok") -> Any:
        shown = as_computer(said("hi"), replied("", tool), finished(tool, text, status))
        return next(each for each in shown if each["type"] == "tool_result")["result_preview"]

    assert result("read_file", "text") == "text"
    assert msgspec.json.decode(result("read_file", "no such file", "error")) == {
        "error": "no such file"
    }
    denied = {"error": "not allowed", "tool": "read_file"}
    assert msgspec.json.decode(result("read_file", "not allowed", "denied")) == denied
    out = {"exit_code": 0, "stdout": "one\n", "stderr": ""}
    assert msgspec.json.decode(result("shell", "one\n")) == out
    assert msgspec.json.decode(result("shell", "[no output]")) == {**out, "stdout": ""}
    both = "one\n[stderr]\ntwo\n[stdout]\nthree\n[exit code: 3]"
    failed = {"exit_code": 3, "stdout": "one\nthree", "stderr": "two\n"}
    assert msgspec.json.decode(result("shell", both, "error")) == failed
    late = "\n[timed out after 1 s; everything it started was killed]"
    assert msgspec.json.decode(result("shell", late, "error")) == {"error": late}


def test_approvals_for_agent_computer() -> None:
    def plain(*events: Any) -> list[dict[str, Any]]:
        return [message for message in as_computer(*events) if message["type"] != "thinking"]

    found = plain(
        said("hi"), replied("", "shell"), asked("shell"), answered("once"), finished("shell")
    )
    assert found[1] == {
        "type": "approval_request",
        "tool_call_id": "c-shell",
        "tool": "shell",
        "question": "Run it?",
        "input": {"path": "a.txt"},
        "reason": "it writes",
        "until": 99.0,
    }
    resolved = {"type": "approval_resolved", "tool_call_id": "c-shell", "tool": "shell"}
    assert found[2] == {**resolved, "approved": True, "reason": "allow"}
    asking = (said("hi"), replied("", "shell"), asked("shell"))
    no = plain(*asking, answered("never"), finished("shell", "no", "denied"))
    assert no[2] == {**resolved, "approved": False, "reason": "deny"} and no[3]["success"] is False
    nobody = plain(*asking, e.CallClosed("c-shell", "expired", "nobody answered"))
    assert nobody[2] == {**resolved, "approved": False, "reason": "timeout"}


def test_modes_errors_and_commands_for_agent_computer() -> None:
    deep = SessionOptions(mode="deep_work")
    bounded = SessionOptions(mode="normal")
    options = as_computer(
        e.OptionsSet(1, ANN, deep),
        e.OptionsSet(1, ANN, bounded),
        e.OptionsSet(1, ANN, SessionOptions()),
    )
    assert [message["mode"] for message in options] == ["deep_work", "bounded"]
    assert as_computer(
        e.CommandRun(1, ANN, "start"), e.CommandRun(1, ANN, "help", "", "words")
    ) == [
        {"type": "cleared"},
        {"type": "text", "text": "words"},
    ]
    system = Principal("system", ("owner",), "system")
    spent = e.CommandRun(1, system, "deep_work_spent", "", "used up")
    assert as_computer(spent) == [{"type": "error", "message": "used up"}]
    failed = as_computer(
        said("hi"),
        e.ModelFailed("m/x", "ModelKeyRefused", "no key"),
        e.TurnEnded("failed", (), "No key."),
    )
    assert failed[-2:] == [calling(0), {"type": "error", "message": "No key."}]
    again = as_computer(said("hi"), e.ModelFailed("m/x", "ModelOverloaded", "busy", 5.0))
    assert again[-1] == calling(0)
    steps = as_computer(said("hi"), replied("So far."), e.TurnEnded("steps"))
    assert steps[-1]["finish_reason"] == "steps"


def used(read: int, written: int, last: int = 10) -> dict[str, Any]:
    return {
        "input_tokens": read,
        "output_tokens": written,
        "last_input_tokens": last,
        "plan_mode": False,
    }


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
        {"type": "thinking_delta", "content": "hm", "effort": "off"},
        {"type": "text_delta", "content": "ing."},
        {
            "type": "tool_call",
            "tool": "write_file",
            "input": {"path": "a.txt"},
            "id": "c-write_file",
        },
        {
            "type": "tool_result",
            "tool": "write_file",
            "result": "fine",
            "id": "c-write_file",
            "status": "ok",
        },
        {"type": "text_delta", "content": "Done"},
        {"type": "text_delta", "content": "."},
        {"type": "done", "usage": used(20, 10), "files": [], "reason": "done"},
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
        said("one"),
        replied("Half", finish="interrupted"),
        said("two"),
        replied("All."),
        e.TurnEnded("done"),
    )
    assert [message["type"] for message in found] == [
        "text_delta",
        "interrupted",
        "text_delta",
        "done",
    ]
    assert found[1]["usage"] == found[3]["usage"] == used(10, 5)
    closed = as_openagent(
        said("one"),
        replied("", "shell"),
        e.CallClosed("c-shell", "interrupted", "overtaken"),
        said("two"),
    )
    assert [message["type"] for message in closed] == ["tool_call", "tool_result", "interrupted"]
    steered = as_openagent(said("one"), replied("", "shell"), said("two"))
    assert [message["type"] for message in steered] == ["tool_call"]


def test_approvals_for_openagent() -> None:
    found = as_openagent(
        said("hi"),
        replied("", "shell"),
        asked("shell"),
        answered("no"),
        finished("shell", "no", "denied"),
    )
    tool = {"name": "shell", "input": {"path": "a.txt"}, "id": "c-shell"}
    assert found[1] == {
        "type": "tool_approval_request",
        "tools": [tool],
        "question": "Run it?",
        "reason": "it writes",
    }
    assert found[2] == {"type": "tool_approval_result", "decision": "denied", "tools": ["shell"]}
    assert found[3]["status"] == "denied"
    yes = as_openagent(
        said("hi"), replied("", "shell"), asked("shell"), answered("once"), finished("shell")
    )
    assert [message["type"] for message in yes] == [
        "tool_call",
        "tool_approval_request",
        "tool_result",
    ]
    rule = as_openagent(said("hi"), replied("", "shell"), finished("shell", "no", "denied"))
    assert [message["type"] for message in rule] == ["tool_call", "tool_result"], "nobody was asked"


def test_several_calls_in_one_question_for_both() -> None:
    """Whoever shows one call with its input shows all of them, and a yes to what is shown is a yes
    to all."""
    both = msgspec.structs.replace(asked("shell"), others=(e.BoundCall("c-post", "hash2"),))
    start = (said("hi"), replied("", "shell", "post"), both)
    (request,) = [each for each in as_computer(*start) if each["type"] == "approval_request"]
    assert request["tool_call_id"] == "c-shell" and request["tool"] == "2 calls"
    assert request["input"] == {
        "calls": [
            {"tool_call_id": "c-shell", "tool": "shell", "input": {"path": "a.txt"}},
            {"tool_call_id": "c-post", "tool": "post", "input": {"path": "a.txt"}},
        ]
    }
    resolved = [
        each
        for each in as_computer(*start, answered("each"))
        if each["type"] == "approval_resolved"
    ]
    assert resolved == [], "neither yes nor no: it is asked again"
    found = as_openagent(*start, answered("no"))
    assert [
        [each["name"] for each in one["tools"]]
        for one in found
        if one["type"] == "tool_approval_request"
    ] == [["shell", "post"]]
    assert found[-1] == {
        "type": "tool_approval_result",
        "decision": "denied",
        "tools": ["shell", "post"],
    }
    assert as_openagent(*start, answered("each"))[-1]["type"] == "tool_approval_request"


def test_plans_for_openagent() -> None:
    for choice, told in (("once", "plan_approved"), ("no", "plan_rejected")):
        found = as_openagent(
            said("hi"), replied("", "exit_plan_mode"), asked("exit_plan_mode"), answered(choice)
        )
        assert [message["type"] for message in found] == [
            *("tool_call", "plan_ready", "done", told),
        ]
        assert found[1] == {"type": "plan_ready", "plan": "", "id": "c-exit_plan_mode"}


def test_toggles_and_compaction_for_openagent() -> None:
    options = SessionOptions(teams=True, approval=True, plan_mode=False)
    found = as_openagent(
        e.OptionsSet(1, ANN, options),
        e.Compacted((), "", 7, e.Ledger()),
        e.Compacted((), "", 0, e.Ledger()),
    )
    assert found[0] == {"type": "plan_mode_changed", "enabled": False}
    assert found[1] == {"type": "teams_changed", "enabled": True}
    assert found[2] == {"type": "approval_changed", "enabled": True}
    assert [message["type"] for message in found[3:]] == ["compact"]


def test_calls_of_the_model_are_shown_when_traced() -> None:
    """Without what the driver shows of them, they are told from the log."""
    found = as_openagent(
        said("hi"), replied("", "shell"), finished("shell"), replied("Done."), traced=True
    )
    requests = [message for message in found if message["type"] == "llm_request"]
    schema = {"name": "shell", "description": "Run a command.", "input_schema": {"type": "object"}}
    assert [(each["seq"], each["message_count"], each["tools"]) for each in requests] == [
        (1, 1, [schema]),
        (2, 3, [schema]),
    ]
    answers = [message for message in found if message["type"] == "llm_response"]
    assert [(each["seq"], each["done"], len(each["tool_calls"])) for each in answers] == [
        (1, False, 1),
        (2, True, 0),
    ]
    assert [message["type"] for message in found[:3]] == [
        "llm_request",
        "llm_response",
        "tool_call",
    ]
    assert not any(
        message["type"].startswith("llm_") for message in as_openagent(said("hi"), replied("Done."))
    )


def test_a_call_of_the_model_is_shown_before_its_text() -> None:
    call = ToolCall("c1", "shell", msgspec.Raw(b'{"command": "ls"}'))
    talk = (
        Message("user", (Text("hi"),)),
        Message("assistant", (Text("I look."), call)),
        Message("tool", (ToolResult("c1", (Text("a.txt"),)),)),
    )
    request = Request(
        model="x",
        system=("Be brief.", "It is Monday."),
        messages=tuple(ContextMessage(n, message) for n, message in enumerate(talk)),
        tools=(SHELL,),
        max_output_tokens=500,
        thinking="high",
        temperature=0.5,
    )
    shown = trace_request("m/x", request, n=2, attempt=0)
    found = as_openagent(
        said("hi"), *shown, Progress("text", 2, text="Do"), replied("Done."), traced=True
    )
    assert [message["type"] for message in found] == [
        "llm_request",
        "text_delta",
        "text_delta",
        "llm_response",
    ]
    assert found[0] == {
        "type": "llm_request",
        "seq": 1,
        "model": "m/x",
        "system": "Be brief.\n\nIt is Monday.",
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "ls"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}],
            },
        ],
        "tools": [
            {"name": "shell", "description": "Run a command.", "input_schema": {"type": "object"}}
        ],
        "max_tokens": 500,
        "temperature": 0.5,
        "thinking_enabled": True,
        "thinking_effort": "high",
        "message_count": 3,
        "tool_count": 1,
    }


def test_sub_agents_for_openagent() -> None:
    class KnownTask:
        def task_update(self, tool: str) -> dict[str, Any]:
            raise AssertionError("no task has changed")

        def process_notice(self, id_: str) -> dict[str, Any] | None:
            raise AssertionError("no process has ended")

        def team(self) -> list[Teammate]:
            return []

        def subagent_work(self, name: str) -> openagent.SubagentWork | None:
            return {"k1": openagent.SubagentWork("explore", Usage(700, 30), 4, 1.234)}.get(name)

    state = openagent.OpenAgentDialectState()
    calls = (
        ToolCall("c1", "task", msgspec.Raw(b'{"prompt":"look","description":"d"}')),
        ToolCall("c2", "spawn_agent", msgspec.Raw(b'{"task":"wait","agent":"plan"}')),
    )
    events = (
        e.ModelReplied(Message("assistant", calls), "m", "calls"),
        e.CallsHandedOver({"c1": "k1"}, 9e9, "subagent"),
        e.CallsHandedOver({"c2": "k2"}, 9e9, "subagent"),
        e.ToolFinished(ToolResult("c1", (Text("here it is"),))),
        e.CallClosed("c2", "ok", "it goes on"),
    )
    frames = [
        frame
        for item in recorded(*events)
        for frame in openagent.translate(state, item, KnownTask())
        if frame["type"].startswith("subagent")
    ]
    used = {"input_tokens": 700, "output_tokens": 30}
    assert frames == [
        {
            "type": "subagent_start",
            "subagent_id": "k1",
            "task": "look",
            "agent_type": "general",
            "id": "c1",
        },
        {
            "type": "subagent_start",
            "subagent_id": "k2",
            "task": "wait",
            "agent_type": "plan",
            "id": "c2",
        },
        {
            "type": "subagent_end",
            "subagent_id": "k1",
            "summary": "here it is",
            "tool_count": 4,
            "elapsed": 1.23,
            "agent_type": "explore",
            "usage": used,
            "id": "c1",
        },
        {
            "type": "subagent_end",
            "subagent_id": "k2",
            "summary": "it goes on",
            "tool_count": 0,
            "elapsed": 0.0,
            "agent_type": "general",
            "usage": {"input_tokens": 0, "output_tokens": 0},
            "id": "c2",
        },
    ]


def test_a_command_in_the_background_has_ended_for_openagent() -> None:
    class KnownProcess:
        def task_update(self, tool: str) -> dict[str, Any]:
            raise AssertionError("no task has changed")

        def process_notice(self, id_: str) -> dict[str, Any] | None:
            return {"task_id": id_}

        def team(self) -> list[Teammate]:
            return []

        def subagent_work(self, name: str) -> openagent.SubagentWork | None:
            raise AssertionError("there are no sub-agents")

    state = openagent.OpenAgentDialectState()
    lookups = KnownProcess()
    ended = e.MessageReceived(
        1, ANN, Address("web", "ann", "a"), Message("user", (Text("done"),)), "process:ab12"
    )
    found = [
        message for item in recorded(ended) for message in openagent.translate(state, item, lookups)
    ]
    assert found == [{"type": "background_result", "notifications": [{"task_id": "ab12"}]}]
    process = Process(
        id="ab12",
        session="s",
        agent="default",
        kind="background",
        command="echo key",
        name="",
        state="completed",
        at=1.0,
        timeout_s=9.0,
        said=f"[background ab12 completed: exit code 0]\n$ echo key\n{'key ' * 200}",
    )
    notice = openagent.notice_of(process, lambda text: text.replace("key", "***"))
    assert notice == {
        "task_id": "ab12",
        "status": "completed",
        "command": "echo ***",
        "result": "*** " * 125,
    }


def test_secrets_are_taken_out() -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[KEY]")

    events = recorded(
        said("hi"),
        replied("hunter2", "shell"),
        asked("shell"),
        finished("shell", "hunter2"),
        e.TurnEnded("done"),
    )
    for state, translate in (
        (computer.ComputerDialectState(redact), computer.translate),
        (openagent.OpenAgentDialectState(redact), openagent.translate),
    ):
        out = [message for item in events for message in translate(state, item)]  # type: ignore[arg-type]
        assert "hunter2" not in str(out) and "[KEY]" in str(out)


def before(*messages: Message) -> list[e.Recorded]:
    """The log of a conversation of which a program says that this was said before."""
    events = [e.HistoryMessage(1, ANN, message) for message in messages]
    return [e.Recorded(n, "s", n, float(n), event) for n, event in enumerate(events, 1)]


EARLIER = before(
    Message("user", (Text("Will it rain?"),)),
    Message("assistant", (ToolCall("c-weather", "weather", msgspec.Raw(b"{}")),)),
    Message("tool", (ToolResult("c-weather", (Text("dry"),)),)),
    Message("assistant", (Text("No."),)),
)


def test_the_history_of_agent_computer_has_what_was_said_before() -> None:
    lines = compat_computer.history_from_log(EARLIER, str)
    assert [line.role for line in lines] == ["user", "assistant", "tool", "assistant"]
    assert lines[0].content == "Will it rain?"
    assert isinstance(lines[1].content, compat_computer.Replied)
    assert (lines[2].tool_call_id, lines[2].tool_name) == ("c-weather", "weather")
    assert "dry" in str(lines[2].content)
    assert lines[3].content == "No."


def test_a_conversation_of_openagent_has_what_was_said_before() -> None:
    lines = blocks.messages_from_log(EARLIER, str)
    assert [(line.role, line.content) for line in lines] == [
        ("user", "Will it rain?"),
        ("assistant", [{"type": "tool_use", "id": "c-weather", "name": "weather", "input": {}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "c-weather", "content": "dry"}]),
        ("assistant", [{"type": "text", "text": "No."}]),
    ]
