"""The gateway of a Discord that is only pretended: sessions, and the sockets that they are read
from.

Operations and close codes are those of
https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway, the order of things is
that of https://docs.discord.com/developers/events/gateway#connections.
"""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections import deque
from collections.abc import Callable

import anyio
import msgspec
from aiohttp import WSMsgType, web  # noqa: TID251 -- loopback

from .guild import Guild
from .state import GUILD_MEMBERS, GUILD_PRESENCES, GUILDS, MESSAGE_CONTENT, Event, Json

PRIVILEGED = GUILD_MEMBERS | GUILD_PRESENCES | MESSAGE_CONTENT
KNOWN_INTENTS = (1 << 26) - 1
DISPATCH, HEARTBEAT, IDENTIFY, RESUME = 0, 1, 2, 6
RECONNECT, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 7, 9, 10, 11
_NO_ANSWER = frozenset({3, 4, 8, 31, 43})
"""Presence, voice state, requests for members and sounds: taken, and not answered."""


class Closing(Exception):
    """The gateway ends the connection with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Session:
    """What one IDENTIFY began. It lives on without a socket, and keeps all that it told, so that
    RESUME can have it told again."""

    def __init__(self, id: str, intents: int) -> None:
        self.id = id
        self.intents = intents
        self.told: list[bytes] = []
        self.connection: Connection | None = None

    def dispatch(self, name: str, data: Json) -> None:
        frame = {"op": DISPATCH, "s": len(self.told) + 1, "t": name, "d": data}
        self.told.append(msgspec.json.encode(frame))
        if self.connection is not None:
            self.connection.send(self.told[-1])

    def hears(self, event: Event) -> bool:
        return not event.intent or bool(event.intent & self.intents)


class Connection:
    """One socket. What is sent waits in `frames` until the writer has taken it."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport) -> None:
        self.socket = socket
        self.session: Session | None = None
        self.frames: deque[bytes | Closing] = deque()
        self.silent = False
        self._transport = transport
        self._news = asyncio.Event()

    def send(self, frame: bytes | Closing) -> None:
        if self.silent:
            return
        self.frames.append(frame)
        self._news.set()

    def say(self, op: int, data: object = None) -> None:
        self.send(msgspec.json.encode({"op": op, "d": data, "s": None, "t": None}))

    def cut(self) -> None:
        self.leave()
        self._transport.abort()

    def leave(self) -> None:
        if self.session is not None and self.session.connection is self:
            self.session.connection = None

    async def write(self, *, compressed: bool) -> None:
        """Send what there is to send, until the socket is closed."""
        packer = zlib.compressobj()
        while True:
            await self._news.wait()
            self._news.clear()
            while self.frames:
                frame = self.frames.popleft()
                if isinstance(frame, Closing):
                    self.leave()
                    await self.socket.close(code=frame.code, message=frame.reason.encode())
                    return
                try:
                    if compressed:
                        packed = packer.compress(frame) + packer.flush(zlib.Z_SYNC_FLUSH)
                        await self.socket.send_bytes(packed)
                    else:
                        await self.socket.send_str(frame.decode())
                except ConnectionError:
                    return


class Gateway:
    """All sessions of the bot. `identified` are the IDENTIFYs and `resumed` the RESUMEs that came,
    `heartbeats` counts; `paths` are the addresses that were connected to. Where `acks` is False,
    heartbeats are not acknowledged."""

    def __init__(self, guild: Guild, token: str) -> None:
        self.guild = guild
        self.token = token
        self.approved = PRIVILEGED
        self.heartbeat_s = 41.25
        self.url = ""
        self.acks = True
        self.identified: list[Json] = []
        self.resumed: list[Json] = []
        self.heartbeats = 0
        self.paths: list[str] = []
        self.sessions: dict[str, Session] = {}
        self.connections: list[Connection] = []
        self._numbers = itertools.count(1)
        self._ops: dict[int, Callable[[Connection, Json], None]] = {
            IDENTIFY: self._identify,
            RESUME: self._resume,
        }
        guild.emit = self.tell

    # ------------------------------------------------------------------ what goes wrong

    def drop(self, code: int = 0) -> None:
        """The sockets go: cut, or closed with a code. Sessions can be resumed."""
        for connection in list(self.connections):
            if code:
                connection.send(Closing(code, "Closed."))
            else:
                connection.cut()

    def fall_silent(self) -> None:
        """The sockets that there are stay open, and nothing comes from them any more."""
        for connection in self.connections:
            connection.silent = True

    def ask_to_reconnect(self) -> None:
        for connection in self.connections:
            connection.say(RECONNECT)

    def ask_for_heartbeat(self) -> None:
        for connection in self.connections:
            connection.say(HEARTBEAT)

    def invalidate(self, *, resumable: bool = False) -> None:
        """INVALID_SESSION. Those that are not resumable are forgotten, with all that they told."""
        for connection in self.connections:
            connection.say(INVALID_SESSION, resumable)
            connection.leave()
        if not resumable:
            self.forget()

    def forget(self) -> None:
        """A RESUME gets INVALID_SESSION from now on: what was told meanwhile is lost."""
        self.sessions.clear()

    # ------------------------------------------------------------------ what is told

    def tell(self, event: Event) -> None:
        for session in self.sessions.values():
            if session.hears(event):
                full = session.intents & MESSAGE_CONTENT
                session.dispatch(event.name, event.data if full else event.bare)

    # ------------------------------------------------------------------ sockets

    async def connect(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=4096, compress=False)
        await socket.prepare(request)
        assert isinstance(request.transport, asyncio.Transport)
        connection = Connection(socket, request.transport)
        self.connections.append(connection)
        self.paths.append(request.path_qs)
        compressed = request.query.get("compress") == "zlib-stream"
        try:
            async with anyio.create_task_group() as tasks:

                async def write() -> None:
                    await connection.write(compressed=compressed)
                    tasks.cancel_scope.cancel()

                tasks.start_soon(write)
                if request.query.get("v") not in ("9", "10"):
                    connection.send(Closing(4012, "Invalid API version."))
                connection.say(HELLO, {"heartbeat_interval": round(self.heartbeat_s * 1000)})
                await self._read(connection)
                tasks.cancel_scope.cancel()
        finally:
            connection.leave()
            self.connections.remove(connection)
        return socket

    async def _read(self, connection: Connection) -> None:
        """Until it is closed. Who closes with 1000 or 1001 ends the session:
        https://docs.discord.com/developers/events/gateway#disconnecting"""
        while True:
            try:
                message = await connection.socket.receive(timeout=1.5 * self.heartbeat_s)
            except TimeoutError:
                connection.send(Closing(4009, "Session timed out."))
                await anyio.sleep_forever()
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                ended = message.type is WSMsgType.CLOSE and message.data in (1000, 1001)
                if ended and connection.session is not None:
                    self.sessions.pop(connection.session.id, None)
                return
            try:
                self._take(connection, message.data)
            except Closing as closing:
                connection.send(closing)
                await anyio.sleep_forever()

    def _take(self, connection: Connection, text: str | bytes) -> None:
        try:
            frame = msgspec.json.decode(text)
            op = int(frame["op"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise Closing(4002, "Error while decoding payload.") from error
        if op == HEARTBEAT:
            self.heartbeats += 1
            if self.acks:
                connection.say(HEARTBEAT_ACK)
        elif op in self._ops:
            self._ops[op](connection, frame["d"])
        elif op not in _NO_ANSWER:
            raise Closing(4001, "Unknown opcode.")
        elif connection.session is None:
            raise Closing(4003, "Not authenticated.")

    def _identify(self, connection: Connection, data: Json) -> None:
        if connection.session is not None:
            raise Closing(4005, "Already authenticated.")
        if data.get("token") != self.token:
            raise Closing(4004, "Authentication failed.")
        intents = data.get("intents")
        if not isinstance(intents, int) or intents & ~KNOWN_INTENTS:
            raise Closing(4013, "Invalid intent(s).")
        if intents & PRIVILEGED & ~self.approved:
            raise Closing(4014, "Disallowed intent(s).")
        if "properties" not in data:
            raise Closing(4002, "Error while decoding payload.")
        shard = data.get("shard", [0, 1])
        if not 0 <= shard[0] < shard[1]:
            raise Closing(4010, "Invalid shard.")
        self.identified.append(data)
        session = Session(f"session-{next(self._numbers)}", intents)
        self.sessions[session.id] = session
        self._attach(connection, session)
        guild = self.guild
        ready = {
            "v": 10,
            "user": {**guild.bot, "verified": True, "mfa_enabled": False, "email": None},
            "guilds": [{"id": str(guild.id), "unavailable": True}],
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": f"{self.url}/resume",
            "shard": shard,
            "private_channels": [],
            "relationships": [],
            "presences": [],
            "guild_join_requests": [],
            "user_settings": {},
            "geo_ordered_rtc_regions": [],
            "_trace": [],
            "application": {"id": guild.bot["id"], "flags": app_flags(self.approved)},
        }
        session.dispatch("READY", ready)
        if intents & GUILDS:
            session.dispatch("GUILD_CREATE", guild.shown_guild())

    def _resume(self, connection: Connection, data: Json) -> None:
        if connection.session is not None:
            raise Closing(4005, "Already authenticated.")
        if data.get("token") != self.token:
            raise Closing(4004, "Authentication failed.")
        self.resumed.append(data)
        session = self.sessions.get(str(data.get("session_id")))
        if session is None:
            connection.say(INVALID_SESSION, False)
            return
        seen = data.get("seq")
        if not isinstance(seen, int) or not 0 <= seen <= len(session.told):
            raise Closing(4007, "Invalid seq.")
        missed = session.told[seen:]
        self._attach(connection, session)
        for frame in missed:
            connection.send(frame)
        session.dispatch("RESUMED", {"_trace": []})

    def _attach(self, connection: Connection, session: Session) -> None:
        """A session has one socket: a later one takes it over."""
        if session.connection is not None:
            session.connection.cut()
        connection.session = session
        session.connection = connection


def app_flags(approved: int) -> int:
    """https://docs.discord.com/developers/resources/application#application-object-application-flags:
    of an app in fewer than a hundred guilds."""
    flags = 0
    for intent, bit in ((GUILD_PRESENCES, 13), (GUILD_MEMBERS, 15), (MESSAGE_CONTENT, 19)):
        flags |= 1 << bit if approved & intent else 0
    return flags
