"""agent_computer's WebSocket in our events: what its clients read is made from the log alone, and
purely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..policy.plan import EXIT_PLAN_MODE
from ..tools.shell import parse_output
from ..tools.task_board import TASK_TOOLS
from ..types import events as e
from ..types.door import Progress
from ..types.goals import DEEP_WORK_SPENT, GOAL_ENDED
from ..types.messages import ResultStatus, Usage
from ..types.options import SessionOptions

PREVIEW_CHARS = 500
STDOUT_CHARS = 10_000
STDERR_CHARS = 5_000
CHARS_OF_TOKEN = 4
SHELL = "shell"
FINISH_REASONS = {"calls": "tool_calls", "filtered": "content_filter"}
"""Why the model stopped, in OpenAI's words, where those are not ours."""
Frame = dict[str, Any]


class OpenComputerCall(msgspec.Struct):
    """A call without a result."""

    tool: str
    began: float
    arguments: Any = msgspec.field(default_factory=dict)
    ask_id: str = ""

    @property
    def plan(self) -> str:
        """The plan that it shows, of the tool that does."""
        shows = self.tool == EXIT_PLAN_MODE and isinstance(self.arguments, dict)
        return str(self.arguments.get("plan", "")) if shows else ""


class Long(msgspec.Struct, frozen=True):
    """What deep work may use, and the tasks as its clients are told them now."""

    steps: int
    tokens: int
    tasks: Callable[[], Frame]


class ComputerDialectState(msgspec.Struct):
    """What must be remembered from one event to the next. `iteration` counts the calls of the model
    in this run, `asking` says that such a call was announced, `searching` that the memory search
    before the first was. `recalled` memories were found. Of the context, `known` tokens were
    counted by the provider and `fresh` characters came since.
    """

    redact: Callable[[str], str] = str
    mode: str = "bounded"
    open: bool = False
    iteration: int = 0
    searching: bool = False
    asking: bool = False
    recalled: int = 0
    text: str = ""
    model: str = ""
    finish: e.Finish = "stop"
    usage: Usage = Usage()
    calls: dict[str, OpenComputerCall] = {}
    used: int = 0
    known: int = 0
    fresh: int = 0
    long: Long | None = None


def mode_of(ours: str | None) -> str:
    return "deep_work" if ours == "deep_work" else "bounded"


def options_of(mode: str) -> SessionOptions:
    """How a conversation is held in their mode: deep work begins with a plan that is shown."""
    deep = mode == "deep_work"
    return SessionOptions(mode="deep_work" if deep else "normal", plan_mode=deep)


def translate(state: ComputerDialectState, item: e.Recorded | Progress) -> list[Frame]:
    """What a client is sent for this."""
    if isinstance(item, Progress):
        return _on_progress(state, item)
    event = item.event
    at = item.at
    match event:
        case e.MessageReceived(message=message):
            state.fresh += len(message.text)
            return _on_message(state)
        case e.Recalled(facts=facts):
            state.recalled = len(facts)
            return []
        case e.ModelFailed(model=model):
            return [] if state.asking else _announce_model_call(state, model)
        case e.ModelReplied():
            return _on_reply(state, event, at)
        case e.ToolFinished(result=result):
            return _on_result(state, at, result.call_id, result.text, result.status)
        case e.CallClosed(call_id=call_id, reason=reason, status=status):
            return _on_result(state, at, call_id, reason, status)
        case e.TurnEnded():
            return _on_turn_end(state, event)
        case _:
            return _translate_other(state, event)


def _translate_other(state: ComputerDialectState, event: e.AnyEvent) -> list[Frame]:
    """What people were asked, answered, set and commanded."""
    match event:
        case e.ApprovalAsked() | e.QuestionAsked():
            return _on_ask(state, event)
        case e.ApprovalAnswered() | e.QuestionAnswered():
            return _on_answer(state, event)
        case e.OptionsSet(options=options) if options.mode is not None:
            return _on_mode(state, options.mode)
        case e.CommandRun():
            return _on_command(state, event)
        case _:
            return []


def _on_progress(state: ComputerDialectState, item: Progress) -> list[Frame]:
    if item.kind == "status":
        return [{"type": "status", "text": item.text}]
    if not item.model or not state.open or state.asking:
        return []
    state.recalled = item.recalled
    return _announce_model_call(state, item.model)


def _on_mode(state: ComputerDialectState, mode: str) -> list[Frame]:
    state.mode = mode_of(mode)
    state.used = 0
    return [{"type": "mode_changed", "mode": state.mode}]


def _on_command(state: ComputerDialectState, event: e.CommandRun) -> list[Frame]:
    if event.name == "start":
        state.known = state.fresh = 0
        return [{"type": "cleared"}]
    words = state.redact(event.reply)
    if event.principal.kind == "system" and event.name in (DEEP_WORK_SPENT, GOAL_ENDED):
        return [{"type": "error", "message": words}]
    return [{"type": "text", "text": words}]


def _thinking_frame(state: ComputerDialectState) -> Frame:
    """It thinks; in deep work, with how far it is."""
    out: Frame = {"type": "thinking", "iteration": state.iteration}
    if state.mode != "deep_work" or state.long is None:
        return out
    long = state.long
    limits = {"max_iterations": long.steps, "tokens_used": state.used, "token_budget": long.tokens}
    return {**out, **limits, "task_summary": long.tasks()["summary"]}


def _on_message(state: ComputerDialectState) -> list[Frame]:
    """A run begins: memory is searched once, before the model is called."""
    if state.open:
        return []
    _reset_run(state)
    state.searching = True
    return [{"type": "thinking", "iteration": 0, "phase": "memory_search"}]


def _reset_run(state: ComputerDialectState) -> None:
    state.open = True
    state.asking = False
    state.iteration = 1
    state.recalled = 0
    state.text = ""
    state.usage = Usage()
    state.calls = {}


def _announce_model_call(state: ComputerDialectState, model: str) -> list[Frame]:
    """The model is being called."""
    out: list[Frame] = []
    if state.searching:
        found = {
            "type": "thinking",
            "iteration": 0,
            "phase": "memory_search_done",
            "count": state.recalled,
        }
        out += [found, _thinking_frame(state)]
        state.searching = False
    state.asking = True
    tokens = state.known + state.fresh // CHARS_OF_TOKEN
    call = {"model": model, "prompt_tokens_estimate": tokens}
    return [*out, {"type": "thinking", "iteration": state.iteration, "phase": "llm_call", **call}]


def _on_reply(state: ComputerDialectState, event: e.ModelReplied, at: float) -> list[Frame]:
    out = [] if state.asking else _announce_model_call(state, event.model)
    state.asking = False
    answered = {"type": "thinking", "iteration": state.iteration, "phase": "llm_response"}
    out.append({**answered, "response_tokens": event.usage.output_tokens})
    state.model = event.model
    state.finish = event.finish
    state.usage += event.usage
    state.known = event.usage.input_tokens + event.usage.output_tokens
    state.fresh = 0
    state.used += state.known
    said = state.redact(event.message.text)
    if said:
        state.text = said
        out.append({"type": "text", "text": said})
    for call in event.message.calls:
        arguments = msgspec.json.decode(state.redact(bytes(call.arguments).decode()))
        opened = OpenComputerCall(call.name, at, arguments)
        state.calls[call.id] = opened
        if not opened.plan:
            out.append(
                {
                    "type": "tool_call",
                    "tool": call.name,
                    "input": arguments,
                    "tool_call_id": call.id,
                }
            )
    return out


def _on_result(
    state: ComputerDialectState, at: float, call_id: str, text: str, status: ResultStatus
) -> list[Frame]:
    call = state.calls.pop(call_id, None) or OpenComputerCall("", at)
    state.fresh += len(text)
    if call.plan:
        return _on_plan_result(state, status)
    told = result_of(call.tool, state.redact(text), status)
    result = {
        "type": "tool_result",
        "tool": call.tool,
        "tool_call_id": call_id,
        "result_preview": told[:PREVIEW_CHARS],
        "duration_ms": max(0, round((at - call.began) * 1000)),
        "success": status == "ok",
        "result_length": len(told),
    }
    out: list[Frame] = []
    if call.ask_id:  # nobody answered, or it was overtaken
        out.append(
            _approval_frame(call_id, call.tool, "timeout" if status == "expired" else "deny")
        )
    out.append(result)
    if status == "ok" and call.tool in TASK_TOOLS and state.long is not None:
        out.append({"type": "task_update", **state.long.tasks()})
    return out + _next_iteration(state)


def _on_plan_result(state: ComputerDialectState, status: ResultStatus) -> list[Frame]:
    """A plan was answered: for these clients what follows a yes, or what is to change, is a run of
    its own."""
    if status == "superseded":
        state.open = bool(state.calls)  # the message that says what is to change begins it
        return []
    if status != "ok" or state.calls:
        return _next_iteration(state)
    _reset_run(state)
    return [_thinking_frame(state)]


def _next_iteration(state: ComputerDialectState) -> list[Frame]:
    """The next call of the model is due when all calls of tools are over."""
    if state.calls or not state.open:
        return []
    state.iteration += 1
    return [_thinking_frame(state)]


def result_of(tool: str, text: str, status: ResultStatus) -> str:
    """A result as these clients read it: a command as JSON with its exit code, a failure as JSON
    with its error."""
    if tool == SHELL and (ended := parse_output(text, good=status == "ok")) is not None:
        code, stdout, stderr = ended
        return _json(
            {"exit_code": code, "stdout": stdout[:STDOUT_CHARS], "stderr": stderr[:STDERR_CHARS]}
        )
    if status == "ok":
        return text
    return _json({"error": text} if status == "error" else {"error": text, "tool": tool})


def _json(value: Frame) -> str:
    return msgspec.json.encode(value).decode()


def _on_ask(state: ComputerDialectState, event: e.ApprovalAsked | e.QuestionAsked) -> list[Frame]:
    call = state.calls.get(event.call_id)
    if call is not None:
        call.ask_id = event.ask_id
    if isinstance(event, e.ApprovalAsked) and event.others:
        return [_group_ask_frame(state, event)]
    if call is not None and call.plan:
        return [_plan_frame(state, call.plan)]
    tool = call.tool if call is not None else ""
    out: Frame = {
        "tool_call_id": event.call_id,
        "tool": tool,
        "question": state.redact(event.question),
    }
    if isinstance(event, e.QuestionAsked):
        return [{"type": "question", **out, "choices": list(event.choices), "until": event.until}]
    wanted = call.arguments if call is not None else {}
    more = {"input": wanted, "reason": state.redact(event.reason), "until": event.until}
    return [{"type": "approval_request", **out, **more}]


def _group_ask_frame(state: ComputerDialectState, event: e.ApprovalAsked) -> Frame:
    """Several calls in one question, for clients that know one call each: what they show has all of
    them, and what they answer holds for all."""
    known = [(call.call_id, state.calls.get(call.call_id)) for call in event.calls]
    wanted = [
        {"tool_call_id": call_id, "tool": call.tool, "input": call.arguments}
        for call_id, call in known
        if call
    ]
    out: Frame = {"tool_call_id": event.call_id, "tool": f"{len(event.calls)} calls"}
    out |= {"question": state.redact(event.question), "input": {"calls": wanted}}
    return {
        "type": "approval_request",
        **out,
        "reason": state.redact(event.reason),
        "until": event.until,
    }


def _plan_frame(state: ComputerDialectState, plan: str) -> Frame:
    tasks = state.long.tasks() if state.long is not None else {"tasks": [], "summary": ""}
    used = {"iterations": state.iteration, "model": state.model, "usage": usage_of(state.usage)}
    return {"type": "plan_ready", "text": plan, **tasks, **used}


def _on_answer(
    state: ComputerDialectState, event: e.ApprovalAnswered | e.QuestionAnswered
) -> list[Frame]:
    found = next(
        ((call_id, call) for call_id, call in state.calls.items() if call.ask_id == event.ask_id),
        None,
    )
    if found is None:
        return []
    call_id, call = found
    call.ask_id = ""
    if isinstance(event, e.QuestionAnswered) or call.plan or event.choice == "each":
        return []
    approved = event.choice in ("once", "always")
    return [_approval_frame(call_id, call.tool, "allow" if approved else "deny")]


def _approval_frame(call_id: str, tool: str, reason: str) -> Frame:
    """What became of an approval: `allow`, `deny`, or `timeout` where nobody answered."""
    resolved = {"type": "approval_resolved", "tool_call_id": call_id, "tool": tool}
    return {**resolved, "approved": reason == "allow", "reason": reason}


def _on_turn_end(state: ComputerDialectState, event: e.TurnEnded) -> list[Frame]:
    text = state.redact(event.said) or state.text
    state.open = state.searching = state.asking = False
    if event.is_unanswered:
        return [{"type": "error", "message": text}]  # it ends the run: nothing is done
    out: list[Frame] = []
    if event.said and event.said != state.text:
        out.append({"type": "text", "text": text})
    return [
        *out,
        {
            "type": "done",
            "text": text,
            "iterations": state.iteration,
            "finish_reason": FINISH_REASONS.get(state.finish, state.finish)
            if event.reason == "done"
            else event.reason,
            "model": state.model,
            "usage": usage_of(state.usage),
            "mode": state.mode,
        },
    ]


def usage_of(usage: Usage) -> dict[str, int]:
    read = usage.input_tokens
    written = usage.output_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
