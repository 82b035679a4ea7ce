"""Who may do what: users, the platform identities that are theirs, roles, tokens and pairing. The
vocabulary alone."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from .identity import Inbound, Principal

Scope = Literal["read", "chat", "approve", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "chat", "approve", "admin")
"""What a credential may do: see what its user may see; write and run; answer approvals; change the
house itself."""
OWNER_NAME = "owner"
"""The user who sits at this machine. It always exists and has the role `owner`."""
SIGN_IN_CHANNEL = "sign-in"
"""The channel of identities at the provider of sign-ins: their verified email addresses."""
DEVICE_CHANNEL = "device"
"""The channel of programs that wait until an owner lets them in: each is the hash of its code."""
DEVICE_TTL_S = 600
"""So long its code holds: it asks all the time whether it was let in."""
GUEST = "guest"
"""The role of those who are no users and stand in a channel's `allow_from`. It is given to nobody
else."""
ROLE_SCOPES: dict[str, tuple[Scope, ...]] = {
    "owner": SCOPES,
    "approver": ("read", "chat", "approve"),
    "member": ("read", "chat"),
    "viewer": ("read",),
    GUEST: ("read", "chat"),
}
"""The roles that are built in; `admin` is another word for `owner`. A role of the configuration is
a `member` who may talk to the agents that it names."""


class Identity(msgspec.Struct, frozen=True):
    """A person as one platform knows them: its own id, never a name that they can choose. `account`
    is the bot there that they may write to; '' is any."""

    channel: str
    external_id: str
    account: str = ""


class User(msgspec.Struct, frozen=True):
    """`name` matches `[a-z0-9.-]{1,64}`; it is the id of the principal that this user acts as."""

    name: str
    roles: tuple[str, ...]
    identities: tuple[Identity, ...] = ()
    created_at: float = 0.0


class Grant(msgspec.Struct, frozen=True):
    """What a credential has come to: whose it is, and what it may do. `agents` are those that this
    user may talk to; None: all. `browser` says that it is a cookie, which needs the header against
    forged requests beside it."""

    principal: Principal
    scopes: tuple[Scope, ...]
    token_id: str
    browser: bool = False
    expires_at: float | None = None
    agents: tuple[str, ...] | None = None

    @property
    def sender(self) -> str:
        """What stands as `Inbound.sender` on the channels `web` and `api`: the user, and where this
        credential may do less than they, the most that it may, as in `ann/member`. `authorize`
        makes the same principal of it."""
        name = self.principal.id
        if "admin" in self.scopes:
            return name
        if "approve" in self.scopes:
            return f"{name}/approver"
        return f"{name}/member" if "chat" in self.scopes else f"{name}/viewer"


class TokenRow(msgspec.Struct, frozen=True):
    """A credential without its secret, of which only the hash is kept."""

    id: str
    user: str
    name: str
    kind: Literal["api", "browser"]
    scopes: tuple[Scope, ...]
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None


class Pairing(msgspec.Struct, frozen=True):
    """A stranger who asked to be let in. `code` is what they were told (8 characters, single
    use)."""

    code: str
    channel: str
    account: str
    external_id: str
    at: float
    expires_at: float
    name: str = ""


class AuditEntry(msgspec.Struct, frozen=True):
    """A line of the audit trail: who did what to whom or to what."""

    at: float
    who: str
    what: str
    subject: str


class People(Protocol):
    """Users and their credentials. What is changed here holds at once, in every process. Raises
    Refused where somebody may not, ConfigError for a name or a role that cannot be,
    StoreUnavailable."""

    def acting_as(self, who: Principal) -> People:
        """The same, in the name of `who`: what they change is written down as theirs, and only an
        owner may change anything but their own credentials away. Without it the owner at this
        machine acts."""
        ...

    def health(self) -> str:
        """'' when all is well; else what is wrong with users and their ways in, and the next
        step."""
        ...

    async def add_audit_note(self, who: Principal, what: str, subject: str) -> None:
        """Write down that somebody asked for what is not theirs. Never fails; the same is written
        once a minute."""
        ...

    async def list_audit_notes(self, limit: int = 100) -> list[AuditEntry]:
        """The audit trail, the latest first."""
        ...

    def authorize(self, inbound: Inbound) -> Principal | None:
        """Who sent this; None for a stranger."""
        ...

    def find_user(self, identity: Identity) -> User | None:
        """Whose identity this is; None for a stranger. Email addresses are the same in any case."""
        ...

    def make_grant(self, user: str, token_id: str, expires_at: float) -> Grant | None:
        """All that this user may do, until then, for a credential that is not kept here; None for
        who may do nothing."""
        ...

    def may_talk(self, principal: Principal, agent: str) -> bool: ...

    async def authenticate(self, secret: str) -> Grant | None:
        """What this credential is worth now; None if nothing. Read anew each time, so that what was
        revoked is dead."""
        ...

    async def users(self) -> list[User]: ...
    async def add_user(self, name: str, role: str, identity: Identity | None = None) -> User: ...
    async def remove_user(self, name: str) -> None:
        """With its identities and tokens. The last owner stays."""
        ...

    async def link(self, name: str, identity: Identity) -> User: ...
    async def unlink(self, identity: Identity) -> None: ...
    async def add_role(self, name: str, role: str) -> User: ...
    async def remove_role(self, name: str, role: str) -> User: ...

    async def tokens(self, user: str = "") -> list[TokenRow]:
        """Of one user, or all."""
        ...

    async def make_token(
        self, user: str, name: str, scopes: tuple[Scope, ...] = SCOPES, lasts_s: float | None = None
    ) -> tuple[TokenRow, str]:
        """A new one and its secret, which is shown this once. It never has more scopes than its
        user's roles give."""
        ...

    async def rotate(self, token_id: str) -> tuple[TokenRow, str]:
        """The same credential with a new id and secret, for as long as it had; the old one is
        dead."""
        ...

    async def revoke(self, token_id: str) -> None: ...

    async def make_login(self, user: str) -> str:
        """The secret of a one-time link: valid for ten minutes, for one browser."""
        ...

    async def redeem_login(self, secret: str) -> tuple[TokenRow, str] | None:
        """The browser's credential and its secret; None where the link is used, expired or made
        up."""
        ...

    async def log_in(self, identity: Identity) -> tuple[TokenRow, str]:
        """The credential of a browser inside a platform that has signed whose it is, and its
        secret. It holds for a day, and may do what its user may do without `admin`: who holds
        somebody's account there does not change this house. Raises Refused for a stranger."""
        ...

    async def request_pairing(self, inbound: Inbound) -> str:
        """A stranger wrote: the code that they are told, or '' where they are to hear nothing
        (again)."""
        ...

    async def pairings(self) -> list[Pairing]: ...
    async def approve(self, code: str, user: str = "", role: str = "") -> User:
        """Let in who holds this code, as this user or, without one, under a name made of their
        identity, as a member where no role is said. The very first of whom neither is said becomes
        the owner. Raises Refused for a code that does not hold, and after five of those for an
        hour, whatever the code."""
        ...

    async def refuse(self, code: str) -> None: ...
