"""The chat in a real terminal: a process on a pty, a screen that is looked at, keys that are
pressed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deskhand.cli.key_bindings import complete_command, match_commands
from deskhand.cli.mentions import complete_name

from .terminal import DESK, Terminal

DESKHAND = [sys.executable, "-m", "deskhand"]
Open = Callable[..., Terminal]
MEANT_S = 0.45
"""After an approval has appeared, keys count as answers to it."""


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "DESKHAND_HOME": str(home), **more}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens terminals on one home; without a command, the chat over tools that need approval."""
    terminals: list[Terminal] = []

    def open_one(*argv: str, columns: int = 80, rows: int = 30, **env: str) -> Terminal:
        command = argv or (sys.executable, str(DESK), str(tmp_path), "chat")
        terminals.append(Terminal(command, environment(tmp_path, **env), columns, rows))
        return terminals[-1]

    yield open_one
    for terminal in terminals:
        terminal.close()


def test_a_conversation(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    assert "Ctrl+D quits." in chat.all, "the hint fits into a line of 80"
    chat.say("markdown")
    chat.wait_for("The end of it.")
    assert "**" not in chat.all
    assert "• one" in chat.all
    assert "def add(a, b):" in chat.all
    chat.type("hello\x1b\rthere")  # Alt+Enter
    chat.wait_for("there")
    chat.type("\r")
    chat.wait_for("You said: hello")
    chat.type("\x1b[A")  # up: what was sent last, both lines of it
    chat.wait_for("> hello\n")
    chat.type("\x03")
    chat.say("/help")
    chat.wait_for("/status  what is going on")
    chat.resize(50, 20)
    time.sleep(0.2)
    chat.say("long")
    chat.wait_for("Paragraph 59.")
    lines = re.findall(r"Paragraph (\d+)\.", chat.all)
    assert lines == sorted(set(lines), key=int), "each paragraph once and in order"
    chat.type("\x04")
    assert chat.wait() == 0
    assert "Continue with: deskhand --session test" in chat.all


def test_approvals_by_key(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.say("run make coffee")
    chat.wait_for("Allow?")
    assert 'shell {"command":"make coffee"}' in chat.shown
    assert "because shell would run commands on this machine" in chat.shown
    time.sleep(MEANT_S)
    chat.type("y")
    chat.wait_for("The tool said: ran make coffee")
    assert "allowed once" in chat.all
    assert "✓ shell  make coffee" in chat.all
    chat.say("run make tea")
    chat.wait_for("Allow?")
    time.sleep(MEANT_S)
    chat.type("n")
    chat.wait_for("(denied)")
    assert "owned" not in chat.screen.title
    assert b"\x1b]0;owned" not in chat.raw
    assert b"\x1b[31mred" not in chat.raw
    assert "␛[31mred" in chat.all


def test_several_calls_are_answered_by_one_key(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.say("tell ada bob")
    chat.wait_for("Allow all of them?")
    assert "allow these 2 calls?" in chat.shown
    assert 'tell {"who":"ada"}' in chat.shown and 'tell {"who":"bob"}' in chat.shown
    time.sleep(MEANT_S)
    chat.type("a")  # nothing is said for good to several: it is text
    chat.type("\x7f")
    chat.type("e")
    chat.wait_for("split into one request per call")
    chat.wait_for("Allow?  y once")
    assert "owned" not in chat.screen.title
    time.sleep(MEANT_S)
    chat.type("y")
    chat.wait_for("✓ tell")
    chat.wait_for("Allow?  y once")
    time.sleep(MEANT_S)
    chat.type("n")
    chat.wait_for("The tool said: not permitted: owner said no")
    chat.say("tell cy dan")
    chat.wait_for("Allow all of them?")
    time.sleep(MEANT_S)
    chat.type("y")
    chat.wait_for("The tool said: told dan (ok)")


def test_typing_is_not_answering(opened: Open) -> None:
    """What is pressed while a line is being written, or in the moment an approval appears, is
    text."""
    chat = opened()
    chat.wait_ready()
    chat.type("run it\rnyan")
    chat.wait_for("Allow?")
    time.sleep(MEANT_S)
    assert "nyan" in chat.shown
    chat.type("y")
    chat.wait_for("nyany")
    assert "Allow?" in chat.shown


def test_enter_stays_enter_while_an_answer_is_written(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.say("long")
    while "Paragraph 59." not in chat.all:
        assert not any(chat.reads_lines for _ in range(5000)), (
            "it is a moment, so it is looked at often"
        )


def test_steering_and_stopping(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.say("slow")
    chat.wait_for("line 3")
    chat.say("also look there")
    chat.wait_for("queued: also look there")
    chat.type("\x03")
    chat.wait_for("Stopped.")
    assert "✗ slow" in chat.all
    chat.wait_gone("working ")
    chat.say("still here?")
    chat.wait_for("You said: still here?")
    chat.wait_gone("working ")
    chat.type("\x03")
    chat.wait_for("Press Ctrl+C again to quit.")
    chat.type("\x03")
    assert chat.wait() == 0


def test_stopping_in_mid_sentence(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.say("endless")
    chat.wait_for("Paragraph 3.")
    chat.type("\x03")
    chat.wait_for("Stopped.")
    assert "stopped in mid-sentence" in chat.all
    chat.wait_gone("working ")
    assert chat.all.count("Stopped.") == 1
    assert "Paragraph 290." not in chat.all


def test_a_line_that_is_too_long(opened: Open, tmp_path: Path) -> None:
    """More than a conversation takes is refused with a sentence, and the chat goes on."""
    chat = opened()
    chat.wait_ready()
    chat.type("\x1b[200~" + "x" * 1_000_001 + "\x1b[201~")
    time.sleep(1)
    chat.type("\r")
    chat.wait_for("at most 1,000,000 fit.")
    assert (tmp_path / "state" / "history").stat().st_size < 1000
    chat.say("and now?")
    chat.wait_for("You said: and now?")


def test_questions(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.say("choose")
    chat.wait_for("3  blue")
    chat.type("3\r")
    chat.wait_for("The tool said: blue")


def test_what_the_model_says_is_not_obeyed(opened: Open) -> None:
    chat = opened(NO_COLOR="1")
    chat.wait_ready()
    chat.say("evil")
    chat.wait_for("after")
    chat.type(
        "\xff\xfe bad bytes \x1b[200~pasted\nlines\x1b[201~".encode("latin-1").decode(
            "utf-8", "surrogateescape"
        )
    )
    chat.wait_for("lines")
    chat.type("\r")
    chat.wait_for("You said:")
    assert "before ␛[31mred␛[0m ␛]0;owned␇ <U+202E>gnp.exe <U+009B>2J after" in chat.all.replace(
        "\n", " "
    )
    assert b"\x1b]0;owned" not in chat.raw
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", chat.raw), "no colours where none are wanted"
    assert chat.process.poll() is None


def test_two_terminals_see_one_conversation(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.wait_ready()
    first.say("run a thing")
    first.wait_for("Allow?")
    second = opened(columns=120)
    second.wait_for("Allow?")
    second.wait_for("connected to the running Deskhand")
    time.sleep(MEANT_S)
    second.type("y")
    first.wait_for("allowed once")
    second.wait_for("The tool said: ran a thing")
    first.type("\x04")
    assert first.wait() == 0
    second.wait_gone("connected to the running Deskhand")
    second.say("you alone now")
    second.wait_for("You said: you alone now")


def test_the_first_run(opened: Open, tmp_path: Path) -> None:
    chat = opened(*DESKHAND)
    chat.wait_for("or q to leave")
    assert "deskhand model use provider/name" in chat.shown
    last = re.search(r"(\d+)  Try Deskhand", chat.shown)
    assert last is not None
    chat.type(f"{last[1]}\r")
    chat.wait_ready()
    chat.say("hello")
    chat.wait_for("You said: hello")
    chat.type("\x04")
    assert chat.wait() == 0
    name = re.findall(r"--session (\S+)", chat.all)[-1]
    again = opened(*DESKHAND, "--session", name, "--model", "scripted/echo")
    again.wait_for("You said: hello")
    again.type("\x04")
    again.wait()
    latest = opened(*DESKHAND, "--continue", "--model", "scripted/echo")
    latest.wait_for("You said: hello")
    assert (tmp_path / "state" / "history").stat().st_mode & 0o077 == 0


def test_a_terminal_that_cannot_redraw(opened: Open) -> None:
    chat = opened(*DESKHAND, "--model", "scripted/echo", "--session", "talk", TERM="dumb")
    chat.type("hello\r")
    chat.wait_for("You said: hello")
    chat.type("\r")
    chat.wait_for("Continue with: deskhand --session talk")
    assert chat.wait() == 0
    assert b"\x1b" not in chat.raw


def test_ask_asks_the_person_at_a_terminal(opened: Open, tmp_path: Path) -> None:
    ask = opened(sys.executable, str(DESK), str(tmp_path), "ask", "run make")
    ask.wait_for("Allow? y once")
    ask.type("y\r")
    ask.wait_for("The tool said: ran make")
    assert ask.wait() == 0


def test_it_needs_a_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        DESKHAND,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(tmp_path),
    )
    assert done.returncode == 2
    assert 'deskhand ask "…"' in done.stderr


def test_a_long_paste_is_a_mark_and_is_sent_whole(opened: Open) -> None:
    chat = opened(columns=60)
    chat.wait_ready()
    lines = "\r".join(f"row {n} of it" for n in range(120))
    for paste in (lines, lines.replace("row", "item")):
        chat.type(f"\x1b[200~{paste}\x1b[201~")
    chat.wait_for("> [pasted 120 lines][pasted 120 lines, no. 2]")
    assert "row 5 of it" not in chat.all
    chat.type("\x7f")
    chat.wait_gone("no. 2")
    chat.type("\x7f")
    chat.wait_gone("[pasted")
    chat.type(f"see \x1b[200~{lines}\x1b[201~ please")
    chat.wait_for("> see [pasted 120 lines] please")
    chat.type("\r")
    chat.wait_for("You said: see row 0 of it")
    chat.wait_for("row 119 of it please")
    chat.wait_gone("working ")
    chat.type("\x1b[200~two\rlines\x1b[201~")
    chat.wait_for("> two\n")
    assert "lines" in chat.shown


def test_files_of_the_workspace_are_completed_and_attached(opened: Open, tmp_path: Path) -> None:
    notes = tmp_path / "agents" / "default" / "workspace" / "my notes"
    notes.mkdir(parents=True)
    (notes / "todo.md").write_text("- buy milk")
    (notes / "todo.bin").write_bytes(b"\0" * 100)
    (tmp_path / "secret.txt").write_text("not theirs")
    chat = opened()
    chat.wait_ready()
    chat.type("what is in @my")
    chat.wait_for("  @my notes/")
    chat.type("\t")
    chat.wait_for('@"my notes/')
    chat.type("to\t")
    chat.wait_for('@"my notes/todo.')
    chat.wait_for("  @my notes/todo.bin")
    chat.type("m\t")
    chat.wait_for('@"my notes/todo.md"')
    chat.type('and @"my notes/todo.bin", @ann or @../../../secret.txt?\r')
    chat.wait_for("[my notes/todo.md]")
    chat.wait_for("You said: what is in")
    chat.type("\x04")
    assert chat.wait() == 0
    log = subprocess.run(
        [*DESKHAND, "sessions", "export", "test"],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
    ).stdout
    assert "[File: my notes/todo.md]\\n- buy milk" in log and "not theirs" not in log
    assert "[my notes/todo.bin is a file of the workspace, 100 bytes]" in log and "@ann or" in log


def test_the_arrows_choose_what_is_meant(opened: Open, tmp_path: Path) -> None:
    work = tmp_path / "agents" / "default" / "workspace"
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "budget.md").write_text("# Budget")
    for name in ("one.md", "only.md"):
        (work / name).write_text(name)
    chat = opened()
    chat.wait_ready()
    chat.type("see @on")
    chat.wait_for("  @one.md")
    chat.type("\x1b[B\x1b[B")  # down, down
    time.sleep(0.3)
    chat.type("\r")
    chat.wait_for("> see @only.md")
    chat.type("and @udg")  # in any folder, by a part of the name
    chat.wait_for("  @deep/er/budget.md")
    chat.type("\x1b[A\r")
    chat.wait_for("and @deep/er/budget.md")
    chat.type("\r")
    chat.wait_for("[only.md] [deep/er/budget.md]")
    chat.wait_for("You said: see @only.md and @deep/er/budget.md")
    chat.type("/st")
    chat.wait_for("/stop ")
    chat.type("\x1b[A")
    time.sleep(0.3)
    chat.type("\r")
    chat.wait_for("> /status")
    chat.type("\x03\x1b[A")  # up: what was sent
    chat.wait_for("> see @only.md and @deep/er/budget.md")


def test_a_conversation_is_completed_and_attached(opened: Open, tmp_path: Path) -> None:
    first = opened(*DESKHAND, "--session", "trip", "--model", "scripted/echo")
    first.wait_ready()
    first.say("two tickets to Lisbon")
    first.wait_for("You said: two tickets")
    first.type("\x04")
    assert first.wait() == 0
    chat = opened()
    chat.wait_ready()
    chat.type("as in @lisb")  # by its title
    chat.wait_for("  @trip  two tickets to Lisbon")
    chat.type("\x1b[B\r")
    chat.wait_for("> as in @trip")
    chat.type("\r")
    chat.wait_for("[conversation trip.md]")
    chat.wait_for("You said: as in @trip")
    chat.type("\x04")
    assert chat.wait() == 0
    log = subprocess.run(
        [*DESKHAND, "sessions", "export", "test"],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
    ).stdout
    assert "**owner:** two tickets to Lisbon" in log
    (attached,) = [
        part
        for line in log.splitlines()
        for part in json.loads(line)["event"].get("message", {}).get("parts", ())
        if part["type"] == "file"
    ]
    label = attached["label"]
    assert label.get("integrity", "untrusted") == "untrusted", "others may have written in it"


PATHS = [
    ("see @do", ["docs/", "done.md"], "see @do"),
    ("see @doc", ["docs/"], "see @docs/"),
    ("see @docs/a", ["docs/a b.md"], 'see @"docs/a b.md" '),
    ('see @"docs/a', ["docs/a b.md", "docs/a c.md"], 'see @"docs/a '),
    ("@", ["a.md"], "@a.md "),
    ("me@home", ["a.md"], "me@home"),
    ("@a.md and", ["a.md"], "@a.md and"),
]


@pytest.mark.parametrize(("text", "found", "after"), PATHS)
def test_paths_are_completed(text: str, found: list[str], after: str) -> None:
    assert complete_name(text, found) == after


def test_commands_are_completed() -> None:
    assert complete_command("/he") == "/help "
    assert complete_command("/st") == "/st"
    assert complete_command("/sto") == "/stop "
    assert complete_command("hello") == "hello"
    assert [name for name, _ in match_commands("/st")] == ["/stop", "/start", "/status"]
    assert match_commands("/stop now") == []
