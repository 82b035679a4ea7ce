"""What came of a soak: the log of the service beside what people wrote, read and had done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from ..gateway.outbox import DUPLICATE
from ..gateway.streamed_replies import GOES_ON
from ..jobs.ledger import list_runs
from ..sandbox.launcher import DID_NOT_START
from ..store.sqlite import SqliteStore
from ..types import events as e
from ..types.identity import Principal
from ..workspace.queries import stop_reasons
from .soak_day import ASKED, answered
from .soak_world import JOBS, PEOPLE, SoakWorld

OWNER = Principal("owner", ("owner",))
MANY = 1_000_000
ASKED_TO_WAIT = "asks to wait for"
"""Where the only model wants to be left alone for hours, a job ends and says so."""


class Truth(msgspec.Struct):
    """What happened, and what of it must not have."""

    messages: int = 0
    web_messages: int = 0
    runs: int = 0
    told_failure: int = 0
    told_interrupted: int = 0
    marked_duplicates: int = 0
    lost: int = 0
    unmarked_duplicates: int = 0
    out_of_order: int = 0
    effects_twice: int = 0
    jobs_twice: int = 0
    faults: list[str] = []

    @property
    def good(self) -> bool:
        wrong = (
            self.lost
            or self.unmarked_duplicates
            or self.out_of_order
            or self.effects_twice
            or self.jobs_twice
        )
        return not (wrong or self.faults)


async def truth_of(world: SoakWorld) -> Truth:
    """Compare, once the service has ended."""
    store = world.store()
    truth = Truth(len(world.written))
    try:
        logs = {
            row.session: await store.events(row.session)
            for row in await store.sessions(OWNER, MANY)
        }
        _messages(truth, world, logs)
        _effects(truth, world, logs)
        _web(truth, world, logs)
        await _rows(truth, store, logs, world.hurts)
        truth.faults += [f"chain: {broken}" for broken in (await store.audit())[1]]
        truth.faults += [f"integrity: {found}" for found in store.check_integrity()]
    finally:
        await store.close()
    return truth


def _messages(truth: Truth, world: SoakWorld, logs: Mapping[str, list[e.Recorded]]) -> None:
    """Each is taken in once and answered, no answer stands there twice without a mark, each chat is
    in order."""
    chats = world.telegram.chats
    received = dict[str, list[int]]()
    ended = set[int]()
    failed = set[int]()
    said = "\n".join(text for chat in PEOPLE for text in chats.said(chat))
    for recorded in _all(logs):
        event = recorded.event
        if isinstance(event, e.MessageReceived) and event.address.channel == "telegram":
            for word, _ in ASKED.findall(event.message.own_text):
                received.setdefault(word, []).append(event.inbox_id)
        elif isinstance(event, e.TurnEnded):
            ended |= set(event.answers)
            if event.reason != "done" and event.said and event.said in said:
                failed |= set(event.answers)
    truth.told_failure = len(failed)
    for chat in PEOPLE:
        texts = [text for text in chats.said(chat) if not text.endswith(GOES_ON)]
        fresh = [answered(text) for text in texts if DUPLICATE not in text]
        told = {word for text in texts for word in answered(text)}
        counts = Counter(word for words in fresh for word in words)
        truth.unmarked_duplicates += sum(count - 1 for count in counts.values())
        truth.marked_duplicates += len(texts) - len(fresh)
        truth.out_of_order += sum(
            int(a[0][1:]) > int(b[0][1:]) for a, b in pairwise(filter(None, fresh))
        )
        for word in (word for word, where in world.written.items() if where == chat):
            taken = received.get(word, [])
            was_told = word in told or not failed.isdisjoint(taken)
            if len(taken) != 1 or taken[0] not in ended or not was_told:
                truth.lost += 1
                truth.faults.append(f"{word} in {chat}: taken in as {taken}, answered: {was_told}")


def _effects(truth: Truth, world: SoakWorld, logs: Mapping[str, list[e.Recorded]]) -> None:
    """No effect twice, and each that was started is done, or was told to be unknown."""
    effects = world.home / "agents" / "default" / "workspace" / "effects.txt"
    done = Counter(effects.read_text().split()) if effects.exists() else Counter[str]()
    truth.effects_twice = sum(count - 1 for count in done.values())
    for session, log in logs.items():
        started = {r.event.call_id for r in log if isinstance(r.event, e.ToolStarted)}
        results = {
            r.event.result.call_id: r.event.result
            for r in log
            if isinstance(r.event, e.ToolFinished)
        }
        truth.told_interrupted += sum(result.status == "interrupted" for result in results.values())
        truth.faults += [
            f"{session}: {call_id} was never told of" for call_id in started - set(results)
        ]


def _web(truth: Truth, world: SoakWorld, logs: Mapping[str, list[e.Recorded]]) -> None:
    """What was taken on the page is there once and answered, and each who follows has the bytes of
    the log."""
    lost, astray = world.web.compare(logs)
    truth.lost += lost
    truth.web_messages = sum(map(len, world.web.taken.values()))
    truth.faults += [f"{astray} events did not come as they stand in the log"] if astray else []
    truth.faults += world.web.faults[:20]


async def _rows(
    truth: Truth, store: SqliteStore, logs: Mapping[str, list[e.Recorded]], hurts: int
) -> None:
    """Nothing is in the midst of anything, and no time of a job came twice."""
    received = Counter(
        r.event.external_id for r in _all(logs) if isinstance(r.event, e.MessageReceived)
    )
    unborn = 0
    for name in JOBS:
        for run in await list_runs(store, name, MANY):
            key = f"job:{name}@{run.slot}"
            truth.runs += run.state == "done"
            truth.jobs_twice += received[key] > 1
            if run.state != "error" or ASKED_TO_WAIT in run.said:
                continue
            # A hook was killed before its first instruction.
            if DID_NOT_START in run.said and unborn < hurts:
                unborn += 1
            else:
                truth.faults.append(f"{key}: {run.said}")
    truth.faults += [
        f"not sent: {row.outgoing.key} ({row.state})" for row in await store.outbox_due(1e12, 10)
    ]
    truth.faults += [f"still there: {id_}" for id_ in await stop_reasons(store)]


def _all(logs: Mapping[str, Sequence[e.Recorded]]) -> Iterator[e.Recorded]:
    for log in logs.values():
        yield from log
