"""How free an agent is, in one word: rules that hold where nobody wrote others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..types.effects import OUTWARD, Effect
from .rules import Rule

Posture = Literal["read-only", "ask-me", "workspace-free", "everything"]

POSTURES: dict[Posture, str] = {
    "read-only": "It may read and answer. It may not change files or run commands.",
    "ask-me": "It may read. It asks you before every change and every command.",
    "workspace-free": (
        "It may change files in its workspace. It asks you before anything that reaches further."
    ),
    "everything": (
        "It may do everything that you may. After it has read untrusted content, it still asks."
    ),
}
"""What a person is told before they choose, the least free first. `workspace-free` is the
default."""

READ_ONLY_EFFECTS: tuple[Effect, ...] = ("none", "fetch", "send_owner")
"""Effects of what only looks, and answers who asked."""
_CHANGING_EFFECTS: tuple[Effect, ...] = (
    "local_write",
    "send_other",
    "network",
    "host",
    "irreversible",
)


def stricter_posture(one: Posture, other: Posture) -> Posture:
    """The less free of the two."""
    order = list(POSTURES)
    return min(one, other, key=order.index)


def posture_rules(posture: Posture) -> tuple[Rule, ...]:
    """The rules behind one's own: the first that fits wins."""
    why = f"the posture is {posture}"
    looking = tuple(Rule("allow", effect=effect, because=why) for effect in READ_ONLY_EFFECTS)
    match posture:
        case "read-only":
            return (*looking, Rule("deny", because=f"{why}: it may only read"))
        case "ask-me":
            return (*looking, Rule("ask", because=f"{why}: it asks before it changes anything"))
        case "workspace-free":
            return ()
        case "everything":
            return (Rule("allow", because=why),)


def role_rules(roles: Mapping[str, Posture], agent: Posture) -> tuple[Rule, ...]:
    """What the postures of roles take away from that of the agent, to stand before its own rules. A
    role never gives more, and of somebody's roles the strictest counts."""
    found: list[Rule] = []
    for role, posture in roles.items():
        if stricter_posture(posture, agent) == agent:
            continue
        verdict: Literal["deny", "ask"] = "deny" if posture == "read-only" else "ask"
        why = f"for the role {role} the posture is {posture}"
        effects = (
            _CHANGING_EFFECTS if posture in ("read-only", "ask-me") else tuple(sorted(OUTWARD))
        )
        found += [
            Rule(verdict, effect=effect, who=f"role:{role}", because=why) for effect in effects
        ]
    return tuple(sorted(found, key=lambda rule: rule.verdict != "deny"))
