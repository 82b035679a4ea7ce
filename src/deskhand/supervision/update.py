"""Brings a source checkout to a newer version: the new one is tried on a copy of the home first,
and the old one comes back where the service does not start with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec

from .. import __file__ as _PACKAGE
from ..config.config import Settings, environment_of
from ..config.home import Home
from ..store.schema import read_schema_version
from ..types.errors import DeskhandError
from .backup import extract_verified, make_backup
from .backup_places import FolderPlace, home_id
from .lock import read_holder
from .restore import folder_with_room, open_backup, quieten
from .start_log import read_last_start
from .supervise import DRAIN_S

COMMAND_S = 900.0
"""So long one step may take: on a slow line hundreds of megabytes are downloaded."""
TRIAL_S = 120.0
LOOK_S = 0.2
COMES_BACK_S = 20.0
"""So long a service manager is waited for."""
SAID_CHARS = 500
HELLO = "Are you there?"
NOT_PASSED_ON = ("DESKHAND_", "GIT_", "PYTHON")
INSTALLED = ".venv/.run"
"""The target of the Makefile that installs what the version needs."""


class NewVersion(msgspec.Struct, frozen=True):
    """A newer version of the checkout in `folder`: from one commit to another, `commits` further.
    `news` are the lines that were added to the changelog."""

    folder: Path
    old: str
    new: str
    commits: int
    news: tuple[str, ...]


class UpdateFailed(DeskhandError):
    """The new version cannot be used."""


class UpdateHalfDone(UpdateFailed):
    """Neither version is installed as a whole."""


def find_checkout() -> Path | None:
    """The source checkout that runs in its own environment; None where Deskhand was installed in
    another way."""
    folder = Path(_PACKAGE).resolve().parents[2]
    is_checkout = (folder / ".git").exists() and (folder / "Makefile").exists()
    runs_here = Path(sys.prefix).resolve() == (folder / ".venv").resolve()
    return folder if is_checkout and runs_here else None


def look_for_update(folder: Path, ref: str = "") -> NewVersion | None:
    """Fetch, and see what is newer: the branch that is followed, or `ref`. None: nothing is. Raises
    DeskhandError where the checkout cannot be updated."""
    if changed := _git(folder, "status", "--porcelain", "--untracked-files=no"):
        files = ", ".join(line[3:] for line in changed.splitlines()[:3])
        raise UpdateFailed(f"{folder} has changes of yours ({files}): commit or undo them first")
    _git(folder, "fetch", "--quiet", "--tags", "--force")
    old = _git(folder, "rev-parse", "HEAD")
    new = _resolve(folder, ref)
    if _is_ok(folder, "merge-base", "--is-ancestor", new, old):
        return None
    if not _is_ok(folder, "merge-base", "--is-ancestor", old, new):
        raise UpdateFailed(f"{folder} has commits of yours: merge the new version yourself")
    commits = int(_git(folder, "rev-list", "--count", f"{old}..{new}"))
    compared = ("diff", "--no-color", "--no-ext-diff", "--unified=0", old, new)
    changes = _git(folder, *compared, "--", "CHANGELOG.md").splitlines()
    news = (line[1:] for line in changes if line.startswith("+") and not line.startswith("+++"))
    return NewVersion(folder, old, new, commits, tuple(line for line in news if line.strip()))


def _resolve(folder: Path, ref: str) -> str:
    """The commit of a version: a tag, a branch of where this checkout comes from, or a commit."""
    names = [f"refs/tags/{ref}", f"refs/remotes/origin/{ref}", ref] if ref else ["@{upstream}"]
    for name in names:
        wanted = ("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        if _is_ok(folder, *wanted):
            return _git(folder, *wanted)
    if ref:
        raise UpdateFailed(f"there is no version {ref!r}")
    raise UpdateFailed(f"the branch of {folder} follows no other: name a version, --to VERSION")


def try_out(
    settings: Settings, update: NewVersion, now: float, progress: Callable[[str], None]
) -> None:
    """Install the new version beside the one that runs, and have it answer a message on a copy of
    the home, in which nothing is going on. Nothing of the home or of the checkout is changed.
    Raises DeskhandError, OSError."""
    room = folder_with_room(settings.home.root.resolve())
    with _worktree(update) as place, _work_folder(settings.home, room) as work:
        progress("Installing it beside the one that runs")
        _install(place)
        progress("Copying the home")
        archive, _ = make_backup(settings, FolderPlace(work / "backup"), now=now)
        copy = work / "home"
        copy.mkdir(mode=0o700)
        with open_backup(archive.path) as file:
            listed = extract_verified(file, copy)
        quieten(Home(copy), listed, copy, now)
        progress("Trying it on the copy")
        _ask(place, copy)


def install(update: NewVersion) -> None:
    """Put the new version in the place of the old one. Files that are in the way are left alone.
    Raises DeskhandError: then the old one is back, or the message says that it is not."""
    _git(update.folder, "merge", "--quiet", "--ff-only", "--no-overwrite-ignore", update.new)
    try:
        _install(update.folder)
    except BaseException as error:
        try:
            uninstall(update)
        except UpdateFailed as second:
            raise UpdateHalfDone(
                f"{error}; and the old version is not back either ({second}). When that is "
                f"mended: git -C {update.folder} reset --keep {update.old[:8]} && "
                f"make -C {update.folder} {INSTALLED}"
            ) from error
        raise


def uninstall(update: NewVersion) -> None:
    """Put the old version back. Raises DeskhandError."""
    _git(update.folder, "reset", "--quiet", "--keep", update.old)
    _install(update.folder)


def is_serving(home: Home) -> bool:
    """Whether a service runs for this home."""
    return read_holder(home.serve_lock) is not None


def is_standing_by(home: Home) -> bool:
    """Whether the service waits for a terminal chat that does the work."""
    serving = read_holder(home.serve_lock)
    works = read_holder(home.lock)
    if serving is None or works is None or not works.pid:
        return False
    try:
        parent = _run(["ps", "-o", "ppid=", "-p", str(works.pid)], COMMAND_S)
    except UpdateFailed:  # it has ended
        return False
    return int(parent) != serving.pid


def read_schema(settings: Settings) -> int:
    """Which version changed the database last. Raises StoreError."""
    if not settings.config.store:
        return read_schema_version(settings.home.database)
    from ..store.postgres_connection import connect  # noqa: PLC0415 -- an extra

    with connect(settings.config.store) as db:
        row = db.execute("SELECT max(version) FROM schema_version").fetchone()
    return int(row[0]) if row and row[0] else 0


async def restart_service(home: Home, start_s: float) -> bool:
    """Have the service that runs start anew, with the version that is in place. False: it did not
    become ready in time, or ended."""
    before = read_last_start(home)
    holder = read_holder(home.serve_lock)
    if holder is None or not holder.pid:
        return False
    os.kill(holder.pid, signal.SIGUSR1)
    await _comes_true(
        lambda: read_last_start(home) != before or not is_serving(home), DRAIN_S + start_s
    )
    return read_last_start(home) != before


async def go_back(settings: Settings, update: NewVersion) -> bool:
    """Put the old version back, after the service did not start with the new one. Returns whether
    the service works again. Raises DeskhandError, OSError."""
    home = settings.home
    uninstall(update)
    if is_serving(home):
        return await restart_service(home, settings.config.start_s)
    before = read_last_start(home)  # a service manager starts it again by itself
    return await _comes_true(lambda: read_last_start(home) != before, COMES_BACK_S)


async def _comes_true(what: Callable[[], bool], seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        while not what():  # noqa: ASYNC110 -- it comes true in another process
            await anyio.sleep(LOOK_S)
    return what()


# Steps


@contextmanager
def _worktree(update: NewVersion) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="deskhand-update-")) / "deskhand"
    try:
        _git(update.folder, "worktree", "add", "--quiet", "--detach", str(place), update.new)
        yield place
    finally:
        _is_ok(update.folder, "worktree", "remove", "--force", "--force", str(place))
        shutil.rmtree(place.parent, ignore_errors=True)


@contextmanager
def _work_folder(home: Home, room: Path | None) -> Iterator[Path]:
    """A folder for a copy of this home. One of an update that was killed is removed first."""
    place = room or Path(tempfile.gettempdir())
    prefix = f".deskhand-update-{home_id(home)}-"
    for left in place.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as folder:
        yield Path(folder)


def _install(place: Path) -> None:
    _run(["make", "--silent", "-C", str(place), INSTALLED], COMMAND_S)


def _ask(place: Path, home: Path) -> None:
    """Have the version in `place` answer in this home, by its model that needs no key."""
    command = [str(place / ".venv" / "bin" / "deskhand"), "ask", "--model", "scripted/echo", HELLO]
    said = _run(command, TRIAL_S, {"DESKHAND_HOME": str(home), "DESKHAND_STORE": ""})
    if HELLO not in said:
        raise UpdateFailed(f"the new version answered {said[-SAID_CHARS:]!r}")


def _git(folder: Path, *words: str) -> str:
    """Without hooks of the person's."""
    return _run(["git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *words], COMMAND_S)


def _is_ok(folder: Path, *words: str) -> bool:
    try:
        _git(folder, *words)
    except UpdateFailed:
        return False
    return True


def _run(
    command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None
) -> str:
    """What it printed, in our environment without what is meant for us, for this Python or for
    another repository. Raises UpdateFailed with its own words."""
    name = Path(command[0]).name
    usual = environment_of()
    env = {key: value for key, value in usual.items() if not key.startswith(NOT_PASSED_ON)}
    try:
        done = subprocess.run(
            command,
            env={**env, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError as error:
        raise UpdateFailed(f"{name} was not found: install it first") from error
    except subprocess.TimeoutExpired as error:
        raise UpdateFailed(f"{name} took longer than {seconds:.0f} s") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-SAID_CHARS:]
        raise UpdateFailed(f"{name} failed: {said or f'exit code {done.returncode}'}")
    return done.stdout.rstrip()
