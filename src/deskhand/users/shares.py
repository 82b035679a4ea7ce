"""Links under which anybody may read a conversation. Only the SHA-256 of their secrets is
stored."""

from __future__ import annotations

from secrets import token_urlsafe

from ..store.base import Store
from ..types.clock import Clock, Ids
from ..types.errors import ConfigError
from ..types.people import People
from ..types.shares import MAX_SHARE_DAYS, Share
from . import queries
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

    async def add(
        self, person: str, session: str, last_n: int, days: int, *, files: bool = False
    ) -> tuple[Share, str]:
        if not 1 <= days <= MAX_SHARE_DAYS:
            raise ConfigError(f"a link holds for 1 to {MAX_SHARE_DAYS} days")
        now = self._clock.now()
        until = now + days * DAY_S
        share = Share(self._ids.new("s"), session, last_n, person, now, until, files=files)
        secret = token_urlsafe(32)
        added = queries.add_share(share, hash_secret(secret))
        await self._store.change([queries.trim_shares(now), added])
        return share, secret

    async def find(self, secret: str) -> Share | None:
        if len(secret) != SECRET_CHARS:
            return None
        share = await queries.find_share(self._store, hash_secret(secret), self._clock.now())
        if share is None:
            return None
        grant = self._people.make_grant(share.person, share.id, share.until)
        may_see = grant and await self._store.may_see(grant.principal, share.session)
        return share if may_see else None

    async def of(self, person: str) -> list[Share]:
        return await queries.shares_of(self._store, person, self._clock.now(), MAX_LISTED)

    async def revoke(self, share_id: str, person: str) -> bool:
        if share_id not in {share.id for share in await self.of(person)}:
            return False
        await self._store.change([queries.drop_share(share_id, person)])
        return True
