"""What was made is listed, and goes when that is said twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config.config import Home
from deskhand.supervision.lock import Holder, acquire_lock


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    root = tmp_path / "person" / ".deskhand"
    for name, value in {
        "HOME": str(tmp_path / "person"),
        "DESKHAND_HOME": str(root),
        "DESKHAND_CACHE": str(tmp_path / "person" / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    (root / "state").mkdir(parents=True)
    (root / ".env").write_text("KEY=secret\n")
    (tmp_path / "person" / "cache").mkdir()
    (tmp_path / "person" / "mine.txt").write_text("mine")
    (root / "link").symlink_to(tmp_path / "person" / "mine.txt")
    return Home(root)


def run(*words: str, said: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["uninstall", *words], input=said)
    return done.exit_code, done.output


def test_it_only_says_what_there_is(home: Home) -> None:
    code, out = run()
    assert code == 0 and str(home.root) in out and "--purge" in out
    assert home.env.exists()


def test_it_asks_and_goes(home: Home) -> None:
    code, out = run("--purge", said="n\n")
    assert code == 2 and home.env.exists() and "nothing was removed" in out
    code, out = run("--purge", said="y\n")
    assert code == 0 and not home.root.exists() and "Removed." in out
    person = home.root.parent
    assert not (person / "cache").exists() and (person / "mine.txt").read_text() == "mine"
    assert run("--purge", "--yes") == (
        0,
        "There is nothing to remove: Deskhand created no files on this machine.\n",
    )


def test_not_while_it_runs(home: Home) -> None:
    held = acquire_lock(home.serve_lock, Holder(4711, 1.0))
    assert held is not None
    code, out = run("--purge", "--yes")
    assert code == 1 and "4711 is still running" in out and home.env.exists()


def test_never_more_than_a_folder_of_its_own(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    person = home.root.parent
    monkeypatch.setenv("DESKHAND_HOME", str(person))
    code, out = run("--purge", "--yes")
    assert code == 1 and "by hand" in out and (person / "mine.txt").exists()
