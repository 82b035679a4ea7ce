"""A file that somebody saves while it is written: whatever they saved is there, or has been
read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from deskhand.memory.project_write import replace_if_unchanged
from deskhand.tools.paths import Workspace
from deskhand.types.errors import ToolError


def test_only_what_was_read_is_replaced(tmp_path: Path) -> None:
    files = Workspace(str(tmp_path))
    note = tmp_path / "memory/note.md"
    assert (
        replace_if_unchanged(files, "memory/note.md", None, b"one") and note.read_bytes() == b"one"
    )
    note.chmod(0o600)
    assert (
        replace_if_unchanged(files, "memory/note.md", b"one", b"two")
        and note.read_bytes() == b"two"
    )
    assert note.stat().st_mode & 0o777 == 0o600
    assert (
        not replace_if_unchanged(files, "memory/note.md", b"one", b"three")
        and note.read_bytes() == b"two"
    )
    assert (
        not replace_if_unchanged(files, "memory/note.md", None, b"three")
        and note.read_bytes() == b"two"
    )
    assert [path.name for path in (tmp_path / "memory").iterdir()] == ["note.md"]


def test_what_is_no_plain_file_is_left_alone(tmp_path: Path) -> None:
    files = Workspace(str(tmp_path))
    (tmp_path / "real.md").write_bytes(b"x")
    (tmp_path / "link.md").symlink_to("real.md")
    os.link(tmp_path / "real.md", tmp_path / "other.md")
    for name in ("link.md", "real.md"):
        with pytest.raises(ToolError, match="is a link"):
            replace_if_unchanged(files, name, b"x", b"y")
    assert (tmp_path / "real.md").read_bytes() == b"x"
    assert {path.name for path in tmp_path.iterdir()} == {"link.md", "other.md", "real.md"}


def test_who_saves_at_the_same_moment_loses_nothing(tmp_path: Path) -> None:
    """A person saves 300 versions, as editors do, while we put a line under each that we see."""
    files = Workspace(str(tmp_path))
    note = tmp_path / "note.md"
    note.write_bytes(b"0")
    over = threading.Event()

    def save() -> None:
        for number in range(1, 300):
            (tmp_path / ".swap").write_bytes(str(number).encode())
            (tmp_path / ".swap").rename(note)
        over.set()

    person = threading.Thread(target=save)
    person.start()
    while not over.is_set():
        before = note.read_bytes()
        replace_if_unchanged(files, "note.md", before, before.partition(b"\n")[0] + b"\nours")
    person.join()
    assert note.read_bytes().partition(b"\n")[0] == b"299"
    assert (
        replace_if_unchanged(files, "note.md", note.read_bytes(), b"ours")
        and note.read_bytes() == b"ours"
    )
