"""Windows of programs that say nothing of themselves: their words are read in a picture."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from Xlib import Xatom

from deskhand.computer.desktop.desktop import Chosen
from deskhand.computer.desktop.picture import Mark, encode_picture
from deskhand.computer.desktop.picture_text import MAX_LINES, TextLine, parse_lines
from deskhand.computer.desktop.x11 import X11Screen
from deskhand.computer.elements import Element, StaleRef
from deskhand.types.errors import ToolError

from .desk import Desk, open_desk

HEAD = (
    "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
)
MENU = """
echo Save or discard?
read answer
printf '\\033[2J\\033[HYou said %s\\n' "$answer"
sleep 60
"""
"""What runs in the terminal."""


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_desk() as opened:
        yield opened


def row(line: int, left: int, width: int, conf: str, text: str, top: int = 20) -> str:
    return f"5\t1\t1\t1\t{line}\t1\t{left}\t{top}\t{width}\t20\t{conf}\t{text}"


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([], []),
        ([row(1, 0, 40, "96.5", "Save"), row(1, 48, 20, "90", "as")], ["Save as"]),
        ([row(1, 0, 40, "96", "File"), row(1, 80, 40, "96", "Edit")], ["File", "Edit"]),
        ([row(1, 0, 40, "96", "Yes"), row(1, 66, 40, "96", "No")], ["Yes", "No"]),
        ([row(1, 0, 40, "96", "low", top=90), row(2, 0, 40, "96", "high")], ["high", "low"]),
        ([row(1, 0, 40, "12", "noise"), row(1, 0, 40, "-1", "")], []),
        (["", "5\t1", row(1, 0, 40, "x", "bad"), "\t" * 30], []),
    ],
)
def test_lines_of_a_table(rows: list[str], lines: list[str]) -> None:
    assert [each.text for each in parse_lines("\n".join([HEAD, *rows]))] == lines


def test_a_place_is_told_in_pixels_of_the_picture() -> None:
    (line,) = parse_lines("\n".join([HEAD, row(1, 100, 40, "96", "Save", top=60)]))
    assert line == TextLine("Save", 50, 30, 20, 10)


def test_a_frame_ends_with_the_picture() -> None:
    """Whatever size a program says that something has: it would be drawn pixel by pixel."""
    huge = Mark("e1", -(1 << 30), -(1 << 30), (1 << 31) - 1, (1 << 31) - 1)
    assert encode_picture(20, 20, bytes(20 * 20 * 4), marks=[huge] * 100).startswith(b"\xff\xd8")


def test_a_picture_full_of_words_is_cut() -> None:
    rows = [row(number, 0, 40, "96", f"w{number}") for number in range(2 * MAX_LINES)]
    assert len(parse_lines("\n".join([HEAD, *rows]))) == MAX_LINES


async def open_terminal(desk: Desk, script: str) -> None:
    """A terminal: it tells the accessibility bus nothing."""
    await desk.start("xterm", "-fa", "DejaVu Sans Mono", "-fs", "14", "-e", "sh", "-c", script)


def find_words(root: Element, words: str) -> Element:
    return next(each for each in root.walk() if words in each.name)


async def wait_for_words(desk: Desk, words: str) -> Element:
    with anyio.fail_after(20):
        while True:
            root = await desk.desktop.look(desk.view, desk.window)
            if any(words in each.name for each in root.walk()):
                return find_words(root, words)


async def test_words_are_read_typed_and_clicked_where_nothing_tells_of_them(desk: Desk) -> None:
    await open_terminal(desk, MENU)
    assert desk.window.is_pictured and Path(desk.window.program).name == "xterm"
    question = await wait_for_words(desk, "discard")
    assert question.ref and question.role == "clickable"

    said = await desk.desktop.type_text(Chosen(desk.window), "discard it", append=False)
    assert "does not say whether" in said
    await desk.desktop.press_keys(Chosen(desk.window), "Enter")
    answer = await wait_for_words(desk, "You said")
    assert "discard it" in answer.name
    assert await desk.desktop.press(Chosen(desk.window, answer)) == "by a click of the mouse"
    with pytest.raises(StaleRef, match="is no longer there"):
        await desk.desktop.press(Chosen(desk.window, question))


async def test_nothing_is_read_or_clicked_through_another_window(desk: Desk) -> None:
    await open_terminal(desk, MENU)
    terminal = desk.window
    words = await wait_for_words(desk, "discard")
    await desk.start("zenity", "--info", "--text=Delete everything", window="zenity")
    covering = desk.window
    root = await desk.desktop.look(desk.view, terminal)
    shown = " ".join(each.name for each in root.walk())
    assert "something covers the window there: focus it first" in shown
    assert "Delete" not in shown and "discard" not in shown
    place = await desk.desktop._find_screen_window(terminal)
    with pytest.raises(ToolError, match="something covers"):
        await desk.desktop._pictured.find_middle(words, place)

    await desk.desktop.raise_window(terminal)
    assert find_words(await desk.desktop.look(desk.view, terminal), "discard")
    await desk.desktop.list_windows()
    assert covering.key in {each.key for each in desk.desktop.windows}


async def test_words_that_have_moved_are_not_clicked(desk: Desk) -> None:
    script = "echo Delete it; read x; clear; echo; echo; echo; echo Delete it; sleep 60"
    await open_terminal(desk, script)
    words = await wait_for_words(desk, "Delete it")
    await desk.desktop.press_keys(Chosen(desk.window), "Enter")
    with anyio.fail_after(20):
        while (await wait_for_words(desk, "Delete it")).key == words.key:
            await anyio.sleep(0.1)
    with pytest.raises(StaleRef, match="is no longer there"):
        await desk.desktop.press(Chosen(desk.window, words))


async def test_a_window_that_was_closed_is_refused(desk: Desk) -> None:
    await open_terminal(desk, MENU)
    words = await wait_for_words(desk, "discard")
    chosen = Chosen(desk.window, words)
    await desk.desktop.close_window(desk.window)
    with anyio.fail_after(10):
        while desk.desktop.windows:
            await desk.desktop.list_windows()
    await open_terminal(desk, MENU)
    assert Chosen(desk.window, words).identity != chosen.identity, "another terminal"
    for act in (desk.desktop.press(chosen), desk.desktop.type_text(chosen, "x", append=False)):
        with pytest.raises(ToolError, match="is closed"):
            await act


async def test_the_process_is_the_one_that_the_screen_knows(desk: Desk) -> None:
    """Not the one that a window names itself."""
    await open_terminal(desk, MENU)
    screen = desk.desktop._screen
    assert isinstance(screen, X11Screen)
    window = screen._display.create_resource_object("window", int(desk.window.key[1]))
    window.change_property(screen._atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [1])
    screen._display.sync()
    await desk.desktop.list_windows()
    (found,) = desk.desktop.windows
    assert found.pid == desk.window.pid and found.program == desk.window.program
