"""Which hosts a command may reach, and which secrets its requests may carry."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

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
from ..tools.command_network import CommandNetwork, NetworkUser
from ..tools.network import READ_OUTSIDE, READ_PRIVATE, REQUEST_HOST, read_level
from ..types.clock import Clock
from ..types.errors import AddressRefused, StoreError
from ..types.identity import Principal
from ..types.labels import Label, join_labels
from . import queries
from .proxy_keys import ProxyKeys
from .queries import HostAnswer, HostUse

log = logging.getLogger(__name__)
MAX_USES = 10_000
"""How many uses are kept, and counted for one command."""
UseKey = tuple[str, int, str]
"""Host, port, and why it was refused ('' where it was not)."""


class Egress:
    """Opens the network for commands, one for each. There is one per process, since all
    commands share its limit of connections."""

    def __init__(
        self,
        store: Store,
        net: Net,
        config: Callable[[], EgressConfig],
        clock: Clock,
        keys: ProxyKeys,
    ) -> None:
        self._store = store
        self.net = net
        self._config = config
        self._clock = clock
        self.keys = keys
        self.slots = Slots()

    @asynccontextmanager
    async def open_network(self, network_user: NetworkUser) -> AsyncIterator[CommandNetwork]:
        """The network of one command, for as long as it runs."""
        network = CommandNetwork()
        if not self._config().enabled and not network_user.public:
            yield network
            return

        policy = _CommandPolicy(self, network_user, network)
        trust_file = self.keys.trust_file() if policy.secrets else None
        try:
            async with open_egress_socket(policy, self.slots, trust_file) as network.path:
                yield network
        finally:
            with anyio.CancelScope(shield=True):
                await self.record_uses(network_user.session, policy.uses)

    def usable_secrets(self, principal: Principal) -> tuple[HeldSecret, ...]:
        """The secrets that this principal's conversations may use, with the rules that say so."""
        names = (principal.id, *(f"role:{role}" for role in principal.roles))
        return filter_rules(self.keys.list_secrets(), lambda rule: rule.is_usable_by(names))

    async def find_refusal(self, network_user: NetworkUser, host: str, port: int) -> str:
        """Why this host may not be reached and what to do about it, or '' if it may."""
        if network_user.public:
            return find_target_problem(host, port, public=True, entries=())

        label = join_labels((network_user.label, await network_user.read()))
        grants = await queries.grants_in(self._store, network_user.agent, network_user.session)
        answers = await queries.standing_answers(self._store, network_user.agent)
        if is_host_covered(_answered_hosts(answers, "never"), host, port):
            return f"a person has denied access to {host} permanently: continue without it"

        # What was granted while nothing had been read counts until something is; what was granted
        # knowing what had been read counts for that.
        unread = [
            *map(parse_egress_host, self._config().allow),
            *_answered_hosts(answers, "always"),
            *(parse_egress_host(grant.host) for grant in grants if not grant.knowing),
        ]
        tainted = read_level(label)
        enough = (READ_OUTSIDE,) if tainted == READ_OUTSIDE else (READ_OUTSIDE, READ_PRIVATE)
        knowing = [parse_egress_host(grant.host) for grant in grants if grant.knowing in enough]
        entries = knowing if tainted else [*knowing, *unread]
        problem = find_target_problem(host, port, public=False, entries=entries)
        if not problem:
            return ""

        named = host if port in (80, 443) else f"{host}:{port}"
        ask = f'call {REQUEST_HOST}(host="{named}")'
        granted = [parse_egress_host(grant.host) for grant in grants]
        if tainted and is_host_covered((*unread, *granted), host, port):
            return f"{_explain_tainted(host, label, network_user)}; {ask}"
        if problem.endswith(("not allowed", f"not on {port}")):
            return f"{problem}; {ask}"
        return problem

    async def record_uses(self, session: str, uses: Mapping[UseKey, HostUse]) -> None:
        """Keep what a command of this session reached."""
        if not uses:
            return
        now = self._clock.now()
        changes = [queries.add_use(use, now) for use in uses.values()]
        try:
            await self._store.change([*changes, queries.trim_uses(MAX_USES)])
        except StoreError as error:
            log.warning("The hosts that a command of %s reached were not saved: %s", session, error)


class _CommandPolicy:
    """What one command may reach, and what it has reached."""

    def __init__(self, egress: Egress, network_user: NetworkUser, network: CommandNetwork) -> None:
        self._egress = egress
        self._user = network_user
        self._network = network
        self.secrets = self._find_secrets()
        self.uses: dict[UseKey, HostUse] = {}

    def _find_secrets(self) -> tuple[HeldSecret, ...]:
        if self._user.public:
            return ()
        found = self._egress.usable_secrets(self._user.principal)
        names = self._user.secrets
        return found if names is None else tuple(each for each in found if each.name in names)

    async def find_refusal(self, host: str, port: int) -> str:
        return await self._egress.find_refusal(self._user, host, port)

    async def get_label(self) -> object:
        return await self._user.read()

    async def connect(self, host: str, port: int) -> ByteStream:
        stream = await self._egress.net.connect(host, port)
        # It may be heard from here on, however long the connection stays open.
        self._network.reached.setdefault(host, 0)
        return stream

    def secrets_for(self, host: str, port: int) -> SecretBroker | None:
        here = filter_rules(self.secrets, lambda rule: (rule.host, rule.port) == (host, port))
        if not here:
            return None
        return SecretBroker(host, here, self._egress.keys.list_secrets())

    def client_context(self) -> ssl.SSLContext:
        return self._egress.keys.client_context()

    def server_context(self, host: str) -> ssl.SSLContext | None:
        return self._egress.keys.server_context(host)

    def record_use(self, use: Use) -> None:
        count_use(self._user.session, self._network, self.uses, use)


def count_use(session: str, network: CommandNetwork, uses: dict[UseKey, HostUse], use: Use) -> None:
    """Add a request or tunnel to the uses of a command. Of new hosts no more than MAX_USES are
    counted."""
    if use.refused:
        network.refused[use.host] = use.refused
        log.info("egress %s:%d %s", use.host, use.port, use.refused)
    else:
        network.reached[use.host] = network.reached.get(use.host, 0) + 1
        log.info("egress %s:%d %d bytes out, %d in", use.host, use.port, use.up, use.down)

    key = (use.host, use.port, use.refused)
    known = uses.get(key)
    if known is None and len(uses) >= MAX_USES:
        return
    uses[key] = HostUse(
        session=session,
        host=use.host,
        port=use.port,
        refused=use.refused,
        requests=1 + (known.requests if known else 0),
        up=use.up + (known.up if known else 0),
        down=use.down + (known.down if known else 0),
    )


def _explain_tainted(host: str, label: Label, network_user: NetworkUser) -> str:
    """That an allowed host needs a new question, since something was read meanwhile."""
    reader = "this conversation" if read_level(network_user.label) else "this command"
    sources = ", ".join(label.source.splitlines()[:3]) or "content from outside"
    return f"{host} needs approval, because {reader} has read {sources}"


def filter_rules(
    secrets: Sequence[HeldSecret], matches: Callable[[SecretRule], bool]
) -> tuple[HeldSecret, ...]:
    """The secrets that have matching rules, each with these rules alone."""
    found = []
    for secret in secrets:
        rules = tuple(filter(matches, secret.rules))
        if rules:
            found.append(msgspec.structs.replace(secret, rules=rules))
    return tuple(found)


def _answered_hosts(answers: Sequence[HostAnswer], verdict: str) -> list[EgressHost]:
    """The hosts that were asked for and got this answer for good. What cannot be read is
    skipped."""
    found = []
    for answer in answers:
        if answer.verdict != verdict:
            continue
        try:
            asked = msgspec.json.decode(answer.arguments, type=_HostArguments)
            found.append(parse_egress_host(asked.host))
        except (msgspec.MsgspecError, AddressRefused, RecursionError):
            continue
    return found


class _HostArguments(msgspec.Struct):
    """The arguments of `request_host`."""

    host: str
