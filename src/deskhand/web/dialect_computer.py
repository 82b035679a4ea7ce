"""agent_computer's WebSocket in our events: what its clients read is made from the log alone, and purely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..policy.plan import EXIT
from ..tools.task_board import TASK_TOOLS
from ..types import events as e
from ..types.door import Progress
from ..types.goals import ENDED, SPENT
from ..types.messages import Usage
from ..types.options import SessionOptions

PREVIEW_CHARS = 500
Out = dict[str, Any]


class Open(msgspec.Struct):
    """A call without a result."""

    tool: str
    began: float
    ask_id: str = ""
    plan: str = ""


class Long(msgspec.Struct, frozen=True):
    """What deep work may use, and the tasks as its clients are told them now."""

    steps: int
    tokens: int
    tasks: Callable[[], Out]


class State(msgspec.Struct):
    """What must be remembered from one event to the next."""

    redact: Callable[[str], str] = str
    mode: str = "bounded"
    open: bool = False
    iteration: int = 0
    text: str = ""
    model: str = ""
    usage: Usage = Usage()
    calls: dict[str, Open] = {}
    used: int = 0
    long: Long | None = None


def mode_of(ours: str | None) -> str:
    return "deep_work" if ours == "deep_work" else "bounded"


def options_of(mode: str) -> SessionOptions:
    """How a conversation is held in their mode: deep work begins with a plan that is shown."""
    deep = mode == "deep_work"
    return SessionOptions(mode="deep_work" if deep else "normal", plan_mode=deep)


def translate(state: State, item: e.Recorded | Progress) -> list[Out]:
    """What a client is sent for this."""
    if isinstance(item, Progress):
        return [{"type": "status", "text": item.text}] if item.kind == "status" else []
    event, at = item.event, item.at
    match event:
        case e.MessageReceived():
            return _opened(state)
        case e.ModelReplied():
            return _replied(state, event, at)
        case e.ModelFailed(retry_at=None, detail=detail):
            return [{"type": "error", "message": state.redact(detail)}]
        case e.ToolFinished(result=result):
            return _result(state, at, result.call_id, result.text, result.status == "ok")
        case e.CallClosed(call_id=call_id, reason=reason):
            return _result(state, at, call_id, reason, False)
        case e.ApprovalAsked() | e.QuestionAsked():
            return _asked(state, event)
        case e.ApprovalAnswered() | e.QuestionAnswered():
            return _resolved(state, event)
        case e.OptionsSet(options=options) if options.mode is not None:
            return _mode(state, options.mode)
        case e.CommandRun():
            return _ran(state, event)
        case e.TurnEnded():
            return _ended(state, event)
        case _:
            return []


def _mode(state: State, mode: str) -> list[Out]:
    state.mode, state.used = mode_of(mode), 0
    return [{"type": "mode_changed", "mode": state.mode}]


def _ran(state: State, event: e.CommandRun) -> list[Out]:
    if event.name == "start":
        return [{"type": "cleared"}]
    words = state.redact(event.reply)
    if event.principal.kind == "system" and event.name in (SPENT, ENDED):
        return [{"type": "error", "message": words}]
    return [{"type": "text", "text": words}]


def _thinking(state: State) -> Out:
    """It thinks; in deep work, with how far it is."""
    out: Out = {"type": "thinking", "iteration": state.iteration}
    if state.mode != "deep_work" or state.long is None:
        return out
    long = state.long
    told = {"max_iterations": long.steps, "tokens_used": state.used, "token_budget": long.tokens}
    return {**out, **told, "task_summary": long.tasks()["summary"]}


def _opened(state: State) -> list[Out]:
    if state.open:
        return []
    state.open, state.iteration, state.text, state.usage, state.calls = True, 1, "", Usage(), {}
    return [_thinking(state)]


def _replied(state: State, event: e.ModelReplied, at: float) -> list[Out]:
    out: list[Out] = []
    state.model, state.usage = event.model, state.usage + event.usage
    state.used += event.usage.input_tokens + event.usage.output_tokens
    if said := state.redact(event.message.text):
        state.text = said
        out.append({"type": "text", "text": said})
    for call in event.message.calls:
        shown = msgspec.json.decode(state.redact(bytes(call.arguments).decode()))
        plan = str(shown.get("plan", "")) if call.name == EXIT and isinstance(shown, dict) else ""
        state.calls[call.id] = Open(call.name, at, plan=plan)
        out.append({"type": "tool_call", "tool": call.name, "input": shown, "tool_call_id": call.id})
    return out


def _result(state: State, at: float, call_id: str, text: str, good: bool) -> list[Out]:
    call = state.calls.pop(call_id, None) or Open("", at)
    result = {
        "type": "tool_result",
        "tool": call.tool,
        "result_preview": state.redact(text)[:PREVIEW_CHARS],
        "duration_ms": max(0, round((at - call.began) * 1000)),
        "success": good,
        "tool_call_id": call_id,
    }
    out: list[Out] = [result]
    if good and call.tool in TASK_TOOLS and state.long is not None:
        out.append({"type": "task_update", **state.long.tasks()})
    if state.calls or not state.open:
        return out
    state.iteration += 1
    return [*out, _thinking(state)]


def _asked(state: State, event: e.ApprovalAsked | e.QuestionAsked) -> list[Out]:
    call = state.calls.get(event.call_id)
    if call is not None:
        call.ask_id = event.ask_id
    asked = {"tool_call_id": event.call_id, "tool": call.tool if call else "", "question": state.redact(event.question)}
    if isinstance(event, e.ApprovalAsked):
        request: Out = {"type": "approval_request", **asked, "reason": state.redact(event.reason), "until": event.until}
        if call is None or call.tool != EXIT:
            return [request]
        tasks = state.long.tasks() if state.long is not None else {"tasks": [], "summary": ""}
        return [{"type": "plan_ready", "text": call.plan, "tool_call_id": event.call_id, **tasks}, request]
    return [{"type": "question", **asked, "choices": list(event.choices), "until": event.until}]


def _resolved(state: State, event: e.ApprovalAnswered | e.QuestionAnswered) -> list[Out]:
    call_id = next((call_id for call_id, call in state.calls.items() if call.ask_id == event.ask_id), "")
    if call_id:
        state.calls[call_id].ask_id = ""
    if isinstance(event, e.QuestionAnswered):
        return []
    yes = event.choice in ("once", "always")
    why = "" if yes else "a person said no"
    return [{"type": "approval_resolved", "tool_call_id": call_id, "approved": yes, "reason": why}]


def _ended(state: State, event: e.TurnEnded) -> list[Out]:
    text = state.redact(event.said) or state.text
    failed = event.reason in ("failed", "dead")
    out: list[Out] = [{"type": "error", "message": text}] if failed else []
    if event.said and not failed and event.said != state.text:
        out.append({"type": "text", "text": text})
    state.open = False
    return [
        *out,
        {
            "type": "done",
            "text": text,
            "iterations": state.iteration,
            "model": state.model,
            "usage": usage_of(state.usage),
            "mode": state.mode,
            "reason": event.reason,
        },
    ]


def usage_of(usage: Usage) -> dict[str, int]:
    read, written = usage.input_tokens, usage.output_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
