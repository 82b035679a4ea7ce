"""EventSub of a Twitch that is only pretended: its WebSocket sessions, subscriptions and messages.

Facts: https://dev.twitch.tv/docs/eventsub/handling-websocket-events/ (messages, close codes, the
30 seconds of a reconnect) and https://dev.twitch.tv/docs/api/reference/#create-eventsub-subscription
(what is refused). What happens while nobody is subscribed is lost: Twitch has no replay.
"""

from __future__ import annotations

import secrets
import uuid

import anyio
import msgspec
from aiohttp import WSMsgType, web  # noqa: TID251 -- loopback
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ...types.clock import Clock
from .chat import CHAT_DELETE, CHAT_MESSAGE, WHISPER, Json, Refusal, User, written
from .tokens import Token

SENT_INBOUND = 4001
UNUSED = 4003
RECONNECT_EXPIRED = 4004
INVALID_RECONNECT = 4007
REASONS = {
    4000: "internal server error",
    4001: "client sent inbound traffic",
    4002: "client failed ping-pong",
    4003: "connection unused",
    4004: "reconnect grace time expired",
    4005: "network timeout",
    4006: "network error",
    4007: "invalid reconnect",
}
MOST_TRANSPORTS = 3
MOST_WAITING = 1000
_NEEDS = {
    CHAT_MESSAGE: ("broadcaster_user_id", "user_id"),
    CHAT_DELETE: ("broadcaster_user_id", "user_id"),
    WHISPER: ("user_id",),
}
_SCOPES = {
    CHAT_MESSAGE: ("user:read:chat",),
    CHAT_DELETE: ("user:read:chat",),
    WHISPER: ("user:read:whispers", "user:manage:whispers"),
}


class Close(msgspec.Struct, frozen=True):
    """The end of a connection; code 0 cuts it without a word."""

    code: int


Outgoing = Json | Close


class Session(msgspec.Struct, kw_only=True):
    """One connection. `used` once it has had a subscription; `stalled`: it stays open and nothing
    comes any more."""

    id: str
    keepalive_s: int
    connected_at: str
    outgoing: MemoryObjectSendStream[Outgoing]
    used: bool = False
    stalled: bool = False

    def about(self, status: str, **more: object) -> Json:
        return {
            "id": self.id,
            "status": status,
            "keepalive_timeout_seconds": self.keepalive_s,
            "reconnect_url": None,
            "connected_at": self.connected_at,
            **more,
        }


class Subscription(msgspec.Struct, kw_only=True):
    id: str
    type: str
    condition: dict[str, str]
    user: User
    session: Session
    created_at: str
    status: str = "enabled"

    def about(self) -> Json:
        return {
            "id": self.id,
            "status": self.status,
            "type": self.type,
            "version": "1",
            "condition": self.condition,
            "transport": {
                "method": "websocket",
                "session_id": self.session.id,
                "connected_at": self.session.connected_at,
            },
            "created_at": self.created_at,
            "cost": 0,
        }


class EventSub:
    """`sessions` are the open connections, oldest first; `connections` counts all there ever were,
    `closed` are the codes with which the server ended some.

    `unused_s`, `grace_s` and `shortest_keepalive_s` are Twitch's; a test that waits for one of them
    makes it shorter. `keeps_session_id`: whether a reconnect keeps the id of the session, which
    Twitch does not promise.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._news = anyio.Event()
        self.sessions: list[Session] = []
        self.subscriptions: list[Subscription] = []
        self.connections = 0
        self.closed: list[int] = []
        self.unused_s = 10.0
        self.grace_s = 30.0
        self.shortest_keepalive_s = 10
        self.keeps_session_id = False
        self._delivered: list[tuple[Subscription, Json]] = []
        self._moves: dict[str, Session] = {}
        self._url = ""

    # ------------------------------------------------------------------ subscriptions

    def subscribe(self, token: Token, wanted: Json, banned: set[str]) -> Subscription:
        """Raises the refusals of Create EventSub Subscription."""
        user = token.user
        if user is None:
            raise Refusal(400, "invalid transport and auth combination")
        type_ = str(wanted.get("type", ""))
        if type_ not in _NEEDS or wanted.get("version") != "1":
            raise Refusal(400, "invalid subscription type and version")
        condition = {key: str(value) for key, value in wanted.get("condition", {}).items()}
        if set(condition) != set(_NEEDS[type_]) or not all(condition.values()):
            raise Refusal(400, "missing or unparseable subscription condition")
        session = self._transport(wanted.get("transport", {}), user)
        barred = condition.get("broadcaster_user_id") in banned
        if not token.allows(*_SCOPES[type_]) or condition["user_id"] != user.id or barred:
            raise Refusal(403, "subscription missing proper authorization")
        for each in self.enabled():
            if (each.type, each.condition, each.session) == (type_, condition, session):
                raise Refusal(409, "subscription already exists")
        made = Subscription(
            id=str(uuid.uuid4()),
            type=type_,
            condition=condition,
            user=user,
            session=session,
            created_at=self._now(),
        )
        self.subscriptions.append(made)
        session.used = True
        self._news.set()
        self._news = anyio.Event()
        return made

    def _transport(self, transport: Json, user: User) -> Session:
        if transport.get("method") != "websocket":
            raise Refusal(400, "invalid transport and auth combination")
        for session in self.sessions:
            if session.id == transport.get("session_id"):
                break
        else:
            raise Refusal(
                400, "websocket transport session does not exist or has already disconnected"
            )
        in_use = {each.session.id for each in self.enabled() if each.user == user} - {session.id}
        if len(in_use) >= MOST_TRANSPORTS:
            raise Refusal(429, "number of websocket transports limit exceeded")
        return session

    def unsubscribe(self, token: Token, id: str) -> None:
        for each in self.subscriptions:
            if each.id == id and each.user == token.user:
                self.subscriptions.remove(each)
                return
        raise Refusal(404, "subscription not found")

    def enabled(self, type: str = "") -> list[Subscription]:
        """Those over which events come."""
        return [
            each
            for each in self.subscriptions
            if each.status == "enabled" and type in ("", each.type)
        ]

    async def subscribed(self, type: str = CHAT_MESSAGE) -> None:
        """Wait until somebody hears of this."""
        while not self.enabled(type):
            await self._news.wait()

    # ------------------------------------------------------------------ what is sent

    def publish(self, type: str, about: dict[str, str], event: Json) -> None:
        """Tell it to every subscription whose condition has these values."""
        for each in self.enabled(type):
            if about.items() <= each.condition.items():
                said = {"subscription": each.about(), "event": event}
                more = {"subscription_type": type, "subscription_version": "1"}
                message = self._message("notification", said, **more)
                self._delivered.append((each, message))
                each.session.outgoing.send_nowait(message)

    def redeliver(self, count: int = 1) -> None:
        """Send the last notifications once more, under the same message_id."""
        for each, message in self._delivered[-count:]:
            if each.status == "enabled":
                each.session.outgoing.send_nowait(message)

    def revoke(self, status: str = "authorization_revoked", channel: str = "") -> None:
        """End all subscriptions, or those of a channel (user id), and say so:
        https://dev.twitch.tv/docs/eventsub/handling-websocket-events/#revocation-message."""
        for each in self.enabled():
            if channel not in ("", each.condition.get("broadcaster_user_id")):
                continue
            each.status = status
            more = {"subscription_type": each.type, "subscription_version": "1"}
            message = self._message("revocation", {"subscription": each.about()}, **more)
            each.session.outgoing.send_nowait(message)

    # ------------------------------------------------------------------ what goes wrong

    def drop(self) -> None:
        """Cut all connections without a word."""
        self.close(0)

    def close(self, code: int) -> None:
        """End all connections with this code."""
        for session in list(self.sessions):
            session.outgoing.send_nowait(Close(code))

    def stall(self) -> None:
        """The connections stay open, and nothing comes over them, not even keepalives."""
        for session in self.sessions:
            session.stalled = True

    def reconnect(self, url: str = "") -> None:
        """Ask everybody to move to another connection; a `url` of a test leads nowhere, or is
        invalid."""
        for session in self.sessions:
            move = secrets.token_hex(8)
            self._moves[move] = session
            where = url or f"{self._url}?reconnect_id={move}"
            said = session.about(
                "reconnecting", keepalive_timeout_seconds=None, reconnect_url=where
            )
            session.outgoing.send_nowait(self._message("session_reconnect", {"session": said}))

    # ------------------------------------------------------------------ connections

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection, until it ends."""
        self._url = f"ws://{request.host}{request.path}"
        self.connections += 1
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        move = request.query.get("reconnect_id")
        old = self._moves.pop(move, None) if move is not None else None
        if move is not None and (old is None or old not in self.sessions):
            await self._end(request, socket, INVALID_RECONNECT)
            return socket
        outgoing, waiting = anyio.create_memory_object_stream[Outgoing](MOST_WAITING)
        session = self._welcomed(request, old, outgoing)
        try:
            async with outgoing, waiting, anyio.create_task_group() as tasks:
                tasks.start_soon(self._write, request, socket, session, waiting)
                tasks.start_soon(self._expire, session, old)
                await self._read(socket, session)
                self._gone(session)
                tasks.cancel_scope.cancel()
        finally:
            self._gone(session)
        return socket

    def _welcomed(
        self,
        request: web.Request,
        old: Session | None,
        outgoing: MemoryObjectSendStream[Outgoing],
    ) -> Session:
        """A session whose first message is its welcome. From here on the subscriptions of the old
        connection are its own; what came before went over the old one."""
        asked = request.query.get("keepalive_timeout_seconds", "10")
        wanted = int(asked) if asked.isdecimal() else 10
        session = Session(
            id=old.id if old is not None and self.keeps_session_id else secrets.token_urlsafe(20),
            keepalive_s=min(max(wanted, self.shortest_keepalive_s), 600),
            connected_at=self._now(),
            outgoing=outgoing,
        )
        self.sessions.append(session)
        if old is not None:
            session.keepalive_s = old.keepalive_s
            session.used = old.used
            for each in self.subscriptions:
                if each.session is old:
                    each.session = session
        outgoing.send_nowait(
            self._message("session_welcome", {"session": session.about("connected")})
        )
        return session

    async def _write(
        self,
        request: web.Request,
        socket: web.WebSocketResponse,
        session: Session,
        waiting: MemoryObjectReceiveStream[Outgoing],
    ) -> None:
        while True:
            message: Outgoing = self._message("session_keepalive", {})
            with anyio.move_on_after(session.keepalive_s):
                message = await waiting.receive()
            if isinstance(message, Close):
                await self._end(request, socket, message.code)
                return
            if not session.stalled:
                await socket.send_str(msgspec.json.encode(message).decode())

    async def _expire(self, session: Session, old: Session | None) -> None:
        """What a client does not do in time has its own code."""
        if old is not None:
            await anyio.sleep(self.grace_s)
            if old in self.sessions:
                old.outgoing.send_nowait(Close(RECONNECT_EXPIRED))
            return
        await anyio.sleep(self.unused_s)
        if not session.used:
            session.outgoing.send_nowait(Close(UNUSED))

    async def _read(self, socket: web.WebSocketResponse, session: Session) -> None:
        async for message in socket:
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                session.outgoing.send_nowait(Close(SENT_INBOUND))

    async def _end(self, request: web.Request, socket: web.WebSocketResponse, code: int) -> None:
        self.closed.append(code)
        if code:
            await socket.close(code=code, message=REASONS[code].encode())
        elif request.transport is not None:
            request.transport.abort()

    def _gone(self, session: Session) -> None:
        self.sessions = [each for each in self.sessions if each is not session]
        for each in self.subscriptions:
            if each.session is session and each.status == "enabled":
                each.status = "websocket_disconnected"

    def _now(self) -> str:
        return written(self._clock.now())

    def _message(self, type: str, payload: Json, **more: str) -> Json:
        metadata = {
            "message_id": str(uuid.uuid4()),
            "message_type": type,
            "message_timestamp": self._now(),
            **more,
        }
        return {"metadata": metadata, "payload": payload}
