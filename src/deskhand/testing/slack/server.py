"""Slack on loopback: the Web API, Socket Mode, files, and people who write, react and press.

What it answers is what https://docs.slack.dev says; slack_sdk and slack_bolt are its judges in the
tests.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from aiohttp import web  # noqa: TID251 -- loopback

from ...types.clock import Clock
from .blocks import Json
from .methods import METHODS
from .params import Params, decoded, truth
from .records import Press, Refusal
from .signature import signed
from .socket import SocketMode
from .workspace import Workspace

MAX_ANSWERS = 5
"""So often a response_url is used: https://docs.slack.dev/interactivity/handling-user-interaction"""


class PlannedFault(msgspec.Struct, kw_only=True):
    """What is to go wrong at the next `times` calls of a method, `after` so many that go well.
    `then` is what happens once the work is done: the connection is cut, or nothing is ever said;
    without it the work is not done."""

    method: str
    times: int = 1
    status: int = 200
    error: str = ""
    retry_after: int = 0
    then: str = ""
    after: int = 0


Post = Callable[[dict[str, str], bytes], Awaitable[int]]


class SlackServer:
    """One app in one workspace. `async with` it; `base_url` is what clients are given.

    `calls` are the (method, parameters) that clients asked for, in order. Everything that people
    did and the bot said is in `workspace`; envelopes and connections are in `socket_mode`. What is
    not acknowledged after `ack_timeout_s` is sent again, after these pauses.
    """

    def __init__(
        self,
        token: str = "xoxb-test-token",
        app_token: str = "xapp-test-token",
        signing_secret: str = "test-signing-secret",
        *,
        ack_timeout_s: float = 0.5,
        retry_pauses_s: tuple[float, ...] = (0.0, 1.0, 5.0),
    ) -> None:
        self.token = token
        self.app_token = app_token
        self.signing_secret = signing_secret
        self.revoked = False
        self.port = 0
        self.calls: list[tuple[str, Params]] = []
        self.socket_mode = SocketMode(ack_timeout_s, retry_pauses_s)
        self.workspace = Workspace(self.socket_mode.deliver)
        self._faults: list[PlannedFault] = []
        self._tickets: set[str] = set()
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None

    # ------------------------------------------------------------------ running

    async def __aenter__(self) -> SlackServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=100 * 2**20)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link/", self._link)
        app.router.add_post("/upload/v1/{file}", self._upload)
        app.router.add_get("/files-pri/{file}/{name:.+}", self._file)
        app.router.add_post("/actions/{tail:.+}", self._respond)
        app.router.add_get("/", self._sign_in)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self.workspace.origin = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Nobody answers any more; `start(server.port)` brings it back with all that it knows."""
        assert self._runner is not None
        self.drop()
        await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    # ------------------------------------------------------------------ what goes wrong

    def fail(
        self,
        method: str,
        status: int = 200,
        error: str = "",
        *,
        retry_after: int = 0,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Refuse the next calls, `after` so many that work: with status 200 and an error of Slack's
        own; 429 with `retry_after` is what a flood gets; 5xx comes without JSON. `upload`,
        `download` and `response_url` are the steps that are no methods."""
        named = error or ("ratelimited" if status == 429 else "internal_error")
        self._faults.append(
            PlannedFault(
                method=method,
                times=times,
                status=status,
                error=named,
                retry_after=retry_after,
                after=after,
            )
        )

    def lose(self, method: str, times: int = 1) -> None:
        """Do the next calls and cut the connection instead of answering."""
        self._faults.append(PlannedFault(method=method, times=times, then="cut"))

    def hang(self, method: str, times: int = 1) -> None:
        """Do the next calls and never answer."""
        self._faults.append(PlannedFault(method=method, times=times, then="hang"))

    def fails_next(self, method: str) -> bool:
        """Whether something is planned that has not happened yet."""
        return any(each.method == method and each.times > 0 for each in self._faults)

    def drop(self) -> None:
        """Cut all connections of Socket Mode."""
        for link in list(self.socket_mode.links):
            link.cut()

    def go_deaf(self) -> None:
        """The connections stay, but nothing is sent over them any more, and nothing is heard."""
        for link in self.socket_mode.links:
            link.deaf = True

    def swallow(self, count: int = 1) -> None:
        """Lose the next acknowledgements."""
        self.socket_mode.swallowed += count

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        """`warning` comes some seconds before a connection ends, `refresh_requested` with its end;
        `link_disabled` says that Socket Mode was turned off."""
        for link in list(self.socket_mode.links):
            await self.socket_mode.say_goodbye(link, reason)

    def forget(self) -> int:
        """What waits for a connection is lost, as after a long outage. Returns how many."""
        return self.socket_mode.forget()

    # ------------------------------------------------------------------ events over HTTP

    def take_requests(self, clock: Clock) -> list[tuple[dict[str, str], bytes]]:
        """What waits, as the requests (headers, body) that Slack makes of it for a webhook."""
        waiting = self.socket_mode.waiting + [
            each for each in self.socket_mode.lost if each.kind == "interactive"
        ]
        self.socket_mode.waiting = []
        self.socket_mode.lost = []
        found = []
        for envelope in waiting:
            headers, body = self.signed(envelope.payload, clock)
            found.append((headers | _say_tries(envelope.tries), body))
        return found

    async def post_events(self, post: Post, clock: Clock) -> None:
        """Post what waits, each until it is taken, for ever. `post` gets headers and body, and
        gives the status."""
        while True:
            for headers, body in self.take_requests(clock):
                tries = 0
                while await post({**headers, **_say_tries(tries)}, body) != 200:
                    tries += 1
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.005)

    def signed(
        self, payload: Json, clock: Clock, *, age_s: float = 0.0, secret: str = ""
    ) -> tuple[dict[str, str], bytes]:
        """Headers and body of the request that Slack makes of a payload; it is `age_s` old, and
        another secret makes it a forged one."""
        return signed(payload, secret or self.signing_secret, clock.now() - age_s)

    # ------------------------------------------------------------------ HTTP

    def _fault(self, method: str) -> PlannedFault | None:
        fault = next(
            (each for each in self._faults if each.method == method and each.times > 0), None
        )
        if fault is not None and fault.after:
            fault.after -= 1
            return None
        if fault is not None:
            fault.times -= 1
        return fault

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        params = await _params(request)
        token = _token(request.headers, params)
        self.calls.append((method, params))
        fault = self._fault(method)
        if fault is not None and not fault.then:
            return _refused(fault)
        try:
            self._check(method, token)
            result = self._do(method, params)
        except Refusal as refusal:
            return web.json_response({"ok": False, "error": refusal.error, **refusal.more})
        return await _answer(request, fault, web.json_response({"ok": True, **result}))

    def _check(self, method: str, token: str) -> None:
        """Raises Refusal unless the token is one for this method."""
        if not token:
            raise Refusal("not_authed")
        if token not in (self.token, self.app_token):
            raise Refusal("invalid_auth")
        if self.revoked:
            raise Refusal("token_revoked")
        if (token == self.app_token) != method.startswith("apps."):
            raise Refusal("not_allowed_token_type")

    def _do(self, method: str, params: Params) -> Json:
        if method == "apps.connections.open":
            ticket = f"ticket-{next(self._numbers)}"
            self._tickets.add(ticket)
            address = (
                f"ws://127.0.0.1:{self.port}/link/?ticket={ticket}&app_id={self.workspace.app}"
            )
            return {"url": address}
        if method not in METHODS:
            raise Refusal("unknown_method", req_method=method)
        return METHODS[method](self.workspace, params)

    async def _link(self, request: web.Request) -> web.StreamResponse:
        """A ticket opens one connection."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=401)
        self._tickets.remove(ticket)
        return await self.socket_mode.serve(request, self.workspace.app)

    # ------------------------------------------------------------------ files and answers

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        """The bytes as they are, or in a form."""
        file = self.workspace.files.get(request.match_info["file"])
        self.calls.append(("upload", {"file": request.match_info["file"]}))
        fault = self._fault("upload")
        if fault is not None and not fault.then:
            return _refused(fault)
        data = await request.read()
        if request.content_type == "multipart/form-data":
            fields = list((await request.post()).values())
            data = b"".join(each.file.read() for each in fields if isinstance(each, web.FileField))
        if file is None or file.length < 0:
            return web.Response(status=404)
        if len(data) != file.length:
            return web.Response(status=400, text="the length is another than was said")
        file.data = data
        file.json["size"] = len(data)
        return await _answer(request, fault, web.Response(text=f"OK - {len(data)}"))

    async def _file(self, request: web.Request) -> web.StreamResponse:
        """Who has no right to a file is sent to the page where people sign in, as Slack does: that
        is a 302, and then HTML with status 200."""
        fault = self._fault("download")
        if fault is not None and not fault.then:
            return _refused(fault)
        file = self.workspace.files.get(request.match_info["file"].partition("-")[2])
        if _token(request.headers, {}) != self.token or self.revoked:
            raise web.HTTPFound(f"/?redir={request.path}")
        if file is None:
            return web.Response(status=404)
        kind = str(file.json["mimetype"])
        return await _answer(request, fault, web.Response(body=file.data, content_type=kind))

    async def _sign_in(self, request: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><p>Sign in", content_type="text/html")

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        """The address that came with a press. It needs no token and is used five times at most."""
        press = self.workspace.presses_by_url.get(request.path)
        said = await request.json()
        self.calls.append(("response_url", said))
        fault = self._fault("response_url")
        if fault is not None and not fault.then:
            return _refused(fault)
        if press is None or len(press.answers) >= MAX_ANSWERS:
            error = "invalid_url" if press is None else "used_url"
            return web.json_response({"ok": False, "error": error}, status=404)
        try:
            self._answered(press, said)
        except Refusal as refusal:
            return web.json_response({"ok": False, "error": refusal.error}, status=404)
        return await _answer(request, fault, web.Response(text="ok", content_type="text/plain"))

    def _answered(self, press: Press, said: Json) -> None:
        press.answers.append(said)
        about = {**said, "channel": press.post.channel, "ts": press.post.ts}
        if truth(said.get("delete_original")):
            METHODS["chat.delete"](self.workspace, about)
        elif truth(said.get("replace_original")):
            METHODS["chat.update"](self.workspace, about)
        elif said.get("response_type") == "in_channel":
            METHODS["chat.postMessage"](self.workspace, about)


async def _answer(
    request: web.Request, fault: PlannedFault | None, response: web.Response
) -> web.StreamResponse:
    """Answer, if nothing else was planned."""
    if fault is not None and fault.then == "hang":
        await asyncio.Event().wait()
    if fault is not None and request.transport is not None:
        request.transport.abort()
    return response


def _refused(fault: PlannedFault) -> web.Response:
    if fault.status >= 500:
        # What answers in front of Slack's servers does not speak JSON.
        return web.Response(
            status=fault.status, text="<html>Error</html>", content_type="text/html"
        )
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
    body = {"ok": False, "error": fault.error}
    return web.json_response(body, status=fault.status, headers=headers)


def _token(headers: Mapping[str, str], params: Params) -> str:
    kind, _, token = headers.get("Authorization", "").partition(" ")
    return token if kind == "Bearer" else str(params.pop("token", ""))


async def _params(request: web.Request) -> Params:
    """The parameters as clients may send them: in the address, as JSON, as a form."""
    params: Params = dict(request.query)
    if request.content_type == "application/json":
        params |= await request.json()
    elif request.method == "POST":
        params |= dict(await request.post())
    return decoded(params)


def _say_tries(tries: int) -> dict[str, str]:
    """The headers of a request that is sent again."""
    if not tries:
        return {}
    return {"X-Slack-Retry-Num": str(tries), "X-Slack-Retry-Reason": "timeout"}
