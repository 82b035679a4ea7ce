"""Which conversations and memories were erased, told to the place where backups lie: older backups
hold them until they are deleted, and whoever restores one of these erases them again.

The index names nothing: it has digests. That of a conversation is made of its name and the hash of
its first event, that of a memory of its key, time and text. Only those can make them who have the
database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from ..config.config import Settings
from ..config.home import Home
from ..memory.facts import erase_fact, facts_of_session
from ..store.base import Store
from ..types.errors import DeskhandError
from ..types.identity import Principal
from ..users.user_cache import OWNER
from ..workspace.erase import Gone, erase_session
from .backup_places import BackupPlace, home_id, list_backups, open_place
from .queries import erased_sessions, fact_identities, first_hashes

_INDEX = re.compile(r"deskhand-[0-9a-f]{6}-erased\.json")


class Erasure(msgspec.Struct, frozen=True, omit_defaults=True):
    """When something was erased, in seconds since the epoch. `memories`: with a conversation, the
    memories that were made of it alone."""

    at: float
    memories: bool = True


class ErasedAgain(msgspec.Struct, frozen=True):
    """How many of each were erased in a home that was restored."""

    sessions: int = 0
    memories: int = 0


Erased = Mapping[str, Erasure]
"""Digest -> erasure."""


async def collect_erased(store: Store) -> dict[str, Erasure]:
    """The conversations that the log says were erased. Where memories made of one are left, none
    of its memories is erased with it: some may have been kept on purpose."""
    found: dict[str, Erasure] = {}
    for row in await erased_sessions(store):
        left = await facts_of_session(store, row.session)
        found[_session_digest(row.session, row.first_hash)] = Erasure(row.at, not left)
    return found


async def erase_for_good(
    store: Store, principal: Principal, session: str, at: float, *, memories: bool = True
) -> tuple[Gone, dict[str, Erasure]]:
    """Erase a session, as `erase_session` does. Returns too what backups are to be told: all that
    the log says was erased, and the memories that went with this session. Raises Refused."""
    before = await fact_identities(store)
    gone = await erase_session(store, principal, session, at, memories=memories)
    left = {fact.id for fact in await fact_identities(store)}

    erased = await collect_erased(store)
    for fact in before:
        if fact.id not in left:
            erased |= erased_fact(fact.key, fact.at, fact.text, at)
    return gone, erased


def erased_fact(key: str, at: float, text: str, now: float) -> dict[str, Erasure]:
    """The entry for a memory that is erased now."""
    return {_fact_digest(key, at, text): Erasure(now)}


def tell_backups(place: BackupPlace, home: Home, erased: Erased) -> None:
    """Add them to the index of this home. It blocks. Raises DeskhandError, OSError."""
    name = f"deskhand-{home_id(home)}-erased.json"
    known = _decode(place, name)
    told = dict(known)
    for digest, erasure in erased.items():
        if digest not in told or told[digest].at < erasure.at:  # it may be erased a second time
            told[digest] = erasure
    if told != known:
        place.write_note(name, msgspec.json.format(msgspec.json.encode(told), indent=1).decode())


def read_erased(place: BackupPlace) -> dict[str, Erasure]:
    """What was erased, of all homes whose backups lie here: one may have moved since. It blocks.
    Raises DeskhandError, OSError."""
    found: dict[str, Erasure] = {}
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


async def erase_again(store: Store, erased: Erased, since: float, now: float) -> ErasedAgain:
    """Erase what was erased since then."""
    later = {digest: each for digest, each in erased.items() if each.at >= since}
    memories = 0
    for fact in await fact_identities(store):
        if _fact_digest(fact.key, fact.at, fact.text) in later:
            await store.change(erase_fact(fact.id))
            memories += 1

    sessions = 0
    for session, first in (await first_hashes(store)).items():
        erasure = later.get(_session_digest(session, first))
        if erasure is not None:
            await erase_session(store, OWNER, session, now, memories=erasure.memories)
            sessions += 1
    return ErasedAgain(sessions, memories)


def _decode(place: BackupPlace, name: str) -> dict[str, Erasure]:
    text = place.read_note(name)
    try:
        return msgspec.json.decode(text, type=dict[str, Erasure]) if text else {}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DeskhandError(
            f"{place.address}/{name}, the list of what was erased, is damaged: remove it to go on "
            f"without it ({error})"
        ) from error


def _session_digest(session: str, first_hash: bytes) -> str:
    return sha256(_encode(session) + b"\0" + first_hash).hexdigest()


def _fact_digest(key: str, at: float, text: str) -> str:
    return sha256(b"\0".join((_encode(key), repr(at).encode(), _encode(text)))).hexdigest()


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
