"""The desktop, with real programs of four toolkits on a screen of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from PIL import Image as Pixels

from deskhand.computer.desktop.desktop import KEYS_AT_ONCE, Chosen
from deskhand.computer.desktop.host import DesktopConfig, DesktopHost
from deskhand.computer.desktop.picture import encode_picture
from deskhand.computer.desktop.x11 import X11Screen
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
        await desk.desktop.press(await desk.choose("button", key))
    shown = {each.value or each.name for each in await desk.all()}
    assert "3" in shown


@pytest.mark.parametrize("program", ["mousepad", "gedit", "featherpad"])
async def test_text_into_editors(desk: Desk, program: str) -> None:
    await desk.start(program)
    assert (
        await desk.desktop.type_text(await desk.choose("textbox"), UNICODE, append=False) == "set"
    )
    assert UNICODE in [each.rstrip("\n") for each in await desk.values("textbox")]
    await desk.desktop.type_text(await desk.choose("textbox"), " more", append=True)
    assert f"{UNICODE} more" in [each.rstrip("\n") for each in await desk.values("textbox")]


@pytest.mark.parametrize("program", ["mousepad", "gedit", "featherpad"])
async def test_keys_into_editors(desk: Desk, program: str) -> None:
    """Also characters that no key of the keyboard has."""
    await desk.start(program)
    chosen = await desk.choose("textbox")
    node = await desk.desktop._read_now(chosen)
    await desk.desktop._type_keys(chosen, node, UNICODE, append=False)
    assert UNICODE in [each.rstrip("\n") for each in await desk.values("textbox")]


async def test_a_dialog_is_filled(desk: Desk) -> None:
    program = await desk.start("zenity", "--entry", "--text=Your name", window="zenity")
    await desk.desktop.type_text(await desk.choose("textbox"), "Ann", append=False)
    await desk.desktop.press(await desk.choose("button", "OK"))
    await ends(program)


async def test_a_file_is_picked(desk: Desk, tmp_path: Path) -> None:
    for name in ("notes.txt", "other.txt"):
        (tmp_path / name).write_text(name)
    where = f"--filename={tmp_path}/"
    program = await desk.start("zenity", "--file-selection", where, window="zenity")
    with anyio.fail_after(10):
        while not any(each.name == "other.txt" for each in await desk.all()):
            await anyio.sleep(0.1)
    await desk.desktop.press(await desk.choose("gridcell", "other.txt"))
    await desk.desktop.press(await desk.choose("button", "OK"))
    assert await ends(program) == f"{tmp_path}/other.txt\n"


async def test_a_row_is_opened_by_a_double_click(desk: Desk) -> None:
    rows = [f"row {number}" for number in range(200)]
    program = await desk.start("zenity", "--list", "--column=Name", *rows, window="zenity")
    row = await desk.choose("gridcell", "row 3")
    await desk.desktop.click(row, "left", 2)
    assert await ends(program) == "row 3\n"


async def test_what_is_out_of_sight_is_scrolled_to(desk: Desk) -> None:
    rows = [f"row {number}" for number in range(200)]
    program = await desk.start("zenity", "--list", "--column=Name", *rows, window="zenity")
    far = await desk.choose("gridcell", "row 199")
    with pytest.raises(ToolError, match="nothing of it can be seen in its window: scroll first"):
        await desk.desktop.click(far, "left", 2)
    await desk.desktop.scroll(await desk.choose("gridcell", "row 0"), "down", 50)
    for _ in range(4):
        await desk.desktop.scroll(Chosen(desk.window), "down", 50)
    await desk.desktop.settle(desk.window)
    await desk.desktop.click(await desk.choose("gridcell", "row 199"), "left", 2)
    assert await ends(program) == "row 199\n"


async def test_the_right_button_opens_a_menu(desk: Desk) -> None:
    await desk.start("mousepad")
    before = {each.key for each in desk.desktop.windows}
    await desk.desktop.click(await desk.choose("textbox"), "right", 1)
    with anyio.fail_after(10):
        while not {each.key for each in desk.desktop.windows} - before:
            await desk.desktop.list_windows()
    (menu,) = (each for each in desk.desktop.windows if each.key not in before)
    with pytest.raises(ToolError, match="press Escape"):
        await desk.desktop.close_window(menu)
    names = {each.name for each in (await desk.desktop.look(desk.view, menu)).walk()}
    assert "Paste" in names


async def test_a_tab_is_dragged_behind_another(desk: Desk, tmp_path: Path) -> None:
    for name in ("first.txt", "second.txt"):
        (tmp_path / name).write_text(name)
    paths = [str(tmp_path / name) for name in ("first.txt", "second.txt")]
    await desk.start("mousepad", *paths, window="mousepad")
    tabs = [each for each in await desk.all() if each.role == "tab"]
    assert [each.name for each in tabs] == ["first.txt", "second.txt"]
    await desk.desktop.drag(Chosen(desk.window, tabs[0], tabs[1]))
    after = [each.name for each in await desk.all() if each.role == "tab"]
    assert after == ["second.txt", "first.txt"]


async def test_each_button_is_framed_in_a_picture(desk: Desk) -> None:
    """Also while a tooltip of the same program lies over them."""
    await desk.start("galculator")
    screen = desk.desktop._screen
    assert isinstance(screen, X11Screen)
    before = len(screen._list_tops())
    seven = await desk.choose("button", "7")
    place = await desk.desktop._find_screen_window(desk.window)
    screen._move(*await desk.desktop._find_point(desk.window, seven.element, place))
    with anyio.fail_after(20):
        while len(screen._list_tops()) == before:
            await anyio.sleep(0.1)
    picture, marks = await desk.desktop.take_marked_picture(desk.view, desk.window)
    assert (picture.width, picture.height) == (place.width, place.height)
    assert seven.element is not None
    (framed,) = [each for each in marks if each.ref == seven.element.ref]
    assert 0 < framed.left < framed.left + framed.width < picture.width

    size = picture.width, picture.height, picture.pixels
    plain, drawn = (encode_picture(*size, marks=each) for each in ((), marks))
    x, y = framed.left, framed.top + framed.height // 2
    assert redness(drawn, x, y) > 40 > redness(plain, x, y)


def redness(picture: bytes, x: int, y: int) -> int:
    """How much more red than green this pixel is."""
    red, green, _ = Pixels.open(BytesIO(picture)).crop((x, y, x + 1, y + 1)).tobytes()
    return red - green


async def test_a_window_is_closed_and_may_ask_first(desk: Desk) -> None:
    program = await desk.start("zenity", "--info", "--text=Done", window="zenity")
    await desk.desktop.close_window(desk.window)
    with anyio.fail_after(10):
        while program.poll() is None:
            await anyio.sleep(0.05)
    program = await desk.start("mousepad")
    await desk.desktop.type_text(await desk.choose("textbox"), "not saved", append=False)
    await desk.desktop.close_window(desk.window)
    with anyio.fail_after(10):
        while len(await desk.desktop.list_windows()) == 0:
            await anyio.sleep(0.05)
    assert program.poll() is None


async def ends(program: subprocess.Popen[bytes]) -> str:
    """It ends well; what it says."""
    with anyio.fail_after(10):
        while program.poll() is None:
            await anyio.sleep(0.05)
    assert program.returncode == 0
    return program.stdout.read().decode() if program.stdout is not None else ""


async def test_a_password_is_never_read(desk: Desk) -> None:
    await desk.start("zenity", "--password", window="zenity")
    said = await desk.desktop.type_text(await desk.choose("password"), "hunter2", append=False)
    assert "not read back" in said
    assert not any("hunter2" in f"{each.name}{each.value}" for each in await desk.all())


async def test_what_is_gone_is_refused(desk: Desk) -> None:
    program = await desk.start("zenity", "--question", "--text=Delete it?", window="zenity")
    chosen = await desk.choose("button", "Yes")
    program.kill()
    program.wait()
    with pytest.raises(ToolError):
        await desk.desktop.press(chosen)
    await desk.desktop.list_windows()
    with pytest.raises(StaleRef):
        await desk.desktop.press(chosen)


async def test_a_program_that_hangs_is_told(desk: Desk) -> None:
    program = await desk.start("galculator")
    chosen = await desk.choose("button", "1")
    os.kill(program.pid, signal.SIGSTOP)
    try:
        with anyio.fail_after(60), pytest.raises(ToolError):
            await desk.desktop.press(chosen)
    finally:
        os.kill(program.pid, signal.SIGCONT)


async def test_keys_go_nowhere_else(desk: Desk) -> None:
    """Another window comes to the front while it is being typed."""
    await desk.start("mousepad")
    chosen = await desk.choose("textbox")
    node = await desk.desktop._read_now(chosen)
    await desk.start("gedit")
    other = await desk.choose("textbox")
    await desk.desktop._focus(await desk.desktop._read_now(other), other.window)

    async def come_to_front() -> None:
        while len(await desk.desktop._read_text(node)) < 30:
            await anyio.sleep(0.05)
        await desk.desktop.raise_window(other.window)

    with pytest.raises(ToolError, match="has the keys now"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(come_to_front)
            try:
                await desk.desktop._type_keys(chosen, node, "word " * 200, append=False)
            except ToolError as error:
                caught = error
            else:
                raise AssertionError("it was typed to the end")
        raise caught
    assert len("".join(await desk.values("textbox"))) <= KEYS_AT_ONCE


async def test_nothing_is_typed_twice(desk: Desk) -> None:
    """Behind more than is shown of a text."""
    await desk.start("mousepad")
    long = "word " * 1_000
    await desk.desktop.type_text(await desk.choose("textbox"), long, append=False)
    await desk.desktop.type_text(await desk.choose("textbox"), "END", append=True)
    node = await desk.desktop._read_now(await desk.choose("textbox"))
    assert (await desk.desktop._read_text(node)).count("END") == 1


async def test_typing_is_stopped_at_once(desk: Desk) -> None:
    await desk.start("mousepad")
    chosen = await desk.choose("textbox")
    node = await desk.desktop._read_now(chosen)
    before = anyio.current_time()
    with anyio.move_on_after(1.0):
        await desk.desktop._type_keys(chosen, node, "word " * 300, append=False)
    assert anyio.current_time() - before < 4
    held = await desk.desktop._read_text(node)
    await anyio.sleep(0.5)
    later = await desk.desktop._read_text(node)
    assert len(later) - len(held) <= KEYS_AT_ONCE, "no more than what was under way is typed"


async def test_a_screen_that_ends_is_told_and_opened_anew(tmp_path: Path) -> None:
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    host = DesktopHost(lambda: DesktopConfig("virtual"), lambda: own)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run)
        await anyio.sleep(0)
        desktop = await host.open()
        await desktop.take_picture()
        (screen,) = [each for each in list_children() if "Xvfb" in each[1]]
        os.kill(screen[0], signal.SIGKILL)
        with anyio.fail_after(10), pytest.raises(ToolError, match="screen has ended"):
            while True:
                await desktop.take_picture()
        again = await host.open()
        assert again is not desktop and (await again.take_picture())[0] == 1280
        tasks.cancel_scope.cancel()


def list_children() -> list[tuple[int, str]]:
    """Our own processes, with their names."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            parent = (each / "stat").read_text().rpartition(")")[2].split()[1]
            if each.name.isdigit() and int(parent) == os.getpid():
                found.append((int(each.name), (each / "comm").read_text().strip()))
        except (OSError, IndexError, ValueError):
            continue
    return found


async def test_many_calls_do_not_end_the_bus(desk: Desk) -> None:
    await desk.start("galculator")
    bus = desk.desktop._bus
    async with anyio.create_task_group() as tasks:
        for _ in range(5_000):
            tasks.start_soon(bus.get, desk.window.key, "org.a11y.atspi.Accessible", "Name")
    assert bus.is_connected and await desk.desktop.look(desk.view, desk.window)


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
