"""What stands beneath a question about a call: why it is asked, for whom and where, and what it
does. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..types.effects import Effect
from .rules import Case

EFFECT_SENTENCES: dict[Effect, str] = {
    "none": "It only looks.",
    "local_write": "It changes files of the workspace, and runs in the sandbox; /undo takes it back.",  # noqa: E501
    "send_owner": "It says something in this conversation.",
    "send_other": "It sends something to others, and what is sent cannot be taken back.",
    "fetch": "It reads a page; its address alone tells the other side something.",
    "network": "It reaches other machines, and what they get cannot be taken back.",
    "host": "It reaches beyond the workspace, and /undo may not know of it.",
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
