"""agent_computer's HTTP API: its clients find what they know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Literal

import anyio
import msgspec

from ..store.base import TokenTotals
from ..types import events as e
from ..types.identity import Said
from ..types.marked_texts import mark_text
from ..types.messages import Message, ResultStatus, ToolResult, Usage
from .conversations import Say, build_message, submit_body, token_usage
from .dialect_computer import ComputerDialectState, mode_of, options_of, result_of, translate
from .errors import HttpProblem, bad_request, not_found, to_sentence
from .job_views import JobRowView
from .routing import Call, Endpoint
from .session import load_state
from .tasks import limits_of
from .transcripts import text_with_transcripts, with_transcripts
from .visible_sessions import find_session, require_session, session_from_path

ANSWER_S = 600.0
POLL_S = 0.05
RUNS_SEARCHED = 20
"""Of so many runs of a job, the one that was begun here is looked for."""


class Ask(msgspec.Struct, frozen=True):
    """`mode`: `bounded`, or `deep_work`, which plans first and then works on by itself."""

    message: str = ""
    mode: Literal["bounded", "deep_work"] | None = None


class Answered(msgspec.Struct, frozen=True, omit_defaults=True):
    """`waiting` is there when a person must answer something first: what is asked, and about which
    call."""

    response: str
    session_id: str
    mode: str = ""
    waiting: dict[str, Any] | None = None


class Function(msgspec.Struct, frozen=True):
    """`arguments` is JSON."""

    name: str
    arguments: str


class Called(msgspec.Struct, frozen=True):
    id: str
    function: Function
    type: str = "function"


class Replied(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the model said, with its calls."""

    role: str
    tool_calls: list[Called]
    content: str = ""


class HistoryLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of the conversation. `timestamp` is in seconds since the epoch."""

    role: str
    content: str | Replied
    timestamp: float
    tool_call_id: str = ""
    tool_name: str = ""


class History(msgspec.Struct, frozen=True):
    session_id: str
    messages: list[HistoryLine]
    token_usage: dict[str, int]


class Cron(msgspec.Struct, frozen=True):
    """A job. `id` is its name, `session_id` the conversation of its last run; times are written in
    UTC."""

    id: str
    name: str
    schedule: str
    enabled: bool
    session_id: str
    last_run: str | None
    next_run: str | None
    run_count: int
    prompt_preview: str


class Jobs(msgspec.Struct, frozen=True):
    """Those that are theirs."""

    jobs: list[Cron] = []


class JobRan(msgspec.Struct, frozen=True):
    """A run of the job `job` is over (`ok`), or took longer than this request waits and goes on
    (`running`)."""

    status: Literal["ok", "running"]
    job: str
    run_count: int


class JobSwitched(msgspec.Struct, frozen=True):
    status: Literal["enabled", "disabled"]
    job: str


class JobsLoaded(msgspec.Struct, frozen=True):
    status: Literal["reloaded"]
    jobs_loaded: int


async def chat(call: Call) -> Answered:
    """Say something and wait for the answer."""
    wanted: Ask = call.body
    if not wanted.message.strip():
        raise bad_request("The message is empty: send `message`.")
    mode = await _ensure_mode(call, wanted.mode)
    said = Say(wanted.message)
    receipt = await submit_body(
        call, session_from_path(call), Said(await build_message(call, said)), said
    )
    name = call.path("name")
    with anyio.move_on_after(ANSWER_S):
        return await _wait_for_answer(
            call, await require_session(call), mode, receipt.after, receipt.inbox_id
        )
    return Answered(
        "It still works on this. Ask for the history later.", name, mode, {"running": True}
    )


async def _ensure_mode(call: Call, wanted: str | None) -> str:
    """The mode of the conversation, once it is as it is wanted. Raises HttpProblem."""
    session = session_from_path(call)
    now = mode_of((await load_state(call, session)).options.mode)
    if wanted is not None and wanted != now:
        receipt = await call.web.door.configure(session, call.principal, options_of(wanted))
        if receipt.status == "refused":
            raise HttpProblem(403, "forbidden", to_sentence(receipt.reason))
    return wanted or now


async def _wait_for_answer(
    call: Call, session: str, mode: str, after: int, inbox_id: int
) -> Answered:
    name = call.path("name")
    state = ComputerDialectState(call.web.redact, mode=mode, long=limits_of(call.web, session))
    async with aclosing(call.web.door.follow(session, call.principal, after)) as items:
        async for item in items:
            for message in translate(state, item):
                match message["type"]:
                    case "plan_ready" | "approval_request" | "question":
                        return Answered(
                            message.get("question") or message["text"], name, state.mode, message
                        )
                    case "done" if _is_turn_end(item, inbox_id):
                        return Answered(message["text"], name, mode)
                    case "error" if _is_turn_end(item, inbox_id):
                        return Answered(f"Error: {message['message']}", name, mode)
            if (
                isinstance(item, e.Recorded)
                and isinstance(item.event, e.CommandRun)
                and item.event.inbox_id == inbox_id
            ):
                return Answered(item.event.reply, name, mode)
    raise AssertionError("following never ends by itself")


def _is_turn_end(item: object, inbox_id: int) -> bool:
    return (
        isinstance(item, e.Recorded)
        and isinstance(item.event, e.TurnEnded)
        and inbox_id in item.event.answers
    )


async def get_history(call: Call) -> History:
    session = await find_session(call)
    log = await call.web.store.events(session) if session is not None else []
    replies = [each.event for each in log if isinstance(each.event, e.ModelReplied)]
    used = sum((each.usage for each in replies), Usage())
    tokens = token_usage(TokenTotals(used.input_tokens, used.output_tokens, len(replies)))
    return History(call.path("name"), history_from_log(log, call.web.redact), tokens)


def history_from_log(log: Sequence[e.Recorded], redact: Callable[[str], str]) -> list[HistoryLine]:
    """The messages of a conversation since it was last cleared, oldest first."""
    lines: list[HistoryLine] = []
    tools: dict[str, str] = {}
    for recorded in with_transcripts(log):
        event = recorded.event
        at = recorded.at
        match event:
            case e.CommandRun(name="start"):
                lines.clear()
            case e.MessageReceived(message=message):
                lines.append(HistoryLine("user", redact(text_with_transcripts(message)), at))
            case e.HistoryMessage(message=Message(role="user") as message):
                lines.append(HistoryLine("user", redact(message.text), at))
            case e.HistoryMessage(message=Message(role="tool", parts=parts)):
                results = [part for part in parts if isinstance(part, ToolResult)]
                lines += [
                    _result_line(at, each.call_id, tools, redact(each.text), each.status)
                    for each in results
                ]
            case e.ModelReplied(message=message) | e.HistoryMessage(message=message):
                tools |= {each.id: each.name for each in message.calls}
                lines.append(HistoryLine("assistant", _assistant_content(message, redact), at))
            case e.ToolFinished(result=result):
                lines.append(
                    _result_line(at, result.call_id, tools, redact(result.text), result.status)
                )
            case e.CallClosed(call_id=call_id, reason=reason, status=status):
                lines.append(_result_line(at, call_id, tools, redact(reason), status))
            case e.TurnEnded(said=said) if said:
                lines.append(HistoryLine("assistant", redact(said), at))
            case _:
                pass
    return lines


def _assistant_content(message: Message, redact: Callable[[str], str]) -> str | Replied:
    text = redact(message.text)
    if not message.calls:
        return text
    calls = [
        Called(each.id, Function(each.name, redact(bytes(each.arguments).decode(errors="replace"))))
        for each in message.calls
    ]
    return Replied("assistant", calls, text)


def _result_line(
    at: float, call_id: str, tools: Mapping[str, str], text: str, status: ResultStatus
) -> HistoryLine:
    tool = tools.get(call_id, "")
    return HistoryLine("tool", result_of(tool, text, status), at, call_id, tool)


async def list_cron(call: Call) -> Jobs:
    return Jobs([await _cron_view(call, each) for each in await _list_user_jobs(call)])


async def _list_user_jobs(call: Call) -> list[JobRowView]:
    """The jobs that people made: those with a prompt, and those whose text is said as it is. Chores
    are our own."""
    return [each for each in await call.web.jobs.list_jobs(call.principal) if each.kind != "chore"]


async def _cron_view(call: Call, job: JobRowView) -> Cron:
    runs = await call.web.jobs.runs(call.principal, job.name, 1)
    return Cron(
        id=job.name,
        name=job.name,
        schedule=job.schedule or job.when,
        enabled=job.enabled,
        session_id=runs[0].name if runs else "",
        last_run=_format_time(job.last_at),
        next_run=_format_time(job.next_at),
        run_count=job.runs,
        prompt_preview=job.preview,
    )


def _format_time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


async def run_job(call: Call) -> JobRan:
    """Run it and wait until this run is over, ten minutes at most."""
    name = call.path("id")
    jobs = call.web.jobs
    slot = await jobs.run(call.principal, name)
    with anyio.move_on_after(ANSWER_S) as waiting:
        while not await _is_run_over(call, name, slot):  # noqa: ASYNC110 -- the table of runs tells
            await anyio.sleep(POLL_S)
    job = await _require_job(call, name)
    return JobRan("running" if waiting.cancelled_caught else "ok", name, job.runs)


async def _is_run_over(call: Call, name: str, slot: str) -> bool:
    runs = await call.web.jobs.runs(call.principal, name, RUNS_SEARCHED)
    return any(each.slot == slot and each.ended_at is not None for each in runs)


async def toggle_job(call: Call) -> JobSwitched:
    name = call.path("id")
    job = await _require_job(call, name)
    now = await call.web.jobs.set_enabled(call.principal, name, not job.enabled)
    return JobSwitched("enabled" if now.enabled else "disabled", name)


async def _require_job(call: Call, name: str) -> JobRowView:
    found = next(
        (each for each in await call.web.jobs.list_jobs(call.principal) if each.name == name), None
    )
    if found is None:
        raise not_found(mark_text("such job"))
    return found


async def reload_jobs(call: Call) -> JobsLoaded:
    """What was changed in their files is seen by itself; this is for who asks for it."""
    return JobsLoaded("reloaded", len(await _list_user_jobs(call)))


_T = "agent_computer"


def _job_endpoint(rest: str, handler: Any, summary: str, returns: Any) -> Endpoint:
    return Endpoint("POST", f"/api/cron/{rest}", "chat", handler, summary, returns=returns, tag=_T)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/chat/{name}",
        "chat",
        chat,
        "Send a message and wait for the answer",
        body=Ask,
        returns=Answered,
        invalid=422,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/sessions/{name}/history",
        "read",
        get_history,
        "Get the messages of a conversation",
        returns=History,
        tag=_T,
    ),
    Endpoint("GET", "/api/cron", "read", list_cron, "List jobs", returns=Jobs, tag=_T),
    _job_endpoint("{id}/run", run_job, "Run a job now", JobRan),
    _job_endpoint("{id}/toggle", toggle_job, "Enable or disable a job", JobSwitched),
    _job_endpoint("reload", reload_jobs, "Read the jobs again", JobsLoaded),
)
