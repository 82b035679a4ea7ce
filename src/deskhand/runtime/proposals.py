"""Proposals of skills: what could become one, until it has earned its place."""

from __future__ import annotations

import msgspec

from ..types.commit import Change
from ..types.labels import Label


class Proposal(msgspec.Struct, frozen=True):
    """What a conversation suggests as a skill. `session` and `n` are the event that it comes from, `label` is that of
    all that was read for it."""

    name: str
    description: str
    body: str
    agent: str
    session: str
    n: int
    label: Label


def proposed(proposal: Proposal, at: float) -> tuple[Change, ...]:
    """The rows of a proposal, once by its session, n and name."""
    return ()
