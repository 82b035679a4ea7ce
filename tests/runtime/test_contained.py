"""What bursts its bounds beside a conversation is contained, and holds nobody else up."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from deskhand.runtime.app import App
from deskhand.testing.temporary_home import TemporaryHome, heard, processes_with, rows, wait_for
from deskhand.types.process import Process

BOMBS = {
    "processes": "b() { b | b & }; b; sleep 90; : {mark}",
    "memory": "/usr/bin/python3 -c 'x = bytearray(3 << 30); input()' && : {mark}",
    "files": "head -c 5G /dev/zero > large && : {mark}",
}


@pytest.mark.timeout(180)
async def test_other_commands_start_while_bombs_go_off_beside(tmp_path: Path) -> None:
    """A fork bomb, 3 GB of memory and 5 GB of files, in the background and at a terminal."""
    mark = f"bomb-{tmp_path.name}"
    desk = TemporaryHome(tmp_path, processes={"per_session": 8})
    async with desk.running() as app:
        begun_at = anyio.current_time()
        for bomb in BOMBS.values():
            await desk.call(
                app, "background_run", command=bomb.replace("{mark}", mark), timeout_s=15
            )
        fork = BOMBS["processes"].replace("{mark}", mark)
        await desk.call(app, "process", action="start", command=fork, wait_s=0)
        for number in range(3):
            assert (
                await desk.call(app, "shell", chat=f"other{number}", command="echo fine")
            ).startswith("fine\n")
        ended = await wait_for(partial(_all_over, app, 4), 90)
        print(f"contained within {anyio.current_time() - begun_at:.1f} s")
        told = "\n".join(await wait_for(partial(_told, app, 3)))
        assert all(each.detail != "exit code: 0" for each in ended), ended
        assert "MemoryError" in told or "limit of memory" in told
        assert "limit of processes" in told or "timed out" in told
        workspace = desk.settings.home.workspace("default")
        assert max(each.stat().st_size for each in workspace.iterdir()) <= 1 << 30
    assert not processes_with(mark), "some of it lives on"


async def _all_over(app: App, number: int) -> list[Process]:
    found = [each for each in await rows(app) if not each.is_live]
    return found if len(found) == number else []


async def _told(app: App, number: int) -> list[str]:
    found = await heard(app, "default/terminal:1")
    return found if len(found) == number else []
