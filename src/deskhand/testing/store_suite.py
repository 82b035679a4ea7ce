"""What every store must do. Each case gets a function that opens the store on the same data again,
and raises AssertionError where the store is wrong. Run all of `CASES`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import anyio
from msgspec.structs import replace

from ..store.base import (
    FIRST_PAGE,
    INBOX_LIMIT,
    FolderCounts,
    ListPlace,
    OpenSession,
    PageCursor,
    SearchFilter,
    Store,
)
from ..store.queries import add_dead_letter, stop_subagent
from ..types.commit import Commit, Outgoing
from ..types.errors import Refused, StaleSession, StoreError
from ..types.events import (
    AnyEvent,
    CommandRun,
    Compacted,
    Erased,
    Hinted,
    HistoryMessage,
    Ledger,
    MessageDelivered,
    MessageReceived,
    ModelReplied,
    OptionsSet,
    Reacted,
    Recorded,
    Transcribed,
    TurnEnded,
)
from ..types.identity import Address, Inbound, Principal, Said
from ..types.messages import Message, Text
from ..types.options import SessionOptions
from ..types.turn import STOP_TURN_ONLY

Open = Callable[[], Store]
Case = Callable[[Open], Awaitable[None]]

ANN = Principal("ann")
BOB = Principal("bob")
OWNER = Principal("olga", ("owner",))
PLACE = Address("chat", "bot", "1")
S = "agent/one"
T0 = 1_700_000_000.0


def inbound(external_id: str, text: str = "hello", address: Address = PLACE) -> Inbound:
    """A message as a channel hands it in."""
    return Inbound(external_id, address, "ann", T0, Said(Message("user", (Text(text),))))


def received(inbox_id: int, text: str = "hello", principal: Principal = ANN) -> MessageReceived:
    return MessageReceived(
        inbox_id, principal, PLACE, Message("user", (Text(text),)), str(inbox_id)
    )


def commit(
    n: int, *events: AnyEvent, session: str = S, close: bool = False, wake_at: float | None = None
) -> Commit:
    return Commit(session, n, T0 + n, events, wake_at=wake_at, close=close)


def outgoing(key: str) -> Outgoing:
    return Outgoing(key, PLACE, (Text("hi"),))


@asynccontextmanager
async def opened(open_store: Open) -> AsyncIterator[Store]:
    """The store, closed at the end."""
    store = open_store()
    try:
        yield store
    finally:
        await store.close()


async def _stale(store: Store, late: Commit) -> None:
    try:
        await store.commit(late)
    except StaleSession:
        return
    raise AssertionError(f"number {late.n} was taken, and yet written again")


async def writes_nothing_where_a_row_must_change_and_does_not(open_store: Open) -> None:
    """A commit, changes and a message that is handed in: all of it is taken back."""
    none = replace(stop_subagent("nobody", "stopped"), must=True)
    async with opened(open_store) as store:
        one = await store.accept(inbound("a"), ANN, S)
        event = received(one.inbox_id)
        await _stale(store, Commit(S, 1, T0, (event,), (one.inbox_id,), changes=(none,)))
        assert await store.events(S) == [] and len(await store.list_waiting(S)) == 1
        for write in (
            lambda: store.change((none,)),
            lambda: store.accept(inbound("b"), ANN, S, changes=(none,)),
        ):
            try:
                await write()
            except StaleSession:
                continue
            raise AssertionError("no row was changed, and yet it was written")
        assert len(await store.list_waiting(S)) == 1, "a message was taken whose rows were not"
        await store.commit(Commit(S, 1, T0, (event,), (one.inbox_id,)))


async def accepts_each_message_once(open_store: Open) -> None:
    async with opened(open_store) as store:
        one = await store.accept(inbound("a"), ANN, S)
        again = await store.accept(inbound("a", "changed"), ANN, "agent/other")
        assert not one.duplicate and again.duplicate
        assert (again.inbox_id, again.session) == (one.inbox_id, S)
    async with opened(open_store) as store:
        after = await store.accept(inbound("a"), ANN, S)
        assert after.duplicate and after.inbox_id == one.inbox_id
        for address in (Address("chat", "bot2", "1"), Address("mail", "bot", "1")):
            other = await store.accept(inbound("a", address=address), ANN, S)
            assert not other.duplicate, address
        assert [row.inbound.body for row in await store.list_waiting(S)] == [inbound("a").body] * 3
        await store.commit(Commit(S, 1, T0, (received(one.inbox_id),), (one.inbox_id,)))
        assert (await store.accept(inbound("a"), ANN, S)).duplicate, "taken in, and forgotten"


async def first_commit_rides_along(open_store: Open) -> None:
    def first(inbox_id: int) -> Commit:
        return Commit(S, 1, T0, (received(inbox_id),), (inbox_id,))

    async with opened(open_store) as store:
        taken = await store.accept(inbound("a"), ANN, S, first)
        assert taken.admitted and taken.after == 0
        stale = await store.accept(inbound("b"), ANN, S, first)
        assert not stale.admitted and stale.after == 1 and not stale.duplicate
        again = await store.accept(
            inbound("a"), ANN, S, lambda inbox_id: commit(2, received(inbox_id))
        )
        assert again.duplicate and not again.admitted
    async with opened(open_store) as store:
        assert [e.n for e in await store.events(S)] == [1]
        assert [row.inbox_id for row in await store.list_waiting(S)] == [stale.inbox_id]
        assert await store.open_sessions() == [OpenSession(S, None, 0)]


async def first_commit_overtakes_nobody(open_store: Open) -> None:
    """In a session without events, a message that waits comes before one that would ride along."""

    def first(inbox_id: int) -> Commit:
        return Commit(S, 1, T0, (received(inbox_id),), (inbox_id,))

    async with opened(open_store) as store:
        earlier = await store.accept(inbound("a"), ANN, S)
        later = await store.accept(inbound("b"), ANN, S, first)
        assert not later.admitted and later.after == 0
        waiting = [row.inbox_id for row in await store.list_waiting(S)]
        assert waiting == [earlier.inbox_id, later.inbox_id]
        assert not await store.events(S)


async def commit_is_all_or_nothing(open_store: Open) -> None:
    """The last thing in it fails: the events, the message taken in and the answer are taken back
    with it."""
    letter = add_dead_letter(S, 1, T0, "x")
    broken = (
        replace(letter, args=(S, None, None, None)),
        replace(letter, statement="no_such_statement"),
    )
    async with opened(open_store) as store:
        row = await store.accept(inbound("a"), ANN, S)
        for change in broken:
            event = received(row.inbox_id)
            whole = Commit(
                S, 1, T0, (event,), (row.inbox_id,), (outgoing("k"),), (change,), close=True
            )
            failed: list[Exception] = []

            async def fail(whole: Commit = whole, failed: list[Exception] = failed) -> None:
                try:
                    await store.commit(whole)
                except (StoreError, KeyError) as error:
                    failed.append(error)

            async with anyio.create_task_group() as tasks:  # the others of the same batch stand
                tasks.start_soon(fail)
                tasks.start_soon(store.accept, inbound(change.statement), BOB, "agent/other")
            assert failed, change
            assert await store.events(S) == [] and await store.outbox_due(T0, 9) == []
            assert [w.inbox_id for w in await store.list_waiting(S)] == [row.inbox_id]
        assert len(await store.list_waiting("agent/other")) == 2
        await store.commit(Commit(S, 1, T0, (), outbox=(outgoing("k"),)))
        try:
            await store.commit(Commit(S, 1, T0, (Hinted("loop", "x"),), outbox=(outgoing("k"),)))
            raise AssertionError("two outbox rows with one key")
        except StoreError:
            assert await store.events(S) == []


async def rival_is_fenced_off(open_store: Open) -> None:
    async with opened(open_store) as one, opened(open_store) as two:
        row = await one.accept(inbound("a"), ANN, S)
        await one.commit(Commit(S, 1, T0, (received(row.inbox_id),), (row.inbox_id,)))
        await _stale(two, commit(1, Hinted("loop", "late")))
        await _stale(two, commit(3, Hinted("loop", "early")))
        await _stale(
            two, Commit(S, 2, T0, (received(row.inbox_id),), (row.inbox_id,))
        )  # taken in already
        await two.commit(commit(2, Hinted("loop", "in time")))
        await _stale(one, commit(2, Hinted("loop", "late")))
        assert [e.n for e in await one.events(S)] == [1, 2] == [e.n for e in await two.events(S)]


async def numbers_have_no_gap(open_store: Open) -> None:
    async def write(session: str) -> None:
        n = 1
        for size in (1, 3, 1, 2):
            events = tuple(Hinted("loop", f"{session} {n + i}") for i in range(size))
            await store.commit(Commit(session, n, T0, events))
            n += size

    sessions = [f"agent/{i}" for i in range(8)]
    async with opened(open_store) as store, anyio.create_task_group() as tasks:
        for session in sessions:
            tasks.start_soon(write, session)
    async with opened(open_store) as store:
        logs = {session: await store.events(session) for session in sessions}
        for session, log in logs.items():
            assert [(e.n, e.session) for e in log] == [(n, session) for n in range(1, 8)]
            assert [e.event for e in log] == [Hinted("loop", f"{session} {n}") for n in range(1, 8)]
        seqs = [e.seq for log in logs.values() for e in log]
        assert len(set(seqs)) == len(seqs) == 56
        assert [e.n for e in await store.events(sessions[0], after=5)] == [6, 7]
        assert await store.events("agent/none") == []


async def a_page_tells_whether_there_is_more(open_store: Open) -> None:
    async with opened(open_store) as store:
        await store.commit(Commit(S, 1, T0, tuple(Hinted("loop", str(n)) for n in range(3))))
        await store.commit(Commit(S, 4, T0, tuple(Hinted("loop", "x" * 600_000) for _ in range(3))))
        pages = [
            await store.events(S, after, limit)
            for after, limit in ((0, 2), (0, 3), (3, 9), (5, 9), (6, 9))
        ]
        assert [(len(page), page.more) for page in pages] == [
            (2, True),
            (3, True),
            (2, True),
            (1, False),
            (0, False),
        ]
        assert [(len(page), page.more) for page in [await store.events(S, 2)]] == [(4, False)]
        seen = [await store.events_since(OWNER, seq, 9) for seq in (0, 5)]
        assert [page.more for page in seen] == [True, False]


async def history_starts_at_the_last_compaction(open_store: Open) -> None:
    short = Compacted((), "", 0, Ledger())
    async with opened(open_store) as store:
        await store.commit(commit(1, received(1), Hinted("loop", "a")))
        assert [e.n for e in await store.history(S)] == [1, 2]
        await store.commit(commit(3, short, Hinted("loop", "b"), short, Hinted("loop", "c")))
        assert [e.n for e in await store.history(S)] == [5, 6]
        assert [e.n for e in await store.events(S)] == [1, 2, 3, 4, 5, 6]


async def what_waits_is_in_order(open_store: Open) -> None:
    async with opened(open_store) as store:
        for i in range(20):
            await store.accept(inbound(str(99 - i), f"text {i}"), BOB if i % 2 else ANN, S)
        rows = await store.list_waiting(S)
        await store.accept(inbound("x"), ANN, "agent/other")
        assert await store.list_waiting(S) == rows
        for row in rows[3:7]:
            n = len(await store.events(S)) + 1
            await store.commit(Commit(S, n, T0, (received(row.inbox_id),), (row.inbox_id,)))
    async with opened(open_store) as store:
        left = await store.list_waiting(S)
        texts = [
            row.inbound.body.message.text for row in left if isinstance(row.inbound.body, Said)
        ]
        assert texts == [f"text {i}" for i in (*range(3), *range(7, 20))]
        assert [row.principal.id for row in left[:3]] == ["ann", "bob", "ann"]
        since = await store.accepted_since(left[-2].inbox_id)
        assert [session for session, _ in since] == [S, "agent/other"]
        assert store.last_inbox_id() == since[-1][1].inbox_id


async def inbox_has_a_limit(open_store: Open) -> None:
    async with opened(open_store) as store:
        async with anyio.create_task_group() as tasks:
            for i in range(INBOX_LIMIT):
                tasks.start_soon(store.accept, inbound(str(i)), ANN, S)
        assert (await store.accept(inbound("7"), ANN, S)).duplicate, (
            "an old message is not one more"
        )
        try:
            await store.accept(inbound("too many"), ANN, S)
            raise AssertionError("no limit")
        except Refused:
            assert len(await store.list_waiting(S)) == INBOX_LIMIT
        assert not (await store.accept(inbound("elsewhere"), ANN, "agent/other")).duplicate


async def session_stays_open_while_something_waits(open_store: Open) -> None:
    async with opened(open_store) as store:
        one = await store.accept(inbound("a"), ANN, S)
        assert await store.open_sessions() == [OpenSession(S, None, 0)]
        two = await store.accept(inbound("b"), ANN, S)
        await store.commit(
            Commit(
                S,
                1,
                T0,
                (received(one.inbox_id), TurnEnded("done", (one.inbox_id,))),
                (one.inbox_id,),
                close=True,
            )
        )
        assert await store.open_sessions() == [OpenSession(S, None, 0)], (
            "closed while a message waits"
        )
        end = (received(two.inbox_id), TurnEnded("done", (two.inbox_id,)))
        await store.commit(Commit(S, 3, T0, end, (two.inbox_id,), close=True))
        assert await store.open_sessions() == []
        await store.commit(commit(5, close=True))
        assert await store.open_sessions() == [], "closed twice, and open again"
        await store.commit(commit(5, Hinted("loop", "x"), wake_at=T0 + 60))
    async with opened(open_store) as store:
        assert await store.open_sessions() == [OpenSession(S, T0 + 60, 0)]
        await store.accept(inbound("a"), ANN, S)  # a duplicate wakes nobody
        assert await store.open_sessions() == [OpenSession(S, T0 + 60, 0)]
        row = await store.accept(inbound("c"), ANN, S)
        assert await store.open_sessions() == [OpenSession(S, None, 0)]
        await store.commit(commit(6, Hinted("loop", "x"), wake_at=T0 + 60))
        assert await store.open_sessions() == [OpenSession(S, None, 0)], (
            "it rests, and has not seen what came meanwhile"
        )
        await store.commit(
            Commit(S, 7, T0, (received(row.inbox_id),), (row.inbox_id,), wake_at=T0 + 60)
        )
        assert await store.open_sessions() == [OpenSession(S, T0 + 60, 0)]


async def _attempts(store: Store) -> dict[str, int]:
    return {row.session: row.attempts for row in await store.open_sessions()}


async def crashes_are_counted(open_store: Open) -> None:
    """A life that does not end in `hand_over` counts for what was owed in it, until something is
    committed."""
    async with opened(open_store) as store:
        assert await store.begin_run(T0) == ""
        for i, session in enumerate(("bad", "good")):
            await store.accept(inbound(str(i)), ANN, session)
        await store.commit(commit(1, Hinted("loop", ""), session="later", wake_at=T0 + 60))
        await store.commit(commit(1, Hinted("loop", ""), session="due", wake_at=T0 - 1))
        await store.begin_run(T0)
        assert await _attempts(store) == {"bad": 1, "good": 1, "later": 0, "due": 1}
        await store.end_run()
        await store.begin_run(T0)
        assert (await _attempts(store))["bad"] == 1, "a clean stop is no crash"
    async with opened(open_store) as store:
        await store.commit(commit(1, Hinted("loop", ""), session="good"))
        assert (await _attempts(store))["good"] == 0, "a commit forgets earlier crashes"
        await store.begin_run(T0)
        assert await store.begin_run(T0) == ""
        assert await _attempts(store) == {"bad": 3, "good": 2, "later": 0, "due": 3}
        await store.drive_alone("bad")
    async with opened(open_store) as store:
        assert await store.begin_run(T0) == "bad"
        assert await _attempts(store) == {"bad": 4, "good": 2, "later": 0, "due": 3}, (
            "only who was driven alone"
        )
        assert await store.begin_run(T0) == "", "told once; then it is driven alone again"
        await store.commit(commit(1, TurnEnded("dead"), session="bad", close=True))


async def outbox_goes_one_way(open_store: Open) -> None:
    async with opened(open_store) as store:
        await store.commit(
            Commit(S, 1, T0, (Hinted("loop", ""),), outbox=tuple(outgoing(k) for k in "abcd"))
        )
        assert [(r.outgoing.key, r.state, r.attempts) for r in await store.outbox_due(T0, 3)] == [
            (k, "pending", 0) for k in "abc"
        ]
        here = outgoing("a").address.channel
        elsewhere = ("elsewhere", "nowhere")
        assert await store.outbox_due(T0, 3, elsewhere) == [], (
            "a channel that is not there stands in nobody's way"
        )
        assert len(await store.outbox_due(T0, 3, (here, *elsewhere))) == 3
        await store.outbox_sent("a", "too early")
        await store.outbox_sending("a", "")
        await store.outbox_sending("b", "may be a duplicate")
    async with opened(open_store) as store:
        rows = {row.outgoing.key: row for row in await store.outbox_due(T0, 9)}
        assert (rows["a"].state, rows["a"].attempts, rows["b"].mark) == (
            "sending",
            1,
            "may be a duplicate",
        )
        assert rows["a"].session == S and rows["a"].at == T0 and rows["a"].outgoing == outgoing("a")
        await store.outbox_sent("a", "p1")
        await store.outbox_retry("a", "pending", T0, "late")  # what was sent is never sent again
        await store.outbox_sending("a", "")
        await store.outbox_retry("b", "sending", T0 + 5, "busy")
        await store.outbox_failed("c", "gone")
        await store.outbox_sending("c", "")
        assert await store.outbox_due(T0, 9) == [], "d waits for b"
        due = [(r.outgoing.key, r.state, r.attempts) for r in await store.outbox_due(T0 + 5, 9)]
        assert due == [("b", "sending", 1), ("d", "pending", 0)]


async def what_waits_holds_up_its_place_alone(open_store: Open) -> None:
    async with opened(open_store) as store:
        there = replace(outgoing("c"), address=replace(outgoing("c").address, chat="2"))
        rows = (
            outgoing("a"),
            outgoing("b"),
            there,
            replace(there, key="d", address=replace(there.address, thread="7")),
        )
        await store.commit(Commit(S, 1, T0, (Hinted("loop", ""),), outbox=rows))
        await store.outbox_sending("a", "")
        await store.outbox_retry("a", "pending", T0 + 5, "busy")
        assert [row.outgoing.key for row in await store.outbox_due(T0, 9)] == ["c", "d"]
        assert [row.outgoing.key for row in await store.outbox_due(T0, 1)] == ["c"]
        assert [row.outgoing.key for row in await store.outbox_due(T0 + 5, 9)] == [
            "a",
            "b",
            "c",
            "d",
        ]
        early = T0 - 2 * 3600  # the clock went back: nobody waits for what will not come soon
        assert [row.outgoing.key for row in await store.outbox_due(early, 9)] == [
            "a",
            "b",
            "c",
            "d",
        ]
        await store.outbox_sending("a", "")
        await store.outbox_retry("a", "sending", T0 + 5, "busy")
        await store.outbox_failed("a", "gone")
        assert [row.outgoing.key for row in await store.outbox_due(T0, 9)] == ["b", "c", "d"]


async def a_new_conversation_is_for_who_takes_part_in_it(open_store: Open) -> None:
    async with opened(open_store) as store:
        group = replace(received(1).address, group=True)
        alone = "agent/chat:1"
        together = "agent/chat:2"
        for session, place in ((alone, received(1).address), (together, group)):
            first = replace(received(1, "one", ANN), address=place)
            await store.commit(
                Commit(session, 1, T0, (first, CommandRun(2, BOB, "start"), TurnEnded("done")))
            )
            await store.commit(
                Commit(session, 4, T0, (replace(first, principal=BOB), TurnEnded("done")))
            )
            assert await store.may_see(ANN, session), "in the midst of a turn nothing begins anew"
            await store.commit(
                Commit(
                    session,
                    6,
                    T0,
                    (CommandRun(2, BOB, "stop", STOP_TURN_ONLY), CommandRun(2, BOB, "start")),
                )
            )
            assert await store.may_see(ANN, session), "it is still the old one"
            await store.commit(
                Commit(session, 8, T0, (replace(first, principal=BOB), TurnEnded("done")))
            )
            assert await store.may_see(BOB, session)
        assert not await store.may_see(ANN, alone) and await store.may_see(ANN, together)
        await store.commit(Commit(alone, 10, T0, (CommandRun(2, BOB, "start"),)))
        job = Principal("job:tea", kind="clock", on_behalf_of="bob")
        await store.commit(Commit(alone, 11, T0, (received(1, "tea", job), TurnEnded("done"))))
        assert await store.may_see(BOB, alone), "what his job writes there is for him"


async def deliveries_are_reported_once(open_store: Open) -> None:
    async with opened(open_store) as store:
        await store.commit(
            Commit(S, 1, T0, (Hinted("loop", ""),), outbox=(outgoing("a"), outgoing("b")))
        )
        await store.outbox_sending("a", "late")
        assert await store.list_delivered(S) == []
        await store.outbox_sent("a", "p1")
        (sent,) = await store.list_delivered(S)
        assert (sent.key, sent.platform_id, sent.mark) == ("a", "p1", "late")
        assert await store.list_delivered("agent/other") == []
        await store.commit(
            Commit(S, 2, T0, (MessageDelivered("a", "p1", "late"),), delivered=("a",))
        )
        assert await store.list_delivered(S) == []


async def sessions_are_where_people_put_them(open_store: Open) -> None:
    at = T0
    async with opened(open_store) as store:

        async def put(session: str, n: int, **place: Any) -> None:
            event = OptionsSet(n, ANN, SessionOptions(**place))
            nonlocal at
            at += 500.0
            await store.commit(Commit(session, n, at, (event,)))

        async def names(**place: Any) -> list[str]:
            return [row.session for row in await store.sessions(ANN, place=ListPlace(**place))]

        for i, letter in enumerate("abc"):
            event = received(i, letter, ANN)
            await store.commit(Commit(f"agent/{letter}", 1, T0 + 100 * i, (event,)))
        await put("agent/c", 2, archived=True)
        await put("agent/b", 2, folder="taxes")
        await put("agent/a", 2, pinned=True)
        assert await names() == ["agent/c", "agent/b", "agent/a"], "it moves nothing among the days"
        assert await names(pinned=True) == ["agent/a"]
        assert await names(folder="taxes") == ["agent/b"]
        assert await names(archived=True) == ["agent/c"]
        assert await names(pinned=False, folder="", archived=False) == []
        assert await store.folders(ANN) == FolderCounts({"taxes": 1}, 1)
        assert await store.folders(BOB) == FolderCounts({}, 0)
        (row,) = await store.sessions(ANN, place=ListPlace(folder="taxes"))
        assert (row.pinned, row.folder, row.archived) == (False, "taxes", False)

        await put("agent/b", 3, archived=True)
        assert await store.folders(ANN) == FolderCounts({}, 2), "what is archived is in no folder"
        await put("agent/b", 4, archived=False, folder="", pinned=True)
        assert await names(pinned=True, folder="") == ["agent/b", "agent/a"]

        await store.commit(Commit("agent/c", 3, T0 + 201, (received(9, "again", ANN),)))
        assert await names(archived=True) == [], "what is written in comes back"


async def people_see_their_own_sessions(open_store: Open) -> None:
    async with opened(open_store) as store:
        for i, (session, who) in enumerate((("agent/a", ANN), ("agent/b", BOB), ("agent/ab", ANN))):
            await store.commit(
                commit(1, received(i, f"title  of\n{session} " + "x" * 90, who), session=session)
            )
        await store.commit(
            Commit("agent/ab", 2, T0 + 9, (received(9, "more", BOB), TurnEnded("done")))
        )
        assert {r.session for r in await store.sessions(ANN)} == {"agent/a", "agent/ab"}
        assert (await store.sessions(OWNER))[0].session == "agent/ab", "the latest first"
        assert await store.sessions(Principal("eve")) == []
        assert len(await store.sessions(OWNER, 2)) == 2
        row = (await store.sessions(BOB))[0]
        assert (row.agent, row.channel, row.chat, row.turns, row.last_at) == (
            "agent",
            "chat",
            "1",
            1,
            T0 + 9,
        )
        assert row.title.startswith("title of agent/ab xxx") and len(row.title) <= 80
        seen = [
            (p.id, s)
            for p in (ANN, BOB, OWNER)
            for s in ("agent/a", "agent/b")
            if await store.may_see(p, s)
        ]
        assert seen == [
            ("ann", "agent/a"),
            ("bob", "agent/b"),
            ("olga", "agent/a"),
            ("olga", "agent/b"),
        ]


async def pages_joined_are_the_whole(open_store: Open) -> None:
    """Whatever comes while somebody turns the pages: each session, event and place is there once,
    in its order, as it was when they began."""
    chance = Random(7)
    people = (ANN, BOB)
    made = 0

    async with opened(open_store) as store:

        async def more(count: int, at: float) -> None:
            nonlocal made
            for _ in range(count):
                made = made + 1
                who = chance.choice(people)
                said = received(made, f"Über the river {made}", who)
                events = (said, TurnEnded("done"), Reacted(0, who, str(made), "+", True))
                await store.commit(Commit(f"agent/{made:03}", 1, at, events, close=True))

        for i in range(30):
            await more(2, T0 + i // 3)  # several at one time
        for who in (ANN, OWNER):
            await _paged(store, who, lambda: more(3, T0 + 99), chance)
        assert [row.title for row in await store.search_titles(ANN, "über RIVER nowhere")] == []
        amended = [r.event for r in await store.amendments("agent/001", 0, 9)]
        assert [type(event) for event in amended] == [Reacted] and not await store.amendments(
            "agent/001", 3, 9
        )


async def _paged(
    store: Store, who: Principal, more: Callable[[], Awaitable[None]], chance: Random
) -> None:
    kinds = ("message_received",)
    most = 10_000
    whole = [row.session for row in await store.sessions(who, most)]
    titled = [row.session for row in await store.search_titles(who, "river Über", most)]
    events = [recorded.seq for recorded in await store.latest_events(who, kinds, most)]
    found = [hit.seq for hit in await store.search(who, "river", most, before=2**60)]
    assert whole == titled and found == events[::-1] and len(whole) == len(events)
    behind: list[PageCursor] = [FIRST_PAGE, FIRST_PAGE]
    seq = hit = 2**60
    read: list[list[str]] = [[], []]
    seen: list[list[int]] = [[], []]
    while True:
        limit = chance.randint(1, 9)
        rows = (
            await store.sessions(who, limit, behind[0]),
            await store.search_titles(who, "ÜBER", limit, behind[1]),
        )
        page = await store.latest_events(who, kinds, limit, seq)
        hits = await store.search(who, "river", limit, before=hit)
        if not (page or hits or any(rows)):
            break
        for i, each in enumerate(rows):
            read[i] += [row.session for row in each]
            behind[i] = (each[-1].last_at, each[-1].session) if each else behind[i]
        seq = page[0].seq if page else seq
        hit = hits[-1].seq if hits else hit
        seen[0] += [recorded.seq for recorded in page[::-1]]
        seen[1] += [each.seq for each in hits]
        await more()
    assert (read[0], read[1], seen[0], seen[1]) == (whole, whole, found, found)


async def a_search_finds_what_is_wanted(open_store: Open) -> None:
    """By whom, when, with which agent, and whether in the archive, each alone and all together."""
    async with opened(open_store) as store:
        said = Message("user", (Text('the river "role":"assistant"'),))
        told = Message("assistant", (Text("the river is wide"),))
        reply = ModelReplied(told, "p/m")
        room = (
            MessageReceived(0, ANN, PLACE, said, "1"),
            reply,
            MessageReceived(0, BOB, PLACE, said, "2"),
            HistoryMessage(0, ANN, told),
            MessageReceived(0, ANN, PLACE, Message("user", (Text("a recording"),)), "3"),
            Transcribed("blob", "a river, she said"),
        )
        await store.commit(Commit("agent/room", 1, T0, room, close=True))
        desk = (MessageReceived(0, ANN, PLACE, said, "4"), reply)
        await store.commit(Commit("other/desk", 1, T0 + 100, desk, close=True))
        put_away = OptionsSet(7, ANN, SessionOptions(archived=True))
        await store.commit(Commit("agent/room", 7, T0, (put_away,), close=True))

        async def finds(*found: tuple[str, int], **fields: Any) -> None:
            wanted = SearchFilter(**fields)
            latest = await store.search(ANN, "river", before=2**60, wanted=wanted)
            assert [(hit.session, hit.n) for hit in latest] == list(found), fields
            best = await store.search(ANN, "river", wanted=wanted)
            assert {(hit.session, hit.n) for hit in best} == set(found), fields

        in_room = [("agent/room", n) for n in (6, 4, 3, 2, 1)]
        at_desk = [("other/desk", n) for n in (2, 1)]
        await finds(*at_desk, *in_room)
        await finds(at_desk[1], in_room[0], in_room[4], by="me")
        await finds(at_desk[0], in_room[1], in_room[3], by="agent")
        await finds(*at_desk, since=T0 + 100)
        await finds(*in_room, until=T0 + 100)
        await finds(since=T0 + 1, until=T0 + 100)
        await finds(*in_room, agent="agent")
        await finds(agent="nobody")
        await finds(*at_desk, archived=False)
        await finds(at_desk[0], by="agent", since=T0, until=T0 + 101, agent="other", archived=False)

        async def lists(*found: str, **fields: Any) -> None:
            titled = await store.search_titles(ANN, "river", wanted=SearchFilter(**fields))
            assert [row.session for row in titled] == list(found), fields

        await lists("other/desk", "agent/room")
        await lists("other/desk", since=T0 + 100)
        await lists("agent/room", until=T0 + 100)
        await lists("agent/room", agent="agent")
        await lists("other/desk", archived=False)


async def erasing_leaves_only_the_shape(open_store: Open) -> None:
    async with opened(open_store) as store:
        row = await store.accept(inbound("a", "a secret"), ANN, S)
        events = (received(row.inbox_id, "a secret"), Hinted("loop", "a secret"))
        await store.commit(
            Commit(S, 1, T0, events, (row.inbox_id,), (outgoing("k"),), wake_at=T0 + 9)
        )
        await store.accept(inbound("b", "a secret that waits"), ANN, S)
        try:
            await store.erase(BOB, S, T0)
            raise AssertionError("erased by a stranger")
        except Refused:
            assert len(await store.events(S)) == 2
        assert await store.erase(ANN, S, T0) == 2
        await _stale(store, commit(3, Hinted("loop", "said by one who has not heard of it")))
        assert (await store.accept(inbound("a", "a secret"), ANN, S)).duplicate
    async with opened(open_store) as store:
        kinds = [Erased("message_received"), Erased("hinted"), Erased("session")]
        assert (
            [e.event for e in await store.events(S)]
            == kinds
            == [e.event for e in await store.history(S)]
        )
        assert (
            not await store.list_waiting(S)
            and not await store.outbox_due(T0, 9)
            and not await store.open_sessions()
        )
        assert await store.accepted_since(0) == [] and await store.sessions(OWNER) == []
        assert await store.erase(OWNER, S, T0) == 0
        await store.commit(commit(4, received(9, "anew")))
        assert [r.title for r in await store.sessions(ANN)] == ["anew"]
        last = (await store.events(S))[-1]
        assert last == Recorded(last.seq, S, 4, T0 + 4, received(9, "anew"))


async def news_are_seen_elsewhere(open_store: Open) -> None:
    async with opened(open_store) as one, opened(open_store) as two:
        before = one.version()
        assert one.version() == before
        await two.accept(inbound("a"), ANN, S)
        with anyio.fail_after(10):
            while one.version() == before:
                await one.wait_for_writes(0, 0.01)
        assert [w.inbound.external_id for w in await one.list_waiting(S)] == ["a"]


CASES: tuple[Case, ...] = (
    writes_nothing_where_a_row_must_change_and_does_not,
    accepts_each_message_once,
    first_commit_rides_along,
    first_commit_overtakes_nobody,
    commit_is_all_or_nothing,
    rival_is_fenced_off,
    numbers_have_no_gap,
    a_page_tells_whether_there_is_more,
    history_starts_at_the_last_compaction,
    what_waits_is_in_order,
    inbox_has_a_limit,
    session_stays_open_while_something_waits,
    crashes_are_counted,
    outbox_goes_one_way,
    what_waits_holds_up_its_place_alone,
    deliveries_are_reported_once,
    people_see_their_own_sessions,
    sessions_are_where_people_put_them,
    pages_joined_are_the_whole,
    a_search_finds_what_is_wanted,
    a_new_conversation_is_for_who_takes_part_in_it,
    erasing_leaves_only_the_shape,
    news_are_seen_elsewhere,
)
