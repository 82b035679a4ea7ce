"""A run: what becomes of one message that a program has sent to an agent. It is made from the log
alone, so that it outlives a restart and is the same in every process."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from hashlib import sha256
from typing import Literal

import anyio
import msgspec

from ..models.pictures import detect_media_type
from ..store.queries import has_members, record_upload
from ..types import events as e
from ..types.door import TEXT_CHARS, Progress
from ..types.errors import DeskhandError, first_of_group
from ..types.identity import Answer, Body, Said, session_key
from ..types.marked_texts import mark_text
from ..types.messages import File, Image, Message, Part, Text
from .conversations import ReceiptView, Say, submit_body
from .errors import HttpProblem, bad_request, not_found
from .guard import unauthenticated
from .names import address_of
from .routing import Call
from .stream import make_standing
from .visible_sessions import require_session

RunState = Literal["submitted", "working", "waiting", "completed", "failed", "canceled"]
OVER: tuple[RunState, ...] = ("completed", "failed", "canceled")
ANSWER_S = 600.0
"""So long a request waits for an answer; the run goes on after it."""
ERASED_LOOK_S = 1.0
CANCEL_S = 10.0
PAGE = 500
NAME_CHARS = 120
_OUTSIDE_NAMES = re.compile(r"[^A-Za-z0-9._:@-]+")
_ID = re.compile(r"([0-9]{1,18})~([^~]{1,100})~([^~]{1,128})")


class RunId(msgspec.Struct, frozen=True):
    """A message in the conversation `name` that the caller has with `agent`."""

    agent: str
    name: str
    inbox_id: int

    def __str__(self) -> str:
        return f"{self.inbox_id}~{self.agent}~{self.name}"


class Run(msgspec.Struct):
    """`texts` is what the agent has said in it, the answer last. While it is `waiting`, `asked` is
    what a person has to answer; `answering` is the message that a program has given as the answer.
    `seen` is the last event that it was made from."""

    id: RunId
    seen: int
    answering: int = 0
    state: RunState = "submitted"
    said: str = ""
    texts: list[str] = []
    asked: e.ApprovalAsked | e.QuestionAsked | None = None
    problem: str = ""
    began_at: float = 0.0
    ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def rests(self) -> bool:
        """Nothing more comes by itself."""
        return self.is_over or self.state == "waiting"

    @property
    def answer(self) -> str:
        """What it has said last."""
        return self.texts[-1] if self.texts else ""


def advance(run: Run, recorded: e.Recorded) -> None:
    """Take in one event of its conversation."""
    run.seen = recorded.n
    event = recorded.event
    inbox_id = run.id.inbox_id
    match event:
        case e.MessageReceived(message=message) if event.inbox_id == inbox_id:
            run.state, run.said, run.began_at = "working", message.text, recorded.at
        case e.QuestionAnswered(message=message) if event.inbox_id == inbox_id:
            # What was sent to the conversation has become the answer to a question in it.
            run.state, run.said, run.began_at = "working", message.text, recorded.at
        case e.ApprovalAnswered(choice=choice) if event.inbox_id == inbox_id:
            run.state, run.said, run.began_at = "working", choice, recorded.at
        case e.CommandRun(reply=reply) if event.inbox_id == inbox_id:
            run.state, run.texts = "completed", [reply]
            run.began_at = run.ended_at = recorded.at
            if event.refused:
                run.state, run.texts, run.problem = "failed", [], reply
        case e.TurnEnded() if inbox_id in event.answers:
            _end(run, event, recorded.at)
        case _ if run.state in ("working", "waiting"):
            _follow_turn(run, event)
        case _:
            pass


def _follow_turn(run: Run, event: e.AnyEvent) -> None:
    match event:
        case e.ModelReplied(message=message):
            run.state, run.asked = "working", None
            if message.text:
                run.texts.append(message.text)
        case e.ApprovalAsked() | e.QuestionAsked():
            run.state, run.asked = "waiting", event
        case e.ToolFinished() | e.CallClosed() if run.asked is not None:
            ended = event.result.call_id if isinstance(event, e.ToolFinished) else event.call_id
            if ended == run.asked.call_id:  # nobody has answered in time
                run.state, run.asked = "working", None
        case e.CommandRun(refused=True) if event.inbox_id == run.answering and run.asked:
            run.state, run.problem = "waiting", event.reply
        case e.ApprovalAnswered(ask_id=ask_id) | e.QuestionAnswered(ask_id=ask_id):
            if run.asked is not None and run.asked.ask_id == ask_id:
                run.state, run.asked = "working", None
        case _:
            pass


def _end(run: Run, event: e.TurnEnded, at: float) -> None:
    run.ended_at = at
    run.asked = None
    if event.is_unanswered:
        run.state, run.problem = "failed", event.said or "It could not be done."
    elif event.reason == "stopped":
        run.state = "canceled"
    else:
        run.state = "completed"
        if event.said:
            run.texts.append(event.said)


# In a request


def list_agents(call: Call) -> list[str]:
    """The agents that the caller may talk to, the default one first."""
    allowed = call.grant.agents if call.grant is not None else ()
    return [each for each in call.web.admin.agents if allowed is None or each in allowed]


def agent_from_path(call: Call) -> str:
    """The agent that the path names. Raises HttpProblem 404 for one that they may not talk to."""
    name = call.path("agent")
    if name not in list_agents(call):
        raise not_found(mark_text("such agent"))
    return name


def session_of(call: Call, agent: str, name: str) -> str:
    return session_key(agent, address_of(call.principal, name))


def make_name(call: Call, wanted: str, prefix: str, message_id: str) -> str:
    """The name of the caller's conversation that a program calls `wanted`. For '' a new one, which
    is the same for the same message."""
    if not wanted:
        return f"{prefix}_{_hash(message_id)}" if message_id else call.web.ids.new(prefix)
    name = _OUTSIDE_NAMES.sub("-", wanted)[:NAME_CHARS].strip("-._:@")
    return name if name == wanted else f"{name or prefix}-{_hash(wanted)}"


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


async def begin_run(call: Call, agent: str, name: str, message: Message, message_id: str) -> Run:
    """Hand in a message. With the same `message_id` it is taken in once, and the run is the same.
    Raises HttpProblem."""
    if agent not in list_agents(call):
        raise HttpProblem(403, "refused", f"This credential may not talk to {agent!r}.")
    receipt = await _submit(call, RunId(agent, name, 0), Said(message), message_id)
    run = Run(RunId(agent, name, receipt.inbox_id), receipt.after)
    run.said, run.began_at = message.text, call.web.clock.now()
    await require_run(call, run)
    return run


async def answer_run(call: Call, run: Run, text: str, message_id: str) -> None:
    """Answer what a waiting run has asked. Raises HttpProblem."""
    if run.asked is None:
        raise AssertionError("only a run that waits is answered")
    if not text.strip() or len(text) > TEXT_CHARS:
        raise bad_request(f"An answer has 1 to {TEXT_CHARS:,} characters of text.")
    receipt = await _submit(call, run.id, Answer(run.asked.ask_id, text), message_id)
    run.state, run.answering = "working", receipt.inbox_id


async def _submit(call: Call, to: RunId, body: Body, message_id: str) -> ReceiptView:
    # Of these parts only a hash is short, and no other one's.
    parts = [to.inbox_id, to.agent, to.name, message_id]
    key = sha256(msgspec.json.encode(parts)).hexdigest()
    sent = Say(id=f"run:{key}" if message_id else "")
    return await submit_body(call, session_of(call, to.agent, to.name), body, sent)


async def require_run(call: Call, run: Run) -> None:
    """Raises HttpProblem 404 where the conversation of a run is gone."""
    await require_session(call, session_of(call, run.id.agent, run.id.name))


async def load_run(call: Call, text: str) -> Run:
    """The run with this id. Raises HttpProblem 404 where there is none that the caller may see."""
    found = _ID.fullmatch(text)
    if found is None or found[2] not in list_agents(call):
        raise not_found(mark_text("such run"))
    id_ = RunId(found[2], found[3], int(found[1]))
    run = Run(id_, 0)
    session = session_of(call, id_.agent, id_.name)
    await require_session(call, session)
    # The inbox is read first: the message may be admitted between these two reads.
    waiting = {row.inbox_id for row in await call.web.store.list_waiting(session)}
    while not run.is_over:
        events = await call.web.store.events(session, run.seen, PAGE)
        for recorded in events:
            advance(run, recorded)
            if run.is_over:
                break
        if len(events) < PAGE:
            break
    if run.state == "submitted" and id_.inbox_id not in waiting:
        raise not_found(mark_text("such run"))
    return run


async def follow_run(
    call: Call, run: Run, until: Callable[[Run], bool]
) -> AsyncGenerator[e.Recorded | Progress]:
    """What happens in its conversation, taken in, until the run is so. The caller has seen that it
    may be followed: see `require_run`."""
    session = session_of(call, run.id.agent, run.id.name)
    if until(run):
        return
    items = call.web.door.follow(session, call.principal, run.seen)
    async with aclosing(items):
        async for item in items:
            if isinstance(item, e.Recorded):
                advance(run, item)
            yield item
            if until(run):
                return


async def follow_safely(
    call: Call, run: Run, until: Callable[[Run], bool]
) -> AsyncGenerator[e.Recorded | Progress]:
    """The same for a stream, which can give no other answer any more: where the conversation cannot
    be followed, the run has failed."""
    try:
        async with aclosing(follow_run(call, run, until)) as items:
            async for item in items:
                yield item
    except DeskhandError as error:
        run.state, run.problem = "failed", str(error)


async def wait_for_run(call: Call, run: Run) -> None:
    """Until it is over or waits for a person, for ANSWER_S at most. Returns sooner where the caller
    has hung up, the conversation was erased, or the service is ending; raises HttpProblem 401 where
    their credential ends."""
    standing = make_standing(call.request)
    session = session_of(call, run.id.agent, run.id.name)
    try:
        async with anyio.create_task_group() as tasks:

            async def until_invalid() -> None:
                await standing.wait_until_invalid(call.web)
                tasks.cancel_scope.cancel()

            async def until_disconnected() -> None:
                while (await call.request.receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            async def until_erased() -> None:
                while await has_members(call.web.store, session):  # noqa: ASYNC110 -- the store tells
                    await anyio.sleep(ERASED_LOOK_S)
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_erased)
            tasks.start_soon(until_invalid)
            tasks.start_soon(until_disconnected)
            with anyio.move_on_after(ANSWER_S):
                await _exhaust(follow_run(call, run, lambda run: run.rests))
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_of_group(group) from group
    if not await standing.is_valid():
        raise unauthenticated()


async def _exhaust(items: AsyncGenerator[e.Recorded | Progress]) -> None:
    async with aclosing(items):
        async for _ in items:
            pass


async def cancel_run(call: Call, run: Run) -> None:
    """Stop it, and its turn with it. Returns when it has ended, at the latest after CANCEL_S."""
    session = session_of(call, run.id.agent, run.id.name)
    await call.web.door.stop(session, call.principal)
    with anyio.move_on_after(CANCEL_S):
        await _exhaust(follow_run(call, run, lambda run: run.is_over))


# What a program sends


def decode_file(data: str) -> bytes:
    """Raises ValueError for what is no base64."""
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error


def make_message(parts: list[Part]) -> Message:
    """The message of these. Raises HttpProblem for an empty one."""
    kept = [part for part in parts if not isinstance(part, Text) or part.text.strip()]
    if not kept:
        raise bad_request("The message is empty.")
    return Message("user", tuple(kept))


async def keep_file(call: Call, data: bytes, name: str, mime: str) -> Part:
    """A picture or another file that came with a message."""
    digest = await call.web.blobs.put(data)
    now = call.web.clock.now()
    await call.web.store.change((record_upload(digest, call.principal.id, now),))
    picture = detect_media_type(data)
    plain = "".join(
        each for each in name.replace("\\", "/").rpartition("/")[2] if each.isprintable()
    )
    if picture:
        return Image(digest, picture, plain[:255] or f"picture.{picture.removeprefix('image/')}")
    kind = mime.partition(";")[0].strip().lower() or "application/octet-stream"
    return File(digest, plain[:255] or "file", kind[:200], len(data))
