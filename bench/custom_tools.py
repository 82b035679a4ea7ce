"""A call of a custom tool whose file is loaded, beside one of our own tools."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

import anyio

from deskhand.runtime.app import App
from deskhand.testing.temporary_home import TemporaryHome
from deskhand.types.events import ToolFinished

CALLS = 40
FILE = """
from deskhand.customtools import tool

@tool(reads_only=True)
def look(a: int) -> int:
    \"\"\"Look.\"\"\"
    return a + 1

@tool
def add(a: int) -> int:
    \"\"\"Add.\"\"\"
    return a + 1
"""


async def median_ms(desk: TemporaryHome, app: App, chat: str, name: str, **given: object) -> float:
    """The median of a call as it stands in the log, each in a turn of its own, without the
    first."""
    for _ in range(CALLS):
        await desk.call(app, name, chat, **given)
    events = [each.event for each in await app.store.events(f"default/terminal:{chat}")]
    took = [each.took_s for each in events if isinstance(each, ToolFinished)]
    return statistics.median(took[1:]) * 1_000


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        desk = TemporaryHome(Path(home))
        file = desk.settings.home.workspace("default") / "tools" / "bench.py"
        file.parent.mkdir(parents=True)
        file.write_text(FILE)
        (file.parent.parent / "note.txt").write_text("a note")
        os.utime(file, (1e9, 1e9))
        async with desk.running() as app:
            took = {
                "read_file": await median_ms(desk, app, "1", "read_file", path="note.txt"),
                "shell": await median_ms(desk, app, "2", "shell", command="true"),
                "custom, reads only": await median_ms(desk, app, "3", "look", a=1),
                "custom": await median_ms(desk, app, "4", "add", a=1),
            }
    sys.stdout.write("".join(f"{name}: {each:.2f} ms\n" for name, each in took.items()))


if __name__ == "__main__":
    anyio.run(main)
