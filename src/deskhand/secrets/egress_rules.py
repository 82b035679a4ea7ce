"""Who may reach what from a command: the lists of people, asked anew for every connection."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from anyio.abc import ByteStream

from ..net.client import Net
from ..net.egress import (
    EgressConfig,
    EgressHost,
    find_target_problem,
    is_host_covered,
    parse_egress_host,
)
from ..net.egress_door import Slots, open_egress_socket
from ..net.egress_proxy import Use
from ..net.egress_secrets import HeldSecret, SecretBroker, SecretRule
from ..store.base import Store
from ..tools.network import OUTSIDE, PRIVATE, REQUEST, read_so_far
from ..tools.way import Traveller, Way
from ..types.clock import Clock
from ..types.commit import Change
from ..types.errors import AddressRefused, StoreError
from ..types.identity import Principal
from ..types.labels import join_labels

log = logging.getLogger(__name__)
MAX_USES = 10_000


class ProxyKeys(msgspec.Struct, frozen=True):
    """What the broker has. `held` are all secrets now; `certificate` poses as a host, `authorities`
    is the file that makes commands believe it: None where that is not possible. `trust` judges the
    certificates of servers."""

    list_secrets: Callable[[], Sequence[HeldSecret]] = lambda: ()
    server_context: Callable[[str], ssl.SSLContext | None] = lambda host: None
    authorities: Callable[[], Path | None] = lambda: None
    client_context: Callable[[], ssl.SSLContext] = ssl.create_default_context


class Egress:
    """Opens ways for commands. One per process: all of them share the connections that it may have
    at once."""

    def __init__(
        self,
        store: Store,
        net: Net,
        config: Callable[[], EgressConfig],
        clock: Clock,
        keys: ProxyKeys | None = None,
    ) -> None:
        self._store = store
        self.net = net
        self._config = config
        self._clock = clock
        self.keys = keys or ProxyKeys()
        self._slots = Slots()

    @asynccontextmanager
    async def way(self, traveller: Traveller) -> AsyncIterator[Way]:
        """See `tools.way.Ways`."""
        way = Way()
        if not self._config().enabled and not traveller.public:
            yield way
            return
        policy = _CommandPolicy(self, traveller, way)
        authorities = self.keys.authorities() if policy.secrets else None
        try:
            async with open_egress_socket(policy, self._slots, authorities) as way.path:
                yield way
        finally:
            with anyio.CancelScope(shield=True):
                await self._record_uses(traveller.session, policy.uses)

    def usable_secrets(self, principal: Principal) -> tuple[HeldSecret, ...]:
        """The secrets that this principal's conversations may use, with the rules that say so."""
        names = (principal.id, *(f"role:{role}" for role in principal.roles))
        return _filter_rules(self.keys.list_secrets(), lambda rule: rule.is_usable_by(names))

    async def find_refusal(self, traveller: Traveller, host: str, port: int) -> str:
        """Why this host is not reached, and what to do about it; '' if it is."""
        if traveller.public:
            return find_target_problem(host, port, public=True, entries=())
        label = join_labels((traveller.label, await traveller.read()))
        rows = await self._store.query("egress_grants_of", (traveller.agent, traveller.session))
        said = await self._store.query("egress_said", (traveller.agent,))
        if is_host_covered(_parse_hosts(said, "never"), host, port):
            return f"a person said never to {host}: do without it"
        always = [*map(parse_egress_host, self._config().allow), *_parse_hosts(said, "always")]
        always += [parse_egress_host(each) for each, _, knowing in rows if not knowing]
        tainted = read_so_far(label)
        enough = (OUTSIDE,) if tainted == OUTSIDE else (OUTSIDE, PRIVATE)
        knowing = [parse_egress_host(each) for each, _, knows in rows if knows in enough]
        why = find_target_problem(
            host, port, public=False, entries=knowing if tainted else (*knowing, *always)
        )
        if not why:
            return ""
        named = host if port in (80, 443) else f"{host}:{port}"
        ask = f'call {REQUEST}(host="{named}")'
        granted = [parse_egress_host(each) for each, _, _ in rows]
        if tainted and is_host_covered((*always, *granted), host, port):
            what = "this conversation" if read_so_far(traveller.label) else "this command"
            sources = ", ".join(label.source.splitlines()[:3]) or "content from outside"
            return (
                f"{host} is not reached without a question now that {what} has read {sources}; "
                f"{ask}"
            )
        return f"{why}; {ask}" if why.endswith(("not allowed", f"not on {port}")) else why

    async def _record_uses(
        self, session: str, uses: dict[tuple[str, int, str], tuple[int, int, int]]
    ) -> None:
        if not uses:
            return
        now = self._clock.now()
        rows = [
            Change("egress_use_add", (session, *where, *sums, now)) for where, sums in uses.items()
        ]
        try:
            await self._store.change([*rows, Change("egress_uses_trim", (MAX_USES,))])
        except StoreError as error:
            log.warning("what a command of %s reached was not written down: %s", session, error)


def _filter_rules(
    held: Sequence[HeldSecret], which: Callable[[SecretRule], bool]
) -> tuple[HeldSecret, ...]:
    """Those that have such rules, with these alone."""
    chosen = [(each, tuple(filter(which, each.rules))) for each in held]
    return tuple(msgspec.structs.replace(each, rules=rules) for each, rules in chosen if rules)


class _CommandPolicy:
    """What one command may reach, and what it has reached."""

    def __init__(self, egress: Egress, traveller: Traveller, way: Way) -> None:
        self._egress = egress
        self._traveller = traveller
        self._way = way
        self.secrets = () if traveller.public else egress.usable_secrets(traveller.principal)
        self.uses: dict[tuple[str, int, str], tuple[int, int, int]] = {}

    async def find_refusal(self, host: str, port: int) -> str:
        return await self._egress.find_refusal(self._traveller, host, port)

    async def get_label(self) -> object:
        return await self._traveller.read()

    async def connect(self, host: str, port: int) -> ByteStream:
        return await self._egress.net.connect(host, port)

    def secrets_for(self, host: str, port: int) -> SecretBroker | None:
        here = _filter_rules(self.secrets, lambda rule: (rule.host, rule.port) == (host, port))
        if not here:
            return None
        return SecretBroker(host, here, self._egress.keys.list_secrets())

    def client_context(self) -> ssl.SSLContext:
        return self._egress.keys.client_context()

    def server_context(self, host: str) -> ssl.SSLContext | None:
        return self._egress.keys.server_context(host)

    def record_use(self, use: Use) -> None:
        way = self._way
        if use.refused:
            way.refused[use.host] = use.refused
        else:
            way.reached[use.host] = way.reached.get(use.host, 0) + 1
        outcome = use.refused or f"{use.up} bytes out, {use.down} in"
        log.info("egress %s:%d %s", use.host, use.port, outcome)

        key = (use.host, use.port, use.refused)
        requests, up, down = self.uses.get(key, (0, 0, 0))
        if key in self.uses or len(self.uses) < MAX_USES:
            self.uses[key] = (requests + 1, up + use.up, down + use.down)


def _parse_hosts(said: Sequence[tuple[str, str]], verdict: str) -> list[EgressHost]:
    """The hosts to which a person once said this for good, when they were asked."""
    found = []
    for kind, shown in said:
        try:
            if kind == verdict:
                found.append(parse_egress_host(msgspec.json.decode(shown, type=_Asked).host))
        except (msgspec.MsgspecError, AddressRefused, RecursionError):
            continue
    return found


class _Asked(msgspec.Struct):
    host: str
