"""Whenever the process dies, the end of a background command is told exactly once, and it never
runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.temporary_home import TemporaryHome, heard, processes_with, wait_for
from deskhand.types.events import ToolFinished

SESSION = "default/terminal:1"
WANTED = '[["background_run", {"command": "echo ran >> ran.txt; echo said"}]]'


async def _life(desk: TemporaryHome, fuse: Fuse) -> bool:
    """Hand the message in, and live until the end of its command was told and answered. True when
    the fuse blew."""
    crashed = False
    try:
        async with desk.running(store=fused(fuse)) as app:
            await desk.say(app, WANTED, id_="the same again: nobody was told that we have it")
            await wait_for(partial(_settled, app))
    except* Crash:
        crashed = True
    return crashed


async def _settled(app: App) -> bool:
    owed = await app.store.query("process_owed", ())
    return bool(await heard(app, SESSION)) and not owed and not await app.store.open_sessions()


async def _through(home: Path, at: int, proven: Proven) -> tuple[bool, bool]:
    """Crash at this boundary, come back. Returns whether it crashed, and whether an interruption
    was told."""
    desk = TemporaryHome(home, proven)
    fuse = Fuse(at)
    crashed = await _life(desk, fuse)
    if crashed:
        assert not await _life(desk, Fuse())
    async with desk.running() as app:
        told = await heard(app, SESSION)
        results = [
            each.event
            for each in await app.store.events(SESSION)
            if isinstance(each.event, ToolFinished)
        ]
        assert [each.result.text.split()[:2] for each in results] == [["Background", "task"]]
        assert len(told) == 1, "its end was told twice, or not at all"
        assert not await app.store.query("process_owed", ())
    ran = desk.settings.home.workspace("default") / "ran.txt"
    times = ran.read_text().count("ran") if ran.exists() else 0
    interrupted = "interrupted by a restart; it may or may not have finished" in told[0]
    assert times == 1 or (interrupted and times == 0), (times, told)
    assert interrupted or "completed: exit code: 0" in told[0]
    return crashed, interrupted


@pytest.mark.timeout(180)
async def test_every_boundary(tmp_path: Path) -> None:
    proven = await open_sandbox()
    # How many boundaries there are depends on who is quicker: so it goes on until none is reached
    # any more.
    crashes = interruptions = missed = at = 0
    while missed < 3:
        at += 1
        crashed, interrupted = await _through(tmp_path / str(at), at, proven)
        crashes += crashed
        interruptions += interrupted
        missed = 0 if crashed else missed + 1
    assert crashes >= 12 and interruptions >= 1


def _sleeping(mark: str) -> list[int]:
    return [pid for pid in processes_with(mark) if str(pid) != str(os.getpid())]


async def test_nothing_outlives_a_service_that_is_killed(tmp_path: Path) -> None:
    """Neither commands in the background nor sessions at a terminal; and what was said until then
    is told."""
    mark = f"76{os.getpid()}"
    argv = [sys.executable, str(Path(__file__).with_name("holding.py")), str(tmp_path), mark]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holding:
        assert holding.stdout is not None and holding.stdout.readline() == "holding\n"
        assert len(_sleeping(mark)) >= 6
        os.kill(holding.pid, signal.SIGKILL)
        holding.wait()
    await wait_for(partial(_gone, mark), 10)
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        told = (await wait_for(partial(heard, app, SESSION)))[0]
        assert (
            "error: interrupted by a restart; it may or may not have finished]" in told
            and "\nsaid it\n" in told
        )
        ended = {each.kind: each.detail for each in await app.background.list_processes(SESSION)}
        assert ended == dict.fromkeys(
            ("background", "session"), "interrupted by a restart; it may or may not have finished"
        )
        said = await desk.call(app, "process", action="poll", id="12345678")
        assert "What ran before a restart was ended by it" in said
    assert len(await _told_again(desk)) == 1


async def _gone(mark: str) -> bool:
    return not _sleeping(mark)


async def _told_again(desk: TemporaryHome) -> list[str]:
    async with desk.running() as app:
        return await heard(app, SESSION)
