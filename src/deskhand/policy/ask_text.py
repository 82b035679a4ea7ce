"""What stands beneath a question about a call: why it is asked, for whom and where, and what it
does. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..types.effects import Effect
from ..types.marked_texts import mark_text
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


_WHY = mark_text("Asked because {reason_text}.")
_NOWHERE = (mark_text("For {who_name}."), mark_text("For {who_name}, for {person_name}."))
_ON_CHANNEL = (
    mark_text("For {who_name} on {channel_name}."),
    mark_text("For {who_name}, for {person_name} on {channel_name}."),
)
_IN_GROUP = (
    mark_text("For {who_name} on {channel_name} in a group."),
    mark_text("For {who_name}, for {person_name} on {channel_name} in a group."),
)


def render_ask_context(cases: Sequence[Case], reason: str) -> str:
    """In two lines, for whoever is to say yes or no to these calls of one turn. The sources of what
    was read stand in the reason."""
    case = cases[0]
    who = case.principal
    own, for_another = _NOWHERE
    if case.channel:
        own, for_another = _IN_GROUP if case.group else _ON_CHANNEL
    place = for_another if who.on_behalf_of else own
    why = _WHY.format(reason_text=reason.rstrip("."))
    for_whom = place.format(
        who_name=who.id, person_name=who.on_behalf_of, channel_name=case.channel
    )
    does = " ".join(dict.fromkeys(EFFECT_SENTENCES[each.effect] for each in cases))
    return f"{why}\n{for_whom} {does}"
