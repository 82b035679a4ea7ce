"""The Door: authorises, routes, stores, and only then says yes."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import tzinfo

import anyio
import msgspec
from msgspec.structs import asdict, replace

from ..agent.rewind import MAX_TITLES, RewindView, make_branch
from ..agent.state import State
from ..policy.approval import parse_choice
from ..policy.roles import may_send
from ..secrets.inbound_redaction import find_secret, redact_body
from ..store.base import Accepted, Store
from ..store.queries import has_members, session_of_message, was_accepted
from ..types.client import CLIENT_HISTORY_SOURCE
from ..types.clock import Clock, Ids
from ..types.commands import COMMAND_ALIASES, COMMANDS
from ..types.door import TEXT_CHARS, Door, Progress
from ..types.errors import Ending, Refused
from ..types.events import Recorded
from ..types.identity import (
    CLIENT_NAMED_CHANNELS,
    Address,
    Answer,
    Body,
    Command,
    Configure,
    Edit,
    Inbound,
    Principal,
    Receipt,
    Rewind,
    Said,
    ToolResults,
    When,
    is_own_session,
    principal_label,
    session_key,
)
from ..types.labels import Label
from ..types.messages import (
    Audio,
    File,
    Image,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    clean_text,
)
from ..types.moment import Moment
from ..types.options import SessionOptions
from ..types.turn import STOP_TURN_ONLY
from ..users.strangers import NO_ACCESS
from .dispatch import Dispatch
from .feed import (
    Batch,
    Feed,
    FeedSource,
    NoteRefusal,
    follow_in_batches,
    follow_session,
    watch_sessions,
)
from .machine_rounds import MachineRounds
from .named_sessions import Places
from .state_at import build_moment

MAX_OWN_ROWS = 1_000
"""So many rows that came in here are remembered until the watch of the inbox asks about them."""
MAX_CHECKED_NAMES = 1_000
"""So many names of conversations are remembered that hold no secret."""
HISTORY_CHARS = 10_000_000
HISTORY_MESSAGES = 5_000
"""The longest history that a program may bring along."""
COMMAND_NAME_CHARS = 64
"""Of an unknown command no more is said back."""
_COMMAND = re.compile(r"(/)(\w{1,64})(?:\s+(.*))?|(!)(\w\S*)(?:\s+(.*))?", re.DOTALL)


class Access(msgspec.Struct, frozen=True):
    """Who may come in, and to whom. `authorise` resolves the sender, None for a stranger; `route`
    names the agent, and `may_talk` says whether it is for them. `unpack` opens the files in a
    message for a session. `note` writes down that somebody asked for what is not theirs. `bots`
    tells whether bots may write on a channel, `rounds` counts theirs. `check` says what speaks
    against somebody's setting options of a session ('' for nothing). `zone` is where messages are
    dated, `prompt` what the agent of a session is told. `redact` takes secrets out."""

    authorise: Callable[[Inbound], Principal | None]
    route: Callable[[Inbound], str]
    may_talk: Callable[[Principal, str], bool]
    unpack: Callable[[str, Message], Awaitable[Message]]
    note: NoteRefusal
    bots: Callable[[str], bool]
    rounds: MachineRounds
    check: Callable[[Principal, str, SessionOptions], str] = lambda principal, session, options: ""
    zone: tzinfo | None = None
    prompt: Callable[[State], tuple[str, ...]] = lambda state: ()
    redact: Callable[[str], str] = str


class LocalDoor:
    """The Door of this process. It implements `types.door.Door`."""

    def __init__(
        self, store: Store, dispatch: Dispatch, feed: Feed, access: Access, clock: Clock, ids: Ids
    ) -> None:
        self._store = store
        self._dispatch = dispatch
        self._source = FeedSource(
            store, feed, lambda: dispatch.is_driving, dispatch.snapshot, access.note
        )
        self._access = access
        self._clock = clock
        self._ids = ids
        self._places = Places(store)
        self._named: dict[str, None] = {}  # conversations whose names are known to hold no secret
        self._own: dict[int, None] = {}  # in the order in which they came

    def pop_own_row(self, inbox_id: int) -> bool:
        """Whether this row came in here, and not through another process. Asked once for each
        row."""
        own = inbox_id in self._own
        self._own.pop(inbox_id, None)
        return own

    async def submit(self, inbound: Inbound) -> Receipt:
        principal = self._access.authorise(inbound)
        if principal is None:
            return Receipt("refused", reason=f"{inbound.sender!r} is not known here")
        # An answer may help a turn to its end; and a platform may have been told already that we
        # have its message.
        over_http = inbound.address.channel in CLIENT_NAMED_CHANNELS
        if self._dispatch.is_draining and over_http and isinstance(inbound.body, Said | Edit):
            raise Ending(
                "Deskhand is ending or starting again: nothing was taken in, so send it "
                "again in a moment"
            )
        return await self._take_in(inbound, principal)

    async def _take_in(self, inbound: Inbound, principal: Principal) -> Receipt:
        own = session_key(self._access.route(inbound), inbound.address)
        session = (
            inbound.session
            or await self._find_target(inbound, principal, own)
            or self._places.current_session(own, inbound)
        )
        if refused := await self._access_refusal(principal, inbound, session):
            return Receipt("refused", reason=refused)
        if inbound.by_program:
            if stopped := await self._bot_refusal(inbound):
                return Receipt("refused", reason=stopped)
        elif self._access.rounds.counted:
            await self._access.rounds.reset()
        body = _normalize_body(inbound.body, principal, by_program=inbound.by_program)
        inbound = replace(inbound, body=redact_body(body, self._access.redact))
        wrong = self._body_problem(inbound.body, principal, session)
        if not wrong and session not in self._named:
            wrong = self._name_problem(session)
        if wrong:
            return Receipt("refused", reason=wrong)
        if (
            not inbound.session
            and (moved := await self._places.switch_session(own, inbound)) is not None
        ):
            session, inbound = moved
        try:
            return await self._accept(
                await self._unpack_files(inbound, session), principal, session
            )
        except Refused as error:
            return Receipt("refused", session, reason=str(error))

    def _name_problem(self, session: str) -> str:
        """Why no conversation may be called so, '' where it may: its name is in every list."""
        if found := find_secret(session, self._access.redact):
            return (
                f"the name of the conversation holds the value of a secret ({found}): choose "
                "another"
            )
        self._named[session] = None
        if len(self._named) > MAX_CHECKED_NAMES:
            del self._named[next(iter(self._named))]
        return ""

    async def _bot_refusal(self, inbound: Inbound) -> str:
        """Why this bot is not heard now, '' where it is."""
        channel = inbound.address.channel
        if not self._access.bots(channel):
            return (
                f"bots are not heard here; `deskhand config set channels.{channel}.bots true` "
                "lets them write"
            )
        return await self._access.rounds.begin_round(f"a bot on {channel}")

    async def _find_target(self, inbound: Inbound, principal: Principal, own: str) -> str:
        """The conversation that asked, or that is replied to, '' for neither. An answer given by a
        button is for the one that asked, whatever was chosen in that chat since."""
        if not isinstance(inbound.body, Answer):
            return await self._replied_to(inbound, principal)
        asked = await self._store.session_of_ask(inbound.body.ask_id)
        here = asked == own or asked.startswith(f"{own}:")
        return asked if here or (asked and await self._store.may_see(principal, asked)) else ""

    async def _replied_to(self, inbound: Inbound, principal: Principal) -> str:
        """The conversation in which the message was said that this one replies to, '' for none: it
        may have come from elsewhere. Only theirs, and never in a group, where others would read of
        it."""
        if not inbound.reply_to or inbound.address.group:
            return ""
        session = await session_of_message(self._store, inbound.address.channel, inbound.reply_to)
        if session and await self._store.may_see(principal, session):
            return session
        return ""

    def _body_problem(self, body: Body, principal: Principal, session: str) -> str:
        """Why nobody could take this in; '' for nothing."""
        if isinstance(body, Configure):
            return self._access.check(principal, session, body.options)
        message = body.message if isinstance(body, Said | Edit | Rewind | ToolResults) else None
        if isinstance(body, Said) and body.earlier and (wrong := _history_problem(body.earlier)):
            return wrong
        if (
            isinstance(body, ToolResults)
            and (size := sum(len(each.text) for each in body.results)) > TEXT_CHARS
        ):
            return f"the results have {size:,} characters; at most {TEXT_CHARS:,} fit"
        if message is not None and (size := _count_chars(message)) > TEXT_CHARS:
            return (
                f"the message has {size:,} characters; at most {TEXT_CHARS:,} fit. Send it as a "
                "file, or in parts"
            )
        return ""

    async def _unpack_files(self, inbound: Inbound, session: str) -> Inbound:
        """With the files in it opened: the log then holds what the model was shown of them."""
        body = inbound.body
        message = body.message if isinstance(body, Said | Rewind) else None
        if message is None or not any(isinstance(part, File) for part in message.parts):
            return inbound
        if await was_accepted(self._store, inbound):
            # it was accepted before: what has become of its files is the agent's business
            return inbound
        opened = await self._access.unpack(session, message)
        return replace(inbound, body=replace(body, message=opened))

    async def _access_refusal(self, principal: Principal, inbound: Inbound, session: str) -> str:
        """Why this may not come from them, '' if it may. It is one question for every kind of
        thing."""
        agent = session.partition("/")[0]
        if not may_send(principal, inbound.body) or not self._access.may_talk(principal, agent):
            await self._access.note(principal, "write to agent", agent)
            return NO_ACCESS
        chosen = inbound.session or inbound.address.channel in CLIENT_NAMED_CHANNELS
        if chosen and not await self._may_write(principal, session, inbound.address):
            await self._access.note(principal, "write in", session)
            return f"{session!r} is not yours to write in"
        return ""

    async def _may_write(self, principal: Principal, session: str, address: Address) -> bool:
        """In a conversation that they take part in, or that is theirs to begin: nobody waits in the
        place of another for them to come."""
        if await self._store.may_see(principal, session):
            return True
        if await has_members(self._store, session):
            return False
        return is_own_session(principal, session) or address.channel not in (
            *CLIENT_NAMED_CHANNELS,
            "door",
        )

    async def _accept(self, inbound: Inbound, principal: Principal, session: str) -> Receipt:
        """Store it and wake its session. Once begun it is not cut off: who was accepted is also
        driven."""
        with anyio.CancelScope(shield=True):
            accepted = await self._store_inbound(inbound, principal, session)
        if accepted.duplicate:
            return Receipt("duplicate", accepted.session, accepted.inbox_id)
        return Receipt("accepted", session, accepted.inbox_id, accepted.after)

    async def _store_inbound(
        self, inbound: Inbound, principal: Principal, session: str
    ) -> Accepted:
        reserved = self._dispatch.reserve(session, inbound, principal)
        if reserved is None:
            accepted = await self._store.accept(inbound, principal, session)
        else:
            slot, first = reserved
            try:
                accepted = await self._store.accept(inbound, principal, session, first)
                if accepted.admitted:
                    slot.driver.apply_admission(first(accepted.inbox_id), accepted.seq)
                else:
                    slot.driver.has_news = True
            finally:
                self._dispatch.start(slot)
        if not accepted.duplicate:
            self._own[accepted.inbox_id] = None
            if len(self._own) > MAX_OWN_ROWS:  # asked about before it was here: nobody asks again
                del self._own[next(iter(self._own))]
            if reserved is None:
                self._dispatch.adopt(session, cut=is_interrupt(inbound.body, inbound.when))
        return accepted

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

    async def stop(self, session: str, principal: Principal) -> Receipt:
        if not await self._store.may_see(principal, session):
            await self._access.note(principal, "stop", session)
            raise Refused(f"{session!r} is not yours to stop")
        now = self._clock.now()
        key = self._ids.new("stop")
        inbound = Inbound(
            key, Address("door"), principal.id, now, Command("stop", STOP_TURN_ONLY), session
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
        return await self._take_in(
            self._make_inbound(session, principal, Rewind(to_n, message), when), principal
        )

    async def configure(
        self, session: str, principal: Principal, options: SessionOptions
    ) -> Receipt:
        return await self._take_in(
            self._make_inbound(session, principal, Configure(options)), principal
        )

    async def answer(self, ask_id: str, choice: str, principal: Principal) -> Receipt:
        session = await self._store.session_of_ask(ask_id)
        if not session or not await self._store.may_see(principal, session):
            return Receipt(
                "refused", reason=f"{ask_id!r} is not open any more, or is not yours to answer"
            )
        return await self._take_in(
            self._make_inbound(session, principal, Answer(ask_id, choice)), principal
        )

    def _make_inbound(
        self, session: str, principal: Principal, body: Body, when: When = "steer"
    ) -> Inbound:
        """What somebody does who was let in by a surface that names conversations; an answer is
        read from the log."""
        key = self._ids.new("door")
        now = self._clock.now()
        return Inbound(key, Address("web"), principal.id, now, body, session, when=when)

    async def get_state_at(self, session: str, principal: Principal, n: int) -> Moment:
        if not await self._store.may_see(principal, session):
            await self._access.note(principal, "look at", session)
            raise Refused(f"{session!r} is not yours to see")
        past = RewindView(session, await self._store.events(session), self._access.zone)
        return build_moment(
            past, n, self._access.prompt if "owner" in principal.roles else lambda state: ()
        )

    async def branch(
        self, session: str, principal: Principal, at_n: int, to: str | None = None
    ) -> Receipt:
        agent = session.partition("/")[0]
        if not self._access.may_talk(principal, agent) or not await self._store.may_see(
            principal, session
        ):
            await self._access.note(principal, "branch", session)
            return Receipt("refused", reason=f"{session!r} is not yours to branch")
        if to and (
            to.partition("/")[0] != agent
            or not await self._may_write(principal, to, Address("web"))
        ):
            wrong = f"{to!r} cannot begin as a branch: name it {agent}/web:{principal.id}:NAME"
            return Receipt("refused", reason=wrong)
        if to and (wrong := self._name_problem(to)):
            return Receipt("refused", reason=wrong)
        past = RewindView(session, await self._store.events(session), self._access.zone)
        taken = {
            row.title
            for row in await self._store.search_titles(principal, past.heading, MAX_TITLES)
        }
        try:
            commit = make_branch(past, principal, at_n, to or "", self._clock.now(), taken)
        except Refused as error:
            return Receipt("refused", session, reason=str(error))
        await self._store.commit(commit)
        return Receipt("accepted", commit.session, after=len(commit.events))


def is_interrupt(body: Body, when: When) -> bool:
    """Whether it ends what the session is waiting for outside."""
    if isinstance(body, Command):
        return body.name in ("stop", "undo", "retry")
    return when == "interrupt" or (isinstance(body, Rewind) and when != "queue")


def label_parts(message: Message, principal: Principal, *, by_program: bool = False) -> Message:
    """The message with whose word each part is. What its sender typed is theirs. All else they may
    have from elsewhere: it is from outside, and so is a text of which the channel says so, and all
    that a program wrote. No channel makes more of a part than that."""
    mine = principal_label(principal)
    parts = list[Part]()
    if by_program:
        mine = Label("untrusted", source=f"the bot {principal.id}")
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(
                Text(clean_text(part.text), part.label if _has_outside_label(part) else mine)
            )
        elif isinstance(part, Image | Audio | File):
            known = (
                part
                if _has_outside_label(part)
                else replace(
                    part, label=Label("untrusted", source=_source_name(part, principal), by=mine.by)
                )
            )
            parts.append(replace(known, shown="") if isinstance(known, File) else known)
        else:
            parts.append(part)
    return Message("user", tuple(parts))


def _source_name(part: Image | Audio | File, sender: Principal) -> str:
    """What it is called where it is told what was read."""
    if isinstance(part, File):
        return f"file {part.display_name}"
    return f"a {'picture' if isinstance(part, Image) else 'recording'} from {sender.id}"


def _has_outside_label(part: Text | Image | Audio | File) -> bool:
    """Whether who took it in says that it is from outside, and from where."""
    return part.label.integrity == "untrusted" and bool(part.label.source)


def _normalize_body(body: Body, principal: Principal, *, by_program: bool = False) -> Body:
    """The body as it enters: text cleaned, parts labelled, a command recognised. A bot gives no
    commands."""
    if isinstance(body, Said) and by_program:
        return replace(body, message=label_parts(body.message, principal, by_program=True))
    if isinstance(body, Edit):
        return Edit(body.of, label_parts(body.message, principal, by_program=by_program))
    if isinstance(body, Rewind) and body.message is not None:
        return Rewind(body.to_n, label_parts(body.message, principal))
    if isinstance(body, Configure):
        texts = {
            name: clean_text(text)
            for name, text in asdict(body.options).items()
            if isinstance(text, str)
        }
        return Configure(replace(body.options, **texts))
    if isinstance(body, ToolResults):
        message = label_parts(body.message, principal) if body.message is not None else None
        return replace(body, results=tuple(map(_label_result, body.results)), message=message)
    if not isinstance(body, Said):
        return body
    text = "".join(map(_typed_text, body.message.parts)).strip()
    command = _parse_command(text, body, principal) if text.startswith(("/", "!")) else None
    if command is not None:
        return command
    if body.earlier or body.message.role != "user":
        return _label_history(body, principal)
    return Said(label_parts(body.message, principal), (), body.request)


def _typed_text(part: Part) -> str:
    """The words of a part, where its sender wrote them."""
    return part.text if isinstance(part, Text) and not _has_outside_label(part) else ""


def _label_history(body: Said, principal: Principal) -> Said:
    """A message with the history before it. It may be what the program's own tool gave."""
    earlier = tuple(_label_program_message(message, principal) for message in body.earlier)
    return Said(_label_program_message(body.message, principal), earlier, body.request)


def _label_program_message(message: Message, principal: Principal) -> Message:
    """A message as a program tells it: what the person typed is theirs, all else is from outside.
    What it says an assistant said may quote a page that was read for an earlier request, and
    nothing here knows of that."""
    if message.role == "user":
        return label_parts(message, principal)
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            parts.append(_label_result(part))
        elif isinstance(part, Text):
            parts.append(
                Text(clean_text(part.text), Label("untrusted", source=CLIENT_HISTORY_SOURCE))
            )
        elif isinstance(part, ToolCall):
            parts.append(part)
    return Message(message.role, tuple(parts))


def _label_result(result: ToolResult) -> ToolResult:
    source = next(
        (part.label.source for part in result.parts if part.label.source), CLIENT_HISTORY_SOURCE
    )
    label = Label("untrusted", source=clean_text(source))
    parts = tuple(
        Text(clean_text(part.text), label) for part in result.parts if isinstance(part, Text)
    )
    return replace(result, parts=parts)


def _count_chars(message: Message) -> int:
    return sum(len(part.text) for part in message.parts if isinstance(part, Text | ToolResult))


def _history_problem(earlier: Sequence[Message]) -> str:
    """Why this history cannot be taken in; '' where it can."""
    if len(earlier) > HISTORY_MESSAGES:
        return f"the history has {len(earlier):,} messages; at most {HISTORY_MESSAGES:,} fit"
    size = sum(map(_count_chars, earlier))
    return (
        f"the history has {size:,} characters; at most {HISTORY_CHARS:,} fit"
        if size > HISTORY_CHARS
        else ""
    )


def _parse_command(text: str, body: Said, principal: Principal) -> Command | None:
    """The command that a message with this text is, None if it is none.

    `!` directly before a word is always one, known or not, up to the next blank: such a message
    never reaches the model. Only beside a file are unknown words its caption, lest the file be
    lost. After `/` an unknown word alone is one; with more words it is text, such as a path. `/yes`
    and `!once` are answers, and no commands. What a program asks is one only where it names a
    command that there is.
    """
    match = _COMMAND.fullmatch(text)
    if match is None:
        return None
    prefix, word, args = match.groups()[:3] if match[1] else match.groups()[3:]
    name = COMMAND_ALIASES.get(word.lower(), word.lower())
    if name not in COMMANDS:
        alone = all(
            isinstance(part, Text) and not _has_outside_label(part) for part in body.message.parts
        )
        typed = principal.kind == "person" and alone and not body.earlier and body.request is None
        if not typed or parse_choice(text) is not None:
            return None
        if prefix == "/" and args is not None:
            return None
        name = clean_text(name)[:COMMAND_NAME_CHARS]
    return Command(name, clean_text(args or ""), "/" if prefix == "/" else "!")


_: type[Door] = LocalDoor
