"""A call of a tool of an MCP server: by us, in the sandbox, and by the bare SDK."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from deskhand.runtime.app import App
from deskhand.testing.temporary_home import wait_for
from deskhand.types.events import ToolFinished

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.mcp_servers.working import SERVER, desk_of, running, server_of

CALLS = 100
SESSION = "default/terminal:1"


async def bare_ms() -> float:
    """The median of the SDK alone."""
    target = StdioServerParameters(command=sys.executable, args=["-P", str(SERVER)])
    took = []
    async with Client(target) as client:
        for number in range(CALLS):
            began = time.perf_counter()
            await client.call_tool("add", {"a": number, "b": 1})
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1_000


async def our_ms(home: Path) -> float:
    """The median of a call as it stands in the log."""
    desk = desk_of(home, mcp={"test": server_of(trusted=True)})
    async with running(desk) as app:
        calls = [["mcp__test__add", {"a": number, "b": 1}] for number in range(CALLS)]
        await desk.say(app, json.dumps(calls))
        took = await wait_for(partial(_finished, app))
    return statistics.median(took) * 1_000


async def _finished(app: App) -> list[float]:
    events = [each.event for each in await app.store.events(SESSION)]
    took = [each.took_s for each in events if isinstance(each, ToolFinished)]
    return took if len(took) == CALLS else []


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        bare, ours = await bare_ms(), await our_ms(Path(home))
    print(f"bare SDK {bare:.2f} ms, in Deskhand {ours:.2f} ms, {ours - bare:+.2f} ms")


if __name__ == "__main__":
    anyio.run(main)
