"""Brings a source checkout to a newer version: the new one is tried on a copy of the home first,
and the old one comes back where the service does not start with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec

from .. import __file__ as _PACKAGE
from ..config.config import Settings
from ..config.home import Home
from ..store.schema import copy_before_update
from ..types.errors import DeskhandError
from .backup import extract_verified, make_backup
from .lock import Holder, hold_lock, read_holder
from .restore import folder_with_room, open_backup
from .start_log import read_last_start
from .supervise import DRAIN_S, GRACE_S

COMMAND_S = 900.0
"""So long one step may take: on a slow line hundreds of megabytes are downloaded."""
TRIAL_S = 120.0
LOOK_S = 0.2
COMES_BACK_S = 20.0
"""So long a service manager is waited for."""
SAID_CHARS = 500
HELLO = "Are you there?"
INSTALLED = ".venv/.run"
"""The target of the Makefile that installs what the version needs."""


class Update(msgspec.Struct, frozen=True):
    """A newer version of the checkout in `folder`: from one commit to another, `commits` further.
    `news` are the lines that were added to the changelog."""

    folder: Path
    old: str
    new: str
    commits: int
    news: tuple[str, ...]


class WentBack(msgspec.Struct, frozen=True):
    """How it is after the old version came back: whether its database was `restored`, and whether
    the service works again."""

    restored: bool
    is_up: bool


class UpdateFailed(DeskhandError):
    """The new version cannot be used."""


def find_checkout() -> Path | None:
    """The source checkout that runs; None where Deskhand was installed in another way."""
    folder = Path(_PACKAGE).resolve().parents[2]
    is_checkout = (folder / ".git").exists() and (folder / "Makefile").exists()
    return folder if is_checkout else None


def look_for_update(folder: Path, ref: str = "") -> Update | None:
    """Fetch, and see what is newer: the branch that is followed, or `ref`. None: nothing is. Raises
    DeskhandError where the checkout cannot be updated."""
    if changed := _git(folder, "status", "--porcelain", "--untracked-files=no"):
        files = ", ".join(line[3:] for line in changed.splitlines()[:3])
        raise UpdateFailed(f"{folder} has changes of yours ({files}): commit or undo them first")
    _git(folder, "fetch", "--quiet", "--tags")
    if not ref and not _is_ok(folder, "rev-parse", "--verify", "--quiet", "@{upstream}"):
        raise UpdateFailed(f"the branch of {folder} follows no other: name a version, --to VERSION")
    old = _git(folder, "rev-parse", "HEAD")
    wanted = f"{ref or '@{upstream}'}^{{commit}}"
    if not _is_ok(folder, "rev-parse", "--verify", "--end-of-options", wanted):
        raise UpdateFailed(f"there is no version {ref!r}")
    new = _git(folder, "rev-parse", "--verify", "--end-of-options", wanted)
    if _is_ok(folder, "merge-base", "--is-ancestor", new, old):
        return None
    if not _is_ok(folder, "merge-base", "--is-ancestor", old, new):
        raise UpdateFailed(f"{folder} has commits of yours: merge the new version yourself")
    commits = int(_git(folder, "rev-list", "--count", f"{old}..{new}"))
    changes = _git(folder, "diff", "--unified=0", old, new, "--", "CHANGELOG.md").splitlines()
    news = (line[1:] for line in changes if line.startswith("+") and not line.startswith("+++"))
    return Update(folder, old, new, commits, tuple(line for line in news if line.strip()))


def try_out(
    settings: Settings,
    update: Update,
    environment: Mapping[str, str],
    now: float,
    progress: Callable[[str], None],
) -> None:
    """Install the new version beside the one that runs, and have it answer a message on a copy of
    the home. Nothing of the home or of the checkout is changed. Raises DeskhandError, OSError."""
    with _worktree(update) as place:
        progress("Installing it beside the one that runs")
        _install(place)
        with tempfile.TemporaryDirectory(
            dir=folder_with_room(settings.home.root.resolve())
        ) as work:
            progress("Copying the home")
            archive, _ = make_backup(settings, Path(work) / "backup", now=now)
            copy = Path(work) / "home"
            copy.mkdir(mode=0o700)
            with open_backup(archive.path) as file:
                extract_verified(file, copy)
            progress("Trying it on the copy")
            _ask(place, copy, environment)


def install(update: Update) -> None:
    """Put the new version in the place of the old one. Raises DeskhandError: then the old one is
    back."""
    _git(update.folder, "merge", "--quiet", "--ff-only", update.new)
    try:
        _install(update.folder)
    except BaseException:
        uninstall(update)
        raise


def uninstall(update: Update) -> None:
    """Put the old version back. Raises DeskhandError."""
    _git(update.folder, "reset", "--quiet", "--keep", update.old)
    _install(update.folder)


def is_serving(home: Home) -> bool:
    """Whether a service runs for this home."""
    return read_holder(home.serve_lock) is not None


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


async def go_back(settings: Settings, update: Update, now: float) -> WentBack:
    """Put the old version back, after the service did not start with the new one, and the database
    as it was, where the new one had changed it. Raises DeskhandError, OSError."""
    home = settings.home
    before = read_last_start(home)
    uninstall(update)
    restored = copy_before_update(home.database).exists()
    if restored:
        await _restore_database(home, now)
    if is_serving(home) and read_last_start(home) == before:
        return WentBack(restored, await restart_service(home, settings.config.start_s))
    # A service manager starts it again by itself.
    return WentBack(
        restored, await _comes_true(lambda: read_last_start(home) != before, COMES_BACK_S)
    )


async def _comes_true(what: Callable[[], bool], seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        while not what():  # noqa: ASYNC110 -- it comes true in another process
            await anyio.sleep(LOOK_S)
    return what()


async def _restore_database(home: Home, now: float) -> None:
    """While no service can start."""
    holder = read_holder(home.serve_lock)
    if holder is not None and holder.pid:  # it hangs
        os.kill(holder.pid, signal.SIGTERM)
    try:
        with anyio.fail_after(GRACE_S + COMES_BACK_S):
            async with hold_lock(home.serve_lock, Holder(os.getpid(), now)):
                for suffix in ("-wal", "-shm"):
                    beside = home.database.with_name(f"{home.database.name}{suffix}")
                    beside.unlink(missing_ok=True)
                copy_before_update(home.database).replace(home.database)
    except TimeoutError as error:
        raise UpdateFailed("the service does not end, so its database was left") from error


# Steps


@contextmanager
def _worktree(update: Update) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="deskhand-update-")) / "deskhand"
    try:
        _git(update.folder, "worktree", "add", "--quiet", "--detach", str(place), update.new)
        yield place
    finally:
        shutil.rmtree(place.parent, ignore_errors=True)
        _git(update.folder, "worktree", "prune")


def _install(place: Path) -> None:
    _run(["make", "--silent", "-C", str(place), INSTALLED], COMMAND_S)


def _ask(place: Path, home: Path, environment: Mapping[str, str]) -> None:
    """Have the version in `place` answer in this home, by its model that needs no key."""
    own = {name: value for name, value in environment.items() if not name.startswith("DESKHAND_")}
    own |= {"DESKHAND_HOME": str(home), "DESKHAND_STORE": ""}
    command = [str(place / ".venv" / "bin" / "deskhand"), "ask", "--model", "scripted/echo", HELLO]
    said = _run(command, TRIAL_S, own)
    if HELLO not in said:
        raise UpdateFailed(f"the new version answered {said[-SAID_CHARS:]!r}")


def _git(folder: Path, *words: str) -> str:
    return _run(["git", "-C", str(folder), *words], COMMAND_S)


def _is_ok(folder: Path, *words: str) -> bool:
    try:
        _git(folder, *words)
    except UpdateFailed:
        return False
    return True


def _run(
    command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None
) -> str:
    """What it printed. Raises UpdateFailed with its own words."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            env=environment,
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
