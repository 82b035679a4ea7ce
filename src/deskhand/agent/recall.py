"""Looks into memory before a model is asked."""

from __future__ import annotations

from .session import Searched, Session

REFRESH_STEPS = 10
"""In long work the model is told every so many steps how far it is."""


async def recall_memories(session: Session) -> int:
    """Record what fits what was said since the last look; returns how many memories that were. It
    is committed with the reply."""
    turn = session.turn
    said = len(turn.said)
    last = session.searched
    is_new = said != turn.recalled and (last.opened_at, last.said) != (turn.opened_at, said)
    step = turn.steps + 1
    is_refresh = (
        session.state.options.mode == "deep_work"
        and step % REFRESH_STEPS == 0
        and (last.opened_at, last.steps) != (turn.opened_at, step)
    )
    if not is_new and not is_refresh:
        return 0

    session.searched = Searched(turn.opened_at, said, step)
    found = await session.agent.context.recall(session.state)
    if found is None:
        return 0
    session.journal.record(found)
    return len(found.facts)
