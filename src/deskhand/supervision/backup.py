"""Makes backups of a home while it is in use, and restores them.

A backup is only kept after it was restored into a folder beside it and verified there: every file,
the database, and the hash chain of every conversation.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import apsw
import msgspec

from ..config.config import Config, Settings
from ..config.home import Home
from ..config.last_good import GOOD_PREFIX
from ..config.statements import load_statements
from ..config.yaml_edit import unset_key
from ..store.queries import hold_back_messages
from ..store.schema import connect
from ..store.sqlite import SqliteStore
from ..types.errors import ConfigError, DeskhandError, StoreError
from ..types.folders import make_private_folder
from ..types.identity import SYSTEM, Address, Command, Inbound
from .backup_archive import (
    FORMAT,
    ArchiveWriter,
    BackupBroken,
    BackupList,
    extract_archive,
    iter_folder,
)
from .queries import owed_messages

SUFFIX = ".tar.gz"
SECRET_SUFFIX = f"{SUFFIX}.age"
_NAME = re.compile(r"deskhand-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(?:-\d+)?\.tar\.gz(?:\.age)?")
_TIME = "%Y-%m-%dT%H-%M-%S"
WORK = "backup"
"""The folder in `state` where a backup is made and tried."""
KEPT_STATE = ("secrets.json", "blobs", "history", "commands-trust.pem")
"""What of `state` is in a backup beside the database: all else is of the process that runs."""
SKIPPED = ("__pycache__", "node_modules", ".venv", ".cache")
"""Folders that programs make again."""
NO_AGE = "encryption needs the extra `backup`: pip install 'deskhand[backup]'"
HELD_BACK = "restored from a backup: it may have been sent before"
Progress = Callable[[str], None]


class BackupFile(msgspec.Struct, frozen=True):
    """A backup. `at` is when it was begun, in seconds since the epoch."""

    path: Path
    at: float
    size: int

    @property
    def is_encrypted(self) -> bool:
        return self.path.name.endswith(".age")


class Restored(msgspec.Struct, frozen=True):
    """What was restored. `aside` is where the home that was there lies now; `stopped` conversations
    were in the middle of a turn, `held_back` messages on their way."""

    listed: BackupList
    aside: Path | None = None
    stopped: int = 0
    held_back: int = 0


async def make_backup(
    settings: Settings,
    folder: Path,
    *,
    now: float,
    recipient: str = "",
    progress: Progress = lambda text: None,
) -> tuple[BackupFile, BackupList]:
    """Make a backup in this folder, and verify it. With `recipient`, the public key of age, only
    whoever has the other key can read it.

    Everything that was acknowledged before it began is in it. Raises DeskhandError, OSError: then
    nothing is left behind.
    """
    encrypt = _encryptor(recipient) if recipient else None
    make_private_folder(folder)
    work = settings.home.state / WORK
    shutil.rmtree(work, ignore_errors=True)
    make_private_folder(work)
    try:
        archive = work / f"backup{SUFFIX}"
        progress("copying the database")
        listed = await _write(settings, archive, work, now=now, progress=progress)
        progress("verifying")
        with archive.open("rb") as file:
            await verify_archive(file, work / "verify")
        suffix = SECRET_SUFFIX if encrypt else SUFFIX
        path = _free_path(folder, now, suffix)
        part = path.with_name(f".{path.name}.part")
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # keys are in it
            if encrypt is not None:
                progress("encrypting")
                encrypt(archive, part)
            else:
                shutil.copyfile(archive, part)
            _flush(part)
            part.replace(path)
            _flush(folder)
        finally:
            with suppress(FileNotFoundError):
                part.unlink()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return BackupFile(path, now, path.stat().st_size), listed


async def _write(
    settings: Settings,
    archive: Path,
    work: Path,
    *,
    now: float,
    progress: Progress,
) -> BackupList:
    home = settings.home
    writer = ArchiveWriter(archive)
    listed: BackupList | None = None
    try:
        # What it says must not be newer than the database.
        with suppress(FileNotFoundError):
            writer.add_bytes(home.anchors.read_bytes(), f"state/{home.anchors.name}")
        copy = work / home.database.name
        await _copy_database(settings, copy)
        copy.chmod(0o600)
        writer.add(copy, f"state/{home.database.name}")
        events, heads = await _look_at_log(copy)
        progress("copying files")
        for inner in _list_files(home, settings.config.backup.folder):
            writer.add(home.root / inner, inner)
        listed = BackupList(
            FORMAT,
            version("deskhand"),
            now,
            "postgresql" if settings.config.store else "sqlite",
            events,
            heads,
            writer.files,
            tuple(_outside(settings)),
        )
    finally:
        writer.close(listed)
    return listed


def _list_files(home: Home, folder: str) -> Iterator[str]:
    """What of the home is in a backup: all but logs, what the process that runs has in `state`, and
    the backups themselves."""
    state = f"{home.state.name}/"
    logs = f"{home.logs.name}/"
    own = ""
    if folder:
        with suppress(ValueError):
            own = f"{Path(folder).expanduser().resolve().relative_to(home.root.resolve())}/"
    for inner in iter_folder(home.root, SKIPPED):
        kept = inner.removeprefix(state).split("/")[0]
        is_state = inner.startswith(state)
        if is_state and not kept.startswith(GOOD_PREFIX) and kept not in KEPT_STATE:
            continue
        if inner.startswith(logs) or (own and f"{inner}/".startswith(own)):
            continue
        if not (is_state and inner.endswith(".part")):
            yield inner


def _outside(settings: Settings) -> Iterator[str]:
    """The workspaces that lie elsewhere, and so are not in a backup."""
    root = settings.home.root.resolve()
    for name in settings.agents:
        folder = settings.agent(name).workspace
        if folder and not Path(folder).expanduser().resolve().is_relative_to(root):
            yield f"{folder} of {name}"


async def _copy_database(settings: Settings, target: Path) -> None:
    """The database as it is at one moment, as a file of SQLite. Raises StoreError."""
    if not settings.config.store:
        if not settings.home.database.exists():
            raise StoreError("there is no database yet: start Deskhand once before a backup")
        source = connect(settings.home.database, write=False)
        copy = apsw.Connection(str(target))
        try:
            with copy.backup("main", source, "main") as backup:
                backup.step(-1)
            copy.execute("PRAGMA journal_mode = DELETE")
        except apsw.Error as error:
            raise StoreError(f"{settings.home.database} cannot be copied: {error}") from error
        finally:
            copy.close()
            source.close()
        return
    from ..store.move import move  # noqa: PLC0415 -- the driver of PostgreSQL is an extra
    from ..store.move_sides import PostgresSide, SqliteSide  # noqa: PLC0415

    there = PostgresSide(settings.config.store, snapshot=True)
    try:
        here = SqliteSide(target)
        try:
            move(there, here)
        finally:
            await here.close()
    finally:
        await there.close()
    connection = apsw.Connection(str(target))
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


async def _look_at_log(database: Path) -> tuple[int, str]:
    """How many events there are, and a digest of the ends of all conversations. Raises StoreError
    where the database or a hash chain is damaged."""
    store = SqliteStore(database, load_statements())
    try:
        if problems := store.check_integrity():
            raise StoreError(f"the database is damaged: {problems[0]}")
        events, breaks = await store.audit()
        if breaks:
            raise StoreError(f"the log is damaged: {breaks[0].session}: {breaks[0].why}")
        heads = sorted(
            (session, n, head.hex()) for session, (n, head) in (await store.heads()).items()
        )
        return events, sha256(msgspec.json.encode(heads)).hexdigest()
    finally:
        await store.close()


async def verify_archive(file: IO[bytes], folder: Path) -> BackupList:
    """Restore a backup into this folder, which must not exist, and see whether all is as it was.
    The folder is removed again. Raises DeskhandError, OSError."""
    make_private_folder(folder)
    try:
        return await _extract(file, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _extract(file: IO[bytes], folder: Path) -> BackupList:
    listed = extract_archive(file, folder)
    found = await _look_at_log(Home(folder).database)
    if found != (listed.events, listed.heads):
        raise BackupBroken("the database is not the one of which the backup was made")
    return listed


async def restore_backup(
    settings: Settings, path: Path, *, now: float, identity: str = "", replace: bool = False
) -> Restored:
    """Put the home of a backup in the place of this one. With `replace` a home that is there is
    moved aside first, and kept. Nothing may run there.

    Turns that were going on are stopped, and messages that were on their way are held back, since
    what became of them after the backup is not known. Raises DeskhandError, OSError: then the home
    is as it was.
    """
    home = settings.home.root
    if home.exists() and any(home.iterdir()) and not replace:
        raise DeskhandError(
            f"{str(home)!r} is not empty; with --replace it is moved aside, and kept"
        )
    fresh = home.with_name(f".{home.name}.restoring")
    shutil.rmtree(fresh, ignore_errors=True)
    make_private_folder(fresh)
    try:
        with open_backup(path, identity) as file:
            listed = await _extract(file, fresh)
        stopped, held_back = await _quieten(Home(fresh), now)
        _forget_store(Home(fresh).root / settings.home.config.name)
        aside = None
        if home.exists() and not any(home.iterdir()):
            home.rmdir()
        elif home.exists():
            stamp = datetime.fromtimestamp(now, UTC).strftime(_TIME)
            aside = home.with_name(f"{home.name}.before-{stamp}")
            home.rename(aside)
        fresh.rename(home)
        _flush(home.parent)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return Restored(listed, aside, stopped, held_back)


async def _quieten(home: Home, now: float) -> tuple[int, int]:
    """Stop turns and hold back messages: nothing that was done before is done a second time."""
    store = SqliteStore(home.database, load_statements())
    try:
        waiting = (await owed_messages(store)).count
        await store.change([hold_back_messages(HELD_BACK)])
        sessions = await store.open_sessions()
        for each in sessions:
            inbound = Inbound(
                external_id=f"restored-{now:.0f}-{each.session}",
                address=Address("door"),
                sender=SYSTEM.id,
                at=now,
                body=Command("stop"),
                session=each.session,
            )
            await store.accept(inbound, SYSTEM, each.session)
        return len(sessions), waiting
    finally:
        await store.close()


def _forget_store(config: Path) -> None:
    """The database that was restored is a file: a server that the settings name is another one."""
    with suppress(FileNotFoundError, KeyError):
        config.write_text(unset_key(config.read_text(), ("store",), Config))


@contextmanager
def open_backup(path: Path, identity: str = "") -> Iterator[IO[bytes]]:
    """The archive, decrypted by a key of age where it is encrypted. Raises DeskhandError,
    OSError."""
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        if not path.name.endswith(".age"):
            yield file
            return
        if not identity:
            raise ConfigError(f"{str(path)!r} is encrypted: name the file of its key, --key FILE")
        try:
            import pyrage  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise ConfigError(NO_AGE) from error
        plain: IO[bytes] = stack.enter_context(TemporaryFile())
        try:
            keys = [
                pyrage.x25519.Identity.from_str(line.strip())
                for line in Path(identity).expanduser().read_text().splitlines()
                if line.strip() and not line.startswith("#")
            ]
            pyrage.decrypt_io(file, plain, keys)
        except (pyrage.IdentityError, pyrage.DecryptError) as error:
            raise BackupBroken(f"{path.name} cannot be decrypted: {error}") from error
        plain.seek(0)
        yield plain


def _encryptor(recipient: str) -> Callable[[Path, Path], None]:
    """Encrypts a file for whoever has the key of this public one. Raises ConfigError."""
    try:
        import pyrage  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise ConfigError(NO_AGE) from error
    try:
        key = pyrage.x25519.Recipient.from_str(recipient)
    except pyrage.RecipientError as error:
        raise ConfigError(
            f"{recipient!r} is no public key of age, such as age1…: {error}"
        ) from error

    def encrypt(source: Path, target: Path) -> None:
        pyrage.encrypt_file(str(source), str(target), [key])

    return encrypt


def list_backups(folder: Path) -> list[BackupFile]:
    """The backups in a folder, the newest first."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if (match := _NAME.fullmatch(path.name)) and path.is_file():
            at = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC).timestamp()
            found.append(BackupFile(path, at, path.stat().st_size))
    return sorted(found, key=lambda each: (each.at, each.path.name), reverse=True)


def describe_what_keeps(settings: Settings) -> str:
    """A sentence on the backups that still hold what was erased; '' where there are none."""
    folder = settings.config.backup.folder
    found = list_backups(Path(folder).expanduser()) if folder else []
    if not found:
        return ""
    hold = "backup holds" if len(found) == 1 else "backups hold"
    return f"{len(found)} {hold} it until deleted: deskhand backup list"


def prune_backups(folder: Path, keep: int) -> list[BackupFile]:
    """Delete all but so many of the newest backups in a folder; 0 keeps all. Returns those that
    were deleted."""
    gone = list_backups(folder)[keep:] if keep else []
    for each in gone:
        each.path.unlink()
    return gone


def _free_path(folder: Path, now: float, suffix: str) -> Path:
    stem = f"deskhand-{datetime.fromtimestamp(now, UTC).strftime(_TIME)}"
    names = (f"{stem}{'' if n == 1 else f'-{n}'}{suffix}" for n in range(1, 1000))
    return next(path for name in names if not (path := folder / name).exists())


def _flush(path: Path) -> None:
    """See to it that it is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
