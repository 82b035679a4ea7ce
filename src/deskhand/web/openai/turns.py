"""A request as a turn of a conversation: begun, or gone on with, and followed to its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import msgspec

from ...store.queries import has_members
from ...types import events as e
from ...types.client import ClientRequest
from ...types.door import TEXT_CHARS, Progress
from ...types.identity import Inbound, Said, ToolResults, When
from ...types.messages import Text, ToolResult
from ...types.options import SessionOptions
from ..errors import HttpProblem, bad_request, to_sentence
from ..names import address_of, format_session_name, parse_session_name
from ..routing import Call
from ..visible_sessions import require_session
from .history import ClientHistory
from .turn_answer import End, TurnAnswer

SESSION_HEADER = "x-deskhand-session"


class Opened(msgspec.Struct, frozen=True):
    """A turn that answers a request. `name` is the conversation's, `after` the last event before
    it."""

    session: str
    name: str
    after: int
    inbox_id: int


async def begin_turn(call: Call, agent: str, talk: ClientHistory, wanted: ClientRequest) -> Opened:
    """Say it in the conversation that the header names, or in one of its own. Raises
    HttpProblem."""
    named = call.request.headers.get(SESSION_HEADER, "").strip()
    session = parse_session_name(named or call.web.ids.new("api"), call.principal, agent)
    known = await has_members(call.web.store, session)
    earlier = talk.exchange if known else talk.earlier
    if talk.system and not known:
        options = SessionOptions(system_prompt=talk.system)
        receipt = await call.web.door.configure(session, call.principal, options)
        if receipt.status == "refused":
            raise HttpProblem(403, "refused", to_sentence(receipt.reason))
    return await _submit(call, session, Said(talk.message, earlier, wanted))


async def resume_turn(
    call: Call, agent: str, talk: ClientHistory, wanted: ClientRequest
) -> Opened | None:
    """Go on with the turn whose calls these results are for; None where no turn of theirs waits for
    them."""
    for result in talk.results:
        session = await call.web.store.session_of_ask(result.call_id)
        own = session and await call.web.store.may_see(call.principal, session)
        if own and session.partition("/")[0] == agent:
            turn = await _submit(call, session, ToolResults(talk.results, talk.after, wanted))
            return turn if await _was_accepted(call, turn) else None
    return None


async def _was_accepted(call: Call, turn: Opened) -> bool:
    """Whether the calls still waited when the results came in."""
    async with aclosing(call.web.door.follow(turn.session, call.principal, turn.after)) as items:
        async for item in items:
            if isinstance(item, e.Recorded) and getattr(item.event, "inbox_id", 0) == turn.inbox_id:
                return isinstance(item.event, e.ResultsReturned)
    raise AssertionError("following never ends by itself")


async def _submit(call: Call, session: str, body: Said | ToolResults) -> Opened:
    web = call.web
    who = call.principal
    if (size := _count_chars(body)) > TEXT_CHARS:
        said = f"What is said now has {size:,} characters; at most {TEXT_CHARS:,} are taken."
        raise HttpProblem(413, "too_large", said, param="messages")
    address = address_of(who, session.partition("/")[2].rpartition(":")[2])
    sender = call.grant.sender if call.grant else ""
    when: When = "queue" if isinstance(body, Said) else "steer"
    inbound = Inbound(web.ids.new("v1"), address, sender, web.clock.now(), body, session, when=when)
    receipt = await web.door.submit(inbound)
    if receipt.status == "refused":
        raise HttpProblem(403, "refused", to_sentence(receipt.reason))
    await require_session(call, session)
    return Opened(
        session,
        format_session_name(session, who, web.admin.agents[0]),
        receipt.after,
        receipt.inbox_id,
    )


def _count_chars(body: Said | ToolResults) -> int:
    """The characters of what is said now, or of what tools gave: each counts."""
    if isinstance(body, Said):
        return sum(
            len(part.text) for part in body.message.parts if isinstance(part, Text | ToolResult)
        )
    return sum(len(result.text) for result in body.results)


async def follow_turn(call: Call, turn: Opened, answer: TurnAnswer) -> AsyncGenerator[str | End]:
    """The pieces of what is said in the turn, and its end. Raises HttpProblem where it failed.
    Whoever leaves before the end stops the turn, unless their message still waits for the end of
    another."""
    over = mine = False
    try:
        async with aclosing(
            call.web.door.follow(turn.session, call.principal, turn.after)
        ) as items:
            async for item in items:
                mine = mine or _is_event_of(item, turn)
                if not mine:
                    continue
                if isinstance(item, e.Recorded) and answer.has_unknown_calls(item.event):
                    answer.add_calls(await _find_reply(call, item))
                piece = call.web.redact(answer.add(item))
                end = answer.find_end(item) if isinstance(item, e.Recorded) else None
                over = end is not None and not _is_retried(item)
                if isinstance(end, HttpProblem):
                    raise end
                if piece:
                    yield piece
                if end is not None:
                    yield end
                    return
    finally:
        if not over:
            with anyio.CancelScope(shield=True):
                if mine or await _was_admitted(call, turn):
                    await call.web.door.stop(turn.session, call.principal)


async def _was_admitted(call: Call, turn: Opened) -> bool:
    """Whether the message is in the conversation by now, and not behind the turn of another."""
    events = await call.web.store.events(turn.session, turn.after)
    return any(_is_event_of(item, turn) for item in events)


def _is_event_of(item: e.Recorded | Progress, turn: Opened) -> bool:
    return isinstance(item, e.Recorded) and getattr(item.event, "inbox_id", 0) == turn.inbox_id


async def _find_reply(call: Call, handed: e.Recorded) -> e.ModelReplied:
    """The reply whose calls are handed over: the last before that."""
    events = await call.web.store.events(handed.session)
    replies = [
        item.event
        for item in events
        if item.n < handed.n and isinstance(item.event, e.ModelReplied)
    ]
    return replies[-1]


def _is_retried(item: e.Recorded | Progress) -> bool:
    """Whether the turn would go on by itself, though nobody waits for it here."""
    return isinstance(item, e.Recorded) and isinstance(item.event, e.ModelFailed)


async def follow_to_end(call: Call, turn: Opened, answer: TurnAnswer) -> End:
    """Follow the turn to its end, unless the client goes: then it is stopped. Raises
    HttpProblem."""
    found: End | HttpProblem | None = None
    async with anyio.create_task_group() as tasks:

        async def cancel_on_disconnect() -> None:
            while (await call.request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel_on_disconnect)
        try:
            async with aclosing(follow_turn(call, turn, answer)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, End):
                        found = piece
        except HttpProblem as problem:
            found = problem
        tasks.cancel_scope.cancel()
    if found is None:
        raise bad_request("The client has gone, so the turn was stopped.")
    if isinstance(found, HttpProblem):
        raise found
    return found
