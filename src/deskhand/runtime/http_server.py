"""Serves the page and the API over HTTP while Deskhand runs."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import anyio
import anyio.lowlevel
import uvicorn
from anyio.abc import TaskGroup
from starlette.routing import Route
from starlette.types import ASGIApp

from ..assembly.models import Models
from ..config.address import remove_address, write_address
from ..learning.memory_api import MemoryApi
from ..learning.proposals.api import ProposalsApi
from ..mcp.own_endpoint import PATH, OwnEndpoint
from ..remote_agents.own_key import load_signing_key
from ..supervision.connection_limits import HEAD_BYTES, make_connection_class
from ..types.clock import Ids
from ..types.errors import ConfigError
from ..users.shares import StoredShares
from ..web.app import build_app
from ..web.endpoints import ENDPOINTS, SOCKETS
from ..web.guard import GuardLimits
from ..web.page import make_routes
from ..web.protocols import AgentServer, Web
from ..web.settings import GOOGLE, WebConfig, allowed_hosts, allowed_origins, check_exposure
from ..web.sign_in import SignIn
from ..web.sockets import FRAME_BYTES
from .access_api import AccessApi
from .admin_api import RunningAdmin
from .app import App
from .channel_webhooks import ChannelWebhooks
from .held_api import HeldApi
from .mcp_api import McpApi
from .onboarding import Onboarding
from .screen_api import ScreenApi
from .speech_api import SpeechApi

log = logging.getLogger(__name__)

PORT_TRIES = 20
"""So many ports after the configured one are tried."""
SHUTDOWN_S = 3


class QuietServer(uvicorn.Server):
    """A server that leaves the signals of the process to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(config: WebConfig) -> socket.socket:
    """A socket on the configured port, or on the next free one. Raises ConfigError when there is
    none."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    for port in range(config.port, config.port + PORT_TRIES if config.port else 1):
        # TCP by name: for those alone asyncio turns off waiting for more to send, which costs 40 ms
        # an answer.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((config.host, port))
            sock.listen(1024)  # uvicorn listens too; until then nobody else gets this port
        except OSError as error:
            sock.close()
            log.info("Port %d of %s is not available: %s", port, config.host, error)
            continue
        return sock
    last = config.port + PORT_TRIES - 1
    raise ConfigError(
        f"no port from {config.port} to {last} of {config.host!r} is free; set web.port to another"
    )


def format_url(config: WebConfig, port: int) -> str:
    host = "127.0.0.1" if config.host in ("0.0.0.0", "::") else config.host
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if config.tls_cert else 'http'}://{shown}:{port}"


class AppServer:
    """The HTTP server of one App."""

    def __init__(self, app: App, models: Models) -> None:
        self._app = app
        self._models = models

    async def run(self) -> None:
        """Serve until cancelled. Raises ConfigError when it may not or cannot listen."""
        config = self._app.settings.config.web
        check_exposure(config)
        sock = listen(config)
        port = int(sock.getsockname()[1])
        stopping = anyio.Event()
        limits = GuardLimits(allowed_hosts(config, port), allowed_origins(config, port))
        url = format_url(config, port)
        try:
            write_address(self._app.settings.home, url)
            async with anyio.create_task_group() as tasks:
                web = self._make_web(tasks, stopping)
                site = self._build_site(web, limits, tasks)
                server = QuietServer(make_uvicorn_config(site, config, self._app.parts.ids))
                tasks.start_soon(self._announce_url, server, url)
                tasks.start_soon(_stop_when_cancelled, server, stopping)
                with anyio.CancelScope(shield=True):
                    await server.serve([sock])
                tasks.cancel_scope.cancel()
            await anyio.lowlevel.checkpoint_if_cancelled()
        finally:
            stopping.set()
            remove_address(self._app.settings.home)
            sock.close()

    def _build_site(self, web: Web, limits: GuardLimits, tasks: TaskGroup) -> ASGIApp:
        """The page, the API, and `/mcp`, which asks the API."""
        mcp = Route(PATH, OwnEndpoint(lambda: site, tasks), methods=["GET", "POST", "DELETE"])
        site = build_app(web, limits, ENDPOINTS, SOCKETS, [mcp, *make_routes()])
        return site

    async def _announce_url(self, server: QuietServer, url: str) -> None:
        while not server.started:  # noqa: ASYNC110 -- uvicorn has no event for it
            await anyio.sleep(0.005)
        self._app.address = url
        self._app.vitals.record_ready("web", url)

    def _make_web(self, tasks: TaskGroup, stopping: anyio.Event) -> Web:
        app = self._app
        return Web(
            door=app.door,
            store=app.store,
            people=app.people,
            admin=RunningAdmin(app, self._models),
            jobs=app.features.jobs.pages,
            memory=MemoryApi(app.features.host, app.features.remembering.memory),
            proposals=ProposalsApi(app.features.host, app.features.reviewing.proposals),
            held=HeldApi(app.features.host),
            access=AccessApi(app.features.host),
            mcp=McpApi(app.features.host, app.features.mcp),
            setup=Onboarding(app, self._models, tasks, app.current.reload),
            speech=SpeechApi(app.speech),
            screen=ScreenApi(app),
            channel_webhooks=ChannelWebhooks(app.parts.channels),
            shares=StoredShares(app.store, app.parts.clock, app.parts.ids, app.people),
            push=app.push_devices,
            blobs=app.blobs,
            clock=app.parts.clock,
            ids=app.parts.ids,
            version=version("deskhand"),
            redact=app.redact,
            agent_server=self._make_agent_server(),
            stopping=stopping,
            sign_in=self._make_sign_in(),
            proxied_hosts=frozenset(name.lower() for name in app.settings.config.web.hosts),
        )

    def _make_agent_server(self) -> AgentServer:
        settings = self._app.settings.config.agent_server
        if not settings.sign:
            return AgentServer(settings)
        return AgentServer(settings, load_signing_key(self._app.secrets).public)

    def _make_sign_in(self) -> SignIn | None:
        """How people sign in at the provider of the settings, where there is one."""
        app = self._app
        config = app.settings.config.web.sign_in
        if not config.issuer:
            return None
        try:
            from ..web.oidc_provider import Provider  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise ConfigError(
                "web.sign_in needs a library that is not installed: pip install 'deskhand[sign-in]'"
            ) from error
        secret = app.settings.environment.get(config.secret_env, "") if config.secret_env else ""
        provider = Provider(config, secret, app.parts.net, app.parts.clock)
        name = config.label or ("Google" if config.issuer == GOOGLE else "your account")
        return SignIn(provider, name, config.client_id, app.people)


async def _stop_when_cancelled(server: QuietServer, stopping: anyio.Event) -> None:
    """Shut down in order: close streams, and give requests END_S to finish."""
    try:
        await anyio.sleep_forever()
    finally:
        stopping.set()
        server.should_exit = True


def make_uvicorn_config(site: ASGIApp, config: WebConfig, ids: Ids) -> uvicorn.Config:
    return uvicorn.Config(
        site,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=FRAME_BYTES,
        ws_per_message_deflate=False,
        http=make_connection_class(ids),
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_graceful_shutdown=SHUTDOWN_S,
        ssl_certfile=config.tls_cert or None,
        ssl_keyfile=config.tls_key or None,
    )
