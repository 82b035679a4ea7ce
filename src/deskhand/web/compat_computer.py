"""agent_computer's HTTP API: its clients find what they know."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, Literal, NoReturn

import anyio
import msgspec

from ..types import events as e
from ..types.identity import Said
from ..types.messages import Message, Usage
from .dialect_computer import State, translate, usage_of
from .errors import HttpProblem, bad, not_found
from .job_views import JobView
from .routing import Call, Endpoint
from .seen import seen, session_of
from .talk import Say, message_of, submit

ANSWER_S = 600.0


class Ask(msgspec.Struct, frozen=True):
    """`mode`: `bounded`; `deep_work` comes later."""

    message: str
    mode: Literal["bounded", "deep_work"] | None = None


class Answered(msgspec.Struct, frozen=True, omit_defaults=True):
    """`waiting` is there when a person must answer something first: what is asked, and about which call."""

    response: str
    session_id: str
    mode: str = ""
    waiting: dict[str, Any] | None = None


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of the conversation, as its clients show it."""

    role: str
    content: str
    at: float
    n: int
    tool_calls: list[dict[str, Any]] = []
    tool_call_id: str = ""


class History(msgspec.Struct, frozen=True):
    session_id: str
    messages: list[Line]
    token_usage: dict[str, int]


class Tasks(msgspec.Struct, frozen=True):
    """There is no task list so far, so it is empty."""

    session_id: str
    tasks: list[dict[str, Any]] = []
    summary: str = ""


class Cron(msgspec.Struct, frozen=True):
    """A job as its clients show one. `id` is its name."""

    id: str
    name: str
    schedule: str
    enabled: bool
    message: str
    next_run: float | None
    last_run: float | None
    last_result: str


class Jobs(msgspec.Struct, frozen=True):
    """Those that are theirs."""

    jobs: list[Cron] = []


class Did(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of it. `enabled` is how it is now."""

    status: str
    id: str = ""
    enabled: bool | None = None
    jobs: int | None = None


def not_yet(what: str) -> NoReturn:
    raise HttpProblem(501, "not_yet", f"Not yet: {what}.")


async def chat(call: Call) -> Answered:
    """Say something and wait for the answer."""
    wanted: Ask = call.body
    if wanted.mode == "deep_work":
        not_yet("there is no deep work so far; ask without `mode`")
    if not wanted.message.strip():
        raise bad("The message is empty: send `message`.")
    said = Say(wanted.message)
    receipt = await submit(call, session_of(call), Said(await message_of(call, said)), said)
    name = call.path("name")
    with anyio.move_on_after(ANSWER_S):
        return await _answer(call, await seen(call), name, receipt.after, receipt.inbox_id)
    return Answered("It still works on this. Ask for the history later.", name, "bounded", {"running": True})


async def _answer(call: Call, session: str, name: str, after: int, inbox_id: int) -> Answered:
    state = State(call.web.redact)
    async with aclosing(call.web.door.follow(session, call.principal, after)) as items:
        async for item in items:
            for message in translate(state, item):
                if message["type"] in ("approval_request", "question"):
                    return Answered(message["question"], name, state.mode, message)
                if message["type"] == "done" and _ends(item, inbox_id):
                    return Answered(message["text"], name, "bounded")
            if (
                isinstance(item, e.Recorded)
                and isinstance(item.event, e.CommandRun)
                and item.event.inbox_id == inbox_id
            ):
                return Answered(item.event.reply, name, "bounded")
    raise AssertionError("following never ends by itself")


def _ends(item: object, inbox_id: int) -> bool:
    return isinstance(item, e.Recorded) and isinstance(item.event, e.TurnEnded) and inbox_id in item.event.answers


async def history(call: Call) -> History:
    log = await call.web.store.events(await seen(call))
    used = sum((each.event.usage for each in log if isinstance(each.event, e.ModelReplied)), Usage())
    lines = [line for each in log for line in lines_of(each, call.web.redact)]
    return History(call.path("name"), lines, usage_of(used))


def lines_of(recorded: e.Recorded, redact: Any) -> list[Line]:
    """The messages that this event brought, oldest first."""
    event, at, n = recorded.event, recorded.at, recorded.n
    match event:
        case e.MessageReceived(message=message):
            return [Line("user", redact(message.text), at, n)]
        case e.ModelReplied(message=message):
            return [Line("assistant", redact(message.text), at, n, _calls(message, redact))]
        case e.ToolFinished(result=result):
            return [Line("tool", redact(result.text), at, n, [], result.call_id)]
        case e.CallClosed(call_id=call_id, reason=reason):
            return [Line("tool", redact(reason), at, n, [], call_id)]
        case e.TurnEnded(said=said) if said:
            return [Line("assistant", redact(said), at, n)]
        case _:
            return []


def _calls(message: Message, redact: Any) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "tool": call.name, "input": msgspec.Raw(redact(bytes(call.arguments).decode()).encode())}
        for call in message.calls
    ]


async def tasks(call: Call) -> Tasks:
    await seen(call)
    return Tasks(call.path("name"))


async def cron(call: Call) -> Jobs:
    return Jobs([_cron(each) for each in await call.web.jobs.listed(call.principal)])


def _cron(job: JobView) -> Cron:
    seen = (job.name, job.name, job.when, job.enabled, job.description)
    return Cron(*seen, job.next_at, job.last_at, job.last_result)


async def run_job(call: Call) -> Did:
    await call.web.jobs.run(call.principal, call.path("id"))
    return Did("triggered", call.path("id"))


async def toggle_job(call: Call) -> Did:
    name = call.path("id")
    there = next((each for each in await call.web.jobs.listed(call.principal) if each.name == name), None)
    if there is None:
        raise not_found("such job")
    now = await call.web.jobs.switch(call.principal, name, not there.enabled)
    return Did("ok", name, now.enabled)


async def reload_jobs(call: Call) -> Did:
    """What was changed in their files is seen by itself; this is for who asks for it."""
    return Did("reloaded", jobs=len(await call.web.jobs.listed(call.principal)))


_T = "agent_computer"
ENDPOINTS = (
    Endpoint(
        "POST", "/api/chat/{name}", "chat", chat, "Ask and wait for the answer", body=Ask, returns=Answered, tag=_T
    ),
    Endpoint("GET", "/api/sessions/{name}/history", "read", history, "Its messages", returns=History, tag=_T),
    Endpoint("GET", "/api/sessions/{name}/tasks", "read", tasks, "Its task list", returns=Tasks, tag=_T),
    Endpoint("GET", "/api/cron", "read", cron, "Jobs", returns=Jobs, tag=_T),
    Endpoint("POST", "/api/cron/{id}/run", "chat", run_job, "Run a job now", returns=Did, tag=_T),
    Endpoint("POST", "/api/cron/{id}/toggle", "chat", toggle_job, "Turn a job on or off", returns=Did, tag=_T),
    Endpoint("POST", "/api/cron/reload", "chat", reload_jobs, "Read the jobs again", returns=Did, tag=_T),
)
