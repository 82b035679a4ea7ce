"""agent_computer's HTTP API: its clients find what they know."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, Literal

import anyio
import msgspec

from ..types import events as e
from ..types.identity import Said
from ..types.messages import Message, Usage
from .dialect_computer import State, mode_of, options_of, translate, usage_of
from .errors import HttpProblem, bad, not_found, sentence
from .job_views import JobView
from .routing import Call, Endpoint
from .seen import seen, session_of
from .session import state_of
from .talk import Say, message_of, submit

ANSWER_S = 600.0


class Ask(msgspec.Struct, frozen=True):
    """`mode`: `bounded`, or `deep_work`, which plans first and then works on by itself."""

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
    run_count: int
    prompt_preview: str


class Jobs(msgspec.Struct, frozen=True):
    """Those that are theirs."""

    jobs: list[Cron] = []


class Did(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of it. `enabled` is how it is now."""

    status: str
    id: str = ""
    enabled: bool | None = None
    jobs: int | None = None


async def chat(call: Call) -> Answered:
    """Say something and wait for the answer."""
    wanted: Ask = call.body
    if not wanted.message.strip():
        raise bad("The message is empty: send `message`.")
    mode = await _held(call, wanted.mode)
    said = Say(wanted.message)
    receipt = await submit(call, session_of(call), Said(await message_of(call, said)), said)
    name = call.path("name")
    with anyio.move_on_after(ANSWER_S):
        return await _answer(call, await seen(call), mode, receipt.after, receipt.inbox_id)
    return Answered("It still works on this. Ask for the history later.", name, mode, {"running": True})


async def _held(call: Call, wanted: str | None) -> str:
    """The mode of the conversation, once it is as it is wanted. Raises HttpProblem."""
    session = session_of(call)
    now = mode_of((await state_of(call, session)).options.mode)
    if wanted is not None and wanted != now:
        receipt = await call.web.door.configure(session, call.principal, options_of(wanted))
        if receipt.status == "refused":
            raise HttpProblem(403, "forbidden", sentence(receipt.reason))
    return wanted or now


async def _answer(call: Call, session: str, mode: str, after: int, inbox_id: int) -> Answered:
    state, name = State(call.web.redact, mode=mode), call.path("name")
    async with aclosing(call.web.door.follow(session, call.principal, after)) as items:
        async for item in items:
            for message in translate(state, item):
                if message["type"] in ("plan_ready", "approval_request", "question"):
                    asked = message.get("question") or message["text"]
                    return Answered(asked, name, state.mode, message)
                if message["type"] == "done" and _ends(item, inbox_id):
                    return Answered(message["text"], name, mode)
            if (
                isinstance(item, e.Recorded)
                and isinstance(item.event, e.CommandRun)
                and item.event.inbox_id == inbox_id
            ):
                return Answered(item.event.reply, name, mode)
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


async def cron(call: Call) -> Jobs:
    return Jobs([_cron(each) for each in await call.web.jobs.listed(call.principal)])


def _cron(job: JobView) -> Cron:
    seen = (job.name, job.name, job.when, job.enabled, job.description)
    return Cron(*seen, job.next_at, job.last_at, job.last_result, job.runs, job.preview)


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
    Endpoint("GET", "/api/cron", "read", cron, "Jobs", returns=Jobs, tag=_T),
    Endpoint("POST", "/api/cron/{id}/run", "chat", run_job, "Run a job now", returns=Did, tag=_T),
    Endpoint("POST", "/api/cron/{id}/toggle", "chat", toggle_job, "Turn a job on or off", returns=Did, tag=_T),
    Endpoint("POST", "/api/cron/reload", "chat", reload_jobs, "Read the jobs again", returns=Did, tag=_T),
)
