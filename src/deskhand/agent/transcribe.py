"""The step that listens to a recording that somebody has sent."""

from __future__ import annotations

from collections.abc import Callable

from ..types.door import Progress
from ..types.events import Transcribed
from ..types.labels import LOCAL
from ..types.messages import Audio, Text, clean_text
from ..types.steps import Transcribe
from .journal import uses_outbox
from .session import Session

QUOTE_CHARS = 1_000
"""People are shown so much of what was heard."""
SHARE_STEP = 0.1


async def transcribe(session: Session, step: Transcribe) -> None:
    """Listen, and record what was heard, or why it was not. Whoever sent it is told what was heard,
    as that can be wrong. When a person cuts it short, nothing is recorded.

    Raises StaleSession, StoreUnavailable.
    """
    runtime = session.runtime
    began = runtime.clock.monotonic()
    with session.interrupt as waited:
        heard = await runtime.ears.transcribe(_find_audio(session, step.blob), _show_share(session))
    if waited.cancelled_caught:
        return

    took_s = round(max(runtime.clock.monotonic() - began, 0.0), 3)
    text = clean_text(heard.text).strip()
    problem = clean_text(heard.problem)
    session.journal.record(
        Transcribed(
            step.blob, text, problem, heard.language, heard.engine, round(heard.seconds, 2), took_s
        )
    )
    turn = session.turn
    if text and heard.shown and uses_outbox(turn.address):
        quoted = text if len(text) <= QUOTE_CHARS else f"{text[:QUOTE_CHARS]}…"
        said = Text(f"🎤 “{quoted}”", _find_audio(session, step.blob).label)
        session.journal.enqueue_message(turn.address, (said,), turn.reply_to)
    await session.journal.commit()


def _find_audio(session: Session, blob: str) -> Audio:
    for shown in reversed(session.state.messages):
        for part in shown.message.parts:
            if isinstance(part, Audio) and part.blob == blob:
                return part
    return Audio(blob, "", label=LOCAL)  # a summary has taken its place


def _show_share(session: Session) -> Callable[[float], None]:
    """Shows followers how much was heard, a tenth at a time."""
    told = 0.0

    def show(share: float) -> None:
        nonlocal told
        if told + SHARE_STEP <= share < 1.0:
            told = share
            progress = Progress("status", session.state.n + 1, text=f"listening: {share:.0%}")
            session.runtime.publisher.publish(session.name, progress)

    return show
