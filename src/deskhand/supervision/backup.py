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
from .backup_places import BackupFile, BackupPlace, backup_stem, home_id
from .erased_index import Erased, collect_erased, tell_backups
from .lock import Holder, acquire_lock, read_holder

SUFFIX = ".tar.gz"
SECRET_SUFFIX = f"{SUFFIX}.age"
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


def make_backup(
    settings: Settings,
    place: BackupPlace,
    *,
    now: float,
    recipient: str = "",
    progress: Progress = lambda text: None,
) -> tuple[BackupFile, BackupList]:
    """Make a backup, verify it, and store it in this place. With `recipient`, the public key of
    age, only whoever has the other key can read it.

    Everything that was acknowledged before it began is in it. It blocks, and must not be called
    from an event loop. Raises DeskhandError, OSError: then nothing is left behind.
    """
    encrypt = _encryptor(recipient) if recipient else None
    home = settings.home
    place.check(home, encrypted=encrypt is not None)
    home.make_folder(home.state)
    with _only_one(home, now), _work_folder(home) as work:
        archive = work / f"{WORK}{SUFFIX}"
        progress("copying the database")
        listed, erased = _write(settings, archive, work, place, now=now, progress=progress)
        progress("verifying")
        with archive.open("rb") as file:
            verify_archive(file, work / "verify")
        suffix = SUFFIX
        if encrypt is not None:
            progress("encrypting")
            suffix = SECRET_SUFFIX
            encrypt(archive, work / f"{WORK}{suffix}")
        progress("storing")
        sealed = work / f"{WORK}{suffix}"
        size = sealed.stat().st_size
        tell_backups(place, home, erased)
        name = place.add(sealed, backup_stem(home, now), suffix)
    return BackupFile(place.address, name, home_id(home), now, size), listed


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
    place: BackupPlace,
    *,
    now: float,
    progress: Progress,
) -> tuple[BackupList, Erased]:
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
        for found in _list_files(settings, place, writer.unreadable):
            writer.add(found)
            if found.follow and found.path.is_symlink():
                roots[os.path.realpath(found.path)] = found.inner
        anyio.run(_join_labels, settings, copy)
        events, heads = look_at_log(copy)
        erased = anyio.run(_collect_erased, copy)
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
    return listed, erased


def _list_files(
    settings: Settings, place: BackupPlace, unreadable: list[str]
) -> Iterator[FolderEntry]:
    """What of the home is in a backup: all but logs, what the process that runs has in `state`,
    models that can be had again, and backups."""
    home = settings.home
    root = home.root.resolve()
    state = f"{home.state.name}/"
    elsewhere = (Path(place.address), settings.cache_folder)
    others = [home.logs.name, *(_inside(root, each) for each in elsewhere)]
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


async def _collect_erased(database: Path) -> Erased:
    store = SqliteStore(database, load_statements())
    try:
        return await collect_erased(store)
    finally:
        await store.close()


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
