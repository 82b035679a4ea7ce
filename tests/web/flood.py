"""A Deskhand that writes fifty megabytes into one conversation when it is told to: `python flood.py
HOME`.

Prints its address and a token, waits for a line, then prints by how many bytes its memory grew
meanwhile at the most.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import anyio.to_thread

from deskhand.types.commit import Commit
from deskhand.types.events import MessageReceived, TurnEnded
from deskhand.types.identity import Address, Principal
from deskhand.types.interpreter import tune_interpreter
from deskhand.types.messages import Message, Text

from .served import Served, serving

SESSION = "default/web:owner:talk"
EVENTS = 200
EACH = 250_000
OWNER = Principal("owner", ("owner",))
PLACE = Address("web", "owner", "talk")


def rss() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


async def produce(served: Served) -> None:
    """As a driver would commit and show it."""
    store = served.app.store
    n = len(await served.app.store.events(SESSION))
    for i in range(EVENTS):
        event = MessageReceived(i, OWNER, PLACE, Message("user", (Text(f"{i} " + "x" * EACH),)))
        last = (TurnEnded("done", (i,)),) if i == EVENTS - 1 else ()
        await store.commit(Commit(SESSION, n + 1, float(i), (event, *last), close=True))
        for recorded in await store.events(SESSION, n):
            served.app.feed.publish(SESSION, recorded)
            n = recorded.n


async def main(home: Path) -> None:
    async with serving(home) as served:
        print(served.url, served.owner.headers["authorization"].split()[1], flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        before = highest = rss()
        async with anyio.create_task_group() as tasks:

            async def look() -> None:
                nonlocal highest
                while True:
                    highest = max(highest, rss())
                    await anyio.sleep(0.005)

            tasks.start_soon(look)
            await produce(served)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            tasks.cancel_scope.cancel()
        print(highest - before, flush=True)


if __name__ == "__main__":
    tune_interpreter()
    anyio.run(main, Path(sys.argv[1]))
