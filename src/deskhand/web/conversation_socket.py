"""A WebSocket of one person on one conversation: receives frames and sends what happens there."""

from __future__ import annotations

import time
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
from .protocols import Web
from .routing import check_depth
from .sockets import CLOSE_REVOKED, frame_text
from .stream import STUCK_S, Standing

POLL_S = 0.02
CLOSE_RESTART = 1012
NO_CONVERSATION = "There is no such conversation here."


class ClientFrame(msgspec.Struct, frozen=True):
    """A frame from the client: its type and the whole JSON object."""

    type: str
    body: dict[str, Any]

    def text(self, name: str) -> str:
        """The string in this field, or '' if there is none."""
        found = self.body.get(name)
        return found if isinstance(found, str) else ""


class DialectActions:
    """Lets a dialect send to the client, and act in the name of the person.

    Every method that acts raises Refused with the reason if the action is refused.
    """

    def __init__(self, web: Web, socket: WebSocket, grant: Grant, session: str) -> None:
        self.web = web
        self.grant = grant
        self.session = session
        self._socket = socket
        self.begun = anyio.Event()
        """Set when the conversation exists."""
        self._gone = anyio.Event()
        self._sending = 0
        self._sending_since = 0.0

    @property
    def principal(self) -> Principal:
        return self.grant.principal

    async def send(self, message: dict[str, Any] | msgspec.Struct) -> None:
        """Send one frame. If the client is gone or does not read for STUCK_S, waits until the
        connection is closed."""
        if not self._sending:
            self._sending_since = time.monotonic()
        self._sending += 1
        try:
            await self._socket.send_text(msgspec.json.encode(message).decode())
        except WebSocketDisconnect:  # raised from this task, it would arrive as a group
            self._gone.set()
            await anyio.sleep_forever()  # `run_while_valid` cancels this
        finally:
            self._sending -= 1

    async def wait_until_stuck(self) -> None:
        while not self._gone.is_set() and not self._is_stuck():
            with anyio.move_on_after(STUCK_S / 2):  # a scope for each frame would cost more than it
                await self._gone.wait()

    def _is_stuck(self) -> bool:
        return self._sending > 0 and time.monotonic() - self._sending_since > STUCK_S

    async def submit(self, body: Body, when: When = "steer") -> Receipt:
        chat = self.session.partition("/")[2].rpartition(":")[2]
        address = address_of(self.principal, chat)
        ids = self.web.ids
        inbound = Inbound(
            external_id=ids.new("ws"),
            address=address,
            sender=self.grant.sender,
            at=self.web.clock.now(),
            body=body,
            session=self.session,
            when=when,
        )
        return await self._check_receipt(await self.web.door.submit(inbound))

    async def say(self, text: str, when: When = "steer") -> None:
        if not text.strip():
            raise Refused("the message is empty: send `content`")
        await self.submit(Said(Message("user", (Text(text),))), when)

    async def configure(self, **options: Any) -> None:
        wanted = SessionOptions(**options)
        receipt = await self.web.door.configure(self.session, self.principal, wanted)
        await self._check_receipt(receipt)

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
    """The frames of one kind of client."""

    def translate(self, item: Recorded | Progress) -> list[dict[str, Any]]:
        """The frames that the client is sent for this item."""
        ...

    def replay(self, log: list[Recorded]) -> None:
        """Learn what happened before the client connected. Nothing of it is sent."""
        ...

    async def add_details(self, message: dict[str, Any], talk: DialectActions) -> dict[str, Any]:
        """The frame with the fields that have to be looked up for it."""
        ...

    async def handle_frame(self, frame: ClientFrame, talk: DialectActions) -> None:
        """Do what a frame asks for. Raises Refused with the reason if that is not possible."""
        ...

    def parse_text(self, text: str) -> ClientFrame:
        """What a frame means that is not a JSON object with a type. Raises Refused."""
        ...


async def serve_conversation(
    web: Web,
    socket: WebSocket,
    grant: Grant,
    dialect: Callable[[Web, str], Dialect],
    *,
    begins: bool = True,
) -> None:
    """Serve a client until it disconnects, its credential expires, or the service stops.

    `begins`: a conversation that does not exist yet starts with the first message. Otherwise the
    client gets an error, and the connection is closed.
    """
    try:
        session = await _resolve_session(web, socket, grant.principal)
    except HttpProblem as problem:
        await socket.send_denial_response(error_response(problem, socket.state.request_id))
        return
    await socket.accept()

    talk = DialectActions(web, socket, grant, session)
    speaks = dialect(web, session)
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
    """The session that the address names: one of the person's own, or one that they may see. Raises
    HttpProblem."""
    agent = web.admin.agents[0]
    session = parse_session_name(str(socket.path_params["name"]), principal, agent)
    known = await has_members(web.store, session)
    chat = session.partition("/")[2].rpartition(":")[2]
    own = session == parse_session_name(chat, principal, agent)
    if (known or not own) and not await web.store.may_see(principal, session):
        await web.people.add_audit_note(principal, "conversation refused", session)
        raise HttpProblem(404, "not_found", NO_CONVERSATION)
    return session


async def _is_visible(web: Web, principal: Principal, session: str) -> bool:
    return await has_members(web.store, session) and await web.store.may_see(principal, session)


async def run_while_valid(
    web: Web, socket: WebSocket, talk: DialectActions, work: Callable[[], Awaitable[None]]
) -> None:
    """Run `work` until it ends, the credential expires, the client stops reading, or the service
    stops. Then close the WebSocket with the code that says why."""
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
    """Run `tell` until the client disconnects. Frames from the client are ignored."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
        tasks.cancel_scope.cancel()


async def _handle_frames(
    socket: WebSocket, talk: DialectActions, dialect: Dialect, after: int
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send_events, talk, dialect, after)
        while True:
            try:
                frame = await socket.receive()
                if frame["type"] == "websocket.disconnect":
                    break
                await dialect.handle_frame(_parse_frame(frame_text(dict(frame)), dialect), talk)
            except UnicodeDecodeError:
                await talk.send({"type": "error", "message": "The frame is not valid UTF-8 text."})
            except (DeskhandError, HttpProblem) as error:
                await talk.send({"type": "error", "message": to_sentence(str(error))})
        tasks.cancel_scope.cancel()


def _parse_frame(text: str, dialect: Dialect) -> ClientFrame:
    try:
        check_depth(text.encode("utf-8", "replace"))
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return dialect.parse_text(text)
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        return dialect.parse_text(text)
    return ClientFrame(found["type"], found)


async def _send_events(talk: DialectActions, dialect: Dialect, after: int) -> None:
    await talk.begun.wait()
    while not await _is_visible(talk.web, talk.principal, talk.session):  # noqa: ASYNC110 -- the store tells
        await anyio.sleep(POLL_S)
    try:
        following = talk.web.door.follow_in_batches(talk.session, talk.principal, after)
        async with aclosing(following) as batches:
            async for batch in batches:
                for item in batch:
                    for message in dialect.translate(item):
                        await talk.send(await dialect.add_details(message, talk))
    except DeskhandError as error:
        await talk.send({"type": "error", "message": to_sentence(str(error))})
