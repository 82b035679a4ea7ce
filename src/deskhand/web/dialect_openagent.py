"""Translates our events into the WebSocket frames of openagent-core's clients. Pure functions over
a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from ..agent.fold import fold
from ..agent.state import State as Session
from ..agent.trace import TracedRequest, read_request
from ..models.base import ThinkingLevel, ToolSchema
from ..policy.plan import EXIT_PLAN_MODE
from ..tools.task_board import TASK_TOOLS
from ..types import events as e
from ..types.door import Progress
from ..types.messages import Message, ToolResult, Usage
from ..types.process import Process
from ..types.subagents import id_of
from ..types.teams import Teammate
from .blocks import content_of, input_of, messages_of

Frame = dict[str, Any]
RESULT_CHARS = 2_000
NOTICE_CHARS = 500
WITH_FILES = ("done", "interrupted")
"""Frames whose `files` the sender fills in with the files of the workspace."""
GENERAL = "general"
"""The kind of a sub-agent for which none was said."""
PROCESS_PREFIX = "process:"
"""The ids of messages about ended background processes start like this."""


class OpenAgentCall(msgspec.Struct):
    """A call without a result."""

    tool: str
    input: Any
    ask_id: str = ""


class OpenAgentDialectState(msgspec.Struct):
    """What must be remembered from one event to the next.

    `traced` is the conversation as the model sees it, if the client wants to see model calls.
    `prompt` is the system prompt of the running call, `request_shown` whether that call was shown.
    `subagents` are the names of the tasks on which sub-agents work, by the calls that wait for
    them. With `teams` there may be a team: `team` is how each teammate was last shown.
    `compacting`: a person asked for a summary, so its frame was sent already. `feedback` is what
    this client wants changed in a plan that it rejects.
    """

    redact: Callable[[str], str] = str
    tools: tuple[ToolSchema, ...] = ()
    effort: ThinkingLevel = "off"
    open: bool = False
    cut: bool = False
    sent: int = 0
    seq: int = 0
    usage: Usage = Usage()
    last_input_tokens: int = 0
    plan_mode: bool = False
    teams: bool = False
    team: dict[str, str] = {}
    compacting: bool = False
    calls: dict[str, OpenAgentCall] = {}
    subagents: dict[str, str] = {}
    feedback: str = ""
    traced: Session | None = None
    prompt: str = ""
    request_shown: bool = False


class SubagentWork(msgspec.Struct, frozen=True):
    """What a sub-agent has done for a task so far. `kind` is one of `subagents.kinds`, or the name
    of an agent; `calls` are those of its tools, `elapsed_s` how long it has worked."""

    kind: str = ""
    usage: Usage = Usage()
    calls: int = 0
    elapsed_s: float = 0.0


class Lookups(Protocol):
    """What is not in the events and is looked up while the client is connected."""

    def task_update(self, tool: str) -> Frame:
        """The frame that shows the tasks after a call of this tool."""
        ...

    def process_notice(self, id_: str) -> Frame | None:
        """How this background process has ended, or None if it is gone."""
        ...

    def team(self) -> Sequence[Teammate]:
        """The team of the conversation, also those that have shut down."""
        ...

    def subagent_work(self, name: str) -> SubagentWork | None:
        """What a sub-agent has done for the task of this name; None if the task is gone."""
        ...


def translate(
    state: OpenAgentDialectState, item: e.Recorded | Progress, lookups: Lookups | None = None
) -> list[Frame]:
    """The frames that a client is sent for this item. Without `lookups`, frames that need one are
    left out: so it is for what happened before the client came."""
    if isinstance(item, Progress):
        return _on_progress(state, item)
    out = _on_event(state, item, lookups)
    if state.traced is not None:
        fold(state.traced, (item,))
    return out


def _on_progress(state: OpenAgentDialectState, item: Progress) -> list[Frame]:
    match item.kind:
        case "text" | "snapshot":
            fresh = item.text[max(0, state.sent - item.offset) :]
            state.sent = max(state.sent, item.offset + len(item.text))
            return [_text_frame(state, fresh)] if fresh else []
        case "thinking":
            return [
                {
                    "type": "thinking_delta",
                    "content": state.redact(item.text),
                    "effort": state.effort,
                }
            ]
        case "reset":
            state.sent = 0
            return [{"type": "text_reset"}]
        case "prompt":
            state.prompt = item.text
            return []
        case "request":
            state.request_shown = True
            return [_request_frame(state, read_request(item.text))]
        case _:
            return []


def _text_frame(state: OpenAgentDialectState, text: str) -> Frame:
    return {"type": "text_delta", "content": state.redact(text)}


def _on_event(
    state: OpenAgentDialectState, item: e.Recorded, lookups: Lookups | None
) -> list[Frame]:
    event = item.event
    match event:
        case e.MessageReceived():
            return _on_message(state, event, lookups)
        case e.ModelReplied():
            return _on_reply(state, event)
        case e.CallsHandedOver() | e.ToolFinished() | e.CallClosed():
            return _on_call_event(state, event, lookups)
        case e.ApprovalAsked() | e.QuestionAsked():
            return _on_ask(state, event)
        case e.ApprovalAnswered(ask_id=ask_id, choice=choice):
            return _on_answer(state, ask_id, choice)
        case e.OptionsSet():
            return _on_options(state, event)
        case e.Compacted(dropped=dropped):
            asked_for = state.compacting
            state.compacting = False
            if asked_for or not dropped:
                return []
            return [
                {
                    "type": "compact",
                    "message": f"{dropped} earlier messages were left out to make room.",
                }
            ]
        case e.CommandRun(reply=reply) if reply:
            return [_text_frame(state, reply)]
        case e.TurnEnded():
            return [*_team_changes(state, lookups), *_on_turn_end(state, event)]
        case _:
            return []


def _on_message(
    state: OpenAgentDialectState, event: e.MessageReceived, lookups: Lookups | None
) -> list[Frame]:
    out: list[Frame] = _team_changes(state, lookups)
    if state.open and state.cut:
        out += [_end_frame(state, "interrupted")]
    if not state.open or state.cut:
        state.usage = Usage()
    state.open = True
    state.cut = False
    state.sent = 0
    if event.external_id.startswith(PROCESS_PREFIX) and lookups is not None:
        notice = lookups.process_notice(event.external_id.removeprefix(PROCESS_PREFIX))
        if notice is not None:
            out.append({"type": "background_result", "notifications": [notice]})
    return out


def _on_reply(state: OpenAgentDialectState, event: e.ModelReplied) -> list[Frame]:
    text = event.message.text
    rest = text[state.sent :]
    out: list[Frame] = [_text_frame(state, rest)] if rest else []
    state.sent = 0
    state.usage = state.usage + event.usage
    state.last_input_tokens = event.usage.input_tokens
    state.cut = event.finish == "interrupted"
    if state.traced is not None:
        if not state.request_shown:  # it was asked before this client came, or elsewhere
            out.insert(0, _request_frame(state, _request_from_log(state, state.traced, event)))
        out.append(_response_frame(state, event))
    state.request_shown = False
    state.prompt = ""
    for call in event.message.calls:
        shown = input_of(call, state.redact)
        state.calls[call.id] = OpenAgentCall(call.name, shown)
        out.append({"type": "tool_call", "tool": call.name, "input": shown, "id": call.id})
    return out


def _request_frame(state: OpenAgentDialectState, asked: TracedRequest) -> Frame:
    """`max_tokens` and `temperature` are null when nothing is set: the model's defaults apply."""
    state.seq += 1
    messages = messages_of(asked.messages, state.redact)
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in asked.tools
    ]
    return {
        "type": "llm_request",
        "seq": state.seq,
        "model": asked.model,
        "system": state.prompt,
        "messages": messages,
        "tools": tools,
        "max_tokens": asked.max_output_tokens,
        "temperature": asked.temperature,
        "thinking_enabled": asked.thinking != "off",
        "thinking_effort": asked.thinking,
        "message_count": len(messages),
        "tool_count": len(tools),
    }


def _request_from_log(
    state: OpenAgentDialectState, traced: Session, event: e.ModelReplied
) -> TracedRequest:
    """The model call that this reply answers, as far as the log shows it."""
    messages: tuple[Message, ...] = tuple(each.message for each in traced.messages)
    return TracedRequest(
        model=event.model,
        messages=messages,
        tools=state.tools,
        max_output_tokens=None,
        thinking=state.effort,
        temperature=None,
    )


def _response_frame(state: OpenAgentDialectState, event: e.ModelReplied) -> Frame:
    calls = [
        {"id": call.id, "name": call.name, "input": input_of(call, state.redact)}
        for call in event.message.calls
    ]
    return {
        "type": "llm_response",
        "seq": state.seq,
        "content": content_of(event.message, state.redact),
        "tool_calls": calls,
        "done": not calls,
        "usage": tokens_of(event.usage),
    }


def _on_result(state: OpenAgentDialectState, call_id: str, text: str, status: str) -> list[Frame]:
    call = state.calls.pop(call_id, None)
    tool = call.tool if call else ""
    shown = state.redact(text)
    if len(shown) > RESULT_CHARS:
        shown = shown[:RESULT_CHARS] + "..."
    return [
        {
            "type": "tool_result",
            "tool": tool,
            "result": shown,
            "id": call_id,
            "status": status,
        }
    ]


def _on_call_event(
    state: OpenAgentDialectState,
    event: e.CallsHandedOver | e.ToolFinished | e.CallClosed,
    lookups: Lookups | None,
) -> list[Frame]:
    match event:
        case e.CallsHandedOver(ids=ids, to="subagent"):
            return [_begin_subagent(state, call_id, name) for call_id, name in ids.items()]
        case e.CallsHandedOver():
            return []
        case e.ToolFinished(result=ToolResult(call_id=call_id, status=status) as result):
            text = result.text
        case e.CallClosed(call_id=call_id, reason=text, status=status):
            state.cut = state.cut or status == "interrupted"
    shown = _on_result(state, call_id, text, status)
    if isinstance(event, e.ToolFinished):
        shown += _task_updates(shown[0], lookups)
        shown = [*_team_changes(state, lookups), *shown]
    if call_id in state.subagents:
        shown.insert(0, _end_subagent(state, call_id, text, lookups))
    return shown


def _begin_subagent(state: OpenAgentDialectState, call_id: str, name: str) -> Frame:
    state.subagents[call_id] = name
    call = state.calls.get(call_id)
    given = call.input if call is not None and isinstance(call.input, dict) else {}
    task = given.get("task") or given.get("prompt") or ""
    return {
        "type": "subagent_start",
        "subagent_id": id_of(name),
        "task": task,
        "agent_type": given.get("agent_type") or given.get("agent") or GENERAL,
        "id": call_id,
    }


def _end_subagent(
    state: OpenAgentDialectState, call_id: str, text: str, lookups: Lookups | None
) -> Frame:
    name = state.subagents.pop(call_id)
    work = lookups.subagent_work(name) if lookups is not None else None
    work = work or SubagentWork()
    return {
        "type": "subagent_end",
        "subagent_id": id_of(name),
        "summary": state.redact(text[:RESULT_CHARS]),
        "tool_count": work.calls,
        "elapsed": round(work.elapsed_s, 2),
        "agent_type": work.kind or GENERAL,
        "usage": tokens_of(work.usage),
        "id": call_id,
    }


def _team_changes(state: OpenAgentDialectState, lookups: Lookups | None) -> list[Frame]:
    """A frame for each teammate that is not as it was last shown."""
    if lookups is None or not state.teams:
        return []
    frames: list[Frame] = []
    for mate in lookups.team():
        known = state.team.get(mate.name)
        if known == mate.status or (known is None and mate.state != "active"):
            continue
        state.team[mate.name] = mate.status
        role = {"role": state.redact(mate.role)} if known is None else {}
        frames.append({"type": "teammate_status", "name": mate.name, **role, "status": mate.status})
    return frames


def _task_updates(result: Frame, lookups: Lookups | None) -> list[Frame]:
    """The tasks as they are now, after the result of a tool that may have changed them."""
    if lookups is None or result["status"] != "ok" or result["tool"] not in TASK_TOOLS:
        return []
    return [lookups.task_update(result["tool"])]


def _on_ask(state: OpenAgentDialectState, event: e.ApprovalAsked | e.QuestionAsked) -> list[Frame]:
    call = state.calls.get(event.call_id) or OpenAgentCall("", None)
    call.ask_id = event.ask_id
    if isinstance(event, e.QuestionAsked):
        words = {"question": state.redact(event.question), "choices": list(event.choices)}
        return [{"type": "question", "id": event.call_id, **words}]
    if call.tool == EXIT_PLAN_MODE:
        plan = call.input.get("plan", "") if isinstance(call.input, dict) else ""
        rest = _end_frame(state, "done", reason="plan")
        state.usage = Usage()
        return [{"type": "plan_ready", "plan": plan, "id": event.call_id}, rest]
    said = {"question": state.redact(event.question), "reason": state.redact(event.reason)}
    for each in event.others:
        if (other := state.calls.get(each.call_id)) is not None:
            other.ask_id = event.ask_id
    named = [_call_view(each.call_id, state.calls.get(each.call_id, call)) for each in event.calls]
    return [{"type": "tool_approval_request", "tools": named, **said}]


def _call_view(call_id: str, call: OpenAgentCall) -> Frame:
    return {"name": call.tool, "input": call.input, "id": call_id}


def _on_answer(state: OpenAgentDialectState, ask_id: str, choice: str) -> list[Frame]:
    """The frames for an answer. An approved call gets none here: its result shows that it ran."""
    calls = [call for call in state.calls.values() if call.ask_id == ask_id]
    if not calls or choice == "each":  # `each`: the calls are asked about one by one
        return []
    yes = choice in ("once", "always")
    if calls[0].tool == EXIT_PLAN_MODE:
        if yes:
            return [{"type": "plan_approved"}]
        feedback = state.feedback
        state.feedback = ""
        return [{"type": "plan_rejected", "feedback": feedback}]
    if yes:
        return []
    return [
        {
            "type": "tool_approval_result",
            "decision": "denied",
            "tools": [call.tool for call in calls],
        }
    ]


def _on_options(state: OpenAgentDialectState, event: e.OptionsSet) -> list[Frame]:
    options = event.options
    if options.thinking is not None:
        state.effort = options.thinking or "off"
    if options.plan_mode is not None:
        state.plan_mode = options.plan_mode
    if options.teams is not None:
        state.teams = options.teams
    out: list[Frame] = []
    if options.compact:
        state.compacting = True
        out = [{"type": "compact", "message": "The conversation is being summarised."}]
    changed = (
        ("plan_mode", options.plan_mode),
        ("teams", options.teams),
        ("approval", options.approval),
    )
    for name, on in changed:
        if on is None:
            continue
        out.append({"type": f"{name}_changed", "enabled": on})
    return out


def _on_turn_end(state: OpenAgentDialectState, event: e.TurnEnded) -> list[Frame]:
    out: list[Frame] = []
    if event.is_unanswered:
        out = [{"type": "error", "message": state.redact(event.said) or "The turn failed."}]
    elif event.said:
        out = [_text_frame(state, event.said)]
    state.open = False
    state.cut = False
    state.sent = 0
    return [*out, _end_frame(state, "done", reason=event.reason)]


def _end_frame(state: OpenAgentDialectState, type_: str, **more: str) -> Frame:
    """The frame for the end of a turn, or of its part up to here."""
    usage = {
        **tokens_of(state.usage),
        "last_input_tokens": state.last_input_tokens,
        "plan_mode": state.plan_mode,
    }
    return {"type": type_, "usage": usage, "files": [], **more}


def notice_of(process: Process, redact: Callable[[str], str]) -> Frame:
    """How a background process has ended, with the beginning of its output."""
    head = f"$ {process.command[:200]}\n"
    result = process.said.partition(head)[2] or process.said
    return {
        "task_id": process.id,
        "status": process.state,
        "command": redact(process.command[:80]),
        "result": redact(result[:NOTICE_CHARS]),
    }


def tokens_of(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
