"""The agent loop: do what a session owes, one step at a time, until it can rest.

What is on disk when a step is over:

- taking in messages: their events, and that they were taken in
- AskModel: what the model was told, except what was recalled; a failure; not yet a reply
- RunTools: before a call that must not run twice, that it starts; the reply that made the call, if
  the call took longer than a moment; results not yet
- Transcribe: what was heard
- Compact: the shorter context
- Wait: everything, with the question in the outbox, and when to wake the session
- EndTurn: everything, with the answer in the outbox
"""

from __future__ import annotations

from typing import assert_never

from ..types.steps import AskModel, Compact, EndTurn, RunTools, Transcribe, Wait
from .admit_messages import admit_messages, record_deliveries
from .ask_model import ask_model
from .compact import compact
from .end_turn import end_turn
from .next_step import next_step
from .run_tools import run_tools
from .session import Session
from .transcribe import transcribe


async def drive(session: Session) -> float | None:
    """Do everything that this session owes.

    Returns when to wake the session (seconds since the epoch; at the latest when the monotonic
    clock shows `session.rest.tick`), or None when it can rest until a message arrives. Can be
    killed at any line: the log is the only truth, and the next call goes on from it.

    Raises StaleSession if another process drives this session, StoreUnavailable if nothing can be
    written.
    """
    try:
        await session.load()
        await record_deliveries(session)
        return await _take_steps(session)
    except BaseException:
        session.drop()  # what is in memory may be ahead of the log
        raise


async def _take_steps(session: Session) -> float | None:
    while True:
        now = session.rest.now()
        step = next_step(session.state, session.limits, now)

        # A finished answer goes out before anything new comes in.
        if session.inbox.may_admit(session.state) and not isinstance(step, EndTurn):
            await admit_messages(session)
            continue

        session.rest.follow(step, now)
        match step:
            case AskModel():
                await ask_model(session, step, now)
            case RunTools():
                await run_tools(session, step, now)
            case Transcribe():
                await transcribe(session, step)
            case Compact():
                await compact(session, step)
            case EndTurn():
                await end_turn(session, step)
            case Wait():
                await session.journal.commit(wake_at=step.until)
                if not session.inbox.has_news:  # a message may have come during the commit
                    return step.until
            case None:
                await session.journal.commit(close=True)
                if not session.inbox.has_news:
                    return None
            case _:
                assert_never(step)
