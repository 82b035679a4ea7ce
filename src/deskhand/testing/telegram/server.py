"""Telegram on loopback: a Bot API server that real clients accept, with people in it who write,
press and send files.

What it answers is what https://core.telegram.org/bots/api says; python-telegram-bot and aiogram are
its judges in the tests. `parse_mode` is not parsed.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import BodyPartReader, web  # noqa: TID251 -- loopback

from .chat import Chats, Json, Refusal
from .methods import METHODS, Params

MAX_BATCH = 100
Post = Callable[[dict[str, str], bytes], Awaitable[int]]


class PlannedFault(msgspec.Struct):
    """What is to go wrong at the next `times` calls of a method, `after` so many that go well.
    `then` is what happens once the work is done: the connection is cut, or nothing is ever said;
    without it the work is not done and `status` is answered."""

    method: str
    times: int = 1
    status: int = 500
    description: str = "Internal Server Error"
    retry_after: int = 0
    then: str = ""
    after: int = 0


class TelegramServer:
    """One bot's account. `async with` it; `base_url` and `base_file_url` are what clients are
    given.

    `calls` are the (method, parameters) that clients asked for, in order. Everything that people
    did and bots said is in `chats`.
    """

    def __init__(self, token: str = "4200:test-token", username: str = "desk_bot") -> None:
        self.token = token
        self.chats = Chats(int(token.partition(":")[0]), username)
        self.calls: list[tuple[str, Params]] = []
        self.confirmed = 0
        self.webhook = ""
        self.webhook_secret = ""
        self.webhook_failed = ""
        self.commands: dict[str, list[Json]] = {}
        self.allowed: list[str] = []
        self._faults: list[PlannedFault] = []
        self._news = asyncio.Event()
        self._polls = itertools.count(1)
        self._poll = 0
        self._runner: web.AppRunner | None = None
        self.chats.changed = self._changed

    # ------------------------------------------------------------------ running

    async def __aenter__(self) -> TelegramServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=100 * 2**20)
        app.router.add_route("*", "/bot{token:[^/]+}/{method}", self._call)
        app.router.add_get("/file/bot{token:[^/]+}/{path:.+}", self._file)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Nobody answers any more; `start(server.port)` brings it back with all that it knows."""
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/bot"

    @property
    def base_file_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/file/bot"

    # ------------------------------------------------------------------ what goes wrong

    def fail(
        self,
        method: str,
        status: int,
        description: str = "",
        *,
        retry_after: int = 0,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Refuse the next calls, `after` so many that work; 429 with `retry_after` is what a flood
        gets."""
        described = description or (
            "Too Many Requests" if status == 429 else "Internal Server Error"
        )
        self._faults.append(
            PlannedFault(method, times, status, described, retry_after, after=after)
        )

    def lose(self, method: str, times: int = 1) -> None:
        """Do the next calls and cut the connection instead of answering."""
        self._faults.append(PlannedFault(method, times, then="cut"))

    def hang(self, method: str, times: int = 1) -> None:
        """Do the next calls and never answer."""
        self._faults.append(PlannedFault(method, times, then="hang"))

    def fails_next(self, method: str) -> bool:
        """Whether something is planned that has not happened yet."""
        return any(each.method == method and each.times > 0 for each in self._faults)

    def redeliver(self, count: int = 1) -> None:
        """Forget that the last updates were confirmed: they come again."""
        self.confirmed = max(0, min(self.confirmed, len(self.chats.updates)) - count)
        self._changed()

    # ------------------------------------------------------------------ HTTP

    def _changed(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != self.token:
            return _refused(Refusal(401, "Unauthorized"))
        params = await _params(request)
        self.calls.append((method, params))
        fault = next(
            (each for each in self._faults if each.method == method and each.times > 0), None
        )
        if fault is not None and fault.after:
            fault.after -= 1
            fault = None
        if fault is not None:
            fault.times -= 1
            if not fault.then:
                return _refused(Refusal(fault.status, fault.description, fault.retry_after))
        try:
            result = await self._do(method, params)
        except Refusal as refusal:
            return _refused(refusal)
        if fault is not None and fault.then == "hang":
            await asyncio.Event().wait()
        if fault is not None and request.transport is not None:
            request.transport.abort()
        return web.json_response({"ok": True, "result": result})

    async def _do(self, method: str, params: Params) -> object:
        lowered = method.lower()
        if lowered == "getupdates":
            return await self._updates(params)
        if lowered in ("setwebhook", "deletewebhook"):
            self.webhook = str(params.get("url", "")) if lowered == "setwebhook" else ""
            self.webhook_secret = str(params.get("secret_token", ""))
            if params.get("allowed_updates"):
                self.allowed = params["allowed_updates"]
            if params.get("drop_pending_updates") in (True, "true", "True"):
                self.confirmed = len(self.chats.updates)
            return True
        if lowered == "getwebhookinfo":
            waiting = len(self.chats.updates) - self.confirmed
            return {
                "url": self.webhook,
                "has_custom_certificate": False,
                "pending_update_count": waiting,
                "last_error_message": self.webhook_failed,
            }
        if lowered == "setmycommands":
            self.commands[params.get("language_code", "")] = params["commands"]
            return True
        if lowered not in METHODS:
            raise Refusal(404, "Not Found: method not found")
        return METHODS[lowered](self.chats, params)

    async def post_updates(self, post: Post) -> None:
        """Post what waits to the webhook, one after the other and each until it is taken, for ever.
        `post` gets headers and body, and gives the status."""
        while True:
            waiting = [each for each in self.chats.updates if each["update_id"] > self.confirmed]
            if not self.webhook or not waiting:
                await asyncio.sleep(0.005)
                continue
            headers = {"Content-Type": "application/json"}
            if self.webhook_secret:
                headers["X-Telegram-Bot-Api-Secret-Token"] = self.webhook_secret
            status = 200
            if not self.allowed or _kind(waiting[0]) in self.allowed:
                status = await post(headers, msgspec.json.encode(waiting[0]))
            if status == 200:
                self.confirmed = max(self.confirmed, waiting[0]["update_id"])
            else:
                self.webhook_failed = f"Wrong response from the webhook: {status}"
                await asyncio.sleep(0.02)

    async def _updates(self, params: Params) -> list[Json]:
        """Long poll. A later poll ends an earlier one with 409, as there may be only one reader."""
        if self.webhook:
            raise Refusal(409, "Conflict: can't use getUpdates method while webhook is active")
        offset = int(params.get("offset", 0))
        limit = int(params.get("limit", MAX_BATCH))
        if params.get("allowed_updates"):
            self.allowed = params["allowed_updates"]
        if offset < 0:
            offset = max(len(self.chats.updates) + offset, 0) + 1
        self.confirmed = max(self.confirmed, offset - 1)
        mine = self._poll = next(self._polls)
        self._changed()
        deadline = asyncio.get_running_loop().time() + float(params.get("timeout", 0))
        while True:
            news = self._news
            if mine != self._poll:
                raise Refusal(409, "Conflict: terminated by other getUpdates request")
            waiting = [each for each in self.chats.updates if each["update_id"] > self.confirmed]
            found = [each for each in waiting if not self.allowed or _kind(each) in self.allowed][
                :limit
            ]
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return found
            try:
                await asyncio.wait_for(news.wait(), left)
            except TimeoutError:
                continue

    async def _file(self, request: web.Request) -> web.Response:
        data = self.chats.by_path.get(request.match_info["path"])
        if request.match_info["token"] != self.token or data is None:
            return web.Response(status=404)
        return web.Response(body=data)


def _kind(update: Json) -> str:
    return next(key for key in update if key != "update_id")


def _refused(refusal: Refusal) -> web.Response:
    body: dict[str, Any] = {
        "ok": False,
        "error_code": refusal.status,
        "description": refusal.description,
    }
    if refusal.retry_after:
        body["description"] += f": retry after {refusal.retry_after}"
        body["parameters"] = {"retry_after": refusal.retry_after}
    return web.json_response(body, status=refusal.status)


async def _params(request: web.Request) -> Params:
    """The parameters as clients may send them: in the address, as JSON, as a form, with files in
    it."""
    params: Params = dict(request.query)
    if request.content_type == "application/json":
        params |= await request.json()
    elif request.content_type == "multipart/form-data":
        files: dict[str, tuple[str, bytes]] = {}
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                continue
            name = part.name or ""
            data = bytes(await part.read(decode=True))
            if part.filename is None:
                params[name] = data.decode()
            else:
                files[name] = (part.filename, data)
        for name, value in list(params.items()):
            if isinstance(value, str) and value.startswith("attach://"):
                params[name] = files.pop(value.removeprefix("attach://"))
        params |= files
    else:
        params |= dict(await request.post())
    return {name: _decoded(value) for name, value in params.items()}


def _decoded(value: Any) -> Any:
    """Objects and lists come as JSON in forms."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value
