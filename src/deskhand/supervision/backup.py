"""Makes backups of a home while it is in use.

A backup is only kept after it was restored into a folder beside it and verified there: every file,
the database, and the hash chain of every conversation.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import IO

import anyio
import apsw
import msgspec

from ..config.config import Settings
from ..config.database import open_store
from ..config.home import Home
from ..config.last_good import GOOD_PREFIX
from ..config.statements import load_statements
from ..store.blobs import DIGEST_PREFIX
from ..store.schema import connect, copy_database
from ..store.sqlite import SqliteStore
from ..tools.queries import list_file_labels, set_label
from ..types.errors import ConfigError, DeskhandError, StoreError
from ..types.folders import make_private_folder
from ..types.labels import join_labels
from .backup_archive import (
    FORMAT,
    ArchiveWriter,
    BackupBroken,
    BackupList,
    FolderEntry,
    extract_archive,
    iter_folder,
)
from .lock import Holder, acquire_lock, read_holder

SUFFIX = ".tar.gz"
SECRET_SUFFIX = f"{SUFFIX}.age"
_NAME = re.compile(
    r"deskhand-(?P<home>[0-9a-f]{6})-(?P<at>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(-\d+)?\.tar\.gz(\.age)?"
)
TIME_IN_NAME = "%Y-%m-%dT%H-%M-%S"
WORK = "backup"
"""How the folder in `state` begins in which a backup is made and tried."""
KEPT_STATE = ("secrets.json", "blobs", "history", "commands-trust.pem")
"""What of `state` is in a backup beside the database: all else is of the process that runs."""
SKIPPED = ("__pycache__", "node_modules", ".venv", ".cache")
"""Folders that programs make again."""
ASIDE = ".before-"
"""How the name of a home goes on that was moved aside."""
_OWN_LINKS = re.compile(
    r"state(/[^/]+)?|agents(/[^/]+(/workspace)?)?|jobs|skills|prompts|shared|plugins|\.env"
    r"|deskhand\.yaml"
)
"""What an owner may have put on another disk: a link there is taken for what it leads to."""
NO_AGE = "encryption needs the extra `backup`: pip install 'deskhand[backup]'"
Progress = Callable[[str], None]


class BackupFile(msgspec.Struct, frozen=True):
    """A backup. `home` tells homes apart; `at` is when it was begun, in seconds since the epoch."""

    path: Path
    home: str
    at: float
    size: int

    @property
    def is_encrypted(self) -> bool:
        return self.path.name.endswith(".age")


def make_backup(
    settings: Settings,
    folder: Path,
    *,
    now: float,
    recipient: str = "",
    progress: Progress = lambda text: None,
) -> tuple[BackupFile, BackupList]:
    """Make a backup in this folder, and verify it. With `recipient`, the public key of age, only
    whoever has the other key can read it.

    Everything that was acknowledged before it began is in it. It blocks, and must not be called
    from an event loop. Raises DeskhandError, OSError: then nothing is left behind.
    """
    encrypt = _encryptor(recipient) if recipient else None
    home = settings.home
    folder = folder.absolute()
    _check_folder(home, folder)
    make_private_folder(folder)
    home.make_folder(home.state)
    with _only_one(home, now), _work_folder(home) as work:
        archive = work / f"{WORK}{SUFFIX}"
        progress("copying the database")
        listed = _write(settings, archive, work, folder, now=now, progress=progress)
        progress("verifying")
        digest = _digest_of(archive)
        with archive.open("rb") as file:
            verify_archive(file, work / "verify")
        part = folder / f".deskhand-{home_id(home)}.part"
        part.unlink(missing_ok=True)
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # keys are in it
            if encrypt is not None:
                progress("encrypting")
                encrypt(archive, part)
            else:
                shutil.copyfile(archive, part)
                if _digest_of(part) != digest:
                    raise BackupBroken(f"{part} is not what was written; is the disk well?")
            flush(part)
            path = _publish(part, home, now, SECRET_SUFFIX if encrypt else SUFFIX)
        finally:
            part.unlink(missing_ok=True)
    return BackupFile(path, home_id(home), now, path.stat().st_size), listed


def _check_folder(home: Home, folder: Path) -> None:
    """Raises ConfigError for a folder where agents could read it, or that the home consists of."""
    root = home.root.resolve()
    real = folder.resolve()
    if not real.is_relative_to(root):
        return
    first = real.relative_to(root).parts[:1]
    if not first or first[0] in (home.state.name, "agents", "shared", "jobs", "skills", "prompts"):
        raise ConfigError(f"{str(folder)!r} belongs to the home itself; name another folder")


@contextmanager
def _only_one(home: Home, now: float) -> Iterator[None]:
    path = home.state / f"{WORK}.lock"
    descriptor = acquire_lock(path, Holder(os.getpid(), now))
    if descriptor is None:
        holder = read_holder(path)
        raise DeskhandError(
            f"process {holder.pid if holder else '?'} is making a backup; wait until it has ended"
        )
    try:
        for left in home.state.glob(f"{WORK}-*"):  # of one that was killed
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _work_folder(home: Home) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix=f"{WORK}-", dir=home.state))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write(
    settings: Settings,
    archive: Path,
    work: Path,
    folder: Path,
    *,
    now: float,
    progress: Progress,
) -> BackupList:
    home = settings.home
    writer = ArchiveWriter(archive, work)
    listed: BackupList | None = None
    try:
        # What it says must not be newer than the database.
        with suppress(FileNotFoundError):
            writer.add_bytes(home.anchors.read_bytes(), f"state/{home.anchors.name}")
        copy = work / home.database.name
        _copy_database(settings, copy)
        copy.chmod(0o600)
        progress("copying files")
        roots = {os.path.realpath(home.root): ""}
        for found in _list_files(settings, folder, writer.unreadable):
            writer.add(found)
            if found.follow and found.path.is_symlink():
                roots[os.path.realpath(found.path)] = found.inner
        anyio.run(_join_labels, settings, copy)
        events, heads = look_at_log(copy)
        writer.add(
            FolderEntry(
                f"state/{copy.name}", copy, "file", os.path.realpath(copy.parent), follow=True
            )
        )
        listed = BackupList(
            FORMAT,
            version("deskhand"),
            now,
            "postgresql" if settings.config.store else "sqlite",
            events,
            heads,
            writer.files,
            (*_outside(settings), *_unread(writer), *_missing_blobs(copy, writer)),
            roots,
        )
    finally:
        writer.close(listed)
    return listed


def _list_files(settings: Settings, folder: Path, unreadable: list[str]) -> Iterator[FolderEntry]:
    """What of the home is in a backup: all but logs, what the process that runs has in `state`,
    models that can be had again, and backups."""
    home = settings.home
    root = home.root.resolve()
    state = f"{home.state.name}/"
    others = [home.logs.name, *(_inside(root, each) for each in (folder, settings.cache_folder))]
    left = tuple(f"{each}/" for each in others if each)
    for found in iter_folder(home.root, SKIPPED, _is_own_link, unreadable):
        kept = found.inner.removeprefix(state).split("/")[0]
        is_state = found.inner.startswith(state)
        if is_state and not kept.startswith(GOOD_PREFIX) and kept not in KEPT_STATE:
            continue
        if f"{found.inner}/".startswith(left) or found.inner.startswith((ASIDE, ".restoring")):
            continue
        if not (is_state and found.inner.endswith(".part")):
            yield found


def _is_own_link(inner: str) -> bool:
    return _OWN_LINKS.fullmatch(inner) is not None


def _inside(root: Path, folder: Path) -> str:
    """The path of a folder from the home; '' where it lies elsewhere."""
    real = folder.expanduser().resolve()
    return str(real.relative_to(root)) if real.is_relative_to(root) and real != root else ""


def _outside(settings: Settings) -> Iterator[str]:
    """What lies elsewhere, and so is not in a backup."""
    root = settings.home.root.resolve()
    named = {f"the workspace of {name}": settings.agent(name).workspace for name in settings.agents}
    named |= {"the configuration": str(settings.file), "env_file": settings.config.env_file}
    named["skills_folder"] = settings.config.skills_folder
    for what, path in named.items():
        if path and not Path(path).expanduser().resolve().is_relative_to(root):
            yield f"{what}, {path}: it lies outside the home"


def _unread(writer: ArchiveWriter) -> Iterator[str]:
    for inner in writer.unreadable:
        yield f"{inner}: it cannot be read"


def _missing_blobs(database: Path, writer: ArchiveWriter) -> Iterator[str]:
    """Files of conversations that are not there any more, or were not readable."""
    connection = connect(database, write=False)
    try:
        used = {
            str(digest).removeprefix(DIGEST_PREFIX)
            for (digest,) in connection.execute("SELECT DISTINCT digest FROM blob_use")
        }
    finally:
        connection.close()
    there = {inner.rpartition("/")[2] for inner in writer.files if "state/blobs/" in inner}
    if missing := len(used - there):
        yield f"{missing} files of conversations: they are not in state/blobs"


def _copy_database(settings: Settings, target: Path) -> None:
    """The database as it is at one moment, as a file of SQLite. Raises StoreError."""
    if not settings.config.store:
        _copy_sqlite(settings.home.database, target)
        return
    anyio.run(_copy_postgres, settings.config.store, target)
    connection = apsw.Connection(str(target))
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


async def _copy_postgres(url: str, target: Path) -> None:
    from ..store.move import move  # noqa: PLC0415 -- the driver of PostgreSQL is an extra
    from ..store.move_sides import PostgresSide, SqliteSide  # noqa: PLC0415

    there = PostgresSide(url, snapshot=True)
    try:
        here = SqliteSide(target)
        try:
            move(there, here)
        finally:
            await here.close()
    finally:
        await there.close()


def _copy_sqlite(database: Path, target: Path) -> None:
    if not database.exists():
        raise StoreError("there is no database yet: start Deskhand once before a backup")
    copy_database(database, target)


async def _join_labels(settings: Settings, copy: Path) -> None:
    """Files were copied after the database: what came from outside meanwhile must not lose its
    label, nor what was made anew. Raises StoreError."""
    live = open_store(settings)
    try:
        now = await list_file_labels(live)
    finally:
        await live.close()
    store = SqliteStore(copy, load_statements())
    try:
        then = await list_file_labels(store)
        changes = [
            set_label(path, join_labels((label, then.get(path, label))), "", 0.0)
            for path, label in now.items()
            if then.get(path) != label
        ]
        if changes:
            await store.change(changes)
    finally:
        await store.close()


def look_at_log(database: Path) -> tuple[int, str]:
    """How many events there are, and a digest of the ends of all conversations. Raises StoreError
    where the database or a hash chain is damaged."""
    return anyio.run(_look_at_log, database)


async def _look_at_log(database: Path) -> tuple[int, str]:
    store = SqliteStore(database, load_statements())
    try:
        if problems := store.check_integrity():
            raise StoreError(f"the database is damaged: {problems[0]}")
        events, breaks = await store.audit()
        if breaks:
            raise StoreError(f"the log is damaged: {breaks[0].session}: {breaks[0].why}")
        ends = (await store.heads()).items()
        heads = sorted((session, n, head.hex()) for session, (n, head) in ends)
        return events, sha256(msgspec.json.encode(heads)).hexdigest()
    finally:
        await store.close()


def verify_archive(file: IO[bytes], folder: Path) -> BackupList:
    """Restore a backup into this folder, which must not exist, and see whether all is as it was.
    The folder is removed again. Raises DeskhandError, OSError."""
    folder.mkdir(mode=0o700)
    try:
        return extract_verified(file, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def extract_verified(file: IO[bytes], folder: Path) -> BackupList:
    """Extract a backup into an empty folder, and see whether all is as it was. Raises
    DeskhandError, OSError."""
    listed = extract_archive(file, folder)
    if f"state/{Home(folder).database.name}" not in listed.files:
        raise BackupBroken("there is no database in it")
    if look_at_log(Home(folder).database) != (listed.events, listed.heads):
        raise BackupBroken("the database is not the one of which the backup was made")
    return listed


def _encryptor(recipient: str) -> Callable[[Path, Path], None]:
    """Encrypts a file for whoever has the key of this public one. Raises ConfigError."""
    try:
        import pyrage  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise ConfigError(NO_AGE) from error
    if recipient.upper().startswith("AGE-SECRET-KEY"):
        raise ConfigError("this is the secret key of age; give the public one, age1…")
    try:
        key = pyrage.x25519.Recipient.from_str(recipient)
    except pyrage.RecipientError as error:
        raise ConfigError("this is no public key of age; it looks like age1…") from error

    def encrypt(source: Path, target: Path) -> None:
        pyrage.encrypt_file(str(source), str(target), [key])

    return encrypt


def list_backups(folder: Path) -> list[BackupFile]:
    """The backups in a folder, the newest first."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if (match := _NAME.fullmatch(path.name)) and path.is_file():
            at = datetime.strptime(match["at"], TIME_IN_NAME).replace(tzinfo=UTC).timestamp()
            found.append(BackupFile(path, match["home"], at, path.stat().st_size))
    return sorted(found, key=lambda each: (each.at, each.path.name), reverse=True)


def prune_backups(made: BackupFile, keep: int) -> list[BackupFile]:
    """Delete all but so many of the newest backups of the home of which this one was just made,
    never this one, and none from a time to come; 0 keeps all. Returns those that were deleted.
    Raises OSError."""
    own = [
        each
        for each in list_backups(made.path.parent)
        if each.home == made.home and each.at <= made.at and each.path != made.path
    ]
    gone = own[keep - 1 :] if keep else []
    for each in gone:
        each.path.unlink()
    return gone


def describe_what_keeps(settings: Settings) -> str:
    """A sentence on the backups that still hold what was erased; '' where there are none."""
    folder = settings.config.backup.folder
    found = list_backups(Path(folder).expanduser()) if folder else []
    if not found:
        return ""
    hold = "backup holds" if len(found) == 1 else "backups hold"
    return f"{len(found)} {hold} it until deleted: deskhand backup list"


def home_id(home: Home) -> str:
    """What tells the backups of this home from those of others."""
    return sha256(os.fsencode(home.root.resolve())).hexdigest()[:6]


def _publish(part: Path, home: Home, now: float, suffix: str) -> Path:
    """Give a backup its name; nothing that is there is replaced."""
    at = datetime.fromtimestamp(now, UTC).strftime(TIME_IN_NAME)
    stem = f"deskhand-{home_id(home)}-{at}"
    for number in range(1, 1000):
        path = part.with_name(f"{stem}{'' if number == 1 else f'-{number}'}{suffix}")
        if path.exists():
            continue
        try:
            os.link(part, path)
        except FileExistsError:
            continue
        except OSError:  # a disk without hard links
            part.rename(path)
        flush(path.parent)
        return path
    raise BackupBroken(f"there are a thousand backups of {at} already")


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def flush(path: Path) -> None:
    """See to it that it is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
