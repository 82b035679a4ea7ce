"""How free an agent is, in one word: rules that hold where nobody wrote others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..types.effects import OUTWARD, Effect
from ..types.marked_texts import mark_text
from .rules import Rule

PermissionMode = Literal["read-only", "ask-me", "workspace-free", "everything"]

PERMISSION_MODES: dict[PermissionMode, str] = {
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

MODE_REASON = mark_text("the permission mode is {mode_name}")
READ_ONLY_REASON = mark_text("the permission mode is {mode_name}: it may only read")
ASK_ME_REASON = mark_text("the permission mode is {mode_name}: it asks before it changes anything")
ROLE_REASON = mark_text("for the role {role} the permission mode is {mode_name}")

READ_ONLY_EFFECTS: tuple[Effect, ...] = ("none", "fetch", "send_owner")
"""Effects of what only looks, and answers who asked."""
_CHANGING_EFFECTS: tuple[Effect, ...] = (
    "local_write",
    "send_other",
    "network",
    "host",
    "irreversible",
)


def stricter_mode(one: PermissionMode, other: PermissionMode) -> PermissionMode:
    """The less free of the two."""
    order = list(PERMISSION_MODES)
    return min(one, other, key=order.index)


def mode_rules(mode: PermissionMode) -> tuple[Rule, ...]:
    """The rules behind one's own: the first that fits wins."""
    why = MODE_REASON.format(mode_name=mode)
    looking = tuple(Rule("allow", effect=effect, because=why) for effect in READ_ONLY_EFFECTS)
    match mode:
        case "read-only":
            return (*looking, Rule("deny", because=READ_ONLY_REASON.format(mode_name=mode)))
        case "ask-me":
            return (*looking, Rule("ask", because=ASK_ME_REASON.format(mode_name=mode)))
        case "workspace-free":
            return ()
        case "everything":
            return (Rule("allow", because=why),)


def role_rules(roles: Mapping[str, PermissionMode], agent: PermissionMode) -> tuple[Rule, ...]:
    """What the permission modes of roles take away from that of the agent, to stand before its own
    rules. A role never gives more, and of somebody's roles the strictest counts."""
    found: list[Rule] = []
    for role, mode in roles.items():
        if stricter_mode(mode, agent) == agent:
            continue
        verdict: Literal["deny", "ask"] = "deny" if mode == "read-only" else "ask"
        why = ROLE_REASON.format(role=role, mode_name=mode)
        effects = _CHANGING_EFFECTS if mode in ("read-only", "ask-me") else tuple(sorted(OUTWARD))
        found += [
            Rule(verdict, effect=effect, who=f"role:{role}", because=why) for effect in effects
        ]
    return tuple(sorted(found, key=lambda rule: rule.verdict != "deny"))
