"""Typed queries on the hosts that commands may reach, and on what they have reached."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.commit import Change


class HostGrant(msgspec.Struct, frozen=True):
    """A host that commands may reach: of all agents (`agent` is ''), and in all sessions (`session`
    is '') or in one. `knowing` says what the conversation had read when a person allowed it: see
    `tools.network.OUTSIDE` and `PRIVATE`; 0 for nothing of that."""

    host: str
    knowing: int
    agent: str = ""
    session: str = ""
    by: str = ""


class HostAnswer(msgspec.Struct, frozen=True):
    """What a person answered for good when an agent asked for a host. `arguments` are the JSON
    arguments of that call."""

    verdict: str
    arguments: str


class HostUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often commands of a session connected to a port of a host, and how many bytes went `up`
    and `down`. `refused` is why they were not let through, or ''. `last_at` is when it was saved,
    in seconds since the epoch."""

    session: str
    host: str
    port: int
    refused: str
    requests: int
    up: int
    down: int
    last_at: float = 0.0


async def grants_in(store: Store, agent: str, session: str) -> list[HostGrant]:
    """The grants that apply to this agent in this session."""
    rows = await store.query("egress_grants_of", (agent, session))
    return [HostGrant(host, knowing, session=where) for host, where, knowing in rows]


async def list_grants(store: Store) -> list[HostGrant]:
    """All grants, by agent, session and host."""
    rows = await store.query("egress_grants", ())
    return [
        HostGrant(host, knowing, agent=agent, session=session, by=by)
        for agent, session, host, knowing, _, by in rows
    ]


async def standing_answers(store: Store, agent: str) -> list[HostAnswer]:
    """What people answered for good when this agent asked for hosts."""
    return [HostAnswer(*row) for row in await store.query("egress_said", (agent,))]


def drop_grants(host: str, agent: str) -> Change:
    """Remove the grants of a host from this agent, or from all ('')."""
    return Change("egress_grant_drop", (host, agent, "*"))


async def list_uses(store: Store, limit: int) -> list[HostUse]:
    """What commands have reached, the latest first."""
    return [
        HostUse(
            session=session,
            host=host,
            port=port,
            refused=refused,
            requests=requests,
            up=up,
            down=down,
            last_at=last_at,
        )
        for session, host, port, refused, requests, up, down, _, last_at in await store.query(
            "egress_uses", (limit,)
        )
    ]


def add_use(use: HostUse, at: float) -> Change:
    """Add these numbers to what commands of that session have reached so far. `at` is now, in
    seconds since the epoch."""
    return Change(
        "egress_use_add",
        (
            use.session,
            use.host,
            use.port,
            use.refused,
            use.requests,
            use.up,
            use.down,
            at,
        ),
    )


def trim_uses(keep: int) -> Change:
    """Forget all uses but the latest `keep`."""
    return Change("egress_uses_trim", (keep,))
