"""Takes back what agents changed in the Python that this service runs, when it no longer starts
with it.

What they change is in the journal of undo anyway: this only finds what belongs to it, and undoes
it, in the place of a worker that did not come up, or at the start of one in which a plugin did not
load.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import msgspec

from .. import __file__ as _PACKAGE
from ..config.clock import SystemClock
from ..config.config import Settings
from ..config.database import open_store
from ..store.base import Store
from ..tools.journal import edits_since
from ..types.errors import DeskhandError, Refused
from ..types.events import MessageReceived
from ..types.identity import SYSTEM, Address, Command, Inbound
from ..users.queries import audit_note
from ..workspace.undo_journal import UndoJournal, open_undo_journal
from . import queries
from .start_log import read_last_start, read_startup_error

log = logging.getLogger(__name__)

WHY_CHARS = 500
PACKAGE = Path(_PACKAGE).parent.resolve()


class CodeEdit(msgspec.Struct, frozen=True):
    """A change of an agent that touched such files."""

    n: int
    session: str
    files: tuple[str, ...]


async def roll_back_failed_start(settings: Settings, code: int, why: str = "") -> bool:
    """The worker ended with this code before it drove (`why`, where that is known): take back what
    was changed since the last good start. Returns whether another start is worth while. It raises
    nothing: without it, all is as it was before."""
    if not why:
        error = read_startup_error(settings.home)
        why = (
            f"{error.type}: {error.message}" if error is not None else f"it exited with code {code}"
        )

    async def use(store: Store, since: float) -> bool:
        async with open_undo_journal(settings, store) as effects:
            return bool(
                await undo_edits(
                    settings, store, effects, since, f"the service did not start ({why})"
                )
            )

    return await _run_since_last_start(settings, use)


async def can_roll_back(settings: Settings) -> bool:
    """Whether there is anything to be taken back since the last good start. It raises nothing."""

    async def use(store: Store, since: float) -> bool:
        return bool(await find_edits(settings, store, since))

    return await _run_since_last_start(settings, use)


async def _run_since_last_start(
    settings: Settings, use: Callable[[Store, float], Awaitable[bool]]
) -> bool:
    since = read_last_start(settings.home)
    if since is None:
        return False
    try:
        store = open_store(settings)
        try:
            return await use(store, since)
        finally:
            await store.close()
    except (DeskhandError, OSError) as failed:
        log.warning("Could not undo the changes since the last good start: %s", failed)
        return False


async def undo_edits(
    settings: Settings,
    store: Store,
    effects: UndoJournal,
    since: float,
    why: str,
    only: Collection[str] = (),
) -> list[str]:
    """Undo what was changed since then in the Python that the service runs (or in these files of it
    alone), the latest first, and tell those in whose conversations it was done. Returns the
    files."""
    undone: dict[str, list[str]] = {}
    for edit in await find_edits(settings, store, since, only):
        files = undone.setdefault(edit.session, [])
        try:
            outcome = await effects.undo(SYSTEM, await effects.get(SYSTEM, edit.n))
        except Refused as error:
            log.warning("Could not undo change %d: %s", edit.n, error)
            continue
        if outcome.undo is None:
            log.warning("%s", outcome.words)
            continue
        files += [file for file in edit.files if file not in files]
        log.warning(
            "%s: undid change %d of %s: %s",
            why,
            edit.n,
            edit.session,
            ", ".join(edit.files),
        )
    for session, files in undone.items():
        if files:
            await _notify(store, session, files, why)
    return [file for files in undone.values() for file in files]


async def find_edits(
    settings: Settings, store: Store, since: float, only: Collection[str] = ()
) -> Sequence[CodeEdit]:
    """The changes since then that touched what the service runs, the latest first."""
    found: dict[int, CodeEdit] = {}
    for edit in await edits_since(store, since):
        file = str(edit.file)
        if not _is_service_code(settings, edit.file) or (only and file not in only):
            continue
        known = found.get(edit.n, CodeEdit(edit.n, edit.session, ()))
        found[edit.n] = CodeEdit(edit.n, edit.session, (*known.files, file))
    return tuple(found.values())


def _is_service_code(settings: Settings, file: Path) -> bool:
    """Whether the service runs this file: a plugin, or its own source."""
    plugins = settings.home.plugins.resolve()
    return file.suffix == ".py" and any(file.is_relative_to(each) for each in (plugins, PACKAGE))


async def _notify(store: Store, session: str, files: Sequence[str], why: str) -> None:
    """Once, where it was done: the person reads it, and an agent that wanted to go on there learns
    of it."""
    now = SystemClock().now()
    why = why[:WHY_CHARS]
    words = (
        f"I undid my changes in {', '.join(files)}, because {why}. Everything works again as "
        "before. To restore my changes: `deskhand undo --redo`."
    )
    subject = f"{', '.join(files)}: {why}"
    note = audit_note(now, SYSTEM.id, what="self-edit taken back", subject=subject)
    await store.change([note, queries.add_restart_note(session, f"\n\n[{words}]")])
    places = [
        each.event.address
        for each in await store.events(session)
        if isinstance(each.event, MessageReceived)
    ]
    place = places[-1] if places else Address("terminal")
    inbound = Inbound(
        f"rollback:{session}:{now}", place, SYSTEM.id, now, Command("reverted", words), session
    )
    await store.accept(inbound, SYSTEM, session)


async def roll_back_plugins(
    settings: Settings, store: Store, effects: UndoJournal, broken: Collection[str]
) -> bool:
    """Plugins of these files did not load: take back what was changed in them since the last good
    start. Returns whether anything was."""
    since = read_last_start(settings.home)
    if since is None or not broken:
        return False
    return bool(
        await undo_edits(
            settings, store, effects, since, "it did not load", [*map(os.path.realpath, broken)]
        )
    )
