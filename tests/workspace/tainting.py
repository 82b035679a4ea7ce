"""A process in whose conversations things are done until it is killed: `tainting.py HOME`.

Each line that it reads is a JSON list of calls for a conversation of its own; it answers each with
`over` when that conversation is at rest, and those that begin with `!` at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import msgspec

from deskhand.testing.temporary_home import TemporaryHome, at_rest


async def main(home: Path) -> None:
    desk = TemporaryHome(home, policy=[{"verdict": "allow"}])
    async with desk.running() as app:
        print("up", flush=True)
        number = 0
        while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            number += 1
            calls = msgspec.json.decode(line.lstrip("!"))
            session = await desk.say(
                app, msgspec.json.encode(calls).decode(), f"life-{number}", f"{home}-{number}"
            )
            while not (line.startswith("!") or await at_rest(app, session)):
                await anyio.sleep(0.003)
            print("over", flush=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
