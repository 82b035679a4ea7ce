"""What a store is: durable, in order, and the only judge of what happened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, Protocol

import msgspec

from ..types.commit import Change, Commit, OutboxRow, OutboxState
from ..types.events import Recorded
from ..types.identity import Inbound, Principal, Waiting
from ..types.messages import ResultStatus

FirstCommit = Callable[[int], Commit]
"""Makes the first commit of a turn from the inbox id that the message was given. It takes in that
row and no other. Pure: it runs in the writer."""

INBOX_LIMIT = 10_000
"""How many messages may wait in one session."""


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """What became of an inbound. `after` is the session's last event before it; `admitted`: the
    first commit that was handed along was written too, and its last event has this `seq`."""

    inbox_id: int
    session: str
    after: int
    duplicate: bool = False
    admitted: bool = False
    seq: int = 0


class OpenSession(msgspec.Struct, frozen=True, gc=False):
    """A session in which something is owed: now (`wake_at` None), or at that time."""

    session: str
    wake_at: float | None
    attempts: int


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """An outbox row that reached its platform and is not in the log yet."""

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


class OpenAsk(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Something that a conversation waits for: an approval of a call, or a question (without a
    `tool`). `at` and `until` are seconds since the epoch. `arguments` are the bytes of the call as
    they are shown; `source` is where the least trusted content comes from that the model has read;
    `elsewhere` are those who may answer, where nobody may who takes part, `call_id` the call. A
    question about several calls has a line for each; `calls` are their ids, and `tool` and
    `arguments` those of the first."""

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
    """A place where something was said. `marks` are where in the excerpt the words stand that were
    searched for, in characters: (start, end). `seq` is the number of its event over all
    sessions."""

    session: str
    n: int
    at: float
    role: str
    excerpt: str
    marks: tuple[tuple[int, int], ...]
    title: str
    seq: int = 0


class Used(msgspec.Struct, frozen=True, gc=False):
    """What calls of one model used in one session on one day. `day` is its begin (UTC), seconds
    since the epoch."""

    session: str
    title: str
    model: str
    day: int
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
    """A tool's call or its result. `detail` is what it was called with, or what came of it."""

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
"""Where a page of sessions goes on: behind the one that has this `last_at` and key."""
FIRST_PAGE: PageCursor = (float("inf"), "")
LAST_SEQ = 2**62


class Page(list[Recorded]):
    """Events in their order. `more`: there may be others behind them."""

    more = False


class Store(Protocol):
    """The log, the inbox and the outbox. Every implementation passes
    `deskhand.testing.store_suite`.

    Whatever writes returns only when it is on disk, and raises StoreUnavailable when it cannot be:
    then nothing of it happened, and the caller may try again.
    """

    async def accept(
        self,
        inbound: Inbound,
        principal: Principal,
        session: str,
        first: FirstCommit | None = None,
        changes: Sequence[Change] = (),
    ) -> Accepted:
        """Store an inbound once per (channel, account, external_id), and open its session.

        `first` rides in the same transaction; if it is stale, the accept alone stands. `changes`
        ride in it too, also where the inbound was known already. Raises Refused when more than
        INBOX_LIMIT wait in the session.
        """
        ...

    async def commit(self, commit: Commit) -> int:
        """Write it all or nothing and return the `seq` of its last event (0 without events).

        Raises StaleSession when number n of the session is taken.
        """
        ...

    async def change(self, changes: Sequence[Change]) -> list[int]:
        """Change rows that are not conversation, all or nothing. Returns how many rows each
        statement changed."""
        ...

    async def query(
        self, statement: str, args: tuple[str | int | float | bytes | None, ...]
    ) -> list[tuple[Any, ...]]:
        """Read with a statement that a room registered."""
        ...

    def query_sync(
        self, statement: str, args: tuple[str | int | float | bytes | None, ...] = ()
    ) -> list[tuple[Any, ...]]:
        """As `rows`, for the little that is asked at every turn."""
        ...

    def open_reader(
        self,
    ) -> Callable[[str, tuple[str | int | float | bytes | None, ...]], list[tuple[Any, ...]]]:
        """As `look`, with a connection of its own: for what takes long, in another thread, one call
        at a time."""
        ...

    async def events(self, session: str, after: int = 0, limit: int | None = None) -> Page:
        """Those after number `after`. With a `limit` no more than that, and fewer where they are
        large."""
        ...

    async def events_since(self, principal: Principal, seq: int, limit: int) -> Page:
        """What happened after `seq` in all sessions that `principal` may see, in pages as above."""
        ...

    async def latest_events(
        self, principal: Principal, kinds: Collection[str], limit: int, before: int = LAST_SEQ
    ) -> list[Recorded]:
        """The last events of these kinds in all sessions that `principal` may see, in order: those
        whose `seq` is less than `before`. Fewer than `limit` where they are large."""
        ...

    async def amendments(self, session: str, after: int, limit: int) -> Page:
        """What changes how earlier events are shown: undos, edits and reactions after number
        `after`."""
        ...

    def last_seq(self) -> int:
        """The number of the last event of all sessions."""
        ...

    async def history(self, session: str) -> list[Recorded]:
        """The events that a cold start needs, without their `seq`: from the last `Compacted` on, or
        all."""
        ...

    async def list_waiting(self, session: str) -> list[Waiting]:
        """What was accepted and not taken in, in order of arrival."""
        ...

    async def accepted_since(self, inbox_id: int) -> list[tuple[str, Waiting]]:
        """What any process accepted after that row, with its session."""
        ...

    async def open_sessions(self) -> list[OpenSession]: ...

    async def begin_run(self, now: float) -> str:
        """Begin to drive. If the last run did not end cleanly, counts a crash for what it drove
        alone, else for all that was owed at `now`.

        Returns the session that had to be driven alone and has crashed the process once more, or
        ''.
        """
        ...

    async def drive_alone(self, session: str) -> None:
        """Note, before driving it, that `session` is driven by itself ('' when that is over)."""
        ...

    async def end_run(self) -> None:
        """End of a clean run."""
        ...

    async def outbox_due(
        self, now: float, limit: int, channels: Collection[str] | None = None
    ) -> list[OutboxRow]:
        """What is to be sent now on these channels, or on any: the oldest first, at most `limit`.
        Also what is due more than an hour ahead: the clock went back."""
        ...

    async def outbox_sending(self, key: str, mark: str) -> None:
        """Journal that a send begins."""
        ...

    async def outbox_sent(self, key: str, platform_id: str) -> None: ...

    async def outbox_retry(self, key: str, state: OutboxState, due_at: float, error: str) -> None:
        """Try again at `due_at`; `sending` means that the message may have arrived."""
        ...

    async def outbox_failed(self, key: str, error: str) -> None: ...

    async def list_delivered(self, session: str) -> list[Delivered]: ...

    async def sessions(
        self, principal: Principal, limit: int = 50, behind: PageCursor = FIRST_PAGE
    ) -> list[SessionRow]:
        """The sessions that `principal` takes part in; an owner sees all. The latest first, of the
        same time by their key; those that come behind this place."""
        ...

    async def search_titles(
        self, principal: Principal, words: str, limit: int = 50, behind: PageCursor = FIRST_PAGE
    ) -> list[SessionRow]:
        """The same, of those that have all of these words in their title."""
        ...

    async def open_asks(self, principal: Principal) -> list[OpenAsk]:
        """What waits for a person in the sessions that `principal` may see, the oldest first."""
        ...

    async def session_of_ask(self, ask_id: str) -> str:
        """In which session this is open, an ask or a call that a program was given; '' where it is
        not."""
        ...

    async def search(
        self,
        principal: Principal,
        query: str,
        limit: int = 20,
        session: str = "",
        before: int | None = None,
    ) -> list[Hit]:
        """What people and models said in the sessions that `principal` may see (or in one of them),
        the best first: where all words of the query stand, or words that begin so. Whatever else is
        in the query counts as blank. With `before` the latest first, of those whose `seq` is
        less."""
        ...

    async def usage(self, principal: Principal, since: float = 0.0) -> list[Used]:
        """What models used in the sessions that `principal` may see, by session, model and day,
        from the day of `since` on; the latest day first."""
        ...

    async def usage_in(self, sessions: Sequence[str]) -> dict[str, TokenTotals]:
        """What models have used in each of these sessions. Sessions without any are left out."""
        ...

    async def activity(self, principal: Principal, limit: int = 50) -> list[StoredActivity]:
        """The last calls and results of tools in the sessions that `principal` may see, the latest
        first."""
        ...

    async def may_see(self, principal: Principal, session: str) -> bool: ...

    async def erase(
        self, principal: Principal, session: str, at: float, changes: Sequence[Change] = ()
    ) -> int:
        """Erase what was said in a session, from the file's bytes too; the chain still verifies.
        What is going on in it ends, and what waits is dropped. `changes` are what goes with it, in
        the same transaction. Returns the number of events. Raises Refused."""
        ...

    async def heads(self) -> dict[str, tuple[int, bytes]]:
        """The last number and hash of every session, for the anchor file."""
        ...

    def last_inbox_id(self) -> int: ...

    def is_blob_used(self, digest: str) -> bool:
        """Whether anything names this blob. May be called from any thread."""
        ...

    def version(self) -> int:
        """A number that changes when any other connection or process has committed. Cheap: for
        polling."""
        ...

    async def close(self) -> None: ...
