"""Users with their identities and roles. Implements `types.people.People`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..policy.roles import (
    ROLE_ALIASES,
    Roles,
    allowed_scopes,
    may_talk,
    narrow_roles,
    resolve_role,
    validate_user_name,
)
from ..store.base import Store
from ..store.queries import forget_inbox_seen
from ..types.clock import Clock
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, StoreError
from ..types.identity import Inbound, Principal
from ..types.marked_texts import mark_text
from ..types.people import GUEST, OWNER_NAME, ROLE_SCOPES, SCOPES, Identity, People, Scope, User
from . import queries
from .pairing import Pairings, check_identity, format_identity
from .tokens import Credentials
from .user_cache import OWNER, Roster

Guests = Mapping[str, Sequence[str]]
"""The platform ids in `allow_from`, by channel."""


class LocalPeople(Credentials, Pairings):
    """The users in this store, changed in the name of `who`. `guests` gives those of the
    configuration that holds now."""

    def __init__(
        self, roster: Roster, guests: Callable[[], Guests], who: Principal = OWNER
    ) -> None:
        super().__init__(roster, who)
        self._guests = guests

    def acting_as(self, who: Principal) -> LocalPeople:
        return LocalPeople(self._roster, self._guests, who)

    def authorize(self, inbound: Inbound) -> Principal | None:
        address = inbound.address
        if address.channel == "terminal":
            return OWNER
        snapshot = self._roster.snapshot()
        sender = inbound.sender
        if snapshot.broken or not sender:
            return None
        if address.channel in ("web", "api"):  # authenticated there
            name, _, most = sender.partition("/")  # see `Grant.sender`
            return self._principal(
                snapshot.users.get(name), ROLE_SCOPES.get(most, ()) if most else SCOPES
            )
        here = Identity(address.channel, sender, address.account)
        anywhere = Identity(address.channel, sender)
        known = snapshot.name_by_identity.get(here) or snapshot.name_by_identity.get(anywhere)
        if known is not None:
            return self._principal(snapshot.users.get(known))
        if sender in self._guests().get(address.channel, ()):
            return Principal(f"{address.channel}:{sender}", (GUEST,))
        return None

    def _principal(self, user: User | None, scopes: tuple[Scope, ...] = SCOPES) -> Principal | None:
        custom = self._roster.roles()
        if user is None or not allowed_scopes(user.roles, custom):
            return None
        roles = narrow_roles(user.roles, custom, scopes)
        return Principal(user.name, roles) if roles else None

    def find_user(self, identity: Identity) -> User | None:
        snapshot = self._roster.snapshot()
        wanted = identity.external_id.lower()
        for known, name in snapshot.name_by_identity.items():
            if known.channel == identity.channel and known.external_id.lower() == wanted:
                return snapshot.users.get(name)
        return None

    def may_talk(self, principal: Principal, agent: str) -> bool:
        return may_talk(principal, agent, self._roster.roles())

    def admits_anyone(self) -> bool:
        """True when anybody may write on any channel."""
        return bool(self._roster.snapshot().name_by_identity) or any(self._guests().values())

    def is_broken(self) -> bool:
        """True when the users cannot be read."""
        return bool(self._roster.snapshot().broken)

    def health(self) -> str:
        snapshot = self._roster.snapshot()
        if snapshot.broken:
            return mark_text(
                "cannot read the users, so only the terminal is let in ({error}); run "
                "`deskhand doctor`"
            ).format(error=snapshot.broken)
        known = {identity.channel for identity in snapshot.name_by_identity}
        shut = [
            name for name, allowed in self._guests().items() if not allowed and name not in known
        ]
        if shut:
            named = ", ".join(shut)
            return mark_text(
                "nobody may write on {channels} yet: write a message there, then run "
                "`deskhand pair list`"
            ).format(channels=named)
        if self.locked_until():
            return mark_text(
                "too many bad pairing codes, so none is accepted for an hour; see "
                "`deskhand pair list`"
            )
        return ""

    def users_by_name(self) -> dict[str, User]:
        """All users by name; none when they cannot be read."""
        return dict(self._roster.snapshot().users)

    async def users(self) -> list[User]:
        snapshot = self._roster.snapshot()
        if snapshot.broken:
            raise StoreError(f"the users cannot be read: {snapshot.broken}")
        if self._who.kind == "person" and "owner" in self._who.roles:
            return list(snapshot.users.values())
        return [user for user in snapshot.users.values() if user.name == self._who.id]

    async def add_user(self, name: str, role: str, identity: Identity | None = None) -> User:
        self._require_owner("add users")
        validate_user_name(name)
        wanted = resolve_role(role, self._roster.roles())
        async with self._roster.change_lock:
            if name in self._roster.snapshot().users:
                raise Refused(
                    mark_text(
                        "there is a user {user} already; give another role with: deskhand users "
                        "add-role"
                    ).format(user=repr(name))
                )
            changes = [
                queries.add_user(name, self._clock.now()),
                queries.add_role(name, wanted),
            ]
            if identity is not None:
                changes.append(self._link_change(name, identity))
            subject = f"{name} {wanted}" + (f" {format_identity(identity)}" if identity else "")
            await self._write("user added", subject, *changes)
        return self._get_user(name)

    def _link_change(self, name: str, identity: Identity) -> Change:
        """Link the identity. Raises Refused when somebody has it."""
        check_identity(identity)
        for known, theirs in self._find_matching(identity):
            if theirs != name or known == identity:
                raise Refused(
                    mark_text(
                        "{who} belongs to {user}; unlink it first with `deskhand users unlink`"
                    ).format(who=format_identity(known), user=repr(theirs))
                )
        return queries.add_identity(name, identity, self._clock.now())

    def _find_matching(self, identity: Identity) -> list[tuple[Identity, str]]:
        """The same identity on an account, and the name of its user; on any account when none is
        named."""
        return [
            (known, name)
            for known, name in self._roster.snapshot().name_by_identity.items()
            if (known.channel, known.external_id) == (identity.channel, identity.external_id)
            and ("" in (known.account, identity.account) or known.account == identity.account)
        ]

    async def remove_user(self, name: str) -> None:
        self._require_owner("remove users")
        self._get_user(name)
        if name == OWNER_NAME:
            raise Refused(
                mark_text("{user} is the owner at this machine and cannot be removed").format(
                    user=repr(OWNER_NAME)
                )
            )
        removed = (
            queries.remove_user(name),
            queries.forget_notification_times(name),
            queries.forget_language(name),
            queries.forget_shares(name),
            forget_inbox_seen(name),
        )
        await self._write("user removed", name, *removed)

    async def link(self, name: str, identity: Identity) -> User:
        self._require_owner("link identities")
        self._get_user(name)
        async with self._roster.change_lock:
            await self._write(
                "linked", f"{name} {format_identity(identity)}", self._link_change(name, identity)
            )
        return self._get_user(name)

    async def unlink(self, identity: Identity) -> None:
        self._require_owner("unlink identities")
        found = [
            each
            for each in self._find_matching(identity)
            if identity.account in ("", each[0].account)
        ]
        if not found:
            raise Refused(
                mark_text(
                    "{who} is not linked to a user; `deskhand users list` shows all identities"
                ).format(who=format_identity(identity))
            )
        for known, name in found:
            subject = f"{name} {format_identity(known)}"
            await self._write("unlinked", subject, queries.remove_identity(known))

    async def add_role(self, name: str, role: str) -> User:
        self._require_owner("give roles")
        self._get_user(name)
        wanted = resolve_role(role, self._roster.roles())
        await self._write("role given", f"{name} {wanted}", queries.add_role(name, wanted))
        return self._get_user(name)

    async def remove_role(self, name: str, role: str) -> User:
        self._require_owner("take roles away")
        wanted = ROLE_ALIASES.get(role, role)
        if wanted not in self._get_user(name).roles:
            raise ConfigError(
                f"{name!r} does not have the role {role!r}; it has: "
                f"{', '.join(self._get_user(name).roles)}"
            )
        if name == OWNER_NAME and wanted == "owner":
            raise Refused(
                mark_text("{user} is the owner at this machine and keeps that role").format(
                    user=repr(OWNER_NAME)
                )
            )
        await self._write("role taken away", f"{name} {wanted}", queries.remove_role(name, wanted))
        return self._get_user(name)


def open_people(
    store: Store, clock: Clock, roles: Callable[[], Roles], guests: Callable[[], Guests]
) -> LocalPeople:
    """The users in this store, changed in the name of the owner."""
    return LocalPeople(Roster(store, clock, roles), guests)


_: type[People] = LocalPeople
