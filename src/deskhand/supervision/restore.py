"""Restores a backup as the home, without doing anything a second time."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO

import anyio
import msgspec
import yaml

from ..config.config import Config, Settings
from ..config.home import Home
from ..config.last_good import GOOD_PREFIX
from ..config.statements import load_statements
from ..config.yaml_edit import unset_key
from ..store.queries import hold_back_messages
from ..store.sqlite import SqliteStore
from ..types.errors import ConfigError, DeskhandError
from ..types.identity import SYSTEM, Address, Command, Inbound
from ..types.turn import STOP_TURN_ONLY
from .backup import ASIDE, NO_AGE, extract_verified
from .backup_archive import BackupBroken, BackupList
from .backup_places import TIME_IN_NAME, flush
from .erased_index import Erased, ErasedAgain, erase_again
from .queries import (
    end_job_runs,
    forget_restart_notes,
    move_paths,
    owed_messages,
    skip_due_times,
)

HELD_BACK = "restored from a backup: it may have been sent before"
RESTORING = ".restoring"
_AGE = b"age-encryption.org/v1"
_EXCHANGE = 2
_AT_FDCWD = -100


class Restored(msgspec.Struct, frozen=True):
    """What was restored. `aside` is where the home that was there lies now; `stopped` conversations
    were in the middle of a turn, `held_back` messages on their way; `erased` counts what was
    erased after the backup, and is erased again."""

    listed: BackupList
    aside: Path | None = None
    stopped: int = 0
    held_back: int = 0
    erased: ErasedAgain = ErasedAgain()


def restore_backup(
    settings: Settings,
    path: Path,
    *,
    now: float,
    identity: str = "",
    replace: bool = False,
    erased: Erased = MappingProxyType({}),
) -> Restored:
    """Put the home of a backup in the place of this one. With `replace` a home that is there is
    moved aside first, and kept. Nothing may run there. Of `erased`, what was erased after the
    backup is erased in it too.

    Turns and runs of jobs that were going on are stopped, and messages that were on their way are
    held back, since what became of them after the backup is not known. Raises DeskhandError,
    OSError: then the home is as it was.
    """
    home = settings.home.root.resolve()
    if home.exists() and any(home.iterdir()) and not replace:
        raise DeskhandError(
            f"{str(home)!r} is not empty; with --replace it is moved aside, and kept"
        )
    # A home may be a disk of its own, or lie where nothing else may be made.
    inside = os.path.ismount(home) or not os.access(home.parent, os.W_OK)
    place = home if inside else home.parent
    fresh = Path(tempfile.mkdtemp(prefix=f"{RESTORING}-", dir=place))
    try:
        with open_backup(path, identity) as file:
            listed = extract_verified(file, fresh)
        stopped, held_back = quieten(Home(fresh), listed, home, now)
        gone = anyio.run(_erase_again, Home(fresh), erased, listed.at, now)
        _forget_store(Home(fresh), settings.home.config.name)
        stamp = datetime.fromtimestamp(now, UTC).strftime(TIME_IN_NAME)
        aside = _swap_inside(home, fresh, stamp) if inside else _swap(home, fresh, stamp)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    with suppress(OSError):  # it is restored, whatever the disk says of its folder
        flush(home.parent)
    return Restored(listed, aside, stopped, held_back, gone)


def _swap(home: Path, fresh: Path, stamp: str) -> Path | None:
    """Put `fresh` in the place of the home. There is a home at every moment."""
    if not home.exists():
        fresh.rename(home)
        return None
    was_empty = not any(home.iterdir())
    aside = _free_name(home.with_name(f"{home.name}{ASIDE}{stamp}"))
    if _exchange(home, fresh):  # the old one lies in `fresh` now
        if was_empty:
            return None
        try:
            fresh.rename(aside)
        except OSError:
            _exchange(home, fresh)
            raise
        return aside
    home.rename(aside)
    try:
        fresh.rename(home)
    except OSError:
        aside.rename(home)
        raise
    if was_empty:
        aside.rmdir()
    return None if was_empty else aside


def _free_name(path: Path) -> Path:
    """The path itself, or with a number behind it where something is there."""
    for number in range(1, 1000):
        free = path if number == 1 else path.with_name(f"{path.name}-{number}")
        if not free.exists() and not free.is_symlink():
            return free
    raise DeskhandError(f"a thousand homes are kept as {str(path)!r}: remove some of them")


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change their names at one moment. False where this machine cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0)


def _swap_inside(home: Path, fresh: Path, stamp: str) -> Path | None:
    """The same, entry by entry: what is there goes into a folder of the home."""
    old = [each for each in home.iterdir() if not each.name.startswith((ASIDE, RESTORING))]
    aside = _free_name(home / f"{ASIDE}{stamp}")
    moved: list[tuple[Path, Path]] = []

    def move(source: Path, target: Path) -> None:
        source.rename(target)
        moved.append((source, target))

    if old:
        aside.mkdir(mode=0o700)
    try:
        for each in old:
            move(each, aside / each.name)
        for each in list(fresh.iterdir()):
            move(each, home / each.name)
    except OSError:
        for source, target in reversed(moved):
            target.rename(source)
        raise
    return aside if old else None


def quieten(home: Home, listed: BackupList, place: Path, now: float) -> tuple[int, int]:
    """End what was going on in a home that was extracted from a backup and will lie in `place`:
    nothing that was done before is done a second time. What is known of files by their paths is
    known by the new ones. Returns how many turns and how many messages it holds back."""
    paths = {old: str(place / inner) for old, inner in listed.roots.items()}
    moved = {old: new for old, new in paths.items() if old != new}
    return anyio.run(_quieten, home, now, moved)


async def _quieten(home: Home, now: float, moved: Mapping[str, str]) -> tuple[int, int]:
    # The longest first: a folder that lay elsewhere, and then the home.
    folders = sorted(moved.items(), key=lambda each: -len(each[0]))
    store = SqliteStore(home.database, load_statements())
    try:
        waiting = (await owed_messages(store)).count
        await store.change(
            [
                hold_back_messages(HELD_BACK),
                end_job_runs("restored from a backup", now),
                skip_due_times(now),
                forget_restart_notes(),
                *(change for old, new in folders for change in move_paths(old, new)),
            ]
        )
        sessions = await store.open_sessions()
        for each in sessions:
            inbound = Inbound(
                external_id=f"restored-{now:.0f}-{each.session}",
                address=Address("door"),
                sender=SYSTEM.id,
                at=now,
                body=Command("stop", STOP_TURN_ONLY),
                session=each.session,
            )
            await store.accept(inbound, SYSTEM, each.session)
        return len(sessions), waiting
    finally:
        await store.close()


async def _erase_again(home: Home, erased: Erased, since: float, now: float) -> ErasedAgain:
    store = SqliteStore(home.database, load_statements())
    try:
        return await erase_again(store, erased, since, now)
    finally:
        await store.close()


def _forget_store(home: Home, name: str) -> None:
    """The database that was restored is a file: a server that the settings name is another one."""
    for good in home.state.glob(f"{GOOD_PREFIX}*"):
        good.unlink()
    config = home.root / name
    with suppress(FileNotFoundError, KeyError, ConfigError, UnicodeError, yaml.YAMLError):
        text = unset_key(config.read_text(), ("store",), Config)
        config.unlink()  # where it is a link, what it leads to stays as it is
        config.write_text(text)
        config.chmod(0o600)


def folder_with_room(backup: Path) -> Path | None:
    """A folder with room for what is in a backup: beside it, where that may be written. None for
    that of the system."""
    return backup.parent if os.access(backup.parent, os.W_OK) else None


@contextmanager
def open_backup(path: Path, identity: str = "") -> Iterator[IO[bytes]]:
    """The archive, decrypted by a key of age where it is encrypted. Raises DeskhandError,
    OSError."""
    with path.open("rb") as file:
        is_encrypted = file.read(len(_AGE)) == _AGE
        file.seek(0)
        if not is_encrypted:
            yield file
            return
        if not identity:
            raise ConfigError(f"{str(path)!r} is encrypted: name the file of its key, --key FILE")
        try:
            import pyrage  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise ConfigError(NO_AGE) from error
        with tempfile.TemporaryFile(dir=folder_with_room(path)) as plain:
            try:
                text = Path(identity).expanduser().read_text()
                keys = [
                    pyrage.x25519.Identity.from_str(line.strip())
                    for line in text.splitlines()
                    if line.strip() and not line.startswith("#")
                ]
                pyrage.decrypt_io(file, plain, keys)
            except (pyrage.IdentityError, UnicodeError) as error:
                raise ConfigError(f"{identity!r} holds no key of age") from error
            except pyrage.DecryptError as error:
                raise BackupBroken(f"{path.name} cannot be decrypted: {error}") from error
            plain.seek(0)
            yield plain
