"""The label of a session's name: on some surfaces a person chooses it, on others the platform."""

from __future__ import annotations

import re

from ..store.base import Store
from ..store.queries import members_of
from ..types.identity import CLIENT_NAMED_CHANNELS
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.people import OWNER_NAME
from ..users.queries import roles_of

_NUMBERS = re.compile(r"[\d:.+-]*")
"""A number that a platform gives is nobody's words."""


async def label_of_name(store: Store, session: str) -> Label:
    """The label of the name of this session: that of the person who named it, or of everybody who
    takes part when that is not known."""
    channel, _, rest = session.partition("/")[2].partition(":")
    if channel in CLIENT_NAMED_CHANNELS:
        return await label_of_person(store, rest.partition(":")[0])
    if _NUMBERS.fullmatch(rest):
        return LOCAL
    members = await members_of(store, session)
    if not members:
        return Label(source=mark_text("the name of a conversation"))
    return join_labels([await label_of_person(store, member) for member in sorted(members)])


async def label_of_person(store: Store, person: str) -> Label:
    """The label of what this person writes. '' is the owner."""
    if person in ("", OWNER_NAME):
        return LOCAL
    roles = await roles_of(store, person)
    if roles is not None and "owner" in roles:
        return LOCAL
    return Label("tool_local", by=(person,))
