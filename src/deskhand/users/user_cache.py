"""Users in memory, read again when any process has changed them, and the audit trail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import anyio
import msgspec

from ..policy.roles import Roles
from ..store.base import Store
from ..types.clock import Clock
from ..types.commit import Change
from ..types.errors import Refused, StoreError, StoreUnavailable
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.people import OWNER_NAME, AuditEntry, Identity, User
from . import queries

log = logging.getLogger(__name__)

OWNER = Principal(OWNER_NAME, ("owner",))
MAX_NOTES = 10_000


class Snapshot(msgspec.Struct, frozen=True):
    """All users. `broken` says why they cannot be read, and then there are none."""

    users: Mapping[str, User] = {}
    name_by_identity: Mapping[Identity, str] = {}
    broken: str = ""


class Roster:
    """Reads users when any process has changed them. When they cannot be read there are none: an
    old state is never used."""

    def __init__(self, store: Store, clock: Clock, roles: Callable[[], Roles]) -> None:
        self.store = store
        self.clock = clock
        self.roles = roles
        self.change_lock = anyio.Lock()
        """Held while something is checked and then changed."""
        self._snapshot = Snapshot()
        self._version = -1

    def snapshot(self) -> Snapshot:
        try:
            version = queries.people_version(self.store)
            if version != self._version:
                self._snapshot = self._read()
                self._version = version
        except (StoreError, LookupError, TypeError, ValueError) as error:
            if not self._snapshot.broken:
                log.error(
                    "Cannot read the users, so only the owner at this machine is let in: %s", error
                )
            self._snapshot = Snapshot(broken=str(error) or "a row is missing")
            self._version = -1
        return self._snapshot

    def _read(self) -> Snapshot:
        users = queries.read_users(self.store)
        name_by_identity = {
            identity: user.name for user in users.values() for identity in user.identities
        }
        return Snapshot(users, name_by_identity)


class Records:
    """Changes of users in somebody's name (`who`), with a line of the audit trail for each."""

    def __init__(self, roster: Roster, who: Principal = OWNER) -> None:
        self._roster = roster
        self._who = who
        self._store = roster.store
        self._clock = roster.clock

    def _require_owner(self, what: str) -> None:
        """Raises Refused unless an owner acts. `what` completes "only an owner may"."""
        if self._who.kind != "person" or "owner" not in self._who.roles:
            raise Refused(f"only an owner may {what}")

    def _get_user(self, name: str) -> User:
        """The user of this name. Raises Refused when there is none."""
        snapshot = self._roster.snapshot()
        if snapshot.broken:
            raise Refused(
                mark_text("the users cannot be read: {problem_text}").format(
                    problem_text=snapshot.broken
                )
            )
        user = snapshot.users.get(name)
        if user is None:
            raise Refused(
                mark_text("there is no user {user}; list users with: deskhand users list").format(
                    user=repr(name)
                )
            )
        return user

    async def _write(self, what: str, subject: str, *changes: Change) -> list[int]:
        """Commit these changes with a line of the audit trail. Returns the number of rows that each
        of them has changed."""
        note = queries.audit_note(self._clock.now(), self._who.id, what, subject)
        trim = queries.trim_audit_notes(MAX_NOTES)
        counts = await self._store.change([*changes, queries.mark_people_changed(), note, trim])
        return counts[: len(changes)]

    async def add_audit_note(self, who: Principal, what: str, subject: str) -> None:
        note = queries.audit_note_once(self._clock.now(), who.id, what, subject[:200])
        try:
            await self._store.change([note, queries.trim_audit_notes(MAX_NOTES)])
        except StoreUnavailable as error:
            log.warning("Audit note not stored (%s): %s, %s, by %s", error, what, subject, who.id)

    async def list_audit_notes(self, limit: int = 100) -> list[AuditEntry]:
        self._require_owner("read the audit trail")
        return await queries.list_audit_notes(self._store, limit)
