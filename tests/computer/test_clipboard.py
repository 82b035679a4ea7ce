"""The clipboard of a real screen, filled and read by real programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

from deskhand.computer.desktop.clipboard import MAX_BYTES, SECRET_TYPE, Clipboard
from deskhand.computer.desktop.desktop import Chosen
from deskhand.types.errors import ToolError

from .desk import Desk, open_desk

pytestmark = pytest.mark.timeout(120)
NOBODY = 65534
WORDS = "Grüße 🐚\nand a second line"


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as opened:
        yield opened


def put(desk: Desk, data: bytes, kind: str = "UTF8_STRING") -> None:
    """As another program."""
    command = ["xclip", "-selection", "clipboard", "-target", kind, "-in"]
    quiet = subprocess.DEVNULL
    subprocess.run(command, input=data, env=desk.environment, stdout=quiet, check=True)


async def read_soon(desk: Desk, wanted: str) -> None:
    """Programs take a moment to fill it."""
    with anyio.fail_after(20):
        while await desk.desktop.clipboard.read() != wanted:
            await anyio.sleep(0.05)


async def test_what_is_put_there_is_pasted_and_what_is_copied_is_read(desk: Desk) -> None:
    assert await desk.desktop.clipboard.read() == ""
    await desk.desktop.clipboard.write(WORDS)
    assert await desk.desktop.clipboard.read() == WORDS
    await desk.start("mousepad")
    await desk.desktop.press_keys(await desk.choose("textbox"), "ctrl+v")
    with anyio.fail_after(20):
        while WORDS not in [each.rstrip("\n") for each in await desk.values("textbox")]:
            await anyio.sleep(0.05)

    await desk.desktop.type_text(await desk.choose("textbox"), "only this", append=False)
    await desk.desktop.press_keys(Chosen(desk.window), "ctrl+a ctrl+c")
    await read_soon(desk, "only this")


async def test_what_a_password_manager_has_put_there_is_not_read(desk: Desk) -> None:
    put(desk, b"plain")
    await read_soon(desk, "plain")
    put(desk, b"secret", SECRET_TYPE)
    with anyio.fail_after(20):
        with pytest.raises(ToolError, match="password manager"):
            while True:
                await desk.desktop.clipboard.read()


async def test_a_picture_is_no_text_and_a_long_text_is_cut(desk: Desk) -> None:
    put(desk, b"plain")
    await read_soon(desk, "plain")
    put(desk, b"\x89PNG", "image/png")
    await read_soon(desk, "")
    put(desk, b"x" * (MAX_BYTES + 10))
    await read_soon(desk, "x" * MAX_BYTES)


async def test_without_its_program_the_command_that_installs_it_is_told() -> None:
    for environment, package in (({}, "xclip"), ({"WAYLAND_DISPLAY": "w"}, "wl-clipboard")):
        clipboard = Clipboard({"PATH": "/nowhere", **environment})
        assert clipboard.find_missing() == package
        with pytest.raises(ToolError, match=f"apt-get install {package}"):
            await clipboard.read()


async def test_a_password_that_comes_between_two_looks_is_not_told(tmp_path: Path) -> None:
    program = tmp_path / "xclip"
    program.write_text(
        f"""#!/bin/sh
        case "$5" in
        UTF8_STRING) echo secret; : > "{tmp_path}/read" ;;
        *) echo UTF8_STRING; if [ -e "{tmp_path}/read" ]; then echo {SECRET_TYPE}; fi ;;
        esac
        """
    )
    program.chmod(0o755)
    with pytest.raises(ToolError, match="password manager"):
        await Clipboard({"PATH": str(tmp_path)}).read()


async def test_a_screen_that_is_not_there_is_told(desk: Desk) -> None:
    gone = Clipboard({**desk.environment, "DISPLAY": ":9999"})
    with pytest.raises(ToolError, match="did not take it"):
        await gone.write("x")
    with pytest.raises(ToolError, match="the desktop with this clipboard is gone"):
        await gone.read()


@pytest.fixture
def wayland() -> Iterator[dict[str, str]]:
    """The environment of a Wayland desktop. Its compositor does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="deskhand-wayland-"))
    settings = folder / "sway.conf"
    settings.write_text("xwayland disable\n")
    environment = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(folder)}
    command = ["sway", "--config", str(settings)]
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    headless = {
        "WLR_BACKENDS": "headless",
        "WLR_RENDERER": "pixman",
        "WLR_LIBINPUT_NO_DEVICES": "1",
    }
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, env={**environment, **headless, "HOME": str(folder)}, stdout=quiet, stderr=quiet
    )
    try:
        yield environment
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


async def test_the_clipboard_of_wayland(wayland: dict[str, str]) -> None:
    folder = Path(wayland["XDG_RUNTIME_DIR"])
    with anyio.fail_after(60):
        while not (sockets := [*folder.glob("wayland-[0-9]")]):
            await anyio.sleep(0.05)
    wayland["WAYLAND_DISPLAY"] = sockets[0].name
    clipboard = Clipboard(wayland)
    assert clipboard.find_missing() == ""
    assert await clipboard.read() == ""
    await clipboard.write(WORDS)
    assert await clipboard.read() == WORDS
    secret = ["wl-copy", "--type", SECRET_TYPE, "secret"]
    subprocess.run(secret, env=wayland, check=True, stdout=subprocess.DEVNULL)
    with pytest.raises(ToolError, match="password manager"):
        await clipboard.read()
    with pytest.raises(ToolError, match="is gone"):
        await Clipboard({**wayland, "WAYLAND_DISPLAY": "wayland-9"}).read()
