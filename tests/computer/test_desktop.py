"""The desktop, with real programs of four toolkits on a screen of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from deskhand.computer.elements import StaleRef
from deskhand.types.errors import ToolError

from .desk import Desk, open_desk

UNICODE = "Grüße, 世界 😀 “ok” %"


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as opened:
        yield opened


@pytest.mark.parametrize("program", ["galculator", "kcalc", "gnome-calculator"])
async def test_arithmetic(desk: Desk, program: str) -> None:
    """In GTK 3, Qt 5 and GTK 4."""
    await desk.start(program)
    for key in ("1", "+", "2", "="):
        await desk.desktop.press(await desk.ref("button", key))
    shown = {each.value or each.name for each in await desk.all()}
    assert "3" in shown


@pytest.mark.parametrize("program", ["mousepad", "gedit", "featherpad"])
async def test_text_into_editors(desk: Desk, program: str) -> None:
    await desk.start(program)
    assert await desk.desktop.type_text(await desk.ref("textbox"), UNICODE, append=False) == "set"
    assert UNICODE in [each.rstrip("\n") for each in await desk.values("textbox")]
    await desk.desktop.type_text(await desk.ref("textbox"), " more", append=True)
    assert f"{UNICODE} more" in [each.rstrip("\n") for each in await desk.values("textbox")]


@pytest.mark.parametrize("program", ["mousepad", "gedit", "featherpad"])
async def test_keys_into_editors(desk: Desk, program: str) -> None:
    """Also characters that no key of the keyboard has."""
    await desk.start(program)
    ref = await desk.ref("textbox")
    node = (await desk.desktop._find_node(ref))[2]
    assert desk.desktop.current is not None and desk.desktop._screen is not None
    await desk.desktop._focus(node, desk.desktop.current)
    await anyio.to_thread.run_sync(desk.desktop._screen.type_text, UNICODE)
    await desk.desktop.settle()
    assert UNICODE in [each.rstrip("\n") for each in await desk.values("textbox")]


async def test_a_file_is_picked(desk: Desk) -> None:
    program = await desk.start("zenity", "--entry", "--text=Your name", window="zenity")
    await desk.desktop.type_text(await desk.ref("textbox"), "Ann", append=False)
    await desk.desktop.press(await desk.ref("button", "OK"))
    with anyio.fail_after(10):
        while program.poll() is None:
            await anyio.sleep(0.05)
    assert program.returncode == 0


async def test_a_password_is_never_read(desk: Desk) -> None:
    await desk.start("zenity", "--password", window="zenity")
    ref = await desk.ref("password")
    said = await desk.desktop.type_text(ref, "hunter2", append=False)
    assert "not read back" in said
    assert not any("hunter2" in f"{each.name}{each.value}" for each in await desk.all())


async def test_what_is_gone_is_refused(desk: Desk) -> None:
    program = await desk.start("zenity", "--question", "--text=Delete it?", window="zenity")
    ref = await desk.ref("button", "Yes")
    program.kill()
    program.wait()
    with pytest.raises(ToolError):
        await desk.desktop.press(ref)
    await desk.desktop.list_windows()
    with pytest.raises(StaleRef):
        await desk.desktop.press(ref)


async def test_a_program_that_hangs_is_told(desk: Desk) -> None:
    program = await desk.start("galculator")
    ref = await desk.ref("button", "1")
    os.kill(program.pid, signal.SIGSTOP)
    try:
        with anyio.fail_after(60), pytest.raises(ToolError):
            await desk.desktop.press(ref)
    finally:
        os.kill(program.pid, signal.SIGCONT)


async def test_keys_go_nowhere_else(desk: Desk) -> None:
    """The window in front is not the one that is meant."""
    await desk.start("mousepad")
    ref = await desk.ref("textbox")
    _, window, node = await desk.desktop._find_node(ref)
    await desk.start("gedit")
    with pytest.raises(ToolError, match="something else has the keys"):
        await desk.desktop._require_focus(node, window)


async def test_many_calls_do_not_end_the_bus(desk: Desk) -> None:
    await desk.start("galculator")
    assert desk.desktop.current is not None
    window = desk.desktop.current
    bus = desk.desktop._bus
    async with anyio.create_task_group() as tasks:
        for _ in range(5_000):
            tasks.start_soon(bus.get, window.key, "org.a11y.atspi.Accessible", "Name")
    assert bus.is_connected and await desk.desktop.look(window)


LONELY = """
import sys, tempfile, os, anyio
from pathlib import Path
from deskhand.computer.desktop.screen import open_virtual_screen
async def main():
    async with open_virtual_screen(Path(sys.argv[1]), dict(os.environ)) as screen:
        screen.start_program(("zenity", "--info", "--text=hello"))
        await anyio.sleep(2)
        print("ready", flush=True)
        await anyio.sleep(60)
anyio.run(main)
"""


async def test_nothing_outlives_a_killed_deskhand(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    command = [sys.executable, "-c", LONELY, str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as lonely:
        assert lonely.stdout is not None
        assert await anyio.to_thread.run_sync(lonely.stdout.readline) == b"ready\n"
        assert len(list_programs_with(run)) > 3
        lonely.kill()
    with anyio.fail_after(15):
        while list_programs_with(run):
            await anyio.sleep(0.1)


def list_programs_with(folder: Path) -> list[str]:
    """The processes that have this folder in their environment."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and str(folder).encode() in (each / "environ").read_bytes():
                found.append((each / "comm").read_text().strip())
        except OSError:
            continue
    return found
