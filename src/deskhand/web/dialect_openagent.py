"""openagent-core's WebSocket in our events: what its clients read is made from the log and what streams, purely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..agent import state as session
from ..policy.plan import EXIT
from ..tools.task_board import TASK_TOOLS
from ..types import events as e
from ..types.door import Progress
from ..types.messages import ToolCall, Usage

Out = dict[str, Any]
WRITES = frozenset({"write_file", "edit_file"})
NOT_YET = {
    "teams": "not yet: the choice is kept, and there are no teammates so far",
}


class Open(msgspec.Struct):
    """A call without a result."""

    tool: str
    input: Any
    ask_id: str = ""


class State(msgspec.Struct):
    """What must be remembered from one event to the next. `traced` is the conversation as the model sees it, where its
    calls are to be shown; `tasks` what is told of the tasks after a call of this tool."""

    redact: Callable[[str], str] = str
    tools: tuple[str, ...] = ()
    open: bool = False
    cut: bool = False
    sent: int = 0
    attempt: int = 0
    seq: int = 0
    usage: Usage = Usage()
    calls: dict[str, Open] = {}
    files: list[str] = []
    traced: session.State | None = None
    tasks: Callable[[str], Out] | None = None


def translate(state: State, item: e.Recorded | Progress) -> list[Out]:
    """What a client is sent for this."""
    if isinstance(item, Progress):
        return _progress(state, item)
    out = _recorded(state, item)
    if state.traced is not None:
        session.fold(state.traced, (item,))
    return out


def _progress(state: State, item: Progress) -> list[Out]:
    match item.kind:
        case "text" | "snapshot":
            fresh = item.text[max(0, state.sent - item.offset) :]
            state.sent = max(state.sent, item.offset + len(item.text))
            return [{"type": "text_delta", "content": state.redact(fresh)}] if fresh else []
        case "thinking":
            return [{"type": "thinking_delta", "content": state.redact(item.text)}]
        case "reset":
            state.sent = 0
            return [{"type": "text_reset"}]
        case _:
            return []


def _recorded(state: State, item: e.Recorded) -> list[Out]:
    event = item.event
    match event:
        case e.MessageReceived():
            return _received(state)
        case e.ModelReplied():
            return _replied(state, event)
        case e.ModelFailed(retry_at=None, detail=detail):
            return [{"type": "error", "message": state.redact(detail)}]
        case e.ToolFinished(result=result):
            return _result(state, result.call_id, result.text, result.status)
        case e.CallClosed(call_id=call_id, reason=reason, status=status):
            state.cut = state.cut or status == "interrupted"
            return _result(state, call_id, reason, status)
        case e.ApprovalAsked() | e.QuestionAsked():
            return _asked(state, event)
        case e.ApprovalAnswered(ask_id=ask_id, choice=choice):
            tools = [_named(call_id, call) for call_id, call in state.calls.items() if call.ask_id == ask_id]
            yes = choice in ("once", "always")
            plans = [tool for tool in tools if tool["name"] == EXIT]
            told = [{"type": "plan_approved" if yes else "plan_rejected", "id": each["id"]} for each in plans]
            decision = "approve" if yes else "deny"
            return [{"type": "tool_approval_result", "decision": decision, "tools": tools}, *told]
        case e.OptionsSet(options=options):
            changed = (("plan_mode", options.plan_mode), ("teams", options.teams), ("approval", options.approval))
            return [
                {
                    "type": f"{name}_changed",
                    "enabled": on,
                    **({"not_yet": NOT_YET[name]} if on and name in NOT_YET else {}),
                }
                for name, on in changed
                if on is not None
            ]
        case e.Compacted(dropped=dropped) if dropped:
            return [{"type": "compact", "message": f"{dropped} earlier messages were left out to make room."}]
        case e.CommandRun(reply=reply) if reply:
            return [{"type": "text_delta", "content": state.redact(reply)}]
        case e.TurnEnded():
            return _ended(state, event)
        case _:
            return []


def _received(state: State) -> list[Out]:
    out: list[Out] = []
    if state.open and state.cut:
        out = [{"type": "interrupted", "usage": usage_of(state.usage), "files": state.files}]
    if not state.open or state.cut:
        state.usage, state.files = Usage(), []
    state.open, state.cut, state.sent = True, False, 0
    return out


def _replied(state: State, event: e.ModelReplied) -> list[Out]:
    text = event.message.text
    rest = text[state.sent :]
    out: list[Out] = [{"type": "text_delta", "content": state.redact(rest)}] if rest else []
    state.sent, state.usage = 0, state.usage + event.usage
    state.cut = event.finish == "interrupted"
    if state.traced is not None:
        out = [_request(state, event), *out, _response(state, event)]
    for call in event.message.calls:
        shown = _input(state, call)
        state.calls[call.id] = Open(call.name, shown)
        if call.name in WRITES and isinstance(shown, dict) and isinstance(shown.get("path"), str):
            state.files = [*dict.fromkeys([*state.files, shown["path"]])]
        out.append({"type": "tool_call", "tool": call.name, "input": shown, "id": call.id})
    return out


def _input(state: State, call: ToolCall) -> Any:
    return msgspec.json.decode(state.redact(bytes(call.arguments).decode()))


def _request(state: State, event: e.ModelReplied) -> Out:
    """The call that this reply answers, as the log has it."""
    assert state.traced is not None
    state.seq += 1
    shown = [{"role": each.message.role, "content": state.redact(each.message.text)} for each in state.traced.messages]
    tools, model = list(state.tools), event.model
    return {
        "type": "llm_request",
        "seq": state.seq,
        "model": model,
        "messages": shown,
        "tools": tools,
        "max_tokens": None,
    }


def _response(state: State, event: e.ModelReplied) -> Out:
    calls = [{"id": call.id, "name": call.name, "input": _input(state, call)} for call in event.message.calls]
    return {
        "type": "llm_response",
        "seq": state.seq,
        "content": state.redact(event.message.text),
        "tool_calls": calls,
        "done": not calls,
        "usage": usage_of(event.usage),
    }


def _result(state: State, call_id: str, text: str, status: str) -> list[Out]:
    call = state.calls.pop(call_id, None)
    tool = call.tool if call else ""
    said: Out = {"type": "tool_result", "tool": tool, "result": state.redact(text), "id": call_id, "status": status}
    if status == "denied" and call is not None and not call.ask_id:
        return [{"type": "tool_approval_result", "decision": "deny", "tools": [_named(call_id, call)]}, said]
    if status == "ok" and tool in TASK_TOOLS and state.tasks is not None:
        return [said, state.tasks(tool)]
    return [said]


def _asked(state: State, event: e.ApprovalAsked | e.QuestionAsked) -> list[Out]:
    call = state.calls.get(event.call_id) or Open("", None)
    call.ask_id = event.ask_id
    if isinstance(event, e.QuestionAsked):
        words = {"question": state.redact(event.question), "choices": list(event.choices)}
        return [{"type": "question", "id": event.call_id, **words}]
    said = {"question": state.redact(event.question), "reason": state.redact(event.reason)}
    request: Out = {"type": "tool_approval_request", "tools": [_named(event.call_id, call)], **said}
    if call.tool != EXIT:
        return [request]
    plan = call.input.get("plan", "") if isinstance(call.input, dict) else ""
    return [{"type": "plan_ready", "plan": plan, "id": event.call_id}, request]


def _named(call_id: str, call: Open) -> Out:
    return {"name": call.tool, "input": call.input, "id": call_id}


def _ended(state: State, event: e.TurnEnded) -> list[Out]:
    out: list[Out] = []
    if event.reason in ("failed", "dead"):
        out = [{"type": "error", "message": state.redact(event.said) or "The turn failed."}]
    elif event.said:
        out = [{"type": "text_delta", "content": state.redact(event.said)}]
    state.open, state.cut, state.sent = False, False, 0
    return [*out, {"type": "done", "usage": usage_of(state.usage), "files": state.files, "reason": event.reason}]


def usage_of(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
