"""A WebSocket that one person has open on one conversation: reads frames, writes what a dialect
makes of the events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, Protocol

import anyio
import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from ..store.queries import has_members
from ..types.door import Progress
from ..types.errors import DeskhandError, Refused
from ..types.events import Recorded
from ..types.identity import Body, Command, Inbound, Principal, Receipt, Said, When
from ..types.messages import Message, Text
from ..types.options import SessionOptions
from ..types.people import Grant
from .errors import HttpProblem, error_response, to_sentence
from .names import address_of, parse_session_name
from .ports import Web
from .routing import check_depth
from .sockets import CLOSE_REVOKED, frame_text
from .stream import STUCK_S, Standing

POLL_S = 0.02
CLOSE_RESTART = 1012
NO_CONVERSATION = "There is no such conversation here."


class Asked(msgspec.Struct, frozen=True):
    """One frame that is a JSON object, as its kind and the rest."""

    type: str
    body: dict[str, Any]

    def text(self, name: str) -> str:
        found = self.body.get(name)
        return found if isinstance(found, str) else ""


class Talk:
    """What a dialect may do: send, and act in this person's name."""

    def __init__(self, web: Web, socket: WebSocket, grant: Grant, session: str) -> None:
        self.web = web
        self.grant = grant
        self.session = session
        self._socket, self.begun = socket, anyio.Event()
        self._stuck = anyio.Event()

    @property
    def principal(self) -> Principal:
        return self.grant.principal

    async def send(self, message: dict[str, Any] | msgspec.Struct) -> None:
        gone = False
        with anyio.move_on_after(STUCK_S) as waiting:
            try:
                await self._socket.send_text(msgspec.json.encode(message).decode())
            except (
                WebSocketDisconnect
            ):  # from a task of its own it would come out as a group, which nobody expects
                gone = True
        if gone or waiting.cancelled_caught:
            self._stuck.set()
            await anyio.sleep_forever()  # until it is hung up on

    async def wait_until_stuck(self) -> None:
        await self._stuck.wait()

    async def submit(self, body: Body, when: When = "steer") -> Receipt:
        chat = self.session.partition("/")[2].rpartition(":")[2]
        address = address_of(self.principal, chat)
        ids = self.web.ids
        inbound = Inbound(
            ids.new("ws"),
            address,
            self.grant.sender,
            self.web.clock.now(),
            body,
            self.session,
            when=when,
        )
        return await self._check_receipt(await self.web.door.submit(inbound))

    async def say(self, text: str, when: When = "steer") -> None:
        if not text.strip():
            raise Refused("the message is empty: send `content`")
        await self.submit(Said(Message("user", (Text(text),))), when)

    async def configure(self, **options: Any) -> None:
        await self._check_receipt(
            await self.web.door.configure(self.session, self.principal, SessionOptions(**options))
        )

    async def command(self, name: str) -> None:
        await self.submit(Command(name))

    async def stop(self) -> None:
        await self._check_receipt(await self.web.door.stop(self.session, self.principal))

    async def _check_receipt(self, receipt: Receipt) -> Receipt:
        if receipt.status == "refused":
            raise Refused(receipt.reason)
        self.begun.set()
        return receipt


class Dialect(Protocol):
    """How one kind of client talks."""

    def translate(self, item: Recorded | Progress) -> list[dict[str, Any]]: ...

    def replay(self, log: list[Recorded]) -> None:
        """What happened before the client came; it is not sent."""
        ...

    async def add_details(self, message: dict[str, Any], talk: Talk) -> dict[str, Any]:
        """The message with what must be looked up for it."""
        ...

    async def handle_frame(self, asked: Asked, talk: Talk) -> None:
        """Do what a frame wants. Raises Refused with the reason where that cannot be."""
        ...

    def parse_text(self, text: str) -> Asked:
        """What a frame that is no JSON means. Raises Refused."""
        ...


async def serve_conversation(
    web: Web,
    socket: WebSocket,
    grant: Grant,
    dialect: Callable[[Web, str], Dialect],
    *,
    begins: bool = True,
) -> None:
    """Until the client goes, the credential is void, or the service ends. `begins`: a conversation
    that is not there begins with its first message; otherwise the client is told so, and hung up
    on."""
    try:
        session = await _resolve_session(web, socket, grant.principal)
    except HttpProblem as problem:
        await socket.send_denial_response(error_response(problem, socket.state.request_id))
        return
    await socket.accept()
    talk, speaks = Talk(web, socket, grant, session), dialect(web, session)
    if await _is_visible(web, grant.principal, session):
        talk.begun.set()
    elif not begins and not await web.store.list_waiting(session):
        await talk.send({"type": "error", "message": NO_CONVERSATION})
        await socket.close()
        return
    log = await web.store.events(session) if talk.begun.is_set() else []
    speaks.replay(log)
    await run_while_valid(web, socket, talk, lambda: _handle_frames(socket, talk, speaks, len(log)))


async def _resolve_session(web: Web, socket: WebSocket, principal: Principal) -> str:
    """The conversation of the address: one's own, begun or not, or one that one may see. Raises
    HttpProblem."""
    session = parse_session_name(str(socket.path_params["name"]), principal, web.admin.agents[0])
    known = await has_members(web.store, session)
    own = session == parse_session_name(
        session.partition("/")[2].rpartition(":")[2], principal, web.admin.agents[0]
    )
    if (known or not own) and not await web.store.may_see(principal, session):
        await web.people.add_audit_note(principal, "conversation refused", session)
        raise HttpProblem(404, "not_found", NO_CONVERSATION)
    return session


async def _is_visible(web: Web, principal: Principal, session: str) -> bool:
    return await has_members(web.store, session) and await web.store.may_see(principal, session)


async def run_while_valid(
    web: Web, socket: WebSocket, talk: Talk, work: Callable[[], Awaitable[None]]
) -> None:
    """Run it while the credential holds and the service stays, and close with the code that says
    why."""
    standing = Standing(socket.state.credential, socket.state.guesses)
    code = 1000
    async with anyio.create_task_group() as tasks:

        async def close_when_invalid() -> None:
            nonlocal code
            await standing.wait_until_invalid(web)
            code = CLOSE_REVOKED if not await standing.is_valid() else CLOSE_RESTART
            tasks.cancel_scope.cancel()

        async def close_when_stuck() -> None:
            nonlocal code
            await talk.wait_until_stuck()
            code = CLOSE_RESTART
            tasks.cancel_scope.cancel()

        tasks.start_soon(close_when_invalid)
        tasks.start_soon(close_when_stuck)
        with suppress(WebSocketDisconnect):
            await work()
        tasks.cancel_scope.cancel()
    with anyio.move_on_after(1), suppress(RuntimeError, WebSocketDisconnect):
        await socket.close(code)


async def run_until_disconnect(
    socket: WebSocket, tell: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Run `tell` until the client goes; what it says is not listened to."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
        tasks.cancel_scope.cancel()


async def _handle_frames(socket: WebSocket, talk: Talk, dialect: Dialect, after: int) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send_events, talk, dialect, after)
        while True:
            try:
                frame = await socket.receive()
                if frame["type"] == "websocket.disconnect":
                    break
                await dialect.handle_frame(_parse_frame(frame_text(dict(frame)), dialect), talk)
            except UnicodeDecodeError:
                await talk.send({"type": "error", "message": "That frame is no text."})
            except (DeskhandError, HttpProblem) as error:
                await talk.send({"type": "error", "message": to_sentence(str(error))})
        tasks.cancel_scope.cancel()


def _parse_frame(text: str, dialect: Dialect) -> Asked:
    try:
        check_depth(text.encode("utf-8", "replace"))
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return dialect.parse_text(text)
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        return dialect.parse_text(text)
    return Asked(found["type"], found)


async def _send_events(talk: Talk, dialect: Dialect, after: int) -> None:
    await talk.begun.wait()
    while not await _is_visible(talk.web, talk.principal, talk.session):  # noqa: ASYNC110 -- the store tells
        await anyio.sleep(POLL_S)
    try:
        async with aclosing(talk.web.door.follow(talk.session, talk.principal, after)) as items:
            async for item in items:
                for message in dialect.translate(item):
                    await talk.send(await dialect.add_details(message, talk))
    except DeskhandError as error:
        await talk.send({"type": "error", "message": to_sentence(str(error))})
