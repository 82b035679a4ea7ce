"""The step that shortens what the model sees when it grows too long."""

from __future__ import annotations

from ..models.window import fit_messages, message_budget
from ..types.steps import Compact, Condensed
from .compacted_event import make_compaction
from .session import Session


async def compact(session: Session, step: Compact) -> None:
    """Shorten the context by rule, and have what is dropped summed up where somebody can. When this
    returns, it is on disk; a person who cuts it short leaves everything in view.

    Raises StaleSession, StoreUnavailable.
    """
    state = session.state
    messages = [shown.message for shown in state.messages]
    budget = step.budget
    if budget:
        budget = message_budget(messages, budget, state.context_tokens, session.limits)
    in_turn = len(state.turn.said) if state.turn else 0
    if step.focus:
        cut = fit_messages(messages, 1, budget, in_turn)
    else:
        cut = fit_messages(messages, budget, in_turn=in_turn)

    told = Condensed()
    if cut.dropped:
        dropped = [messages[i] for i in cut.dropped]
        with session.interrupt as waited:
            told = await session.agent.context.summarize(state, dropped, step.focus)
        if waited.cancelled_caught:
            return

    if told.asked is not None:
        session.journal.record(told.asked)
    session.journal.record(make_compaction(state, cut, told))
    await session.journal.commit()
