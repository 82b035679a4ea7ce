"""A Deskhand with MCP servers that the official SDK makes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from deskhand.mcp.definitions import KnownTool
from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven
from deskhand.testing.temporary_home import TemporaryHome, wait_for

SERVER = Path(__file__).with_name("server.py")
FREE = {"policy": [{"tool": "mcp__*", "verdict": "allow"}]}
PREFIXES = sorted({sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1])})


def server_of(*words: str, **more: Any) -> dict[str, Any]:
    """The settings of a server that behaves as these words say."""
    return {
        "command": sys.executable,
        "args": ["-P", str(SERVER), *words],
        "folders": [*PREFIXES, str(SERVER.parent)],
        **more,
    }


def desk_of(home: Path, proven: Proven | None = None, **config: Any) -> TemporaryHome:
    return TemporaryHome(home, proven, **(FREE | config))


@asynccontextmanager
async def running(desk: TemporaryHome) -> AsyncIterator[App]:
    """It runs, and its agents have the tools of its servers."""
    async with desk.running() as app:
        await wait_for(partial(has_tools, app))
        yield app


async def has_tools(app: App) -> bool:
    servers = app.features.mcp
    known = {tool.server for tool in servers.known_tools()}
    return known >= set(servers.names()) and not servers.has_changed()


def tools_of(app: App) -> set[str]:
    return {name for name in app.current.agents["default"].tools if name.startswith("mcp__")}


def known(app: App, name: str) -> KnownTool:
    return next(tool for tool in app.features.mcp.known_tools() if tool.name == name)
