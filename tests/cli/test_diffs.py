"""Every edit has its diff in the terminal: under its line, and with the question before it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deskhand.cli.diffs import render_diff
from deskhand.types.diffs import CallDiff, FileDiff

from .terminal import DESK, Terminal
from .test_chat import MEANT_S, environment

GREEN = "green"
RED = "red"
Open = Callable[..., Terminal]


@pytest.fixture
def area(tmp_path: Path) -> Path:
    workspace = tmp_path / "agents" / "default" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "area.py").write_text("def area(r):\n    return 3.14 * r * r\n")
    return workspace / "area.py"


@pytest.fixture
def opened(tmp_path: Path, area: Path) -> Iterator[Open]:
    terminals: list[Terminal] = []

    def open_one(*args: str, **env: str) -> Terminal:
        command = (sys.executable, str(DESK), str(tmp_path), *args)
        terminals.append(Terminal(command, environment(tmp_path, **env), 140, 45))
        return terminals[-1]

    yield open_one
    for terminal in terminals:
        terminal.close()


def edit(new: str = "math.pi * r**2  # \u202ex") -> str:
    return "call edit_file " + json.dumps(
        {"path": "area.py", "edits": [{"old": "3.14 * r * r", "new": new}]}
    )


def colour(terminal: Terminal, text: str) -> str:
    """The colour in which this stands on the screen."""
    for y, line in enumerate(terminal.screen.display):
        if text in line:
            return str(terminal.screen.buffer[y][line.index(text)].fg)
    raise AssertionError(f"{text!r} is not on the screen:\n{terminal.shown}")


def test_an_edit_in_the_chat(opened: Open, area: Path) -> None:
    chat = opened("chat")
    chat.wait_ready()
    chat.say(edit())
    chat.wait_for("The tool said: ok")
    assert "✓ edit_file  area.py\n" in chat.all
    assert (
        "-    return 3.14 * r * r" in chat.shown
        and "+    return math.pi * r**2  # <U+202E>x" in chat.shown
    )
    assert (colour(chat, "-    return"), colour(chat, "+    return")) == (RED, GREEN)
    chat.say("/approval on")
    chat.wait_for("From now on I ask")
    chat.say("call write_file " + json.dumps({"path": "area.py", "content": "x\n" * 60}))
    chat.wait_for("Allow?")
    assert "Changes it would make to the current file:" in chat.shown
    assert colour(chat, "-def area(r):") == RED and "… 43 more lines" in chat.shown
    assert "math.pi" in area.read_text()
    time.sleep(MEANT_S)
    chat.type("n")
    chat.wait_for("(denied)")
    assert "math.pi" in area.read_text()


def test_an_edit_of_ask_in_a_terminal(opened: Open, area: Path) -> None:
    ask = opened("ask", edit("1"))
    ask.wait()
    assert (colour(ask, "-    return 3.14"), colour(ask, "+    return 1")) == (RED, GREEN)
    plain = opened(
        "ask",
        edit("1").replace("3.14 * r * r", "return 1").replace('"1"', '"return 2"'),
        NO_COLOR="1",
    )
    plain.wait()
    assert colour(plain, "+    return 2") == "default"


def test_without_a_terminal_there_is_no_colour(tmp_path: Path, area: Path) -> None:
    def ask(text: str) -> tuple[str, str]:
        argv = (sys.executable, str(DESK), str(tmp_path), "ask", text)
        done = subprocess.run(
            argv,
            capture_output=True,
            env=environment(tmp_path),
            timeout=50,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.stdout.decode(), done.stderr.decode()

    ask("/approval on")
    _, said = ask(edit("1"))
    lines = said.split(f"to the current file:{os.linesep}", 1)[1].splitlines()
    assert lines[:4] == [
        *(
            "    @@ -1,2 +1,2 @@",
            "     def area(r):",
            "    -    return 3.14 * r * r",
            "    +    return 1",
        ),
    ]
    assert "\x1b" not in said


def test_what_is_left_out_is_counted() -> None:
    long = (
        "--- a\n+++ a\n@@ -0,0 +1,60 @@\n"
        + "\n".join(f"+{n}" for n in range(30))
        + "\n… 1,030 more lines"
    )
    lines = render_diff(CallDiff(True, (FileDiff("a", "changed", long),)))
    assert len(lines) == 21 and lines[-1] == ("… 1,041 more lines", "quiet")
    two = (
        FileDiff("a", "made", "--- a\n+++ a\n+x"),
        FileDiff("b", "removed", why="It is no text."),
    )
    assert render_diff(CallDiff(True, two, 3)) == [
        ("a made", ""),
        ("+x", "good"),
        ("b removed", ""),
        ("It is no text.", "quiet"),
        ("and 3 more files", "quiet"),
    ]
