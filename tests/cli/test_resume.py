"""Going on with an earlier conversation: chosen from a list, searched, or the latest."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from deskhand.cli.resume_picker import filter_rows
from deskhand.store.base import SessionRow

from .test_chat import DESKHAND, Open, environment
from .test_chat import opened as opened

TALKS = ("two tickets to Lisbon", "water the plants", "the price of copper")


@pytest.fixture
def talked(tmp_path: Path) -> Path:
    """A home in which three conversations were held."""
    for text in TALKS:
        name = text.split()[-1].lower()
        command = [*DESKHAND, "ask", text, "--session", name, "--model", "scripted/echo"]
        subprocess.run(
            command,
            env=environment(tmp_path),
            check=True,
            capture_output=True,
        )
    return tmp_path


def test_the_arrows_and_enter_open_one(opened: Open, talked: Path) -> None:
    chat = opened(*DESKHAND, "chat", "--resume", "--model", "scripted/echo")
    chat.wait_for("Esc leaves")
    for text in TALKS:
        assert text in chat.shown
    assert chat.shown.index(TALKS[2]) < chat.shown.index(TALKS[0]), "the latest first"
    assert "1 turn" in chat.shown and "just now" in chat.shown
    chat.type("\x1b[B\x1b[B\x1b[A")
    time.sleep(0.3)
    chat.type("\r")
    chat.wait_ready()
    chat.wait_for("You said: water the plants")
    assert "Esc leaves" not in chat.shown, "the list is gone"
    chat.say("/resume")
    chat.wait_for("Esc leaves")
    chat.type("lisbon")
    chat.wait_gone("copper")
    chat.type("\r")
    chat.wait_for("You said: two tickets to Lisbon")
    chat.type("\x04")
    chat.wait_for("Continue with: deskhand --session lisbon")
    assert chat.wait() == 0


def test_words_that_were_said_are_found_too(opened: Open, talked: Path) -> None:
    chat = opened(*DESKHAND, "-r", "--model", "scripted/echo")
    chat.wait_for("Esc leaves")
    chat.type("said price")  # what the answer says; the title does not
    chat.wait_for("the price of copper")
    chat.wait_gone("Lisbon")
    chat.type(" nowhere")
    chat.wait_for("No conversation matches.")
    chat.type("\x1b")
    assert chat.wait() == 0


def test_nothing_to_go_on_with(opened: Open) -> None:
    chat = opened(*DESKHAND, "--resume", "--model", "scripted/echo")
    chat.wait_for("No conversations yet. Start one: deskhand")
    assert chat.wait() == 0


def test_what_is_filtered() -> None:
    rows = [
        SessionRow(f"main/terminal:{name}", "main", "terminal", name, title, 0.0, 0.0, 1)
        for name, title in (("a", "Trip to Rome"), ("rome", "Hotels"), ("c", "Tax"))
    ]
    assert [row.chat for row in filter_rows(rows, "ROME")] == ["a", "rome"]
    assert [row.chat for row in filter_rows(rows, "trip rome")] == ["a"]
    assert filter_rows(rows, "") == rows
    said_in = ["main/terminal:c", "main/terminal:a"]
    assert [row.chat for row in filter_rows(rows, "trip", said_in)] == ["a", "c"]
