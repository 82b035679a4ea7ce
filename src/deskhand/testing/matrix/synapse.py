"""A real Matrix homeserver on loopback: Synapse, with people in it who write, react and send
files, and a front in which things go wrong.

`Homeserver` is the process; it takes seconds to start, so that several tests may share one.
`Synapse` is what clients talk to: it passes each request on to the homeserver, unless a fault is
planned for it. Settings: https://element-hq.github.io/synapse/latest/usage/configuration/
config_documentation.html; errors: https://spec.matrix.org/latest/client-server-api/#standard-error-response
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
from aiohttp import ClientConnectionError, ClientSession, ClientTimeout, web  # noqa: TID251 -- loopback
from yarl import URL

from ..broker import free_port
from .person import Person

PYTHON = Path(__file__).parents[4] / ".venv-matrix" / "bin" / "python"
"""Of the environment of the homeserver; `make .venv-matrix/.ready` builds it."""
SERVER_NAME = "localhost"
PASSWORD = "correct horse"
START_S = 90.0
PLENTY = {"per_second": 100_000, "burst_count": 100_000}
HOP_BY_HOP = frozenset({"connection", "content-encoding", "content-length", "transfer-encoding"})
Settings = Mapping[str, Any]


class Homeserver:
    """Synapse with SQLite, whose files are in `folder`, and which lets everybody register.

    `settings` replace keys of its configuration, for example the `rc_message` that limits how
    often somebody may write: https://element-hq.github.io/synapse/latest/usage/configuration/
    config_documentation.html#ratelimiting. Both `start` and `stop` block.
    """

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self._folder = folder
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.shared_secret = secrets.token_hex(16)

    def __enter__(self) -> Homeserver:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it complained about."""
        file = self._folder / "log"
        return file.read_text() if file.exists() else ""

    def start(self) -> None:
        """Raises FileNotFoundError if it is not installed, RuntimeError if it does not start."""
        if not PYTHON.exists():
            raise FileNotFoundError("the homeserver is missing: make .venv-matrix/.ready")
        file = self._configure()
        with (self._folder / "errors").open("ab") as errors:
            self._process = subprocess.Popen(
                [PYTHON, "-m", "synapse.app.homeserver", "-c", file],
                cwd=self._folder,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        # Its port is open only once it answers, so that a connection is enough to know.
        for _ in range(int(START_S / 0.05)):
            if self._answers():
                return
            try:
                self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            break
        self.stop()
        raise RuntimeError(
            f"Synapse did not start: {(self._folder / 'errors').read_text()[-2000:]}"
        )

    def stop(self) -> None:
        """`start` brings it back with all that it knows."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def _configure(self) -> Path:
        """Write what it reads at its start. JSON is YAML."""
        key = self._folder / "signing.key"
        if not key.exists():
            # What `synapse.app.homeserver --generate-keys` writes, without the seconds it takes.
            seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
            key.write_text(f"ed25519 a_test {seed}\n")
        log = self._folder / "log.yaml"
        handler = {"class": "logging.FileHandler", "filename": str(self._folder / "log")}
        log.write_text(
            json.dumps(
                {
                    "version": 1,
                    "disable_existing_loggers": False,
                    "handlers": {"file": handler},
                    "root": {"level": "WARNING", "handlers": ["file"]},
                }
            )
        )
        listener = {
            "port": self.port,
            "bind_addresses": ["127.0.0.1"],
            "type": "http",
            "tls": False,
            "resources": [{"names": ["client", "media"], "compress": False}],
        }
        database = {"name": "sqlite3", "args": {"database": str(self._folder / "homeserver.db")}}
        config: dict[str, Any] = {
            "server_name": SERVER_NAME,
            "report_stats": False,
            "listeners": [listener],
            "database": database,
            "pid_file": str(self._folder / "homeserver.pid"),
            "log_config": str(log),
            "media_store_path": str(self._folder / "media"),
            "signing_key_path": str(key),
            "trusted_key_servers": [],
            "suppress_key_server_warning": True,
            "macaroon_secret_key": self.shared_secret,
            "form_secret": self.shared_secret,
            "registration_shared_secret": self.shared_secret,
            "enable_registration": True,
            "enable_registration_without_verification": True,
            "bcrypt_rounds": 4,
            **_generous(),
            **self._settings,
        }
        file = self._folder / "homeserver.yaml"
        file.write_text(json.dumps(config))
        return file


class PlannedFault(msgspec.Struct):
    """What is to go wrong at the next `times` requests whose path contains `path`, `after` so many
    that go well. `then` is what happens once the work is done: the connection is cut, or nothing
    is ever said; without it the work is not done and `status` is answered."""

    path: str
    times: int = 1
    status: int = 500
    errcode: str = "M_UNKNOWN"
    retry_after_ms: int = 0
    then: str = ""
    after: int = 0


class Synapse:
    """What clients are given is `url`. With a folder it starts a homeserver of its own there.

    `requests` are the (method, path) that clients asked for, in order, without the query.
    """

    def __init__(self, home: Homeserver | Path, settings: Settings | None = None) -> None:
        self._owned = isinstance(home, Path)
        self.home = Homeserver(home, settings) if isinstance(home, Path) else home
        self.requests: list[tuple[str, str]] = []
        self.port = 0
        self._faults: list[PlannedFault] = []
        self._runner: web.AppRunner | None = None
        self._session: ClientSession | None = None

    # ------------------------------------------------------------------ running

    async def __aenter__(self) -> Synapse:
        if self._owned:
            await anyio.to_thread.run_sync(self.home.start)
        # A sync may wait as long as its client wants.
        self._session = ClientSession(timeout=ClientTimeout(total=None), auto_decompress=True)
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._http.close()
        if self._owned:
            await anyio.to_thread.run_sync(self.home.stop)

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=100 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Nobody answers any more; `start(synapse.port)` brings it back with all that it knows.
        The homeserver behind it goes on, which makes both quick; `restart` is the slow way."""
        assert self._runner is not None
        await self._runner.cleanup()

    async def restart(self) -> None:
        """End the process of the homeserver and start it again."""
        await anyio.to_thread.run_sync(self.home.stop)
        await anyio.to_thread.run_sync(self.home.start)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def _http(self) -> ClientSession:
        assert self._session is not None
        return self._session

    async def register(self, name: str, password: str = PASSWORD) -> Person:
        """A new account, logged in. It does not pass the front, so that no fault meets it."""
        auth = {"type": "m.login.dummy"}
        body = {"username": name, "password": password, "auth": auth}
        path = "/_matrix/client/v3/register"
        async with self._http.post(self.home.url + path, json=body) as response:
            found = await response.json()
            if response.status != 200:
                raise ValueError(f"{name!r} was not registered: {found}")
        return Person(self._http, self.home.url, found["user_id"], found["access_token"])

    # ------------------------------------------------------------------ what goes wrong

    def fail(
        self, path: str, status: int, errcode: str = "", *, retry_after_ms: int = 0, times: int = 1
    ) -> None:
        """Refuse the next requests whose path contains this, as "/sync" or "/send/"; 429 with
        `retry_after_ms` is what a flood gets."""
        named = errcode or ("M_LIMIT_EXCEEDED" if status == 429 else "M_UNKNOWN")
        self._faults.append(PlannedFault(path, times, status, named, retry_after_ms))

    def lose(self, path: str, times: int = 1, *, after: int = 0) -> None:
        """Do the next requests and cut the connection instead of answering."""
        self._faults.append(PlannedFault(path, times, then="cut", after=after))

    def hang(self, path: str, times: int = 1, *, after: int = 0) -> None:
        """Do the next requests and never answer."""
        self._faults.append(PlannedFault(path, times, then="hang", after=after))

    def fails_next(self, path: str) -> bool:
        """Whether something is planned that has not happened yet."""
        return any(each.path == path and each.times > 0 for each in self._faults)

    # ------------------------------------------------------------------ HTTP

    def _fault(self, path: str) -> PlannedFault | None:
        for each in self._faults:
            if each.path in path and each.times > 0:
                if each.after:
                    each.after -= 1
                    return None
                each.times -= 1
                return each
        return None

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path))
        fault = self._fault(request.path)
        if fault is not None and not fault.then:
            return _refused(fault)
        body = await request.read()
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in {"host", "accept-encoding", *HOP_BY_HOP}
        }
        # The path as it was written: room and event ids are escaped in it.
        url = URL(self.home.url + request.raw_path, encoded=True)
        try:
            async with self._http.request(
                request.method, url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                data = await answer.read()
        except ClientConnectionError:
            # The homeserver is down: what a client sees is a connection that is cut.
            fault = PlannedFault(request.path, then="cut")
            return await _silent(request, fault)
        if fault is not None:
            return await _silent(request, fault)
        kept = [
            (name, value)
            for name, value in answer.headers.items()
            if name.lower() not in HOP_BY_HOP
        ]
        response = web.Response(body=data, status=answer.status)
        response.headers.clear()
        for name, value in kept:
            response.headers.add(name, value)
        return response


async def _silent(request: web.Request, fault: PlannedFault) -> web.Response:
    if fault.then == "hang":
        await asyncio.Event().wait()
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)


def _refused(fault: PlannedFault) -> web.Response:
    body: dict[str, Any] = {"errcode": fault.errcode, "error": fault.errcode}
    headers = {}
    if fault.retry_after_ms:
        body["retry_after_ms"] = fault.retry_after_ms
        headers["Retry-After"] = str(-(-fault.retry_after_ms // 1000))
    return web.json_response(body, status=fault.status, headers=headers)


def _generous() -> dict[str, Any]:
    """No limit that a test reaches without wanting it."""
    nested = {name: dict(PLENTY) for name in ("local", "remote")}
    by_login = {name: dict(PLENTY) for name in ("address", "account", "failed_attempts")}
    by_invite = {name: dict(PLENTY) for name in ("per_room", "per_user", "per_issuer")}
    flat = ("rc_message", "rc_registration", "rc_room_creation", "rc_joins_per_room")
    return {
        **{name: dict(PLENTY) for name in flat},
        "rc_joins": nested,
        "rc_login": by_login,
        "rc_invites": by_invite,
    }
