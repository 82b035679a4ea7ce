"""Links under which anybody may read a conversation. Only the SHA-256 of their secrets is
stored."""

from __future__ import annotations

from secrets import token_urlsafe

from ..store.base import Store
from ..types.clock import Clock, Ids
from ..types.commit import Change
from ..types.errors import ConfigError
from ..types.people import People
from ..types.shares import MAX_SHARE_DAYS, Share
from .tokens import hash_secret

DAY_S = 24 * 3600.0
MAX_LISTED = 200
SECRET_CHARS = 43


class StoredShares:
    """Implements `types.shares.Shares`."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, people: People) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._people = people

    async def add(self, person: str, session: str, last_n: int, days: int) -> tuple[Share, str]:
        if not 1 <= days <= MAX_SHARE_DAYS:
            raise ConfigError(f"a link holds for 1 to {MAX_SHARE_DAYS} days")
        now = self._clock.now()
        share = Share(self._ids.new("s"), session, last_n, person, now, now + days * DAY_S)
        secret = token_urlsafe(32)
        row = (share.id, hash_secret(secret), session, last_n, person, now, share.until)
        await self._store.change([Change("share_trim", (now,)), Change("share_add", row)])
        return share, secret

    async def find(self, secret: str) -> Share | None:
        if len(secret) != SECRET_CHARS:
            return None
        args = (hash_secret(secret), self._clock.now())
        for row in await self._store.query("share_find", args):
            share = Share(*row)
            grant = self._people.make_grant(share.person, share.id, share.until)
            if grant and await self._store.may_see(grant.principal, share.session):
                return share
        return None

    async def of(self, person: str) -> list[Share]:
        args = (person, self._clock.now(), MAX_LISTED)
        return [Share(*row) for row in await self._store.query("share_list", args)]

    async def revoke(self, share_id: str, person: str) -> bool:
        if share_id not in {share.id for share in await self.of(person)}:
            return False
        await self._store.change([Change("share_drop", (share_id, person))])
        return True


def forget_shares(person: str) -> Change:
    """End all that this person has made."""
    return Change("share_drop_of", (person,))
