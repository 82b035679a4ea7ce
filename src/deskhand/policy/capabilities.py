"""What somebody or something may do at most, and a part of it: a sub-agent, a job, a plan gets no more than who began
it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Literal, get_args

import msgspec

from ..types.effects import Effect
from ..types.identity import Principal
from .hosts import UNREADABLE, fits_host
from .postures import Posture, posture_rules, stricter
from .rules import Case, Decision, Seen, Verdict, decide

ALL_EFFECTS: frozenset[Effect] = frozenset(get_args(Effect))
ANY: tuple[str, ...] = ("*",)
RANK: dict[Verdict, int] = {"deny": 0, "ask": 1, "allow": 2}


class Capabilities(msgspec.Struct, frozen=True):
    """`tools` are names; `hosts` are `*`, hosts and `*.host`, and hold for effects that go to one; `roles` are those of
    the person it acts for."""

    tools: frozenset[str] = frozenset()
    effects: frozenset[Effect] = ALL_EFFECTS
    hosts: tuple[str, ...] = ANY
    posture: Posture = "everything"
    roles: tuple[str, ...] = ()


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for; None is all that there is. `tools` are patterns."""

    tools: tuple[str, ...] | None = None
    effects: tuple[Effect, ...] | None = None
    hosts: tuple[str, ...] | None = None
    posture: Posture | None = None
    roles: tuple[str, ...] | None = None


def narrowed(parent: Capabilities, wanted: Wanted) -> Capabilities:
    """What is wanted, as far as the parent has it: never more than either."""
    tools, effects, hosts = parent.tools, parent.effects, parent.hosts
    if wanted.tools is not None:
        patterns = wanted.tools
        tools = frozenset(name for name in tools if any(fnmatchcase(name, each) for each in patterns))
    if wanted.effects is not None:
        effects &= frozenset(wanted.effects)
    if wanted.hosts is not None:
        common = (_common(one, other) for one in parent.hosts for other in wanted.hosts)
        hosts = tuple(dict.fromkeys(host for host in common if host))
    posture = parent.posture if wanted.posture is None else stricter(parent.posture, wanted.posture)
    roles = parent.roles if wanted.roles is None else tuple(role for role in parent.roles if role in wanted.roles)
    return Capabilities(tools, effects, hosts, posture, roles)


def _common(one: str, other: str) -> str:
    """The narrower of two patterns of hosts, where it lies within the other; else ''."""
    for inner, outer in ((one, other), (other, one)):
        if outer in ("*", inner) or (inner != "*" and outer.startswith("*.") and inner.endswith(outer[1:])):
            return inner
    return ""


def beyond(held: Capabilities, case: Case) -> str:
    """What of this call goes beyond them, in a sentence; '' for nothing."""
    if case.tool not in held.tools:
        return f"{case.tool} was not handed on"
    if case.effect not in held.effects:
        return f"nothing with the effect {case.effect!r} was handed on"
    hosts = Seen(case).hosts
    if "*" not in held.hosts and (strange := next((host for host in hosts if not _reaches(held, host)), "")):
        shown = strange if strange != UNREADABLE else "an address that cannot be read"
        return f"{shown} is not among the hosts that were handed on"
    return ""


def _reaches(held: Capabilities, host: str) -> bool:
    return any(fits_host(pattern, (host,), every=True) for pattern in held.hosts)


def within(judge: Callable[[Case], Decision], held: Capabilities) -> Callable[[Case], Decision]:
    """The judge of who began it, who also refuses what goes beyond what was handed on, and is as strict as its
    posture. It never allows what the judge would not."""

    def judged(case: Case) -> Decision:
        if why := beyond(held, case):
            return Decision("deny", why)
        first, own = judge(case), decide(posture_rules(held.posture), case)
        return own if RANK[own.verdict] < RANK[first.verdict] else first

    return judged


def acting_for(principal: Principal, id_: str, kind: Literal["clock", "agent", "system"]) -> Principal:
    """Whoever acts by itself on behalf of this person (or of whom that acts for), with their roles and no more."""
    return Principal(id_, principal.roles, kind, principal.on_behalf_of or principal.id)
