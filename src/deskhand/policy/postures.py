"""How free an agent is, in one word: rules that hold where nobody wrote others."""

from __future__ import annotations

from typing import Literal

from .rules import Rule

Posture = Literal["read-only", "ask-me", "workspace-free", "everything"]

POSTURES: dict[Posture, str] = {
    "read-only": "It may look and answer. It changes no file and runs no command.",
    "ask-me": "It may look. Before every change and every command it asks you.",
    "workspace-free": "It may change files in its workspace. Before what reaches further it asks you.",
    "everything": "It may do everything that you may. After it has read something from outside, it still asks.",
}
"""What a person is told before they choose. `workspace-free` is the default."""


def posture_rules(posture: Posture) -> tuple[Rule, ...]:
    """The rules behind one's own: the first that fits wins."""
    why = f"the posture is {posture}"
    looking = tuple(Rule("allow", effect=effect, because=why) for effect in ("none", "fetch", "send_owner"))
    match posture:
        case "read-only":
            return (*looking, Rule("deny", because=f"{why}: it may only look"))
        case "ask-me":
            return (*looking, Rule("ask", because=f"{why}: it asks before it changes anything"))
        case "workspace-free":
            return ()
        case "everything":
            return (Rule("allow", because=why),)
