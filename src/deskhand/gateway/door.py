"""The one way in: it authorizes, routes and stores what comes from a surface, and then confirms
it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import tzinfo
from typing import Protocol

import anyio
from msgspec.structs import replace

from ..agent.rewind import MAX_TITLES, RewindView, make_branch
from ..agent.state import State
from ..policy.roles import may_send
from ..secrets.inbound_redaction import find_secret, redact_body, redact_value
from ..secrets.redaction import Redactor
from ..store.base import Accepted, Store
from ..store.queries import (
    find_accepted,
    has_members,
    last_event_of_kind,
    session_of_inbox_row,
    session_of_message,
    was_accepted,
)
from ..types.clock import Clock, Ids
from ..types.door import Door, Progress
from ..types.errors import Ending, Refused
from ..types.events import Recorded, Turn
from ..types.identity import (
    CLIENT_NAMED_CHANNELS,
    Address,
    Answer,
    Body,
    Command,
    Configure,
    Deletion,
    Edit,
    Inbound,
    Principal,
    Receipt,
    Rewind,
    Said,
    When,
    is_own_session,
    session_key,
)
from ..types.messages import File, Message
from ..types.moment import Moment
from ..types.options import SessionOptions
from ..types.turn import STOP_TURN_ONLY
from ..users.notification_commands import NotificationCommands
from ..users.reader_languages import ReaderLanguages
from ..users.strangers import NO_ACCESS
from .dispatch import Dispatch
from .feed import Batch, Feed, FeedSource, follow_in_batches, follow_session, watch_sessions
from .handoffs import Handoffs
from .inbound_body import body_problem, normalize_body
from .machine_rounds import MachineRounds
from .named_sessions import NamedSessions
from .state_at import build_moment
from .thread_history import ThreadHistory

RowKey = tuple[str, str, str]
"""What names an inbox row: the channel, the account, and the message's id there."""
MAX_OWN_ROWS = 1_000
"""So many rows that came in here are remembered until the watch of the inbox asks about them."""
DELETED_CHARS = 2_000
"""So much of a message is told to an agent when it is taken back."""
MAX_CHECKED_NAMES = 1_000
"""So many names of sessions are remembered that hold no secret."""


class AnswerRouter(Protocol):
    """Knows which sub-agents ask somebody. `is_active` while there are any."""

    is_active: bool

    async def find_asking(
        self, inbound: Inbound, principal: Principal, session: str, /
    ) -> tuple[str, str] | None:
        """The session and the id of the question that this message answers, said in `session`; None
        where it answers none of a sub-agent."""


class Access(Protocol):
    """Who may come in and talk to which agent, and what the agents need of a message.

    `answers` knows who asks on behalf of a session, `rounds` counts what programs begin, `threads`
    reads what was said before, `handoffs` knows where a conversation goes on, `notifications` when
    people want to be told what, `languages` in which language, `redact` takes secrets out, and
    messages are dated in the time zone `zone`.
    """

    answers: AnswerRouter
    rounds: MachineRounds
    threads: ThreadHistory
    handoffs: Handoffs
    notifications: NotificationCommands
    languages: ReaderLanguages
    redact: Redactor
    zone: tzinfo | None

    def authorize(self, inbound: Inbound, /) -> Principal | None:
        """Who the sender is, or None for a stranger."""

    def route(self, inbound: Inbound, /) -> str:
        """The name of the agent that gets it."""

    def may_talk(self, principal: Principal, agent: str, /) -> bool:
        """Whether this person may talk to that agent."""

    def accepts_bots(self, channel: str, /) -> bool:
        """Whether bots may write on this channel."""

    def options_problem(
        self, principal: Principal, session: str, options: SessionOptions, /
    ) -> str:
        """Why this person may not set these options of the session, or ''."""

    def render_prompt(self, state: State, /) -> tuple[str, ...]:
        """The system prompt of the session with this state, in blocks."""

    async def unpack_message(self, session: str, message: Message, /) -> Message:
        """The message with its files opened, so that the log has what the model is shown of
        them."""

    async def note_refusal(self, principal: Principal, what: str, subject: str, /) -> None:
        """Write into the audit trail that somebody asked for something that is not theirs."""


class LocalDoor:
    """The Door of this process. It implements `types.door.Door`."""

    def __init__(
        self, store: Store, dispatch: Dispatch, feed: Feed, access: Access, clock: Clock, ids: Ids
    ) -> None:
        self._store = store
        self._dispatch = dispatch
        self._source = FeedSource(store, feed, dispatch, access.note_refusal)
        self._access = access
        self._clock = clock
        self._ids = ids
        self._named_sessions = NamedSessions(store)
        self._checked_names: dict[
            str, None
        ] = {}  # sessions whose names are known to hold no secret
        self._own: dict[RowKey, None] = {}  # inbox rows that came in here, the oldest first

    def pop_own_row(self, inbound: Inbound) -> bool:
        """Whether this row came in here, and not through another process. Ask once for each row."""
        key = _row_key(inbound)
        own = key in self._own
        self._own.pop(key, None)
        return own

    # Taking in

    async def submit(self, inbound: Inbound) -> Receipt:
        if isinstance(inbound.body, Deletion):
            found = await self._find_deleted(inbound, inbound.body)
            if found is None:
                return Receipt("refused", reason="it was no message of theirs that was taken in")
            inbound = found
        principal = self._access.authorize(inbound)
        if principal is None:
            return Receipt("refused", reason=f"{inbound.sender!r} is not known here")

        if inbound.language and principal.kind == "person":
            await self._access.languages.report(principal.id, inbound.language)

        # An answer may let a turn end. And a platform may believe already that we have its message.
        over_http = inbound.address.channel in CLIENT_NAMED_CHANNELS
        if self._dispatch.is_draining and over_http and isinstance(inbound.body, Said | Edit):
            raise Ending(
                "Deskhand is stopping or restarting. Your message was not accepted: send it again "
                "in a moment"
            )
        return await self._take_in(inbound, principal)

    async def _take_in(self, inbound: Inbound, principal: Principal) -> Receipt:
        own = session_key(self._access.route(inbound), inbound.address)
        session = inbound.session or await self._find_session(inbound, principal, own)
        if self._access.answers.is_active and isinstance(inbound.body, Said):
            asking = await self._access.answers.find_asking(inbound, principal, session)
            if asking is not None:
                session, ask_id = asking
                inbound = replace(inbound, body=Answer(ask_id, inbound.body.message.text))
        if refused := await self._access_refusal(principal, inbound, session):
            return Receipt("refused", reason=refused)
        if refused := await self._round_refusal(inbound):
            return Receipt("refused", reason=refused)

        body = normalize_body(inbound.body, principal, by_program=inbound.by_program)
        inbound = replace(inbound, body=redact_body(body, self._access.redact))
        if isinstance(inbound.body, Configure):
            wrong = self._access.options_problem(principal, session, inbound.body.options)
        else:
            wrong = body_problem(inbound.body)
        if not wrong and session not in self._checked_names:
            wrong = self._name_problem(session)
        if wrong:
            return Receipt("refused", reason=wrong)

        if isinstance(inbound.body, Command):
            session, inbound = await self._change_session(own, session, inbound, principal)
        if session == own:
            inbound = await self._add_thread_history(inbound, session)
        try:
            inbound = await self._unpack_files(inbound, session)
            return await self._accept(inbound, principal, session)
        except Refused as error:
            return Receipt("refused", session, reason=str(error))

    async def _find_session(self, inbound: Inbound, principal: Principal, own: str) -> str:
        """The session that is answered or replied to; else the one that goes on at its place. A
        button answers the session that asked, whichever goes on in that chat now."""
        body = inbound.body
        if isinstance(body, Answer) or (isinstance(body, Command) and body.turn):
            if isinstance(body, Answer):
                asked = await self._store.session_of_ask(body.ask_id)
            else:
                asked = await session_of_inbox_row(self._store, body.turn)
            if asked == own or asked.startswith(f"{own}:"):
                return asked
            if asked and await self._store.may_see(principal, asked):
                return asked
        elif session := await self._replied_to(inbound, principal):
            return session

        session = self._named_sessions.current_session(own, inbound)
        if session == own or session.startswith(f"{own}:"):
            return session
        # It was handed over, and this chat may be somebody else's by now.
        return session if await self._store.may_see(principal, session) else own

    async def _replied_to(self, inbound: Inbound, principal: Principal) -> str:
        """The session that sent the message to which this one replies, or ''. Only a session that
        the sender may see, and never in a group, where others would read of it."""
        if not inbound.reply_to or inbound.address.group:
            return ""
        session = await session_of_message(self._store, inbound.address.channel, inbound.reply_to)
        if session and await self._store.may_see(principal, session):
            return session
        return ""

    async def _change_session(
        self, own: str, session: str, inbound: Inbound, principal: Principal
    ) -> tuple[str, Inbound]:
        """The session of this command, and what to submit there. Some commands change which session
        goes on at a place, or when their person is told what, before they are answered there."""
        if await was_accepted(self._store, inbound.address, inbound.external_id):
            return session, inbound  # it was carried out then, and others may have come since
        if not inbound.session:
            moved = await self._named_sessions.switch_session(own, inbound)
            if moved is not None:
                session, inbound = moved
        await self._access.notifications.carry_out(inbound.body, principal)
        await self._access.languages.carry_out(inbound.body, principal)
        return session, await self._access.handoffs.resolve(inbound, principal, session)

    async def _find_deleted(self, inbound: Inbound, deletion: Deletion) -> Inbound | None:
        """The deletion for the session that has the message, with its sender and what it said. None
        where nobody has it, or it is not the sender's: people delete what was never said to an
        agent."""
        found = await find_accepted(self._store, inbound.address, deletion.of)
        if found is None or not isinstance(found.inbound.body, Said):
            return None
        sender = found.inbound.sender
        if inbound.sender not in ("", sender):
            return None
        words = found.inbound.body.message.own_text[:DELETED_CHARS] or "a message without words"
        body = replace(deletion, said=words)
        return replace(inbound, sender=sender, session=found.session, body=body)

    async def _access_refusal(self, principal: Principal, inbound: Inbound, session: str) -> str:
        """Why they may not send this to the session, or ''."""
        agent = session.partition("/")[0]
        if not may_send(principal, inbound.body) or not self._access.may_talk(principal, agent):
            await self._access.note_refusal(principal, "write to agent", agent)
            return NO_ACCESS
        chosen = inbound.session or inbound.address.channel in CLIENT_NAMED_CHANNELS
        if chosen and not await self._may_write(principal, session, inbound.address):
            await self._access.note_refusal(principal, "write in", session)
            return f"{session!r} is not yours to write in"
        return ""

    async def _may_write(self, principal: Principal, session: str, address: Address) -> bool:
        """Whether they take part in the session, or may begin it. Nobody may begin a session under
        the name of somebody else, and wait for them there."""
        if await self._store.may_see(principal, session):
            return True
        if await has_members(self._store, session):
            # It may have begun between the two looks, with this person in it.
            return await self._store.may_see(principal, session)
        if is_own_session(principal, session):
            return True
        return address.channel not in (*CLIENT_NAMED_CHANNELS, "door")

    async def _round_refusal(self, inbound: Inbound) -> str:
        """Why a bot is not listened to now, or ''. A person's message resets the count of
        rounds."""
        if not inbound.by_program:
            rounds = self._access.rounds
            if rounds.counted or (self._store.shares_work and await rounds.are_counted()):
                await self._access.rounds.reset()
            return ""
        channel = inbound.address.channel
        if not self._access.accepts_bots(channel):
            return (
                f"bots may not write on {channel!r}; allow them with "
                f"`deskhand config set channels.{channel}.bots true`"
            )
        return await self._access.rounds.begin_round(f"a bot on {channel}")

    def _name_problem(self, session: str) -> str:
        """Why the session may not have this name, or ''. Its name is shown in every list."""
        if found := find_secret(session, self._access.redact):
            return (
                f"the name of the conversation contains the value of a secret ({found}): choose "
                "another name"
            )
        self._checked_names[session] = None
        if len(self._checked_names) > MAX_CHECKED_NAMES:
            del self._checked_names[next(iter(self._checked_names))]
        return ""

    async def _add_thread_history(self, inbound: Inbound, session: str) -> Inbound:
        """With what was said in its thread before, where an agent is spoken to there for the first
        time."""
        body = inbound.body
        if not isinstance(body, Said):
            return inbound
        thread = self._access.threads.find_thread(inbound)
        if thread is None or await self._has_messages(session):
            return inbound
        snapshot = await self._access.threads.read(thread, inbound)
        if snapshot is None:
            return inbound
        snapshot = redact_value(snapshot, self._access.redact)
        parts = (snapshot, *body.message.parts)
        return replace(inbound, body=replace(body, message=replace(body.message, parts=parts)))

    async def _has_messages(self, session: str) -> bool:
        """Whether somebody has said something in the session. A reaction or a command before that
        is no reason not to know what the first message is about."""
        # In this order: what waits may go into the log between the two.
        waiting = await self._store.list_waiting(session)
        if any(isinstance(each.inbound.body, Said) for each in waiting):
            return True
        return bool(await last_event_of_kind(self._store, session, "message_received"))

    async def _unpack_files(self, inbound: Inbound, session: str) -> Inbound:
        """With its files opened, so that the log has what the model is shown of them."""
        body = inbound.body
        message = body.message if isinstance(body, Said | Rewind) else None
        if message is None or not any(isinstance(part, File) for part in message.parts):
            return inbound
        if await was_accepted(self._store, inbound.address, inbound.external_id):
            return inbound  # its files were opened then, and the agent may have changed them
        opened = await self._access.unpack_message(session, message)
        return replace(inbound, body=replace(body, message=opened))

    async def _accept(self, inbound: Inbound, principal: Principal, session: str) -> Receipt:
        """Store it and wake its session. Not cancelled halfway: a message that was accepted is also
        driven."""
        with anyio.CancelScope(shield=True):
            accepted = await self._store_inbound(inbound, principal, session)
        if accepted.duplicate:
            return Receipt("duplicate", accepted.session, accepted.inbox_id)
        return Receipt("accepted", session, accepted.inbox_id, accepted.after)

    async def _store_inbound(
        self, inbound: Inbound, principal: Principal, session: str
    ) -> Accepted:
        # Before it is stored: the watch of the inbox may see the row sooner than this goes on.
        self._own[_row_key(inbound)] = None
        if len(self._own) > MAX_OWN_ROWS:  # the watch of the inbox is long past the oldest
            del self._own[next(iter(self._own))]

        reserved = self._dispatch.reserve(session, inbound, principal)
        if reserved is None:
            accepted = await self._store.accept(inbound, principal, session)
        else:
            slot, first = reserved
            try:
                accepted = await self._store.accept(inbound, principal, session, first)
                if accepted.admitted:
                    slot.session.apply_admission(first(accepted.inbox_id), accepted.seq)
                else:
                    slot.session.inbox.has_news = True
            finally:
                self._dispatch.start(slot)

        if reserved is None and not accepted.duplicate:
            is_command = isinstance(inbound.body, Command)
            running = self._dispatch.turn(session) if is_command else None
            cut = is_interrupt(inbound.body, inbound.when, running)
            self._dispatch.adopt(session, cut=cut)
        return accepted

    # Following

    def follow(
        self, session: str, principal: Principal, after: int = 0
    ) -> AsyncGenerator[Recorded | Progress]:
        return follow_session(self._source, session, principal, after)

    def follow_in_batches(
        self, session: str, principal: Principal, after: int = 0
    ) -> AsyncGenerator[Batch]:
        return follow_in_batches(self._source, session, principal, after)

    def watch(self, principal: Principal, after_seq: int = 0) -> AsyncGenerator[Recorded]:
        return watch_sessions(self._source, principal, after_seq)

    async def get_state_at(self, session: str, principal: Principal, n: int) -> Moment:
        if not await self._store.may_see(principal, session):
            await self._access.note_refusal(principal, "look at", session)
            raise Refused(f"{session!r} is not yours to see")
        past = RewindView(session, await self._store.events(session), self._access.zone)
        prompt = self._access.render_prompt if "owner" in principal.roles else _no_prompt
        return build_moment(past, n, prompt)

    # Acting on a session

    async def stop(self, session: str, principal: Principal) -> Receipt:
        if not await self._store.may_see(principal, session):
            await self._access.note_refusal(principal, "stop", session)
            raise Refused(f"{session!r} is not yours to stop")
        inbound = Inbound(
            external_id=self._ids.new("stop"),
            address=Address("door"),
            sender=principal.id,
            at=self._clock.now(),
            body=Command("stop", STOP_TURN_ONLY),
            session=session,
        )
        return await self._accept(inbound, principal, session)

    async def rewind(
        self,
        session: str,
        principal: Principal,
        to_n: int,
        message: Message | None = None,
        when: When = "steer",
    ) -> Receipt:
        inbound = self._make_inbound(session, principal, Rewind(to_n, message), when)
        return await self._take_in(inbound, principal)

    async def configure(
        self, session: str, principal: Principal, options: SessionOptions
    ) -> Receipt:
        inbound = self._make_inbound(session, principal, Configure(options))
        return await self._take_in(inbound, principal)

    async def answer(self, ask_id: str, choice: str, principal: Principal) -> Receipt:
        session = await self._store.session_of_ask(ask_id)
        if not session or not await self._store.may_see(principal, session):
            return Receipt(
                "refused", reason=f"{ask_id!r} is not open any more, or is not yours to answer"
            )
        inbound = self._make_inbound(session, principal, Answer(ask_id, choice))
        return await self._take_in(inbound, principal)

    def _make_inbound(
        self, session: str, principal: Principal, body: Body, when: When = "steer"
    ) -> Inbound:
        """What a person does on a surface that names sessions itself. Answers are read from the
        log."""
        return Inbound(
            external_id=self._ids.new("door"),
            address=Address("web"),
            sender=principal.id,
            at=self._clock.now(),
            body=body,
            session=session,
            when=when,
        )

    async def branch(
        self, session: str, principal: Principal, at_n: int, to: str | None = None
    ) -> Receipt:
        if refused := await self._branch_refusal(session, principal, to):
            return Receipt("refused", reason=refused)
        past = RewindView(session, await self._store.events(session), self._access.zone)
        rows = await self._store.search_titles(principal, past.heading, MAX_TITLES)
        titles = {row.title for row in rows}
        try:
            commit = make_branch(past, principal, at_n, to or "", self._clock.now(), titles)
        except Refused as error:
            return Receipt("refused", session, reason=str(error))
        await self._store.commit(commit)
        return Receipt("accepted", commit.session, after=len(commit.events))

    async def _branch_refusal(self, session: str, principal: Principal, to: str | None) -> str:
        """Why they may not branch this session under the name `to`, or ''."""
        agent = session.partition("/")[0]
        may_talk = self._access.may_talk(principal, agent)
        if not may_talk or not await self._store.may_see(principal, session):
            await self._access.note_refusal(principal, "branch", session)
            return f"{session!r} is not yours to branch"
        if not to:
            return ""
        same_agent = to.partition("/")[0] == agent
        if not same_agent or not await self._may_write(principal, to, Address("web")):
            return f"{to!r} cannot begin as a branch: name it {agent}/web:{principal.id}:NAME"
        return self._name_problem(to)


def _row_key(inbound: Inbound) -> RowKey:
    return inbound.address.channel, inbound.address.account, inbound.external_id


def is_interrupt(body: Body, when: When, running: Turn | None) -> bool:
    """Whether it ends what the session is waiting for outside: a model, a tool, a person. `running`
    is its open turn, where that is known here: the button of another turn ends nothing."""
    if isinstance(body, Command) and body.turn:
        return body.name == "stop" and running is not None and body.turn in running.answers
    if isinstance(body, Command):
        return body.name in ("stop", "undo", "retry")
    return when == "interrupt" or (isinstance(body, Rewind) and when != "queue")


def _no_prompt(state: State) -> tuple[str, ...]:
    return ()


_: type[Door] = LocalDoor
