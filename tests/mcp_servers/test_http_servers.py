"""MCP servers on the web: reached over our guarded connections, and by both ways in which they
answer."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest

from deskhand.mcp.http_transport import make_http_client
from deskhand.runtime.app import App
from deskhand.testing.site import LocalSite
from deskhand.testing.temporary_home import wait_for

from .working import SERVER, desk_of, running, tools_of


@asynccontextmanager
async def serving(*words: str) -> AsyncIterator[str]:
    """The address of a server of the official SDK on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-P", str(SERVER), f"port{port}", *words]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
        try:
            await wait_for(partial(_listens, port))
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


async def _listens(port: int) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


@pytest.mark.parametrize("words", [(), ("json",)], ids=["events", "json"])
async def test_its_tools_are_called(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with serving(*words) as url:
        desk = desk_of(tmp_path, mcp={"test": {"url": url, "timeout_s": 20, "trusted": True}})
        async with running(desk) as app:
            assert await desk.call(app, "mcp__test__add", a=1, b=2) == "3"
            assert await desk.call(app, "mcp__test__slow", seconds=0.1) == "done"
            refused = await desk.call(app, "mcp__test__big", megabytes=40)
            assert refused == "Connection closed"
            spec = app.current.agents["default"].tools["mcp__test__add"].spec
            assert spec.effect == "network"


async def test_one_that_goes_away_is_told_of(tmp_path: Path) -> None:
    async with serving() as url:
        desk = desk_of(tmp_path, mcp={"test": {"url": url, "timeout_s": 5, "trusted": True}})
        async with running(desk) as app:
            assert await desk.call(app, "mcp__test__add", a=1, b=2) == "3"
            await desk.call(app, "mcp__test__die")
            told = await desk.call(app, "mcp__test__add", a=1, b=2)
            assert told.startswith("the MCP server test is not available")


async def test_a_redirect_to_somewhere_else_is_not_followed(tmp_path: Path) -> None:
    async with serving() as url, LocalSite() as site:
        site.page("/mcp", status=307, headers={"Location": url})
        desk = desk_of(tmp_path, mcp={"test": {"url": site.url("/mcp"), "timeout_s": 5}})
        async with desk.running(net=site.net()) as app:
            await wait_for(partial(_has_failed, app))
            assert tools_of(app) == set() and len(site.requests) < 5


async def _has_failed(app: App) -> bool:
    state = app.features.mcp.status().get("test")
    return state is not None and bool(state.problem)


async def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    servers = {
        "test": {"url": "http://127.0.0.1:9/mcp"},
        "unset": {"url": "https://example.org/${MISSING_PART}"},
    }
    desk = desk_of(tmp_path, mcp=servers)
    async with desk.running() as app:
        await wait_for(partial(_has_failed, app))
        listed = await desk.call(app, "mcp", action="list")
        assert "test: failed: " in listed
        assert "MISSING_PART is not set" in await desk.call(
            app, "mcp", action="connect", server_name="unset"
        )


async def test_a_packed_answer_is_not_unpacked() -> None:
    async with LocalSite() as site:
        site.page("/bomb", gzip.compress(b"x" * 1_000_000), headers={"Content-Encoding": "gzip"})
        async with make_http_client(site.net(), {}, 5) as http:
            with pytest.raises(httpx2.ReadError, match="something packed"):
                await http.get(site.url("/bomb"))
        assert site.requests[0].headers["accept-encoding"] == "identity"
