"""The home is its owner's alone from the first write on, whoever makes it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from deskhand.store.schema import connect
from deskhand.types.folders import make_private_folder

COMMANDS = (
    ("tools",),
    ("plugins", "list"),
    ("ask", "hi"),
    ("jobs", "list"),
    ("doctor", "--fix"),
    ("sessions",),
    ("config", "set", "timezone", "UTC"),
    ("agents", "add", "x"),
    ("hosts", "allow", "example.org"),
    ("model", "use", "scripted/echo"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_whichever_command_makes_it(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = tmp_path / "above" / "home"
    env = {**os.environ, "HOME": str(tmp_path), "DESKHAND_HOME": str(home)}
    argv = [sys.executable, "-P", "-m", "deskhand", *command]
    subprocess.run(
        argv,
        env=env,
        umask=0o022,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    made = [
        home,
        *(path for path in home.rglob("*") if path.is_dir() and "workspace" not in path.parts),
    ]
    assert home.is_dir()
    assert [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    database = list((home / "state").glob("deskhand.db*"))
    assert [path for path in database if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_a_database_that_others_could_read(tmp_path: Path) -> None:
    """Made by an older version; also while it is open, with what lies beside it."""
    path = tmp_path / "deskhand.db"
    before = os.umask(0o022)
    try:
        old = apsw.Connection(str(path))
        old.execute(
            "PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES(1)"
        ).fetchall()
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        connect(path, write=True).close()
    finally:
        os.umask(before)
    found = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert found == {"deskhand.db": 0o600, "deskhand.db-wal": 0o600, "deskhand.db-shm": 0o600}
    old.close()


def test_every_folder_above_that_was_missing(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        make_private_folder(tmp_path / "a" / "b" / "c")
        make_private_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted((tmp_path / "a").rglob("*"))] == [
        0o700,
        0o700,
    ]
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        make_private_folder(tmp_path / "file")
