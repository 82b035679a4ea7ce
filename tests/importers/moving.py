"""What the tests of moving in share: homes to read, a Deskhand to move into, and proof that nothing
there changed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from deskhand.config.config import Settings, read_settings
from deskhand.config.statements import load_statements
from deskhand.importers.apply import AppliedPlan, Taking
from deskhand.importers.detect import read_home
from deskhand.importers.model import ImportedHome
from deskhand.importers.plan import make_plan
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock

HOMES = Path(__file__).parent / "homes"
NOW = 1_795_500_000.0
"""A day and a half after the homes were made."""
T = TypeVar("T")


def home_of(name: str, tmp_path: Path) -> Path:
    """A copy of a home, which this account alone may write."""
    home = tmp_path / name
    shutil.copytree(HOMES / name, home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return home


def looks(home: Path) -> dict[str, tuple[int, int, str]]:
    """Everything that must stay as it is: each name with its mode, its time and its content."""
    found = {}
    for path in (home, *sorted(home.rglob("*"))):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(home))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def read(home: Path) -> ImportedHome:
    return read_home(home, NOW)


def settings_in(tmp_path: Path, text: str = "") -> Settings:
    """An empty Deskhand, with this configuration."""
    root = tmp_path / "deskhand"
    root.mkdir(parents=True, exist_ok=True)
    if text:
        (root / "deskhand.yaml").write_text(text)
    return read_settings(environment={"DESKHAND_HOME": str(root), "HOME": str(tmp_path)})


async def with_store(settings: Settings, use: Callable[[SqliteStore], Awaitable[T]]) -> T:
    settings.home.make_folder(settings.home.state)
    store = SqliteStore(settings.home.database, load_statements())
    try:
        return await use(store)
    finally:
        await store.close()


async def move(
    home: Path, settings: Settings, me: str = "", *, start_jobs: bool = False
) -> AppliedPlan:
    """Take a home over, with the configuration as it is now."""
    now = read_settings(settings.file if settings.file.exists() else None, settings.started_with)

    async def use(store: SqliteStore) -> AppliedPlan:
        planned = await make_plan(read(home), now, store, me)
        return await Taking(planned, now, store, SetClock(NOW), start_jobs=start_jobs).apply()

    return await with_store(settings, use)
