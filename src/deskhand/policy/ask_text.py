"""What stands beneath a question about a call: why it is asked, for whom and where, and what it
does. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..types.effects import Effect
from .rules import Case

EFFECT_SENTENCES: dict[Effect, str] = {
    "none": "It only reads.",
    "local_write": (
        "It changes files in the workspace, and runs in the sandbox; /undo reverses it."
    ),
    "send_owner": "It sends a message in this conversation.",
    "send_other": "It sends something to others, and this cannot be undone.",
    "fetch": "It fetches a page; the address alone can reveal information to the site.",
    "network": "It connects to other machines, and what is sent to them cannot be taken back.",
    "host": "It acts outside the workspace, and /undo may not reverse it.",
    "irreversible": "It cannot be undone.",
}


def render_ask_context(cases: Sequence[Case], reason: str) -> str:
    """In two lines, for whoever is to say yes or no to these calls of one turn. The sources of what
    was read stand in the reason."""
    case = cases[0]
    who = case.principal
    behalf = f", for {who.on_behalf_of}" if who.on_behalf_of else ""
    place = f" on {case.channel}{' in a group' if case.group else ''}" if case.channel else ""
    does = " ".join(dict.fromkeys(EFFECT_SENTENCES[each.effect] for each in cases))
    return f"Asked because {reason.rstrip('.')}.\nFor {who.id}{behalf}{place}. {does}"
