"""Whether anything has changed in a workspace, told without a walk."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from deskhand.store.blobs import Blobs
from deskhand.tools.file_snapshots import SECOND_NS, SETTLED_NS, FileSnapshots, _Walk
from deskhand.types.commit import Change

QUIET_S = SETTLED_NS / 1e9 + 0.03


async def _nothing(changes: Sequence[Change]) -> None:
    return None


class Workspace:
    def __init__(self, home: Path) -> None:
        self.folder = home / "workspace"
        for name in ("a/one", "a/deep/two", "b/three", "node_modules/x", "four"):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        self.root = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        self.shadow = FileSnapshots(home / "shadow", Blobs(home / "blobs"), _nothing)

    def settle(self) -> None:
        """Look until the times of all tell of every change."""
        time.sleep(QUIET_S)
        self.shadow.scan(self.root)
        assert self.shadow._has_same_times(self.root)


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    made = Workspace(tmp_path)
    yield made
    os.close(made.root)


def _rename(folder: Path) -> None:
    (folder / "a/one").rename(folder / "a/1")


def _swap(folder: Path) -> None:
    """Another file of the same name, size and times."""
    before = (folder / "a/one").stat()
    (folder / "new").write_text("a/eno")
    os.utime(folder / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "new").rename(folder / "a/one")


def _hide_new(folder: Path) -> None:
    """A new file, in a folder that gets its old time again."""
    before = (folder / "a").stat()
    (folder / "a/new").write_text("x")
    os.utime(folder / "a", ns=(before.st_atime_ns, before.st_mtime_ns))


def _hide_change(folder: Path) -> None:
    before = (folder / "four").stat()
    (folder / "four").write_text("ruof")
    os.utime(folder / "four", ns=(before.st_atime_ns, before.st_mtime_ns))


def _link_away(folder: Path) -> None:
    """A link to a folder that looks the same."""
    (folder / "a").rename(folder.parent / "a")
    (folder / "a").symlink_to(folder.parent / "a")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a new file": lambda folder: (folder / "a/new").write_text("x"),
    "a new file at the top": lambda folder: (folder / "new").write_text("x"),
    "a new folder": lambda folder: (folder / "a/deep/new").mkdir(),
    "a file is gone": lambda folder: (folder / "a/deep/two").unlink(),
    "a folder is gone": lambda folder: shutil.rmtree(folder / "a"),
    "a folder that nobody looks into is gone": lambda folder: shutil.rmtree(
        folder / "node_modules"
    ),
    "a file is written": lambda folder: (folder / "four").write_text("5"),
    "a file is written and its time put back": _hide_change,
    "a file comes and the time of its folder is put back": _hide_new,
    "a file is renamed": _rename,
    "another file takes the place": _swap,
    "a mode": lambda folder: (folder / "four").chmod(0o600),
    "the mode of a folder": lambda folder: (folder / "b").chmod(0o700),
    "a link takes the place of a folder": _link_away,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(workspace: Workspace, change: str) -> None:
    workspace.settle()
    CHANGES[change](workspace.folder)
    assert not workspace.shadow._has_same_times(workspace.root)
    assert not workspace.shadow.is_unchanged(workspace.root)
    workspace.shadow.scan(workspace.root)
    workspace.settle()


def test_what_may_change_without_a_new_time_is_looked_at(workspace: Workspace) -> None:
    workspace.settle()
    (workspace.folder / "b/new").mkdir()
    workspace.shadow.scan(workspace.root)
    assert not workspace.shadow._has_same_times(workspace.root)
    assert workspace.shadow._has_same_names(workspace.root)


def test_a_file_that_was_looked_at_alone_does_not_hide_another(workspace: Workspace) -> None:
    workspace.settle()
    (workspace.folder / "b/seen").write_text("x")
    (workspace.folder / "b/unseen").write_text("x")
    workspace.shadow.scan_paths(workspace.root, ["b", "b/seen"])
    assert not workspace.shadow.is_unchanged(workspace.root)


def test_what_another_process_knew_is_looked_at(workspace: Workspace) -> None:
    workspace.settle()
    workspace.shadow.forget_recovery()
    workspace.shadow._load()
    assert not workspace.shadow._has_same_times(workspace.root)


def test_what_lies_in_a_folder_that_nobody_looks_into_is_looked_for(workspace: Workspace) -> None:
    """After it was looked at by its name: a walk does not find it."""
    workspace.settle()
    workspace.shadow.scan_paths(workspace.root, ["node_modules", "node_modules/x"])
    assert not workspace.shadow._has_same_times(workspace.root)
    assert not workspace.shadow.is_unchanged(workspace.root)
    workspace.settle()


def test_a_folder_that_was_another_disk_is_looked_into(workspace: Workspace) -> None:
    workspace.settle()
    times = workspace.shadow._folder_times
    assert times is not None
    del times["b"]  # as where something was mounted on it at the last look
    assert not workspace.shadow._has_same_times(workspace.root)


def test_times_of_whole_seconds_tell_nothing(workspace: Workspace) -> None:
    walk = _Walk(workspace.shadow, workspace.root)
    walk.folder_times = {}
    walk._note_folder("b", (7, 1_000 * SECOND_NS))
    assert walk.folder_times is None


def test_it_says_what_a_walk_says(workspace: Workspace) -> None:
    """Whatever happens, in whatever order."""
    chance = random.Random(7)
    names = [f"{folder}{name}" for folder in ("", "a/", "b/") for name in "pqr"]
    for _ in range(60):
        if chance.random() < 0.3:
            time.sleep(QUIET_S)
        if chance.random() < 0.5:
            workspace.shadow.scan(workspace.root)
        path = workspace.folder / chance.choice(names)
        match chance.randrange(5):
            case 0:
                path.write_text("x")
            case 1:
                path.unlink(missing_ok=True)
            case 2 if path.exists():
                path.chmod(chance.choice((0o600, 0o644)))
            case 3:
                workspace.shadow.scan_paths(
                    workspace.root, [str(path.relative_to(workspace.folder))]
                )
            case _:
                pass
        if workspace.shadow._has_same_times(workspace.root):
            assert workspace.shadow.scan(workspace.root) == []
