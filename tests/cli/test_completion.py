"""Completion by the Tab key, as the shells ask for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("deskhand")


def run(home: Path, *command: str, **variables: str) -> str:
    environment = {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HOME": str(home)}
    done = subprocess.run(
        command, env=environment | variables, capture_output=True, text=True, check=True
    )
    return done.stdout


def ask(home: Path, words: str, number: int) -> list[str]:
    """What bash is offered for the word of this number."""
    out = run(
        home,
        str(PROGRAM),
        _DESKHAND_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(number),
    )
    return [line.partition(",")[2] for line in out.split()]


@pytest.mark.parametrize(
    ("words", "number", "offered"),
    [
        ("deskhand ba", 1, ["backup"]),
        ("deskhand backup re", 2, ["restore"]),
        ("deskhand backup make --ke", 3, ["--keep"]),
        ("deskhand --ver", 1, ["--verbose", "--version"]),
        ("deskhand nothing", 1, []),
    ],
)
def test_commands_and_options(words: str, number: int, offered: list[str], tmp_path: Path) -> None:
    assert ask(tmp_path, words, number) == offered


def test_bash_loads_it(tmp_path: Path) -> None:
    script = 'eval "$(deskhand completion bash)" && complete -p deskhand'
    assert "_deskhand_completion" in run(tmp_path, "bash", "-c", script)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str, tmp_path: Path) -> None:
    assert f"_DESKHAND_COMPLETE={shell}_complete" in run(
        tmp_path, str(PROGRAM), "completion", shell
    )
