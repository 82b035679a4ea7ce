"""The Store on a database that speaks SQL: its transactions and its reads, which are the same for
every database."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

import anyio
import msgspec
from msgspec.structs import replace

from ..types.commit import Change, Commit, OutboxRow, OutboxState, Outgoing
from ..types.errors import Refused, StaleSession, StoreCorrupt
from ..types.events import Erased, Recorded, decode_event, encode_event, event_kind
from ..types.identity import Inbound, Principal, Waiting
from . import projections as project
from .base import (
    ANYWHERE,
    FIRST_PAGE,
    INBOX_LIMIT,
    LAST_SEQ,
    MAX_CRASHES,
    Accepted,
    Args,
    Delivered,
    FirstCommit,
    FolderCounts,
    ListPlace,
    OpenSession,
    Page,
    PageCursor,
    Row,
    SessionRow,
    SyncStatementReader,
    WorkerRow,
)
from .chain import INITIAL_HASH, Break, Link, content_digest, next_hash, verify_chain
from .connection import StatementRunner
from .queries import InboxBody, decode_inbox_body
from .read_queries import ReadQueries, forget_session
from .writer import Writer

PAGE_BYTES = 1_000_000
"""A page of events ends when it holds more bytes than this."""
ERASED_TABLES = (
    "outbox_erase",
    "inbox_erase",
    "session_forget",
    "session_member_forget",
    "branch_erase",
    "blob_forget",
    "effect_item_forget",
    "effect_forget",
    "process_erase",
    "subagent_erase",
    "subagent_lost",
    "teammate_lost",
    "teammate_erase",
    "mail_erase",
    "task_erase",
    "long_work_erase",
    "share_erase",
)
"""The statements that remove a session from the other tables, in this order."""


_encode = msgspec.json.Encoder().encode
_decode_outgoing = msgspec.json.Decoder(Outgoing).decode


def _decode_recorded(row: Row) -> Recorded:
    """An event from its row. A row without a body was erased."""
    seq, session, n, at, tag, body = row
    event = decode_event(body) if body is not None else Erased(tag)
    return Recorded(seq, session, n, at, event)


def _decode_waiting(inbox_id: int, body: bytes) -> Waiting:
    found = decode_inbox_body(body)
    return Waiting(inbox_id, found.principal, found.inbound)


class SqlStore(ReadQueries):
    """A Store on the connections that a subclass opens. `statements` are those of all rooms."""

    def __init__(
        self, sql: Mapping[str, str], statements: Mapping[str, str], writer: Writer
    ) -> None:
        self._sql = sql
        self._statements = {**sql, **statements}
        self._writer = writer

    # Writing

    async def accept(
        self,
        inbound: Inbound,
        principal: Principal,
        session: str,
        first: FirstCommit | None = None,
        changes: Sequence[Change] = (),
    ) -> Accepted:
        body = _encode(InboxBody(principal, inbound))

        def work(db: StatementRunner) -> Accepted:
            for change in changes:
                db.execute(self._statements[change.statement], change.args).fetchall()
                if change.must and not db.changes():
                    raise StaleSession("this was changed meanwhile")
            return self._accept(db, inbound, body, session, first)

        return await self._writer.run(work)

    def _accept(
        self,
        db: StatementRunner,
        inbound: Inbound,
        body: bytes,
        session: str,
        first: FirstCommit | None,
    ) -> Accepted:
        address = inbound.address
        key = (address.channel, address.account, inbound.external_id)
        after, head = self._head(db, session)
        next_n = after + 1 if first is not None else None
        row = db.execute(self._sql["inbox_insert"], (*key, session, body, next_n)).fetchone()
        if row is None:
            inbox_id, known, _ = self._fetch_one(db, "inbox_find", key)
            return Accepted(inbox_id, known, after=0, duplicate=True)

        (inbox_id,) = row
        if first is not None:
            commit = first(inbox_id)
            # Whoever reads the log of a session first takes in what waits, so only for a new one
            # nobody has looked.
            if commit.n == next_n and (after or not self._waits(db, session)):
                # Its inbox row was inserted as admitted.
                seq = self._write(db, replace(commit, admitted=()), head)
                return Accepted(inbox_id, session, after, admitted=True, seq=seq)
            db.execute(self._sql["inbox_leave"], (inbox_id,))

        if self._waits(db, session, INBOX_LIMIT + 1) > INBOX_LIMIT:
            raise Refused(
                f"{INBOX_LIMIT:,} messages already wait in {session!r}. Try again when some of "
                "them are answered"
            )
        db.execute(self._sql["open_insert"], (session,))
        return Accepted(inbox_id, session, after)

    def _waits(self, db: StatementRunner, session: str, most: int = 1) -> int:
        """How many messages wait in the session; no more than `most` are counted."""
        (waiting,) = self._fetch_one(db, "inbox_count", (session, most))
        return int(waiting)

    async def commit(self, commit: Commit) -> int:
        return await self._writer.run(lambda db: self._commit(db, commit))

    def _commit(self, db: StatementRunner, commit: Commit) -> int:
        n, head = self._head(db, commit.session)
        if n + 1 != commit.n:
            raise StaleSession(f"{commit.session!r} is at event {n}, not at {commit.n - 1}")
        return self._write(db, commit, head)

    def _write(self, db: StatementRunner, commit: Commit, head: bytes) -> int:
        """Write a commit whose place is known to be free, after the event whose hash is `head`."""
        session = commit.session
        n, seq = self._append(db, commit, head)
        for inbox_id in commit.admitted:
            db.execute(self._sql["inbox_admit"], (n, inbox_id))
            if not db.changes():
                raise StaleSession(f"message {inbox_id} of {session!r} was admitted before")
        for out in commit.outbox:
            row = (out.key, session, _encode(out), commit.at, out.address.channel)
            db.execute(self._sql["outbox_insert"], row)
        for key in commit.delivered:
            db.execute(self._sql["outbox_reported"], (key,))
        for change in commit.changes:
            db.execute(self._statements[change.statement], change.args)
            if change.must and not db.changes():
                raise StaleSession(f"{session!r} would write over what was changed meanwhile")
        if commit.close:
            db.execute(self._sql["open_close"], (session,))
            if not db.changes():  # a message waits
                db.execute(self._sql["open_keep"], (session,))
        else:
            db.execute(self._sql["open_progress"], (session, commit.wake_at))
        return seq

    def _append(self, db: StatementRunner, commit: Commit, head: bytes) -> tuple[int, int]:
        """Write the events. Returns the number and the `seq` of the last one."""
        session = commit.session
        n = commit.n - 1
        seq = 0
        times = commit.times or (commit.at,) * len(commit.events)
        salts = os.urandom(16 * len(commit.events))
        for i, event in enumerate(commit.events):
            n += 1
            at = times[i]
            body = encode_event(event)
            salt = salts[16 * i : 16 * i + 16]
            tag = event_kind(event)
            head = next_hash(head, (session, n, at, tag), content_digest(salt, body))
            db.execute(self._sql["event_insert"], (session, n, at, tag, body, salt, head))
            seq = db.last_insert_rowid()
            project.apply_event(db, self._sql, Recorded(seq, session, n, at, event), body)
        return n, seq

    async def change(self, changes: Sequence[Change]) -> list[int]:
        def work(db: StatementRunner) -> list[int]:
            counts = []
            for change in changes:
                before = db.total_changes()
                db.execute(self._statements[change.statement], change.args).fetchall()
                counts.append(db.total_changes() - before)
                if change.must and not counts[-1]:
                    raise StaleSession("this was changed meanwhile")
            return counts

        return await self._writer.run(work)

    async def begin_run(self, now: float) -> str:
        def work(db: StatementRunner) -> str:
            clean, alone = self._fetch_one(db, "run_read", ())
            if not clean:
                db.execute(self._sql["open_crashed"], (alone, now))
            db.execute(self._sql["run_write"], (0, ""))
            opened: list[Row] = db.execute(self._sql["open_list"]).fetchall()
            given_up = [session for session, _, attempts in opened if attempts > MAX_CRASHES]
            return str(alone) if alone in given_up else ""

        return await self._writer.run(work)

    shares_work = False

    @asynccontextmanager
    async def lead(self, waits: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        yield

    async def take(self, agents: Collection[str]) -> bool:
        return True

    async def give_back(self, agents: Collection[str]) -> None:
        pass

    async def workers(self) -> list[WorkerRow]:
        return []

    async def tell(self, message: str) -> None:
        pass

    @contextmanager
    def listening(self, listener: Callable[[str], None]) -> Iterator[None]:
        yield

    async def wait_for_writes(self, seen: int, poll_s: float) -> int:
        await anyio.sleep(poll_s)
        return 0

    async def drive_alone(self, session: str) -> None:
        await self._execute("run_write", (0, session))

    async def end_run(self) -> None:
        await self._execute("run_write", (1, ""))

    async def outbox_sending(self, key: str, mark: str) -> None:
        await self._execute("outbox_set_sending", (mark, key))

    async def outbox_sent(self, key: str, platform_id: str) -> None:
        await self._execute("outbox_set_sent", (platform_id, key))

    async def outbox_retry(self, key: str, state: OutboxState, due_at: float, error: str) -> None:
        await self._execute("outbox_again", (state, due_at, error, key))

    async def outbox_failed(self, key: str, error: str) -> None:
        await self._execute("outbox_set_failed", (error, key))

    async def erase(
        self, principal: Principal, session: str, at: float, changes: Sequence[Change] = ()
    ) -> int:
        if not await self.may_see(principal, session):
            raise Refused(f"you do not take part in {session!r}, so you cannot erase it")

        def work(db: StatementRunner) -> int:
            rows: list[Row] = db.execute(self._sql["event_of"], (session,)).fetchall()
            for n, body, salt in rows:
                db.execute(self._sql["event_erase"], (content_digest(salt, body), session, n))
            # The process that drives the session still has the text in memory. This event takes
            # its next number, so that its next commit fails and it reads the log again.
            if rows:
                n, head = self._head(db, session)
                self._append(db, Commit(session, n + 1, at, (Erased("session"),)), head)
            for name in ERASED_TABLES:
                db.execute(self._sql[name], (session,))
            forget_session(db, self._sql, session)
            db.execute(self._sql["open_close"], (session,))
            for change in changes:
                db.execute(self._statements[change.statement], change.args).fetchall()
            return len(rows)

        return await self._writer.run(work)

    async def rebuild_projections(self) -> None:
        """Empty the projections and fill them again from the log."""

        def work(db: StatementRunner) -> None:
            project.clear(db, self._sql)
            rows: list[Row] = db.execute(self._sql["event_all"]).fetchall()
            for session, n, at, body in rows:
                project.apply_event(
                    db, self._sql, Recorded(0, session, n, at, decode_event(body)), body
                )

        await self._writer.run(work)

    async def _execute(self, name: str, args: Args) -> None:
        await self._writer.run(lambda db: db.execute(self._sql[name], args).fetchall())

    def _head(self, db: StatementRunner, session: str) -> tuple[int, bytes]:
        row: Row | None = db.execute(self._sql["event_head"], (session,)).fetchone()
        return (0, INITIAL_HASH) if row is None else (row[0], row[1])

    # Reading

    async def query(self, statement: str, args: Args) -> list[Row]:
        return self.query_sync(statement, args)

    def query_sync(self, statement: str, args: Args = ()) -> list[Row]:
        return self._fetch_all(self._statements[statement], args)

    async def events(self, session: str, after: int = 0, limit: int | None = None) -> Page:
        if limit is not None:
            return self._page("event_read", (session, after, limit))
        rows = self._fetch_all(self._sql["event_read"], (session, after, LAST_SEQ))
        with self._errors():
            return Page(map(_decode_recorded, rows))

    async def events_since(self, principal: Principal, seq: int, limit: int) -> Page:
        return self._page(
            "event_since", (seq, int("owner" in principal.roles), principal.id, limit)
        )

    async def latest_events(
        self, principal: Principal, kinds: Collection[str], limit: int, before: int = LAST_SEQ
    ) -> list[Recorded]:
        listed = msgspec.json.encode(sorted(kinds)).decode()
        found = self._page(
            "event_latest", (listed, int("owner" in principal.roles), principal.id, before, limit)
        )
        return found[::-1]

    async def amendments(self, session: str, after: int, limit: int) -> Page:
        return self._page("event_amends", (session, after, limit))

    def last_seq(self) -> int:
        return int(self._fetch_all(self._sql["event_last_seq"])[0][0])

    def _page(self, name: str, args: Args) -> Page:
        """The events of a statement until they exceed PAGE_BYTES, but at least one. The last of
        `args` is the limit of the statement."""
        found = Page()
        size = 0
        with self._errors():
            for row in self._iter_rows(self._sql[name], args):
                found.append(_decode_recorded(row))
                size += len(row[-1] or b"")
                if size > PAGE_BYTES:
                    found.more = True
                    break
        found.more |= len(found) == args[-1]
        return found

    async def history(self, session: str) -> list[Recorded]:
        last = self._fetch_all(self._sql["event_last_of_kind"], (session, "compacted"))[0][0]
        rows = self._fetch_all(self._sql["event_history"], (session, max(int(last) - 1, 0)))
        with self._errors():
            return [Recorded(0, session, n, at, decode_event(body)) for n, at, body in rows]

    async def list_waiting(self, session: str) -> list[Waiting]:
        rows = self._fetch_all(self._sql["inbox_waiting"], (session,))
        return [_decode_waiting(inbox_id, body) for inbox_id, body in rows]

    async def accepted_since(self, inbox_id: int) -> list[tuple[str, Waiting]]:
        rows = self._fetch_all(self._sql["inbox_after"], (inbox_id,))
        return [
            (session, _decode_waiting(number, body))
            for number, session, body in rows
            if body  # one that was erased is empty
        ]

    async def open_sessions(self) -> list[OpenSession]:
        return [OpenSession(*row) for row in self._fetch_all(self._sql["open_list"])]

    async def outbox_due(
        self, now: float, limit: int, channels: Collection[str] | None = None
    ) -> list[OutboxRow]:
        on = None if channels is None else msgspec.json.encode(sorted(channels)).decode()
        rows = self._fetch_all(self._sql["outbox_due"], (now, limit, on))
        return [
            OutboxRow(number, session, _decode_outgoing(body), state, attempts, at, sent_id, mark)
            for number, session, body, state, attempts, at, sent_id, mark in rows
        ]

    async def list_delivered(self, session: str) -> list[Delivered]:
        rows = self._fetch_all(self._sql["outbox_unreported"], (session,))
        return [Delivered(*row) for row in rows]

    async def sessions(
        self,
        principal: Principal,
        limit: int = 50,
        behind: PageCursor = FIRST_PAGE,
        place: ListPlace = ANYWHERE,
    ) -> list[SessionRow]:
        sees_all = int("owner" in principal.roles)
        wanted = (place.pinned, place.folder, place.archived)
        args = (sees_all, principal.id, *behind, *wanted, limit)
        return [SessionRow.from_row(row) for row in self._fetch_all(self._sql["session_of"], args)]

    async def folders(self, principal: Principal) -> FolderCounts:
        args = (int("owner" in principal.roles), principal.id)
        counts: dict[str, int] = dict(self._fetch_all(self._sql["session_folders"], args))
        return FolderCounts(archived=counts.pop("", 0), folders=counts)

    async def may_see(self, principal: Principal, session: str) -> bool:
        if "owner" in principal.roles:
            return True
        return bool(self._fetch_all(self._sql["session_is_member"], (session, principal.id))[0][0])

    async def audit(
        self, anchors: Mapping[str, Mapping[int, bytes]] | None = None
    ) -> tuple[int, list[Break]]:
        """Verify the hash chain of every session. `anchors` are hashes that were noted earlier, by
        session and number.

        Returns the number of events, and the first break of each session that has one.
        """
        links = [Link(*row) for row in self._fetch_all(self._sql["event_chain"])]
        return len(links), verify_chain(links, anchors)

    async def heads(self) -> dict[str, tuple[int, bytes]]:
        rows = self._fetch_all(self._sql["event_heads"])
        return {session: (n, head) for session, n, head in rows}

    @abstractmethod
    def open_reader(self) -> SyncStatementReader: ...

    @abstractmethod
    def is_blob_used(self, digest: str) -> bool: ...

    @abstractmethod
    def version(self) -> int: ...

    @abstractmethod
    async def close(self) -> None: ...

    def check_integrity(self) -> list[str]:
        """The problems that the database finds in its files; [] if there are none, or if it looks
        after them itself."""
        return []

    async def truncate_wal(self) -> None:
        """After an erasure: remove what was erased from the files now, where the database does not
        do that by itself."""

    def last_inbox_id(self) -> int:
        return int(self._fetch_all(self._sql["inbox_last"])[0][0])

    def _fetch_one(self, db: StatementRunner, name: str, args: Args) -> Row:
        row: Row | None = db.execute(self._sql[name], args).fetchone()
        if row is None:
            raise StoreCorrupt(f"{self.name!r}: a row that must exist is missing ({name})")
        return row
