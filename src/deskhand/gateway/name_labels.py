"""Whose word the name of a conversation is: on some surfaces a person chooses it, on others the
platform."""

from __future__ import annotations

import re

from ..store.base import Store
from ..types.identity import CLIENT_NAMED_CHANNELS
from ..types.labels import LOCAL, Label, join_labels
from ..types.people import OWNER_NAME

_NUMBERS = re.compile(r"[\d:.+-]*")
"""What a platform counts says nothing."""


async def label_of_name(store: Store, session: str) -> Label:
    """The label of the name of this conversation: of who named it, or where that is not known of
    all who take part."""
    channel, _, rest = session.partition("/")[2].partition(":")
    if channel in CLIENT_NAMED_CHANNELS:
        return await label_of_person(store, rest.partition(":")[0])
    if _NUMBERS.fullmatch(rest):
        return LOCAL
    members = [str(member) for (member,) in await store.query("session_members", (session,))]
    if not members:
        return Label(source="the name of a conversation")
    return join_labels([await label_of_person(store, member) for member in members])


async def label_of_person(store: Store, person: str) -> Label:
    """The label of what this person has written down at any time; '' is the owner."""
    roles = [str(role) for (role,) in await store.query("job_person", (person or OWNER_NAME,))]
    return (
        LOCAL
        if "owner" in roles or person in ("", OWNER_NAME)
        else Label("tool_local", by=(person,))
    )
