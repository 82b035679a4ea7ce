"""`/mcp`, where other programs reach Deskhand: what it needs is imported with the first request."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from ..types.people import Grant
from ..web.errors import HttpProblem
from .servers import NO_EXTRA

PATH = "/mcp"
_NO_CREDENTIAL = "Send a token: deskhand tokens create NAME --scopes read,chat"


class OwnEndpoint:
    """An ASGI application. `app` gives our whole one, `tasks` run it until they are cancelled."""

    def __init__(self, app: Callable[[], ASGIApp], tasks: TaskGroup) -> None:
        self._app = app
        self._tasks = tasks
        self._serving: ASGIApp | None = None
        self._lock = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HttpProblem for a request without a credential."""
        grant: Grant | None = scope["state"]["grant"]
        if grant is None:
            raise HttpProblem(401, "no_token", _NO_CREDENTIAL, {"www-authenticate": "Bearer"})
        async with self._lock:
            if self._serving is None:
                self._serving = await self._begin()
        await self._serving(scope, receive, send)

    async def _begin(self) -> ASGIApp:
        try:
            from .own_server import HttpServer  # noqa: PLC0415 -- an extra, and half a second
        except ModuleNotFoundError as error:
            raise HttpProblem(501, "no_extra", NO_EXTRA) from error
        server = HttpServer(self._app())

        async def serve(*, task_status: TaskStatus[ASGIApp]) -> None:
            async with server.running() as serving:
                task_status.started(serving)
                await anyio.sleep_forever()

        serving: ASGIApp = await self._tasks.start(serve)
        return serving
