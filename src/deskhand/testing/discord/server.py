"""Discord on loopback: a REST API, a gateway and a CDN that real clients accept, with people in it
who write, press and send files.

What it answers is what https://docs.discord.com/developers says of version 10; discord.py and
hikari are its judges in the tests. There is one guild and one shard; `compress=zstd-stream` is
answered uncompressed.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec
from aiohttp import BodyPartReader, web  # noqa: TID251 -- loopback

from ...config.clock import SystemClock
from .body import Call
from .gateway import Gateway
from .guild import Guild
from .methods import METHODS
from .state import Json, Refusal

API = "/api/v10"
PLENTY = (50, 1.0)
"""Requests in so many seconds where no `limits` are set: more than any test makes."""
UNCOUNTED = ("answer_interaction", "attachment")
"""No rate limit is told of these."""
UNAUTHORIZED = Refusal(401, 0, "401: Unauthorized")


class PlannedFault(msgspec.Struct):
    """What is to go wrong at the next `times` calls of a method, `after` so many that go well.
    `then` is what happens once the work is done: the connection is cut, or nothing is ever said;
    without it the work is not done, and `status` is answered. With `retry_after` that is a rate
    limit; its `scope` is user, shared, global, or cloudflare."""

    method: str
    times: int = 1
    status: int = 500
    code: int = 0
    retry_after: float = 0.0
    scope: str = "user"
    then: str = ""
    after: int = 0


class Bucket(msgspec.Struct):
    """How many requests are left until a time on the loop's clock."""

    limit: int
    left: int
    until: float


class DiscordServer:
    """One bot's account. `async with` it; `api_url` is what stands for https://discord.com/api/v10,
    `gateway_url` for wss://gateway.discord.gg.

    `calls` are the (method, body or query) that clients asked for, in order, by the names that
    `METHODS` has, and `gateway`, `gateway_bot`, `connect`, `attachment`. What people do is in
    `guild`, the sockets are in `gateway`. `limits` are real rate limits, by method: so many
    requests in so many seconds, of each channel.
    """

    def __init__(self, bot: int = 4200, username: str = "desk_bot") -> None:
        self.token = f"{base64.b64encode(str(bot).encode()).decode().rstrip('=')}.test.token"
        self.guild = Guild(bot, username)
        self.gateway = Gateway(self.guild, self.token)
        self.calls: list[tuple[str, Json]] = []
        self.limits: dict[str, tuple[int, float]] = {}
        self.limited: list[str] = []
        self.starts_left = 1000
        self.port = 0
        self._buckets: dict[str, Bucket] = {}
        self._faults: list[PlannedFault] = []
        self._clock = SystemClock()
        self._runner: web.AppRunner | None = None

    # ------------------------------------------------------------------ running

    async def __aenter__(self) -> DiscordServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=100 * 2**20)
        for name, (verb, path, _) in METHODS.items():
            app.router.add_route(verb, API + path, self._call, name=name)
        app.router.add_get(f"{API}/gateway", self._call, name="gateway")
        app.router.add_get(f"{API}/gateway/bot", self._call, name="gateway_bot")
        app.router.add_get("/attachments/{channel}/{file}/{name}", self._call, name="attachment")
        for path in ("/gateway", "/gateway/", "/gateway/resume", "/gateway/resume/"):
            app.router.add_get(path, self._connect)
        app.router.add_route("*", "/{rest:.*}", _unknown)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self.guild.cdn = f"http://127.0.0.1:{self.port}"
        self.gateway.url = self.gateway_url

    async def stop(self) -> None:
        """Nobody answers any more; `start(server.port)` brings it back with all that it knows,
        sessions too."""
        assert self._runner is not None
        self.gateway.drop()
        await self._runner.cleanup()

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}{API}"

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/gateway"

    # ------------------------------------------------------------------ what goes wrong

    def fail(
        self, method: str, status: int, code: int = 0, *, times: int = 1, after: int = 0
    ) -> None:
        """Refuse the next calls, `after` so many that work."""
        self._faults.append(PlannedFault(method, times, status, code, after=after))

    def flood(
        self, method: str, retry_after: float, *, scope: str = "user", times: int = 1
    ) -> None:
        """Answer the next calls with 429. `scope` is user, shared or global; cloudflare is the ban
        that comes of too many errors, as HTML and without a word of Discord's own."""
        self._faults.append(PlannedFault(method, times, 429, retry_after=retry_after, scope=scope))

    def lose(self, method: str, times: int = 1) -> None:
        """Do the next calls and cut the connection instead of answering."""
        self._faults.append(PlannedFault(method, times, then="cut"))

    def hang(self, method: str, times: int = 1) -> None:
        """Do the next calls and never answer."""
        self._faults.append(PlannedFault(method, times, then="hang"))

    def fails_next(self, method: str) -> bool:
        """Whether something is planned that has not happened yet."""
        return any(each.method == method and each.times > 0 for each in self._faults)

    def revoke(self) -> None:
        """The token was reset: nobody has the new one, and sockets are closed with 4004."""
        self.token = self.gateway.token = self.token + ".reset"
        self.gateway.drop(4004)
        self.gateway.forget()

    # ------------------------------------------------------------------ HTTP

    async def _call(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.route.name or ""
        headers: dict[str, str] = {}
        try:
            self._authorise(name, request)
            body, files = await _body(request)
            self.calls.append((name, body or dict(request.query)))
            if name not in UNCOUNTED:
                headers = self._counted(name, request.match_info.get("channel", ""))
            fault = self._fault(name)
            if fault is not None and not fault.then:
                return _failed(fault, headers)
            if fault is None and headers.pop("exhausted", ""):
                self.limited.append(name)
                return _limited(float(headers["X-RateLimit-Reset-After"]), "user", headers)
            headers.pop("exhausted", "")
            if name == "attachment":
                response = self._attachment(request)
            else:
                result = self._do(name, request, body, files)
                response = web.Response(status=204, headers=headers)
                if result is not None:
                    response = _json(result, headers=headers)
        except Refusal as refusal:
            headers.pop("exhausted", "")
            return _refused(refusal, headers)
        if fault is not None and fault.then == "hang":
            await asyncio.Event().wait()
        if fault is not None and request.transport is not None:
            assert isinstance(request.transport, asyncio.Transport)
            request.transport.abort()
        return response

    def _authorise(self, name: str, request: web.Request) -> None:
        """Answers to interactions carry a token of their own, in the address."""
        free = name in ("gateway", "attachment", "answer_interaction")
        if not free and request.headers.get("Authorization") != f"Bot {self.token}":
            raise UNAUTHORIZED

    def _fault(self, name: str) -> PlannedFault | None:
        fault = next(
            (each for each in self._faults if each.method == name and each.times > 0), None
        )
        if fault is None:
            return None
        if fault.after:
            fault.after -= 1
            return None
        fault.times -= 1
        return fault

    def _do(
        self, name: str, request: web.Request, body: Json, files: dict[str, tuple[str, bytes]]
    ) -> object:
        if name == "gateway":
            return {"url": self.gateway_url}
        if name == "gateway_bot":
            starts = {"total": 1000, "remaining": self.starts_left}
            starts |= {"reset_after": 14_400_000, "max_concurrency": 1}
            return {"url": self.gateway_url, "shards": 1, "session_start_limit": starts}
        call = Call(
            self.guild,
            dict(request.match_info),
            dict(request.query),
            body,
            files,
            self.gateway.approved,
        )
        return METHODS[name][2](call)

    def _counted(self, name: str, channel: str) -> dict[str, str]:
        """What https://docs.discord.com/developers/topics/rate-limits#header-format tells of the
        bucket, and `exhausted` where it is empty already."""
        now = asyncio.get_running_loop().time()
        limit, period_s = self.limits.get(name, PLENTY)
        key = f"{name}:{channel}"
        bucket = self._buckets.get(key)
        if bucket is None or bucket.until <= now or bucket.limit != limit:
            bucket = self._buckets[key] = Bucket(limit, limit, now + period_s)
        bucket.left -= 1
        rest_s = bucket.until - now
        headers = {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(bucket.left, 0)),
            "X-RateLimit-Reset": f"{self._clock.now() + rest_s:.3f}",
            "X-RateLimit-Reset-After": f"{rest_s:.3f}",
            "X-RateLimit-Bucket": f"bucket-{name}",
            "Via": "1.1 google",
        }
        return {**headers, "exhausted": "1"} if bucket.left < 0 else headers

    def _attachment(self, request: web.Request) -> web.Response:
        file = self.guild.files.get(int(request.match_info["file"]))
        if file is None or request.query.get("hm") != str(self.guild.links):
            return web.Response(status=404, text="This content is no longer available.")
        mime = str(file.about.get("content_type", "application/octet-stream"))
        return web.Response(body=file.data, headers={"Content-Type": mime})

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(("connect", dict(request.query)))
        fault = self._fault("connect")
        if fault is not None:
            return _failed(fault, {})
        return await self.gateway.connect(request)


def _failed(fault: PlannedFault, headers: dict[str, str]) -> web.Response:
    headers.pop("exhausted", "")
    if fault.status == 429:
        return _limited(fault.retry_after, fault.scope, headers)
    message = "401: Unauthorized" if fault.status == 401 else f"{fault.status}: Failed"
    return _refused(Refusal(fault.status, fault.code, message), headers)


def _limited(retry_after: float, scope: str, headers: dict[str, str]) -> web.Response:
    """https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit"""
    if scope == "cloudflare":
        told = {"Retry-After": str(round(retry_after)), "Content-Type": "text/html"}
        return web.Response(status=429, text="<title>Access denied</title>", headers=told)
    shared = {} if scope == "global" else {"X-RateLimit-Remaining": "0"}
    headers = {**headers, **shared, "X-RateLimit-Scope": scope, "Retry-After": f"{retry_after:.3f}"}
    headers["Via"] = "1.1 google"
    if scope == "global":
        headers = {name: value for name, value in headers.items() if "RateLimit-R" not in name}
        headers |= {"X-RateLimit-Global": "true"}
    elif "X-RateLimit-Reset-After" in headers:
        headers["X-RateLimit-Reset-After"] = f"{retry_after:.3f}"
    body = {"message": "You are being rate limited.", "retry_after": retry_after}
    return _json({**body, "global": scope == "global"}, status=429, headers=headers)


def _refused(refusal: Refusal, headers: dict[str, str]) -> web.Response:
    body: Json = {"message": refusal.message, "code": refusal.code}
    if refusal.where is not None:
        field, code, message = refusal.where
        inner: Json = {"_errors": [{"code": code, "message": message}]}
        for name in reversed(field.split(".")):
            inner = {name: inner}
        body["errors"] = inner
    return _json(body, status=refusal.status, headers=headers)


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Without a charset: discord.py takes anything but this very type for text."""
    told = {**(headers or {}), "Content-Type": "application/json"}
    return web.Response(body=msgspec.json.encode(body), status=status, headers=told)


async def _unknown(request: web.Request) -> web.Response:
    return _refused(Refusal(404, 0, "404: Not Found"), {})


async def _body(request: web.Request) -> tuple[Json, dict[str, tuple[str, bytes]]]:
    """A body is JSON; with files, it is the part `payload_json` of a form."""
    files: dict[str, tuple[str, bytes]] = {}
    if request.content_type != "multipart/form-data":
        return _decoded(await request.read()), files
    body: Json = {}
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        data = bytes(await part.read(decode=True))
        if part.name == "payload_json":
            body = _decoded(data)
        else:
            files[part.name or ""] = (part.filename or "unknown", data)
    return body, files


def _decoded(data: bytes) -> Json:
    try:
        body: Any = msgspec.json.decode(data) if data else {}
    except msgspec.DecodeError as error:
        raise Refusal(400, 50109, "The request body contains invalid JSON.") from error
    if not isinstance(body, dict):
        raise Refusal(400, 50109, "The request body contains invalid JSON.")
    return body
