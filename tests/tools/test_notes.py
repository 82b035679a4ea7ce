"""What runs is noted in a file that is this process's alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.tools.notes import By, RunningEffect, RunningNotes

pytestmark = pytest.mark.timeout(30)


def running(key: str) -> list[RunningEffect]:
    return [RunningEffect(By(key, "default", "s", "owner", "shell", "make", 1.0))]


def test_a_workspace_that_is_opened_again_does_not_wait_for_itself(tmp_path: Path) -> None:
    """Whoever is gone without closing its notes still holds their lock."""
    for n in range(8):
        notes = RunningNotes(tmp_path)
        notes.write(running(f"c{n}"))
        del notes
    assert len(list(tmp_path.iterdir())) == 8


def test_what_is_left_is_read_once_and_removed(tmp_path: Path) -> None:
    gone = RunningNotes(tmp_path)
    alive = RunningNotes(tmp_path)
    next_one = RunningNotes(tmp_path)
    gone.write(running("c1"))
    alive.write(running("c2"))
    gone.close()
    assert [one.by.key for one in next_one.read_leftover()] == ["c1"]
    next_one.delete_leftover()
    assert len(list(tmp_path.iterdir())) == 1
    assert next_one.read_leftover() == []
