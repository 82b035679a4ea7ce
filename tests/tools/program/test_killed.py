"""A process that is killed while a program's changes are made: what was done is known, and can be
taken back."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from deskhand.config.clock import RandomIds, SystemClock
from deskhand.tools.shell import shell
from deskhand.workspace.scope import SandboxProvider
from deskhand.workspace.undo_journal import UndoJournal

from ..conftest import ANN, Hands

FILES = 200
CHILD = """
import anyio, os, signal, sys, threading
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.tools.conftest import Hands
from tests.tools.program.conftest import Programs
from deskhand.workspace.scope import SandboxProvider

def watch(path):
    while not path.exists():
        pass
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    programs = Programs(Hands(Path(sys.argv[1]), SandboxProvider()))
    program = "for n in range({count}): write(f'n{{n:03}}.txt', 'new')"
    came = await programs.rehearse(program)
    threading.Thread(target=watch, args=(programs.hands.folder / "n020.txt",), daemon=True).start()
    await programs.run(program, came)

anyio.run(main)
"""


@pytest.mark.parametrize("looked", [True, False])
async def test_a_kill_in_the_middle_can_be_taken_back(tmp_path: Path, looked: bool) -> None:
    """`looked`: a command ran here before, so that it is known what was there."""
    hands = Hands(tmp_path / "home", SandboxProvider())
    hands.write("mine.txt", b"mine\n")
    if looked:
        await hands(shell, command="true")
    hands.reaches.close()
    await hands.store.close()
    code = textwrap.dedent(CHILD).format(tests=str(Path(__file__).parents[3]), count=FILES)
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "home")], check=False)
    assert ended.returncode == -signal.SIGKILL
    hands = Hands(tmp_path / "home", SandboxProvider())
    there = {path.name for path in hands.folder.iterdir() if not path.name.startswith(".")}
    assert {"mine.txt", "n000.txt"} <= there
    await hands(shell, command="true")  # the next process makes up for it
    ids = RandomIds()
    effects = UndoJournal(
        hands.store, lambda agent: hands.reaches.open_scope(agent, hands.folder), SystemClock(), ids
    )
    (effect,) = await effects.list_undoable(ANN, 9)
    assert effect.tool == "run_program"
    await effects.undo(ANN, effect)
    assert [path.name for path in hands.folder.iterdir()] == ["mine.txt"]
    hands.reaches.close()
    await hands.store.close()
