"""Kills a running Deskhand again and again, at any moment, and then compares what it did with the
truth outside it.

python -m deskhand.testing.torture [--kills 200] [--seed 1] [--store postgres]
    [--mutant ack-first|publish-first] [--helpers]
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

import anyio
import anyio.abc
import msgspec
from aiohttp import web as http  # noqa: TID251 -- loopback

from ..config.database import open_store
from ..gateway.outbox import DUPLICATE
from ..store.queries import visible_subagents
from ..store.sql_store import SqlStore
from ..teams.queries import wanted_mail
from ..types import events as e
from .platform import Platform
from .torture_child import ANN, HELPERS, settings_at
from .torture_web import WebClients, make_token

FEED_S = 0.1
WAITING = 8
KILL_WITHIN_S = 0.5
READY_S = 60.0
DRAIN_S = 60.0
STOP_S = 40.0
OPEN_TURNS = 0.7
SESSIONS = 1_000
FAILURES = 0.02
"""Of the messages, how many may be answered with a failure: a kill may hit the same session four
times running."""


class TortureReport(msgspec.Struct):
    """What happened, and what of it must not have."""

    kills: int = 0
    messages: int = 0
    in_open_turn: int = 0
    in_running_tool: int = 0
    in_sending_row: int = 0
    slowest_ready_s: float = 0.0
    slowest_first_answer_s: float = 0.0
    slowest_rest_s: float = 0.0
    lost: int = 0
    unmarked_duplicates: int = 0
    marked_duplicates: int = 0
    out_of_order: int = 0
    effects_twice: int = 0
    helped: int = 0
    by_teammates: int = 0
    told_interrupted: int = 0
    told_failure: int = 0
    web_messages: int = 0
    web_sent_twice: int = 0
    web_breaks: int = 0
    web_lost: int = 0
    web_astray: int = 0
    faults: list[str] = []

    @property
    def is_clean(self) -> bool:
        """Nothing has happened that must not."""
        bad = (
            self.lost
            or self.unmarked_duplicates
            or self.out_of_order
            or self.effects_twice
            or self.faults
        )
        return not (bad or self.web_lost or self.web_astray)

    @property
    def good(self) -> bool:
        """That, and the kills hit where it matters."""
        return (
            self.is_clean
            and self.in_open_turn >= OPEN_TURNS * self.kills
            and self.told_failure <= FAILURES * self.messages
        )

    def show(self) -> str:
        lines = [f"{name:>20}  {value}" for name, value in msgspec.structs.asdict(self).items()]
        return "\n".join(lines)


class Torture:
    """One run of it."""

    def __init__(self, home: Path, kills: int, seed: int, mode: str) -> None:
        self.home = home
        self.kills = kills
        self.mode = mode
        self.drain_s = DRAIN_S
        self.platform = Platform(seed, teams=mode == HELPERS)
        self.report = TortureReport()
        self.url = ""
        self._seed = seed
        self._web: WebClients | None = None
        self._feeding = True
        self._began = 0.0
        self._ready_s = 0.0
        self._sent_before = 0

    async def run(self) -> TortureReport:
        """Kill, drain, compare."""
        runner = http.AppRunner(self.platform.app(), shutdown_timeout=0.1)
        await runner.setup()
        site = http.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        token = await make_token(settings_at(self.home, self.url))
        self._web = WebClients(self.home, token, self._seed)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._feed)
                tasks.start_soon(self._web.run)
                await self.kill_all()
                tasks.cancel_scope.cancel()
        finally:
            await runner.cleanup()
        await self.compare()
        return self.report

    async def kill_all(self) -> None:
        """One life after the other, the last of which may finish everything."""
        for _ in range(self.kills):
            await self._one_life()
        self.take_no_more()
        await self._last_life()

    def take_no_more(self) -> None:
        """Nobody writes any more."""
        self._feeding = False
        if self._web is not None:
            self._web.take_no_more()

    async def _feed(self) -> None:
        while self._feeding:
            if self.count_waiting() < WAITING:
                self.platform.write()
            await anyio.sleep(FEED_S)

    def count_waiting(self) -> int:
        """How many messages wait: with WAITING of them, nobody writes another."""
        return len(self.platform.updates) - self.platform.confirmed

    async def _start(self) -> anyio.abc.Process:
        """A child that has polled at least once since it was started."""
        before = self.platform.polls
        began = monotonic()
        self._began, self._sent_before = began, len(self.platform.sent_at)
        command = [
            sys.executable,
            "-m",
            "deskhand.testing.torture_child",
            str(self.home),
            self.url,
            self.mode,
        ]
        child = await anyio.open_process(command, stdin=None, stdout=None, stderr=None)
        with anyio.fail_after(READY_S):
            while self.platform.polls == before:
                if child.returncode is not None:
                    raise RuntimeError(f"the child ended by itself with {child.returncode}")
                await anyio.sleep(0.005)
        self._ready_s = monotonic() - began
        self.report.slowest_ready_s = round(max(self.report.slowest_ready_s, self._ready_s), 3)
        return child

    async def _one_life(self) -> None:
        child = await self._start()
        # A busy machine must not make a life so short that nothing is done in any of them.
        await self.live(self.platform.random.uniform(0, max(KILL_WITHIN_S, self._ready_s / 2)))
        child.kill()
        await child.wait()
        await self.after_death()
        self.report.kills += 1
        self._see_first_answer()
        await self._look_where_it_hit()

    async def live(self, seconds: float) -> None:
        """What happens to a child before it is killed."""
        await anyio.sleep(seconds)

    def is_chat(self, session: str) -> bool:
        """Whether somebody waits for an answer in that conversation."""
        return True

    def open_store(self) -> SqlStore:
        """The database of the home."""
        return open_store(settings_at(self.home, self.url))

    async def look_after(self) -> None:
        """What is done again and again while it finishes everything."""

    async def after_death(self) -> None:
        """What happens before the next one is started."""

    def _see_first_answer(self) -> None:
        """From the start of the process to its first answer, where it lived long enough to give
        one."""
        if len(self.platform.sent_at) > self._sent_before:
            took = self.platform.sent_at[self._sent_before] - self._began
            self.report.slowest_first_answer_s = round(
                max(self.report.slowest_first_answer_s, took), 3
            )

    async def _look_where_it_hit(self) -> None:
        store = self.open_store()
        try:
            rows = [await store.events(row.session) for row in await store.sessions(ANN, SESSIONS)]
            turns = [_open_turn(recorded) for recorded in rows]
            started = [sum(isinstance(r.event, e.ToolStarted) for r in turn) for turn in turns]
            finished = [_finished_after_start(turn) for turn in turns]
            self.report.in_open_turn += any(
                isinstance(r.event, e.MessageReceived) for turn in turns for r in turn
            )
            self.report.in_running_tool += any(
                s > f for s, f in zip(started, finished, strict=True)
            )
            self.report.in_sending_row += any(
                row.state == "sending" for row in await store.outbox_due(1e12, 10_000)
            )
            if self.report.kills % 20 == 0 and (found := store.check_integrity()):
                self.report.faults.append(f"integrity: {found[:3]}")
        finally:
            await store.close()

    async def _last_life(self) -> None:
        child = await self._start()
        await self.drain()
        child.terminate()  # a kill would leave what it just wrote half written
        with anyio.move_on_after(STOP_S):
            await child.wait()
        if child.returncode is None:
            self.report.faults.append(f"it did not end within {STOP_S:.0f} s")
            child.kill()
            await child.wait()

    async def drain(self) -> None:
        """Let this life finish everything."""
        settled = 0
        began = monotonic()
        store = self.open_store()
        while settled < 5 and monotonic() < began + self.drain_s:
            await anyio.sleep(0.1)
            await self.look_after()
            done = self.platform.confirmed >= len(self.platform.updates)
            is_open = any(self.is_chat(row.session) for row in await store.open_sessions())
            owed = is_open or bool(await store.outbox_due(1e12, 1))
            owed = owed or self._web is None or not await self._web.at_rest(store)
            settled = settled + 1 if done and not owed else 0
        await store.close()
        self.report.slowest_rest_s = round(max(self.report.slowest_rest_s, monotonic() - began), 3)
        if settled < 5:
            self.report.faults.append(f"it did not come to rest within {self.drain_s:.0f} s")

    async def compare(self) -> None:
        store = self.open_store()
        try:
            sessions = await store.sessions(ANN, SESSIONS)
            logs = {row.session: await store.events(row.session) for row in sessions}
            self._compare_messages(logs)
            self._compare_effects(logs)
            self._compare_web(logs)
            await self._compare_helpers(store)
            events, breaks = await store.audit()
            self.report.faults += [f"chain: {broken}" for broken in breaks]
            self.report.faults += [f"integrity: {found}" for found in store.check_integrity()]
            left = [row for session in logs for row in await store.list_waiting(session)]
            self.report.faults += [f"still waiting: {row.inbox_id}" for row in left]
            self.report.faults += [
                f"a temporary file is left: {p.name}" for p in self.home.rglob("*.part")
            ]
            if not events:
                self.report.faults.append("the log is empty")
        finally:
            await store.close()

    def _compare_messages(self, logs: Mapping[str, list[e.Recorded]]) -> None:
        """Every message is answered, no answer twice without a mark, each chat in order."""
        report = self.report
        platform = self.platform
        report.messages = len(platform.updates)
        received: dict[int, str] = {}
        answered: set[int] = set()
        failed: set[int] = set()  # those whose turn ended with a failure that was sent
        said = {sent.text for sent in platform.sent}
        for log in logs.values():
            for recorded in log:
                if isinstance(recorded.event, e.MessageReceived):
                    received[recorded.event.inbox_id] = recorded.event.external_id
                elif isinstance(recorded.event, e.TurnEnded):
                    answered |= set(recorded.event.answers)
                    if recorded.event.reason != "done" and recorded.event.said in said:
                        failed |= set(recorded.event.answers)
        ended = {received[inbox_id] for inbox_id in answered if inbox_id in received}
        told = {word[1:] for sent in platform.sent for word in sent.text.split() if word[0] == "m"}
        told |= {received[inbox_id] for inbox_id in failed if inbox_id in received}
        said_to = [str(update.id) for update in platform.updates if update.text[0] != "/"]
        report.lost = sum(id_ not in ended or id_ not in told for id_ in said_to)
        report.told_failure = len(failed)
        counts = collections.Counter(sent.key for sent in platform.sent)
        fresh = [sent for sent in platform.sent if sent.mark != DUPLICATE]
        unmarked = collections.Counter(sent.key for sent in fresh)
        report.unmarked_duplicates = sum(count - 1 for count in unmarked.values() if count > 1)
        report.marked_duplicates = (
            sum(count - 1 for count in counts.values()) - report.unmarked_duplicates
        )
        texts = collections.Counter(sent.text for sent in fresh)
        report.unmarked_duplicates += sum(
            count - 1 for text, count in texts.items() if count > 1 and "done" in text
        )
        latest: dict[str, int] = {}
        for sent in fresh:
            numbers = [
                int(word[1:]) for word in sent.text.split() if word[0] == "m" and word[1:].isdigit()
            ]
            if numbers:
                report.out_of_order += numbers[0] <= latest.get(sent.chat, 0)
                latest[sent.chat] = max(numbers)

    async def _compare_helpers(self, store: SqlStore) -> None:
        """Every task that was given to a sub-agent, a teammate or a script has ended, and what was
        written to a teammate was given to it."""
        tasks = await visible_subagents(store, ANN, "", ended=True, limit=100_000)
        done = [task for task in tasks if task.state == "done"]
        self.report.helped = len(done)
        self.report.by_teammates = sum(bool(task.request.teammate) for task in done)
        left = [task for task in tasks if task.is_live or not task.told]
        self.report.faults += [f"{task.name} {task.state}, told: {task.told}" for task in left]
        self.report.faults += [f"mail {mail.id} is on its way" for mail in await wanted_mail(store)]
        done_by = {"helpers": len(done), "teammates": self.report.by_teammates}
        for who, count in done_by.items() if self.mode == HELPERS else ():
            if count < self.report.messages / 20:
                self.report.faults.append(f"only {count} tasks of {who} were done")

    def _compare_web(self, logs: Mapping[str, list[e.Recorded]]) -> None:
        """What was taken is there once and answered, and each client has the bytes of the log."""
        report = self.report
        web = self._web
        if web is None:
            raise AssertionError("it did not run")
        report.web_lost, report.web_astray = web.compare(logs)
        report.web_messages = sum(map(len, web.taken.values()))
        report.web_sent_twice = web.twice
        report.web_breaks = sum(
            each.breaks for followers in web.followers.values() for each in followers
        )
        report.faults += web.faults[:20]

    def _compare_effects(self, logs: Mapping[str, list[e.Recorded]]) -> None:
        """No effect twice, and each that was started is done or was told to be unknown."""
        report = self.report
        report.effects_twice = sum(
            count - 1 for count in collections.Counter(self.platform.effects).values()
        )
        for session, log in logs.items():
            started = {r.event.call_id for r in log if isinstance(r.event, e.ToolStarted)}
            results = {
                r.event.result.call_id: r.event.result
                for r in log
                if isinstance(r.event, e.ToolFinished)
            }
            report.told_interrupted += sum(
                result.status == "interrupted" for result in results.values()
            )
            for call_id in started - set(results):
                report.faults.append(f"{session}: {call_id} was started and never told of")


def _open_turn(log: list[e.Recorded]) -> list[e.Recorded]:
    """The events of the turn that is going on."""
    ends = [i for i, recorded in enumerate(log) if isinstance(recorded.event, e.TurnEnded)]
    return log[ends[-1] + 1 :] if ends else log


def _finished_after_start(turn: list[e.Recorded]) -> int:
    started = {r.event.call_id for r in turn if isinstance(r.event, e.ToolStarted)}
    return sum(
        isinstance(r.event, e.ToolFinished) and r.event.result.call_id in started for r in turn
    )


async def torture(kills: int, seed: int, mode: str = "true") -> TortureReport:
    """Run it in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="deskhand-torture-") as home:
        return await Torture(Path(home), kills, seed, mode).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutant", default="true", choices=["true", "ack-first", "publish-first"])
    parser.add_argument("--store", default="sqlite", choices=["sqlite", "postgres"])
    parser.add_argument(
        "--helpers",
        action="store_true",
        help="leave some of the work to sub-agents, teammates and scripts",
    )
    chosen = parser.parse_args()
    mode = HELPERS if chosen.helpers else chosen.mutant
    if chosen.store == "postgres":
        from .torture_postgres import torture_with_server  # noqa: PLC0415 -- its driver is an extra

        report = anyio.run(torture_with_server, chosen.kills, chosen.seed, mode)
    else:
        report = anyio.run(torture, chosen.kills, chosen.seed, mode)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
