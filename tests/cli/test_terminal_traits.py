"""Colours and pictures as the terminal has them: it is asked what it can answer, and nothing that
another would show as text."""

from __future__ import annotations

import base64
import re
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deskhand.cli.colors import wants_color
from deskhand.cli.paint import Paint
from deskhand.cli.pictures import count_rows
from deskhand.cli.terminal_traits import guess_traits
from deskhand.cli.themes import choose_theme

from .terminal import DESK, Screen, Terminal
from .test_chat import DESKHAND, environment

COLOUR = re.compile(rb"\x1b\[[0-9;]*(?:3[0-7]|9[0-7])(?:;[0-9;]*)?m")
WHITE = "\x1b]11;rgb:ffff/ffff/eeee\x1b\\"
BLACK = "\x1b]11;rgb:1e1e/1e1e/2e2e\x07"
KITTY = {"TERM": "xterm-kitty"}


class Answering(Screen):
    """Answers more than where the cursor is."""

    answers = ""

    def write_process_input(self, data: str) -> None:
        self.reply(self.answers + data if data.endswith("c") else data)


class AnsweringTerminal(Terminal):
    screen_type = Answering


Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the chat in a terminal that answers so."""
    work = tmp_path / "agents" / "default" / "workspace"
    work.mkdir(parents=True)
    (work / "chart.png").write_bytes(png(200, 100))
    terminals: list[Terminal] = []

    def begin(answers: str = "", config: str = "", **env: str) -> Terminal:
        (tmp_path / "deskhand.yaml").write_text(config)
        kind = type("Kind", (Answering,), {"answers": answers})
        terminal = type("One", (AnsweringTerminal,), {"screen_type": kind})
        argv = (sys.executable, str(DESK), str(tmp_path), "chat")
        terminals.append(terminal(argv, environment(tmp_path, **env), 80, 30))
        return terminals[-1]

    yield begin
    for terminal in terminals:
        terminal.close()


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        end = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + end

    rows = zlib.compress((b"\0" + b"\x40\x80\xc0" * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def prompt_colour(chat: Terminal) -> str:
    chat.wait_ready()
    for y in range(chat.screen.lines - 1, 0, -1):
        if chat.screen.display[y].startswith(">"):
            return str(chat.screen.buffer[y][0].fg)
    raise AssertionError(chat.shown)


def test_auto_follows_the_background(start: Start) -> None:
    assert prompt_colour(start(WHITE)) == "blue"
    assert prompt_colour(start(BLACK)) == "cyan"
    assert prompt_colour(start("")) == "cyan", "no answer: most are dark"
    named = start("", COLORFGBG="0;15")
    assert prompt_colour(named) == "blue"
    assert b"]11;?" not in named.raw, "it is known already"


def test_a_theme_that_is_set_wins(start: Start) -> None:
    assert prompt_colour(start(BLACK, "terminal: {theme: light}")) == "blue"
    assert prompt_colour(start(WHITE, "terminal: {theme: high-contrast}")) == "default"
    none = start(WHITE, "terminal: {theme: none}")
    assert prompt_colour(none) == "default"
    none.say("markdown")
    none.wait_for("The end of it.")
    assert not COLOUR.search(none.raw)


def test_what_is_typed_while_it_is_asked_is_kept(start: Start) -> None:
    chat = start("hi the" + WHITE + "re")
    chat.wait_ready()
    chat.wait_for("> hi there")


def test_only_terminals_that_answer_are_asked(start: Start) -> None:
    for term in ("linux", "vt100", "screen"):
        chat = start("", TERM=term)
        chat.wait_ready()
        assert b"\x1b]" not in chat.raw and b"\x1b_" not in chat.raw and b"\x1b[c" not in chat.raw


def see_chart(chat: Terminal) -> bytes:
    chat.wait_ready()
    chat.type("look at @chart.png now\r")
    chat.wait_for("[chart.png]")
    chat.wait_for("You said: look at")
    time.sleep(0.3)
    return chat.raw


def test_kitty_shows_a_picture(start: Start, tmp_path: Path) -> None:
    raw = see_chart(start("\x1b_Gi=31;OK\x1b\\" + BLACK, **KITTY))
    drawn = re.findall(rb"\x1b_G([^;\x1b]*);([^\x1b]*)\x1b\\", raw)
    assert drawn[0][0].startswith(b"i=31"), "it was asked first"
    keys, _ = drawn[1]
    assert keys == b"a=T,f=100,q=2,C=1,r=6,m=0"
    assert base64.b64decode(b"".join(data for _, data in drawn[1:])) == png(200, 100)


def test_iterm_shows_a_picture(start: Start) -> None:
    raw = see_chart(start("", TERM_PROGRAM="iTerm.app"))
    found = re.search(rb"\x1b\]1337;File=inline=1;size=(\d+);height=6;[^:]*:([^\x07]*)\x07", raw)
    assert found is not None and int(found[1]) == len(png(200, 100))


@pytest.mark.parametrize(
    ("answers", "config", "env"),
    [
        (BLACK, "", {}),
        ("", "", KITTY),  # it says that it is kitty, and does not answer so
        ("\x1b_Gi=31;ENOTSUPPORTED:no\x1b\\", "", KITTY),
        ("\x1b_Gi=31;OK\x1b\\", "terminal: {pictures: false}", KITTY),
        ("", "", {"TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/tmux-0/default,1,0"}),
    ],
    ids=["plain", "silent", "refused", "not wanted", "in tmux"],
)
def test_others_see_the_name_and_no_garbage(
    start: Start, answers: str, config: str, env: dict[str, str]
) -> None:
    chat = start(answers, config, **env)
    raw = see_chart(chat)
    assert b"1337" not in raw and b"a=T" not in raw
    assert "iVBOR" not in chat.all, "no picture as letters"


def test_a_large_picture_is_made_smaller_for_a_far_terminal(start: Start, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    from PIL import Image

    work = tmp_path / "agents" / "default" / "workspace"
    Image.effect_noise((1600, 900), 90).convert("RGB").save(work / "chart.png")
    raw = see_chart(start("\x1b_Gi=31;OK\x1b\\", SSH_CONNECTION="1.2.3.4 5 6.7.8.9 22", **KITTY))
    assert b"a=T" in raw and len(raw) < 100_000 < (work / "chart.png").stat().st_size


@pytest.mark.parametrize(
    ("size", "columns", "rows"), [((100, 100), 80, 6), ((4000, 3000), 80, 15), ((4000, 10), 20, 1)]
)
def test_how_many_rows_it_takes(size: tuple[int, int], columns: int, rows: int) -> None:
    assert count_rows(size, columns) == rows


def test_when_colours_are_wanted() -> None:
    assert wants_color({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "auto") is False
    assert wants_color({"NO_COLOR": ""}, "auto") is None
    assert wants_color({"FORCE_COLOR": "1", "TERM": "dumb"}, "auto") is True
    assert wants_color({"TERM": "dumb"}, "auto") is False
    assert wants_color({"FORCE_COLOR": "1"}, "none") is False
    assert guess_traits({"COLORFGBG": "0;default;15"}).dark is False
    assert guess_traits({"COLORFGBG": "15;default"}).dark is True


@pytest.mark.parametrize("name", ["dark", "light", "high-contrast"])
def test_every_theme_paints(name: str) -> None:
    for dark in (True, False):
        paint = Paint(lambda: 40, "256", choose_theme(name, dark=dark))  # type: ignore[arg-type]
        lines = [paint.line((style, style)) for style in ("you", "good", "bad", "warn", "tool")]
        assert all("\x1b[" in line for line in lines)


def test_a_pipe_has_colours_only_where_they_are_forced(tmp_path: Path) -> None:
    def show(*args: str, **env: str) -> bytes:
        done = subprocess.run(
            [*DESKHAND, *args],
            capture_output=True,
            env=environment(tmp_path, **env),
            stdin=subprocess.DEVNULL,
        )
        return done.stdout + done.stderr

    show("ask", "`hello`", "--session", "x", "--model", "scripted/echo")
    assert b"\x1b" not in show("sessions", "show", "x")
    assert COLOUR.search(show("sessions", "show", "x", FORCE_COLOR="1"))
    assert b"\x1b" not in show("sessions", "show", "x", FORCE_COLOR="1", NO_COLOR="1")
    assert b"\x1b" not in show("status")
    assert b"\x1b" in show("doctor", FORCE_COLOR="1")
