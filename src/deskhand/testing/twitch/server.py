"""Twitch on loopback: Helix, the token endpoints and EventSub over WebSocket, with people in the
chat who write, reply, whisper and have their messages deleted.

What it answers is what https://dev.twitch.tv/docs/api/reference/ and
https://dev.twitch.tv/docs/eventsub/ say; twitchio and twitchAPI are its judges in the tests. Only
what a bot in a chat needs is there. Nobody's consent page is shown: `tokens.grant()` gives what
comes of it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web  # noqa: TID251 -- loopback

from ...config.clock import SystemClock
from ...types.clock import Clock
from .chat import Chat, Json, Post, Refusal, Whisper
from .eventsub import EventSub
from .helix import Helix
from .tokens import Tokens

POINTS = 800
_ERRORS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class PlannedFault(msgspec.Struct):
    """What is to go wrong at the next `times` calls, `after` so many that go well. `then` is what
    happens once the work is done: the connection is cut, or nothing is ever said; without it the
    work is not done and `status` is answered."""

    call: str
    times: int = 1
    status: int = 500
    message: str = ""
    retry_after: float = 0
    then: str = ""
    after: int = 0


class TwitchServer:
    """One app, the account `bot` that it speaks as, and the `channel` whose chat it is in.

    `base_url`, `auth_url` and `eventsub_url` are what clients are given; `token` is what the bot
    has consented to. `calls` are the ("POST chat/messages", parameters) that clients asked for, in
    order. The sockets are in `events`, the tokens in `tokens`, all that was said in `chat`, and
    `helix.phone_verified` says whether the bot may whisper.
    """

    def __init__(
        self, bot: str = "desk_bot", channel: str = "olga", clock: Clock | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self.events = EventSub(self._clock)
        self.chat = Chat(self.events.publish, self._clock)
        self.bot = self.chat.person(bot, "4200")
        self.channel = self.chat.person(channel, "100")
        self.tokens = Tokens("test-client", "test-secret")
        self.token = self.tokens.grant(self.bot)
        self.helix = Helix(self.chat, self.events, self._clock)
        self.calls: list[tuple[str, Json]] = []
        self._faults: list[PlannedFault] = []
        self._runner: web.AppRunner | None = None

    # ------------------------------------------------------------------ running

    async def __aenter__(self) -> TwitchServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/helix/{path:.+}", self._call_helix)
        app.router.add_route("*", "/oauth2/{path:.+}", self._call_oauth)
        app.router.add_get("/ws", self._connect)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Nobody answers any more, and the sockets are cut; `start(server.port)` brings it back
        with all that it knows. Who was connected has to connect and subscribe again."""
        assert self._runner is not None
        self.events.drop()
        await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/helix/"

    @property
    def auth_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/oauth2/"

    @property
    def eventsub_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    # ------------------------------------------------------------------ what people do

    def says(
        self,
        login: str,
        text: str,
        *,
        reply_to: Post | None = None,
        channel: str = "",
        **extra: object,
    ) -> Post:
        """Somebody writes in the chat of a channel; `extra` are further fields of the event. Twitch
        puts the name of whom they answer before a reply."""
        room = self.chat.person(channel) if channel else self.channel
        if reply_to is not None:
            text = f"@{reply_to.sender.name} {text}"
        return self.chat.post(self.chat.person(login), room, text, parent=reply_to, extra=extra)

    def whispers(self, login: str, text: str, to: str = "") -> Whisper:
        """Somebody whispers to the bot, or to who is named."""
        whom = self.chat.person(to) if to else self.bot
        return self.chat.whisper(self.chat.person(login), whom, text)

    def deletes(self, post: Post) -> None:
        """A moderator deletes a message."""
        self.chat.delete(post)

    def bans(self, channel: str = "") -> None:
        """The bot is banned from a channel's chat: it hears nothing more and may not talk."""
        room = self.chat.person(channel) if channel else self.channel
        self.chat.banned.add(room.id)
        self.events.revoke("chat_user_banned", room.id)

    def said(self, channel: str = "") -> list[str]:
        """What the bot has said in a channel and nobody has deleted."""
        room = self.chat.person(channel) if channel else self.channel
        return [post.text for post in self.chat.said(self.bot, room) if not post.removed]

    def whispered(self, login: str) -> list[str]:
        """What the bot has whispered to somebody."""
        whom = self.chat.person(login)
        mine = [each for each in self.chat.whispers if each.sender == self.bot]
        return [each.text for each in mine if each.to == whom]

    # ------------------------------------------------------------------ what goes wrong

    def fail(
        self,
        call: str,
        status: int,
        message: str = "",
        *,
        retry_after: float = 0,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Refuse the next calls, `after` so many that work. `call` is "POST chat/messages",
        "POST oauth2/token", or "GET ws" for connecting to EventSub. 429 with `retry_after` seconds
        is what a flood gets."""
        self._faults.append(
            PlannedFault(call, times, status, message, retry_after=retry_after, after=after)
        )

    def lose(self, call: str, times: int = 1) -> None:
        """Do the next calls and cut the connection instead of answering."""
        self._faults.append(PlannedFault(call, times, then="cut"))

    def hang(self, call: str, times: int = 1) -> None:
        """Do the next calls and never answer."""
        self._faults.append(PlannedFault(call, times, then="hang"))

    def fails_next(self, call: str) -> bool:
        """Whether something is planned that has not happened yet."""
        return any(each.call == call and each.times > 0 for each in self._faults)

    def drop_message(self, code: str = "msg_rejected", message: str = "Rejected.") -> None:
        """Answer the next chat message with 200 and do not send it, as AutoMod does."""
        self.helix.drops.append({"code": code, "message": message})

    # ------------------------------------------------------------------ HTTP

    async def _call_helix(self, request: web.Request) -> web.StreamResponse:
        call = f"{request.method} {request.match_info['path']}"
        response = await self._call(request, call, lambda: self._helix(request, call))
        if "Ratelimit-Reset" not in response.headers:
            response.headers.update(self._limits(POINTS - 1, 60))
        return response

    async def _helix(self, request: web.Request, call: str) -> web.Response:
        token = self.tokens.of_helix(request.headers)
        answer = self.helix.answer(call, token, await _params(request))
        if answer.body is None:
            return web.Response(status=answer.status)
        return web.json_response(answer.body, status=answer.status)

    async def _call_oauth(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        call = f"{request.method} oauth2/{path}"
        return await self._call(request, call, lambda: self._oauth(request, call))

    async def _oauth(self, request: web.Request, call: str) -> web.Response:
        params = {key: str(value) for key, value in (await _params(request)).items()}
        match call:
            case "GET oauth2/validate":
                return web.json_response(self.tokens.validate(request.headers))
            case "POST oauth2/token":
                return web.json_response(self.tokens.issue(params))
            case "POST oauth2/revoke":
                self.tokens.give_back(params)
                return web.Response()
            case _:
                raise Refusal(404, "not found")

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        return await self._call(request, "GET ws", lambda: self.events.serve(request))

    async def _call(
        self,
        request: web.Request,
        call: str,
        work: Callable[[], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Do the work of a call and let happen what is planned for it."""
        self.calls.append((call, await _params(request)))
        fault = self._next_fault(call)
        if fault is not None and not fault.then:
            return self._refused(Refusal(fault.status, fault.message, fault.retry_after))
        try:
            response = await work()
        except Refusal as refusal:
            return self._refused(refusal)
        if fault is not None and fault.then == "hang":
            await asyncio.Event().wait()
        if fault is not None and request.transport is not None:
            request.transport.abort()
        return response

    def _next_fault(self, call: str) -> PlannedFault | None:
        for fault in self._faults:
            if fault.call == call and fault.times > 0:
                if fault.after:
                    fault.after -= 1
                    return None
                fault.times -= 1
                return fault
        return None

    def _refused(self, refusal: Refusal) -> web.Response:
        status = refusal.status
        body = {
            "error": _ERRORS.get(status, "Error"),
            "status": status,
            "message": refusal.message,
        }
        headers = self._limits(0, refusal.retry_after) if status == 429 else {}
        return web.json_response(body, status=status, headers=headers)

    def _limits(self, remaining: int, reset_s: float) -> dict[str, str]:
        """https://dev.twitch.tv/docs/api/guide/#twitch-rate-limits: the reset is a moment, in
        seconds of the epoch."""
        return {
            "Ratelimit-Limit": str(POINTS),
            "Ratelimit-Remaining": str(remaining),
            "Ratelimit-Reset": str(math.ceil(self._clock.now() + reset_s)),
        }


async def _params(request: web.Request) -> Json:
    """The parameters as clients may send them: in the address, as JSON, as a form."""
    params: Json = {}
    for key in request.query:
        values = request.query.getall(key)
        params[key] = values[0] if len(values) == 1 else values
    if request.content_type == "application/json":
        body = await request.read()
        if body:
            params |= msgspec.json.decode(body)
    elif request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        params |= {key: str(value) for key, value in (await request.post()).items()}
    return params
