"""A Deskhand for the conformance suite, behind a proxy that sends its token along: the suite has
none. Prints the address, and serves until its input ends.

python -m tests.mcp_servers.conformance_server
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
from aiohttp import web

from deskhand.testing.scripted import ScriptedModel, say
from tests.web.served import Served, serving

PASSED = ("accept", "content-type", "mcp-protocol-version", "mcp-session-id", "origin")


class Proxy:
    """Passes requests on as they are, with a token and the name of the host behind it. A name that
    is not the proxy's own goes on as it is."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.host = ""

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        behind = self._served.url.removeprefix("http://")
        host = request.headers.get("host", "")
        headers = {name: request.headers[name] for name in PASSED if name in request.headers}
        headers |= self._served.owner.headers
        headers["host"] = behind if host == self.host else host
        if headers.get("origin") == f"http://{self.host}":
            headers["origin"] = self._served.url
        async with self._served.http.request(
            request.method,
            self._served.url + request.path_qs,
            headers=headers,
            data=await request.read(),
        ) as answer:
            kept = {n: v for n, v in answer.headers.items() if n.lower().startswith("mcp-")}
            kept["content-type"] = answer.headers.get("content-type", "text/plain")
            sent = web.StreamResponse(status=answer.status, headers=kept)
            await sent.prepare(request)
            with suppress(ConnectionResetError):  # the suite has seen enough
                async for piece in answer.content.iter_any():
                    await sent.write(piece)
            return sent


async def main() -> None:
    model = ScriptedModel(lambda request: say("It is noon."))
    with tempfile.TemporaryDirectory() as home:
        async with serving(Path(home), model) as served:
            proxy = Proxy(served)
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", proxy.pass_on)
            runner = web.AppRunner(app)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            proxy.host = f"127.0.0.1:{runner.addresses[0][1]}"
            sys.stdout.write(f"http://{proxy.host}/mcp\n")
            sys.stdout.flush()
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
            await runner.cleanup()


if __name__ == "__main__":
    anyio.run(main)
