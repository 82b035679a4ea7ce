"""Which conversations were erased, told to the place where backups lie: older backups hold them
until they are deleted, and whoever restores one of these erases them again.

The index names no conversation: of each it has a digest of its name and of the hash of its first
event, which only those know who have the log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from ..config.config import Settings
from ..config.home import Home
from ..store.base import Store
from ..types.errors import DeskhandError
from ..types.identity import Principal
from ..workspace.erase import erase_session
from .backup_places import BackupPlace, home_id, list_backups, open_place
from .queries import erased_sessions, first_hashes

OWNER = Principal("owner", ("owner",))
_INDEX = re.compile(r"deskhand-[0-9a-f]{6}-erased\.json")
Erased = Mapping[str, float]
"""The digest of a conversation -> when it was erased, in seconds since the epoch."""


async def collect_erased(store: Store) -> dict[str, float]:
    """What the log says was erased."""
    return {_digest(row.session, row.first_hash): row.at for row in await erased_sessions(store)}


def tell_backups(place: BackupPlace, home: Home, erased: Erased) -> None:
    """Add them to the index of this home. It blocks. Raises DeskhandError, OSError."""
    name = f"deskhand-{home_id(home)}-erased.json"
    known = _decode(place, name)
    told = {**known, **erased}
    if told != known:
        place.write_note(name, msgspec.json.format(msgspec.json.encode(told), indent=1))


def read_erased(place: BackupPlace) -> dict[str, float]:
    """What was erased, of all homes whose backups lie here: one may have moved since. It blocks.
    Raises DeskhandError, OSError."""
    found: dict[str, float] = {}
    for name in place.sizes():
        if _INDEX.fullmatch(name):
            found |= _decode(place, name)
    return found


def describe_backups(settings: Settings, erased: Erased) -> str:
    """Tell the place where backups lie, if there is one, what was erased. Returns a sentence on
    those that still hold it; '' where there are none. It blocks."""
    folder = settings.config.backup.folder
    if not folder:
        return ""
    try:
        place = open_place(settings, folder)
        if erased:
            tell_backups(place, settings.home, erased)
        found = list_backups(place)
    except (DeskhandError, OSError) as error:
        return f"The backups could not be told, and a restore may bring it back: {error}"
    if not found:
        return ""
    hold = "backup holds" if len(found) == 1 else "backups hold"
    again = " A restore erases it again." if erased else ""
    return f"{len(found)} {hold} it until deleted: deskhand backup list.{again}"


async def erase_again(store: Store, erased: Erased, since: float, now: float) -> int:
    """Erase what was erased since then. Returns how many conversations that were."""
    count = 0
    for session, first in (await first_hashes(store)).items():
        if erased.get(_digest(session, first), 0.0) >= since:
            await erase_session(store, OWNER, session, now)
            count += 1
    return count


def _decode(place: BackupPlace, name: str) -> dict[str, float]:
    data = place.read_note(name)
    try:
        return msgspec.json.decode(data, type=dict[str, float]) if data else {}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DeskhandError(
            f"{place.address}/{name}, the list of what was erased, is damaged: remove it to go on "
            f"without it ({error})"
        ) from error


def _digest(session: str, first_hash: bytes) -> str:
    return sha256(session.encode("utf-8", "surrogatepass") + b"\0" + first_hash).hexdigest()
