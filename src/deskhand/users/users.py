"""Users, their identities and roles, and who it is that writes. It implements
`types.people.People`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..policy.roles import ALIASES, Roles, may_talk, narrowed, role_name, scopes_of, user_name
from ..store.base import Store
from ..types.clock import Clock
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, StoreError
from ..types.identity import Inbound, Principal
from ..types.people import GUEST, OWNER_NAME, ROLE_SCOPES, SCOPES, Identity, People, Scope, User
from .pairing import Pairings, checked, described
from .tokens import Credentials
from .user_cache import OWNER, Roster

Guests = Mapping[str, Sequence[str]]
"""The platform ids that a channel's `allow_from` names, for each channel that there is."""


class LocalPeople(Credentials, Pairings):
    """The users in the store of this process. `roles` are those of the configuration, asked anew
    each time."""

    def __init__(
        self, roster: Roster, guests: Callable[[], Guests], who: Principal = OWNER
    ) -> None:
        super().__init__(roster, who)
        self._guests = guests

    def acting(self, who: Principal) -> LocalPeople:
        return LocalPeople(self._roster, self._guests, who)

    def authorise(self, inbound: Inbound) -> Principal | None:
        address = inbound.address
        if address.channel == "terminal":
            return OWNER
        snapshot = self._roster.look()
        sender = inbound.sender
        if snapshot.broken or not sender:
            return None
        if address.channel in ("web", "api"):  # who they are, their room has found out
            name, _, most = sender.partition("/")  # as `Grant.sender` has it
            return self._principal(
                snapshot.users.get(name), ROLE_SCOPES.get(most, ()) if most else SCOPES
            )
        here = Identity(address.channel, sender, address.account)
        anywhere = Identity(address.channel, sender)
        known = snapshot.of.get(here) or snapshot.of.get(anywhere)
        if known is not None:
            return self._principal(snapshot.users.get(known))
        if sender in self._guests().get(address.channel, ()):
            return Principal(f"{address.channel}:{sender}", (GUEST,))
        return None

    def _principal(self, user: User | None, scopes: tuple[Scope, ...] = SCOPES) -> Principal | None:
        custom = self._roster.roles()
        if user is None or not scopes_of(user.roles, custom):
            return None
        roles = narrowed(user.roles, custom, scopes)
        return Principal(user.name, roles) if roles else None

    def may_talk(self, principal: Principal, agent: str) -> bool:
        return may_talk(principal, agent, self._roster.roles())

    def anybody(self) -> bool:
        """Whether anybody is let in on any channel."""
        return bool(self._roster.look().of) or any(self._guests().values())

    def broken(self) -> bool:
        """Whether the users cannot be read."""
        return bool(self._roster.look().broken)

    def health(self) -> str:
        snapshot = self._roster.look()
        if snapshot.broken:
            return (
                f"users cannot be read, so only the terminal is let in ({snapshot.broken}): "
                "deskhand doctor"
            )
        known = {identity.channel for identity in snapshot.of}
        shut = [
            name for name, allowed in self._guests().items() if not allowed and name not in known
        ]
        if shut:
            named = ", ".join(shut)
            return (
                f"nobody may write on {named} yet: write to it yourself and run `deskhand pair "
                "list`"
            )
        if self.locked_until():
            return (
                "there were too many bad pairing codes, so none is taken for an hour: `deskhand "
                "pair list`"
            )
        return ""

    def known(self) -> dict[str, User]:
        """Everybody, by name; nobody where they cannot be read."""
        return dict(self._roster.look().users)

    async def users(self) -> list[User]:
        snapshot = self._roster.look()
        if snapshot.broken:
            raise StoreError(f"the users cannot be read: {snapshot.broken}")
        if self._who.kind == "person" and "owner" in self._who.roles:
            return list(snapshot.users.values())
        return [user for user in snapshot.users.values() if user.name == self._who.id]

    async def add_user(self, name: str, role: str, identity: Identity | None = None) -> User:
        self._admin("add users")
        user_name(name)
        wanted = role_name(role, self._roster.roles())
        async with self._roster.settling:
            if name in self._roster.look().users:
                raise Refused(
                    f"there is a user {name!r} already; give another role with: deskhand "
                    "users add-role"
                )
            changes = [
                Change("user_add", (name, self._clock.now())),
                Change("user_role_add", (name, wanted)),
            ]
            if identity is not None:
                changes.append(self._linking(name, identity))
            subject = f"{name} {wanted}" + (f" {described(identity)}" if identity else "")
            await self._write("user added", subject, *changes)
        return self._known(name)

    def _linking(self, name: str, identity: Identity) -> Change:
        """Raises Refused where it is somebody's."""
        checked(identity)
        for known, theirs in self._matching(identity):
            if theirs != name or known == identity:
                raise Refused(
                    f"{described(known)} is {theirs}; take it away first: deskhand users unlink"
                )
        row = (
            identity.channel,
            identity.account,
            identity.external_id,
            name,
            b"",
            self._clock.now(),
        )
        return Change("user_identity_add", row)

    def _matching(self, identity: Identity) -> list[tuple[Identity, str]]:
        """Whose it is, on any account where none is named."""
        return [
            (known, name)
            for known, name in self._roster.look().of.items()
            if (known.channel, known.external_id) == (identity.channel, identity.external_id)
            and ("" in (known.account, identity.account) or known.account == identity.account)
        ]

    async def remove_user(self, name: str) -> None:
        self._admin("remove users")
        self._known(name)
        if name == OWNER_NAME:
            raise Refused(f"{OWNER_NAME!r} is whoever sits at this machine and cannot be removed")
        await self._write("user removed", name, Change("user_remove", (name,)))

    async def link(self, name: str, identity: Identity) -> User:
        self._admin("link identities")
        self._known(name)
        async with self._roster.settling:
            await self._write(
                "linked", f"{name} {described(identity)}", self._linking(name, identity)
            )
        return self._known(name)

    async def unlink(self, identity: Identity) -> None:
        self._admin("unlink identities")
        found = [
            each for each in self._matching(identity) if identity.account in ("", each[0].account)
        ]
        if not found:
            raise Refused(
                f"{described(identity)} is nobody's; `deskhand users list` shows who is who"
            )
        for known, name in found:
            row = (known.channel, known.account, known.external_id)
            await self._write(
                "unlinked", f"{name} {described(known)}", Change("user_identity_remove", row)
            )

    async def add_role(self, name: str, role: str) -> User:
        self._admin("give roles")
        self._known(name)
        wanted = role_name(role, self._roster.roles())
        await self._write("role given", f"{name} {wanted}", Change("user_role_add", (name, wanted)))
        return self._known(name)

    async def remove_role(self, name: str, role: str) -> User:
        self._admin("take roles away")
        wanted = ALIASES.get(role, role)
        if wanted not in self._known(name).roles:
            raise ConfigError(
                f"{name!r} does not have the role {role!r}; it has: "
                f"{', '.join(self._known(name).roles)}"
            )
        if name == OWNER_NAME and wanted == "owner":
            raise Refused(f"{OWNER_NAME!r} is whoever sits at this machine and stays an owner")
        await self._write(
            "role taken away", f"{name} {wanted}", Change("user_role_remove", (name, wanted))
        )
        return self._known(name)


def open_people(
    store: Store, clock: Clock, roles: Callable[[], Roles], guests: Callable[[], Guests]
) -> LocalPeople:
    """The users in this store, changed in the name of the owner."""
    return LocalPeople(Roster(store, clock, roles), guests)


_: type[People] = LocalPeople
