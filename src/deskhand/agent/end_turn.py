"""The last step of a turn: its answer, on disk and on its way in one commit."""

from __future__ import annotations

from ..store.queries import add_dead_letter
from ..types.commit import ActionName, Actions, SayPart
from ..types.events import CallClosed, Turn, TurnEnded
from ..types.identity import Deletion
from ..types.jobs import render_turn_end
from ..types.labels import LOCAL, UNTRUSTED
from ..types.marked_texts import mark_text
from ..types.messages import Text
from ..types.steps import EndTurn
from ..types.turn import MAY_HAVE_HAPPENED, make_call_closed, make_refusal
from .admit_messages import record_admission, without_withdrawn
from .journal import uses_outbox
from .next_admission import admit_next
from .next_step import answer_text
from .session import Session

LATE_RESULT = mark_text("no result was returned in time")
MIN_DOCUMENT_CHARS = 1000
"""No platform with buttons needs more than a few messages for less."""
_GIVEN_UP = mark_text("Sorry, I encountered an error and gave this up: {reason_text}")
LOST_CALL = f"{mark_text('given up')}; {MAY_HAVE_HAPPENED}"


async def end_turn(session: Session, step: EndTurn) -> None:
    """End the turn with what `step` says, or else with the model's last words.

    When this returns, the end is on disk, the answer waits in the outbox in the same commit, and
    the session is at rest. `before_agent_end` runs before that and may change the answer,
    `after_agent_end` runs behind it. Raises StaleSession, StoreUnavailable.
    """
    turn = session.turn
    state = session.state
    journal = session.journal
    hooks = session.agent.hooks

    said = step.said
    text = said or answer_text(turn)
    if hooks is not None:
        changed = await hooks.before_end(session.name, turn, text, step.reason)
        if changed != text:
            text = said = changed

    for call in list(session.state.calls.values()):  # those of a program that took too long
        journal.record(make_call_closed(call, "expired", LATE_RESULT))
    is_own = bool(said) and said == step.said and step.reason != "done"
    note, changes = await session.runtime.closing_notes.closing_note(session.name, turn)
    journal.add_changes(changes)
    journal.record(TurnEnded(step.reason, tuple(turn.answers), said, note))

    words = render_turn_end(turn.principal, step.reason, text) if said else text
    if shown := _list_words(words, note, is_own=is_own):
        actions = None
        is_failure = bool(step.said) and step.reason != "done"
        if turn.marks or is_failure or len(text) >= MIN_DOCUMENT_CHARS:
            actions = await _list_actions(session, turn, text, is_failure=is_failure)
        journal.enqueue_message(turn.address, shown, turn.reply_to, actions, ended=turn)
    if turn.spoken is not None or state.options.voice:
        _speak(session, turn, words if step.reason == "done" else "")
    await journal.commit(close=True)

    if hooks is not None:
        await hooks.after_end(session.name, turn, text, step.reason)


def _list_words(words: str, note: str, *, is_own: bool) -> tuple[SayPart, ...]:
    """What is said at the end of a turn, and the note below it. `is_own`: a model has not said
    it."""
    told = (Text(words, LOCAL if is_own else UNTRUSTED),) if words.strip() else ()
    if not note.strip():
        return told
    return (*told, Text(f"\n\n{note}" if told else note, LOCAL))


async def _list_actions(
    session: Session, turn: Turn, text: str, *, is_failure: bool
) -> Actions | None:
    """What is offered below the answer of this turn; None for nothing."""
    if not uses_outbox(turn.address):
        return None
    names: list[ActionName] = []
    if turn.principal.kind != "clock":  # nobody has asked a job in that chat
        if is_failure:
            names.append("retry")
        if turn.marks and await session.runtime.undo.has_changes(session.name, turn.opened_at):
            names.append("undo")
    if len(text) >= MIN_DOCUMENT_CHARS and not is_failure:
        names.append("document")
    return Actions(turn.id, tuple(names)) if names else None


def _speak(session: Session, turn: Turn, words: str) -> None:
    """Owe the answer as a voice message too, behind the written one."""
    if words.strip() and session.runtime.ears.speaks(session.state, turn, words):
        aloud = turn.spoken or ""
        session.journal.enqueue_message(turn.address, (Text(words),), aloud=aloud, ended=turn)


async def give_up(session: Session, reason: str) -> None:
    """End the turn, with everything that may enter it, in a visible failure: the session must be
    usable again. Messages that queued for the next turn go on waiting. The reason is kept in a dead
    letter. Raises StaleSession, StoreUnavailable."""
    session.drop()
    try:
        await session.load()
        await _end_everything(session, reason)
    except BaseException:
        session.drop()  # what is in memory may be ahead of the log
        raise


async def _end_everything(session: Session, reason: str) -> None:
    journal = session.journal
    waiting = await session.runtime.store.list_waiting(session.name)
    while admitted := admit_next(session.state, waiting, session.agent.commands):
        row, events = admitted
        waiting.remove(row)
        if isinstance(row.inbound.body, Deletion):
            waiting = without_withdrawn(waiting, events)
        refusal = make_refusal(row, mark_text("it failed repeatedly"))
        await record_admission(session, row, events or [refusal])

    turn = session.state.turn
    if turn is not None:
        said = _GIVEN_UP.format(reason_text=reason)
        journal.record(
            *(CallClosed(call_id, "interrupted", LOST_CALL) for call_id in session.state.calls)
        )
        journal.record(TurnEnded("dead", tuple(turn.answers), said))
        words = render_turn_end(turn.principal, "dead", said)
        actions = await _list_actions(session, turn, said, is_failure=True)
        shown = (Text(words, LOCAL),)
        journal.enqueue_message(turn.address, shown, turn.reply_to, actions, ended=turn)

    now = session.runtime.clock.now()
    journal.add_changes((add_dead_letter(session.name, session.state.n, now, reason),))
    await journal.commit(close=True)
