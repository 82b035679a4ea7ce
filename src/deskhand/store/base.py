"""The Store protocol: the durable log of every session, with its inbox and outbox."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Literal, Protocol

import msgspec

from ..types.commit import Change, Commit, OutboxRow, OutboxState
from ..types.events import Recorded
from ..types.identity import Inbound, Principal, Waiting
from ..types.messages import ResultStatus

Args = tuple[str | int | float | bytes | None, ...]
"""The arguments of a statement."""
Row = tuple[Any, ...]
"""A row as a statement returns it."""

FirstCommit = Callable[[int], Commit]
"""Makes the first commit of a turn from the inbox id of its message. It admits that row and no
other. It runs in the writer thread and must be a pure function."""

INBOX_LIMIT = 10_000
"""How many messages may wait in one session."""
TELL_BYTES = 7_900
"""The longest message of `Store.tell`: PostgreSQL has a limit of 8,000."""
MAX_CRASHES = 3
"""After this many crashes a session is driven alone. After one more it is given up."""


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The result of `Store.accept`.

    `after` is the number of the session's last event before the message. `admitted`: the first
    commit was written too, and its last event has this `seq`.
    """

    inbox_id: int
    session: str
    after: int
    duplicate: bool = False
    admitted: bool = False
    seq: int = 0


class OpenSession(msgspec.Struct, frozen=True, gc=False):
    """A session that has work to do: now (`wake_at` is None), or at that time. `attempts` counts
    the crashes of the process while it was driven."""

    session: str
    wake_at: float | None
    attempts: int


class WorkerRow(msgspec.Struct, frozen=True, gc=False):
    """A process that works on this database: `name` is its machine and process id, `agents` are
    those whose conversations it drives. `leads`: it also does what only one may, such as receiving,
    sending and starting jobs. `is_self`: it is this process."""

    name: str
    agents: tuple[str, ...]
    leads: bool
    is_self: bool


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """An outbox row that reached its platform, where the log does not have the delivery yet."""

    key: str
    platform_id: str
    mark: str


class SessionRow(msgspec.Struct, frozen=True, gc=False):
    """A line in the list of sessions. Times are seconds since the epoch."""

    session: str
    agent: str
    channel: str
    chat: str
    title: str
    opened_at: float
    last_at: float
    turns: int
    pinned: bool = False
    folder: str = ""
    archived: bool = False

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> SessionRow:
        """A row of the table, where a database may keep a bool as a number."""
        *others, pinned, folder, archived = row
        fields = (*others, bool(pinned), folder, bool(archived))
        return cls(*fields)


class ListPlace(msgspec.Struct, frozen=True, gc=False):
    """Which conversations a list holds, by where people have put them. None: whether or not;
    `folder` '' is no folder."""

    pinned: bool | None = None
    folder: str | None = None
    archived: bool | None = None


ANYWHERE = ListPlace()


class SearchFilter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which of what is found somebody wants: what `me`, who searches, or an `agent` said ('': what
    anybody said), from `since` until before `until` (seconds since the epoch), with this agent ('':
    any). `archived`: also what is in the archive."""

    by: Literal["", "me", "agent"] = ""
    since: float = 0.0
    until: float = float("inf")
    agent: str = ""
    archived: bool = True


EVERYTHING = SearchFilter()


class FolderCounts(msgspec.Struct, frozen=True, gc=False):
    """How many sessions are in each folder, and how many are archived: these are in none."""

    folders: dict[str, int]
    archived: int


class OpenAsk(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An approval or a question (without a `tool`) that a session waits for.

    `at` and `until` are seconds since the epoch. `arguments` are the bytes of the call as they are
    shown, and `call_id` is its id. `source` says where the least trusted content comes from that
    the model has read. `elsewhere` names who may answer when nobody who takes part may. An approval
    of several calls has a line for each in `question`: then `calls` are their ids, and `tool` and
    `arguments` are those of the first.
    """

    ask_id: str
    session: str
    title: str
    at: float
    until: float
    question: str
    choices: tuple[str, ...]
    tool: str = ""
    arguments: str = ""
    reason: str = ""
    source: str = ""
    elsewhere: tuple[str, ...] = ()
    call_id: str = ""
    calls: tuple[str, ...] = ()


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A search result. `marks` are the places of the words in the excerpt: (start, end) in
    characters. `n` is the number of the event in its session, `seq` its number in the whole log."""

    session: str
    n: int
    at: float
    role: str
    excerpt: str
    marks: tuple[tuple[int, int], ...]
    title: str
    seq: int = 0


class Used(msgspec.Struct, frozen=True, gc=False):
    """What the calls of one model used in one session on one day. `day` is when that day began
    (UTC), in seconds since the epoch."""

    session: str
    title: str
    model: str
    day: int
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int


class ModelTotals(msgspec.Struct, frozen=True, gc=False):
    """What the calls of one model have used, all in all."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int


class TokenTotals(msgspec.Struct, frozen=True, gc=False):
    """How many tokens models have read and written in one session, in how many calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0


class StoredActivity(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool call or its result. `detail` is the beginning of its arguments or of the result."""

    seq: int
    session: str
    n: int
    at: float
    kind: Literal["tool_call", "tool_result"]
    call_id: str
    name: str
    detail: str
    status: ResultStatus = "ok"


PageCursor = tuple[float, str]
"""Where the next page of sessions starts: after the session with this `last_at` and key."""
FIRST_PAGE: PageCursor = (float("inf"), "")
LAST_SEQ = 2**62
"""Larger than the `seq` of any event."""


class Page(list[Recorded]):
    """Events in order. `more`: there may be others after them."""

    more = False


class StatementReader(Protocol):
    """Runs named reading statements, for the typed functions in the query modules of the rooms."""

    async def query(self, statement: str, args: Args) -> list[Row]:
        """The rows of this statement."""
        ...


class SyncStatementReader(Protocol):
    """As `StatementReader`, without waiting."""

    def query_sync(self, statement: str, args: Args = ()) -> list[Row]:
        """The rows of this statement. Blocks while it is read."""
        ...


class Store(StatementReader, SyncStatementReader, Protocol):
    """The log of every session, the inbox of messages that wait, and the outbox of replies.

    The log is the only state: what is not in it did not happen. Events of a session are numbered
    n = 1, 2, 3, …; `seq` numbers the events of all sessions in the order of their commits.

    Every method that writes returns when the data is on disk. It raises StoreUnavailable when it
    cannot be written: then nothing was, and the caller may try again. Cancelling a write does not
    undo it; a caller that must know the outcome shields the call.

    Reading methods that take a `principal` return what is in the sessions that this principal takes
    part in. Owners see every session.

    Every implementation passes `deskhand.testing.store_suite`.
    """

    # Messages in, events appended

    async def accept(
        self,
        inbound: Inbound,
        principal: Principal,
        session: str,
        first: FirstCommit | None = None,
        changes: Sequence[Change] = (),
    ) -> Accepted:
        """Put a message into the inbox of the session, and mark the session as one with work to do.

        A message is stored once for each (channel, account, external_id); a repeated one is
        returned as a duplicate, with the session and the id that it got the first time.

        `first` makes the first commit of the turn, which is written in the same transaction. If
        another commit took its number meanwhile, or if other messages wait in a session without
        events, the message is accepted without it. `changes` are
        written in the same transaction, also for a duplicate.

        Raises Refused if INBOX_LIMIT messages already wait in the session.
        """
        ...

    async def commit(self, commit: Commit) -> int:
        """Write a commit completely or not at all. Returns the `seq` of its last event, or 0 if it
        has none.

        Raises StaleSession if event number `commit.n` exists already, or if a message that the
        commit admits was admitted before: another process drives this session.
        """
        ...

    async def change(self, changes: Sequence[Change]) -> list[int]:
        """Change rows outside of the log, all or none. Returns how many rows each statement
        changed."""
        ...

    async def list_waiting(self, session: str) -> list[Waiting]:
        """The messages in the inbox of the session that were not admitted yet, in order of
        arrival."""
        ...

    async def accepted_since(self, inbox_id: int) -> list[tuple[str, Waiting]]:
        """The messages that any process accepted after inbox row `inbox_id`, each with its
        session."""
        ...

    def last_inbox_id(self) -> int:
        """The id of the newest inbox row, or 0."""
        ...

    # Reading the log

    async def events(self, session: str, after: int = 0, limit: int | None = None) -> Page:
        """The events of the session with n > `after`.

        Returns all of them without a `limit`; with one at most that many, and fewer when they are
        large.
        """
        ...

    async def history(self, session: str) -> list[Recorded]:
        """The events that a cold start needs: from the last `Compacted` on, or all. Their `seq` is
        0."""
        ...

    async def amendments(self, session: str, after: int, limit: int) -> Page:
        """The undos, edits and reactions with n > `after`, which change how earlier events are
        shown."""
        ...

    async def events_since(self, principal: Principal, seq: int, limit: int) -> Page:
        """The events of all visible sessions after `seq`. At most `limit`, and fewer when they are
        large."""
        ...

    async def latest_events(
        self, principal: Principal, kinds: Collection[str], limit: int, before: int = LAST_SEQ
    ) -> list[Recorded]:
        """The last events of these kinds with a `seq` less than `before`, in order. At most
        `limit`, and fewer when they are large."""
        ...

    def last_seq(self) -> int:
        """The `seq` of the newest event, or 0."""
        ...

    async def heads(self) -> dict[str, tuple[int, bytes]]:
        """The number and the hash of the last event of every session, for the anchor file."""
        ...

    # Driving sessions

    async def open_sessions(self) -> list[OpenSession]:
        """The sessions that have work to do, now or later."""
        ...

    async def begin_run(self, now: float) -> str:
        """Note that this process begins to drive sessions.

        If the last run did not end cleanly, a crash is counted: for the session that was driven
        alone, or else for every session that had work to do at `now`. Returns the session that was
        driven alone and has crashed the process too often, or ''.
        """
        ...

    @property
    def shares_work(self) -> bool:
        """Whether other processes may drive conversations at the same time: then one drives those
        of the agents that it could `take`, and no others."""
        ...

    def lead(self, waits: Callable[[], None] = lambda: None) -> AbstractAsyncContextManager[None]:
        """Be the one process that leads, while the block runs. Waits until no other does, and calls
        `waits` each time it looks.

        Whoever is taken for dead can write nothing any more: each write raises NotLeading, and so
        does the block. A store that only one machine can open leaves that to the lock of the home.
        """
        ...

    def work(self) -> AbstractAsyncContextManager[None]:
        """Be one of the processes that drive, beside the one that leads, while the block runs. What
        holds for the dead holds here."""
        ...

    async def take(self, agents: Collection[str]) -> bool:
        """Take over the conversations of all these agents, unless another process has one of them.
        Only who leads or works may ask. They are given back at the end, or when this process is
        taken for dead."""
        ...

    async def give_back(self, agents: Collection[str]) -> None:
        """Let others take these agents. Nothing of them may be going on here."""
        ...

    async def workers(self) -> list[WorkerRow]:
        """The processes that lead or work now; none where only one can."""
        ...

    async def tell(self, message: str) -> None:
        """Tell the other processes something, of at most TELL_BYTES, that is not kept and may be
        lost. Returns when it is on its way. Raises StoreUnavailable."""
        ...

    def listening(self, listener: Callable[[str], None]) -> AbstractContextManager[None]:
        """While it is open, `listener` is called with what is told, in the event loop of the
        caller. Who listens must not tell: it would hear itself."""
        ...

    async def wait_for_writes(self, seen: int, poll_s: float) -> int:
        """Return when another process may have written something, or after a while: `poll_s` where
        the database tells nobody. `seen` is what the last call returned, 0 at first: what was
        written meanwhile is not missed."""
        ...

    async def drive_alone(self, session: str) -> None:
        """Note, before doing it, that only this session is driven now. '' when that is over."""
        ...

    async def end_run(self) -> None:
        """Note that this process has stopped driving in good order."""
        ...

    # The outbox

    async def outbox_due(
        self, now: float, limit: int, channels: Collection[str] | None = None
    ) -> list[OutboxRow]:
        """What is to be sent now on these channels, or on all: the oldest first.

        Rows that are due more than an hour ahead are due now: the clock was set back.
        """
        ...

    async def outbox_sending(self, key: str, mark: str) -> None:
        """Note that a send begins. `mark` is the note that readers see with the message, such as
        that it may be a duplicate."""
        ...

    async def outbox_sent(self, key: str, platform_id: str) -> None:
        """Note that the message arrived, and the id that the platform gave it."""
        ...

    async def outbox_retry(self, key: str, state: OutboxState, due_at: float, error: str) -> None:
        """Send again at `due_at`. The state `sending` means that the message may have arrived."""
        ...

    async def outbox_failed(self, key: str, error: str) -> None:
        """Give up on the message."""
        ...

    async def list_delivered(self, session: str) -> list[Delivered]:
        """The messages of the session that arrived and are not in the log as delivered."""
        ...

    # What surfaces show

    async def may_see(self, principal: Principal, session: str) -> bool:
        """Whether `principal` takes part in the session or is an owner."""
        ...

    async def sessions(
        self,
        principal: Principal,
        limit: int = 50,
        behind: PageCursor = FIRST_PAGE,
        place: ListPlace = ANYWHERE,
    ) -> list[SessionRow]:
        """The visible sessions in this place, the latest first, starting after `behind`. Sessions
        of the same time are ordered by their key."""
        ...

    async def folders(self, principal: Principal) -> FolderCounts:
        """The folders of the visible sessions, in the order of the alphabet."""
        ...

    async def search_titles(
        self,
        principal: Principal,
        words: str,
        limit: int = 50,
        behind: PageCursor = FIRST_PAGE,
        wanted: SearchFilter = EVERYTHING,
    ) -> list[SessionRow]:
        """As `sessions`, of those whose title contains all of these words, and that went on between
        the times of `wanted`. A title is said by nobody: `by` does not count."""
        ...

    async def search(
        self,
        principal: Principal,
        query: str,
        limit: int = 20,
        session: str = "",
        before: int | None = None,
        wanted: SearchFilter = EVERYTHING,
    ) -> list[Hit]:
        """The messages of people and models that contain every word of the query, or words that
        start with it, and are `wanted`. Other characters in the query are ignored.

        Searches all visible sessions, or only `session`. The best matches come first; with
        `before`, the latest first, of those with a smaller `seq`.
        """
        ...

    async def open_asks(self, principal: Principal) -> list[OpenAsk]:
        """The approvals and questions that wait for a person, the oldest first."""
        ...

    async def session_of_ask(self, ask_id: str) -> str:
        """The session in which this ask is open, or this call waits for a program's result. '' if
        none is."""
        ...

    async def usage(self, principal: Principal, since: float = 0.0) -> list[Used]:
        """What models used, by session, model and day, from the day of `since` on. The latest day
        comes first."""
        ...

    async def usage_by_model(self) -> list[ModelTotals]:
        """What each model has used, by name."""
        ...

    async def usage_in(self, sessions: Sequence[str]) -> dict[str, TokenTotals]:
        """What models have used in each of these sessions. Sessions without any are left out."""
        ...

    async def activity(self, principal: Principal, limit: int = 50) -> list[StoredActivity]:
        """The last tool calls and results, the latest first."""
        ...

    async def erase(
        self, principal: Principal, session: str, at: float, changes: Sequence[Change] = ()
    ) -> int:
        """Erase what was said in a session, also from the bytes of the file. The hash chain still
        verifies.

        What runs in the session ends, and messages that wait are dropped. `changes` are written in
        the same transaction. Returns the number of erased events.

        Raises Refused if `principal` may not see the session.
        """
        ...

    # Statements of other rooms

    async def query(self, statement: str, args: Args) -> list[Row]:
        """Run a named reading statement. Use the typed functions in the query modules of the rooms
        instead."""
        ...

    def query_sync(self, statement: str, args: Args = ()) -> list[Row]:
        """As `query`, without waiting. For small reads only: it blocks the event loop."""
        ...

    def open_reader(self) -> SyncStatementReader:
        """A reader on a connection of its own: for long reads in another thread. It may be called
        from any thread, one call at a time."""
        ...

    # The rest

    def is_blob_used(self, digest: str) -> bool:
        """Whether anything names this blob. May be called from any thread."""
        ...

    def version(self) -> int:
        """A number that changes whenever another connection or process has committed. Cheap enough
        to poll."""
        ...

    async def close(self) -> None:
        """Finish the writes that were started, then close the store."""
        ...
