"""Takes in what waits for a session: messages, commands, answers, reports of deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..policy.consent import save_grant
from ..store.queries import find_session_row, stop_all_below
from ..types.commit import Actions, SayPart
from ..types.errors import Refused, StoreFull
from ..types.events import (
    AnyEvent,
    ApprovalAnswered,
    CommandRun,
    MessageDeleted,
    MessageDelivered,
)
from ..types.identity import Address, Answer, Body, Command, Deletion, Principal, Waiting
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import File, Text
from ..types.turn import OUT_OF_DATE, make_out_of_date, make_refusal
from .answer_document import DOCUMENT_MIME, find_answer, is_out_of_date, name_document
from .ask_people import send_asks
from .handoff import describe_arrival
from .journal import uses_outbox
from .judge_call import make_setting
from .next_admission import admit_next
from .rewind import MAX_TITLES, RewindView, make_branch, plan_rewind, plan_uncompact
from .session import Session
from .state import find_asked_calls

NOT_SENT_HERE = mark_text("files are sent to chats only; copy the answer from the conversation")


async def admit_messages(session: Session) -> None:
    """Take in everything that may enter now, in the order of `admit_next`. When this returns, it is
    on disk; what may not enter yet goes on waiting.

    Raises StaleSession, StoreUnavailable.
    """
    inbox = session.inbox
    journal = session.journal
    inbox.has_news = False
    session.interrupt.requested = False
    journal.reopen()
    if journal.has_tool_changes:
        # In a commit the rows come behind the events: a stop would not find what was just begun.
        await journal.commit()

    waiting = await session.runtime.store.list_waiting(session.name)
    while admitted := admit_next(session.state, waiting, session.agent.commands):
        row, events = admitted
        waiting.remove(row)
        if isinstance(row.inbound.body, Deletion):
            waiting = without_withdrawn(waiting, events)
        left = None
        if not events:
            events, left = await _use_log(session, row)
        await record_admission(session, row, events, left)

    if not journal.is_clean:
        await journal.commit()
    inbox.left_at = session.state.n if waiting else None


async def record_admission(
    session: Session, row: Waiting, events: Sequence[AnyEvent], left: Actions | None = None
) -> None:
    """Record that this message was taken in as these events, with what follows from it: grants, and
    replies to commands. `left` are the buttons that stay where one was pressed. Raises
    StaleSession, StoreUnavailable."""
    body = row.inbound.body
    if isinstance(body, Command) and body.name == "stop" and not _is_refused(events):
        events = await _stop_below(session, row.principal, events)
    _remember_grants(session, events)
    session.journal.record(*events)
    session.journal.mark_admitted(row.inbox_id)
    for event in events:
        if isinstance(event, MessageDeleted) and event.withdrawn:
            session.journal.mark_admitted(event.withdrawn)
    _reply_to_commands(session, row, events, left)
    for event in events:
        if isinstance(event, CommandRun) and event.to is not None:
            await _go_on_at(session, event.to, row.inbound.address)


def without_withdrawn(waiting: Sequence[Waiting], events: Sequence[AnyEvent]) -> list[Waiting]:
    """The rows that still wait once these events have happened."""
    gone = {event.withdrawn for event in events if isinstance(event, MessageDeleted)}
    return [row for row in waiting if row.inbox_id not in gone]


async def _stop_below(
    session: Session, principal: Principal, events: Sequence[AnyEvent]
) -> list[AnyEvent]:
    """The events of a stop, with the newest message of the inbox. What works for this session is
    stopped before that is looked up: its results are in the inbox by then, or never come."""
    store = session.runtime.store
    why = f"stopped by {principal.on_behalf_of or principal.id}"
    await store.change((stop_all_below(session.name, why, session.runtime.clock.now()),))
    behind = store.last_inbox_id()
    return [
        replace(each, behind=behind) if isinstance(each, CommandRun) else each for each in events
    ]


async def record_deliveries(session: Session) -> None:
    """Note which answers have reached their platform since the last drive; the next commit writes
    it. Costs nothing for a turn that answers in the log."""
    turn = session.state.turn
    if turn is not None and not uses_outbox(turn.address):
        return
    for sent in await session.runtime.store.list_delivered(session.name):
        session.journal.record(MessageDelivered(sent.key, sent.platform_id, sent.mark))
        session.journal.mark_delivered(sent.key)


def _is_refused(events: Sequence[AnyEvent]) -> bool:
    return any(isinstance(event, CommandRun) and event.refused for event in events)


def _reply_to_commands(
    session: Session, row: Waiting, events: Sequence[AnyEvent], left: Actions | None
) -> None:
    """Send the reply of a command; a button hears what became of its press. A stop is answered by
    the end of its turn."""
    inbound = row.inbound
    runs = [event for event in events if isinstance(event, CommandRun)]
    if isinstance(inbound.body, Command) and inbound.body.turn:
        refusal = next((event.reply for event in runs if event.refused), "")
        is_over = not refusal or refusal == OUT_OF_DATE
        session.journal.enqueue_press(inbound, refusal, removes_buttons=is_over, left=left)
        runs = [event for event in runs if not event.refused]
    turn = session.state.turn
    if turn is not None and turn.stopped:
        return
    reply_to = inbound.external_id if isinstance(inbound.body, Answer) else ""
    for event in runs:
        parts: list[SayPart] = [Text(event.reply, LOCAL)] if event.reply else []
        if event.file is not None:
            parts.append(event.file)
        if parts:
            session.journal.enqueue_message(inbound.address, tuple(parts), reply_to)


async def _go_on_at(session: Session, to: Address, before: Address) -> None:
    """Say at a new place which conversation goes on there, and ask there what is open."""
    if to != before:
        row = await find_session_row(session.runtime.store, session.name)
        arrival = describe_arrival(row.title if row is not None else "", before)
        session.journal.enqueue_message(to, (Text(arrival, LOCAL),))
    if session.state.turn is not None:
        await send_asks(session)


def _remember_grants(session: Session, events: Sequence[AnyEvent]) -> None:
    """Store `always` and `never` for exactly the call that was asked about."""
    turn = session.state.turn
    for event in events:
        if not isinstance(event, ApprovalAnswered) or event.choice not in ("always", "never"):
            continue
        if turn is not None:
            call = find_asked_calls(session.state, event.ask_id)[0]
            now = session.runtime.clock.now()
            setting = make_setting(session, call)
            grant = save_grant(event, call.call, setting, turn.principal, now)
            session.journal.add_changes((grant,))


async def _use_log(session: Session, row: Waiting) -> tuple[list[AnyEvent], Actions | None]:
    """The events of what needs the whole log: to go back in it, to branch off, or to send an answer
    of it as a file; and the buttons that stay below that answer."""
    await session.journal.commit()
    state = session.state
    log = await session.runtime.store.events(session.name)
    past = RewindView(session.name, log, state.zone)
    left = await _list_left(session, row.inbound.body, past)
    return await _read_back(session, row, past), left


async def _list_left(session: Session, body: Body, past: RewindView) -> Actions | None:
    """What is offered below an answer still, once its document was asked for by a button: its
    changes can be undone as long as it is the last turn."""
    last = past.turns_at(len(past.log))[:1]
    if not isinstance(body, Command) or body.name != "document" or not body.turn or not last:
        return None
    opened = past.log[last[0].n - 1]
    asked = last[0].said[0]
    if asked.inbox_id != body.turn or asked.principal.kind == "clock":
        return None
    if not await session.runtime.undo.has_changes(session.name, opened.at):
        return None
    return Actions(body.turn, ("undo",))


async def _read_back(session: Session, row: Waiting, past: RewindView) -> list[AnyEvent]:
    body = row.inbound.body
    name = body.name if isinstance(body, Command) else ""
    try:
        if isinstance(body, Command) and is_out_of_date(past, body):
            return [make_out_of_date(row, body)]
        if isinstance(body, Command) and name == "document":
            return [await _send_document(session, row, past, body)]
        if name == "branch":
            return [await _branch(session, row, past)]
        if name == "uncompact":
            return plan_uncompact(session.state, row, past)
        events = plan_rewind(session.state, row, past)
        return await session.runtime.undo.undo_turns(session.name, row.principal, events)
    except Refused as error:
        return [make_refusal(row, str(error))]


async def _send_document(
    session: Session, row: Waiting, past: RewindView, command: Command
) -> CommandRun:
    """Send an answer as a file. Raises Refused."""
    answer = session.runtime.secrets.redact_text(find_answer(past, command))
    name = name_document(answer)
    blobs = session.runtime.blobs
    if blobs is None or not uses_outbox(row.inbound.address):
        raise Refused(NOT_SENT_HERE)
    data = answer.encode()
    try:
        blob = await blobs.put(data)
    except StoreFull as error:
        raise Refused(str(error)) from error
    return CommandRun(
        row.inbox_id,
        row.principal,
        command.name,
        command.args,
        turn=command.turn,
        file=File(blob, name, DOCUMENT_MIME, len(data), LOCAL),
    )


async def _branch(session: Session, row: Waiting, past: RewindView) -> CommandRun:
    """Begin the branch. After a crash it is found begun, and not begun again. Raises Refused."""
    store = session.runtime.store
    others = await store.search_titles(row.principal, past.heading, MAX_TITLES)
    taken = {other.title for other in others}
    now = session.runtime.clock.now()
    commit = make_branch(past, row.principal, session.state.n, "", now, taken)
    if not await store.history(commit.session):
        await store.commit(commit)

    body = row.inbound.body
    args = body.args if isinstance(body, Command) else ""
    said = (
        f"You can also continue from here in “{commit.session}”; this conversation is not changed."
    )
    return CommandRun(row.inbox_id, row.principal, "branch", args, said)
