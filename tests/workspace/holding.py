"""A process in whose conversation commands run beside, until it is killed: `holding.py HOME
MARK`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import anyio

from deskhand.runtime.app import App
from deskhand.testing.temporary_home import TemporaryHome, wait_for


async def main(home: Path, mark: str) -> None:
    desk = TemporaryHome(home)
    async with desk.running() as app:
        said = f"echo said it; (setsid sleep {mark}1 &); nohup sleep {mark}2 & sleep {mark}3"
        await desk.call(app, "background_run", command=said)
        await desk.call(
            app,
            "process",
            action="start",
            command=f"bash --norc -c 'sleep {mark}4 & exec sleep {mark}5'",
        )
        spooled = home / "state" / "processes"
        await wait_for(partial(_said, app, spooled))
        print("holding", flush=True)
        await anyio.sleep_forever()


async def _said(app: App, folder: Path) -> bool:
    return any(b"said it" in each.read_bytes() for each in folder.iterdir())


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
