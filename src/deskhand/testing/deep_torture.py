"""Kills a process in the midst of a deep work again and again, and then looks whether each task was
done, and once.

python -m deskhand.testing.deep_torture [--steps 60] [--kills 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import anyio.abc
import apsw
import msgspec

from ..assembly.tools import builtin_tools, skills_of
from ..config.config import Config, Home, Settings
from ..config.statements import load_statements
from ..runtime.app import App, Parts, open_app
from ..store.schema import connect
from ..store.sqlite import SqliteStore
from ..tools.queries import load_tasks
from ..types import events as e
from ..types.errors import StoreError
from ..types.identity import Address, Answer, Inbound, Principal, Said
from ..types.interpreter import tune_interpreter
from ..types.messages import Message, Text
from .long_worker import Steadfast, StepEffect
from .scripted import ScriptedModel

ANN = Principal("ann", ("owner",))
SESSION = "default/web:ann:deep"
PLACE = Address("web", chat="ann:deep")
LATENCY_S = 0.01
KILL_WITHIN_S = 0.4
READY_S = 60.0
DONE_S = 120.0


class DeepTortureReport(msgspec.Struct):
    """What happened, and what of it must not have."""

    steps: int = 0
    kills: int = 0
    in_open_turn: int = 0
    nudges: int = 0
    completed: int = 0
    completed_twice: int = 0
    effects_lost: int = 0
    effects_twice: int = 0
    told_done: int = 0
    took_s: float = 0.0
    faults: list[str] = []

    @property
    def good(self) -> bool:
        bad = self.completed_twice or self.effects_lost or self.effects_twice or self.faults
        return not bad and self.completed == self.steps and self.told_done == 1

    def show(self) -> str:
        return "\n".join(
            f"{name:>16}  {value}" for name, value in msgspec.structs.asdict(self).items()
        )


def settings_at(home: Path) -> Settings:
    return Settings(
        Home(home), msgspec.convert({"defaults": {"models": ["scripted/steadfast"]}}, Config)
    )


async def live(home: Path, steps: int) -> None:
    """Work until killed: the person asks once and says yes to the plan, however often this is
    started."""
    settings = settings_at(home)
    model = ScriptedModel(Steadfast(steps), latency_s=LATENCY_S)
    effects = (StepEffect(home / "done.txt"), StepEffect(home / "done.txt", check=True))
    every = (*builtin_tools(settings, "default", skills_of(settings, "default")), *effects)
    tools = {tool.spec.name: tool for tool in every}
    parts = Parts(lambda name: model, tools, authorize=lambda inbound: ANN)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        await _person(app)


async def _person(app: App) -> None:
    def inbound(key: str, body: Said | Answer) -> Inbound:
        return Inbound(key, PLACE, "ann", app.parts.clock.now(), body, SESSION)

    asked = Said(Message("user", (Text("/deep do all the steps"),)))
    await app.door.submit(inbound("begin", asked))
    while True:
        for ask in await app.store.open_asks(ANN):
            await app.door.submit(inbound(f"yes {ask.ask_id}", Answer(ask.ask_id, "once")))
        await anyio.sleep(0.05)


class DeepTorture:
    """One run of it."""

    def __init__(self, home: Path, steps: int, kills: int, seed: int) -> None:
        self._home = home
        self._steps = steps
        self._kills = kills
        self._random, self.report = random.Random(seed), DeepTortureReport(steps)

    async def run(self) -> DeepTortureReport:
        began = monotonic()
        while self.report.kills < self._kills and not await self._one_life():
            pass
        await self._drain()
        await self._compare()
        self.report.took_s = round(monotonic() - began, 1)
        return self.report

    async def _start(self) -> anyio.abc.Process:
        """A process that has got further in the log than the one before."""
        before = len(self._log())
        command = [
            sys.executable,
            "-m",
            "deskhand.testing.deep_torture",
            "--child",
            str(self._home),
        ]
        child = await anyio.open_process(
            [*command, "--steps", str(self._steps)], stdin=None, stdout=None, stderr=None
        )
        with anyio.fail_after(READY_S):
            while len(self._log()) == before and not self._done():
                if child.returncode is not None:
                    raise RuntimeError(f"the child ended by itself with {child.returncode}")
                await anyio.sleep(0.01)
        return child

    async def _one_life(self) -> bool:
        """True when there was nothing left to be killed in."""
        child = await self._start()
        await anyio.sleep(self._random.uniform(0, KILL_WITHIN_S))
        child.kill()
        await child.wait()
        if self._done():
            return True
        self.report.kills += 1
        log = self._log()
        ends = [i for i, event in enumerate(log) if isinstance(event, e.TurnEnded)]
        tail = log[ends[-1] + 1 :] if ends else log
        self.report.in_open_turn += any(isinstance(event, e.MessageReceived) for event in tail)
        return False

    async def _drain(self) -> None:
        child = await self._start()
        with anyio.move_on_after(DONE_S) as waiting:
            while not self._done():  # noqa: ASYNC110 -- the log of another process
                await anyio.sleep(0.05)
        child.kill()
        await child.wait()
        if waiting.cancelled_caught:
            self.report.faults.append(f"it did not end within {DONE_S:.0f} s")

    def _done(self) -> bool:
        return any(map(_tells_the_end, self._log()))

    def _log(self) -> list[e.AnyEvent]:
        """What stands in the log, read beside whoever writes it; [] where it is only just being
        made."""
        path = self._home / "state" / "deskhand.db"
        try:
            db = connect(path, write=False)
        except StoreError:
            return []
        try:
            rows: list[tuple[Any, ...]] = db.execute(
                "SELECT body FROM event WHERE session = ? ORDER BY n", (SESSION,)
            ).fetchall()
        except apsw.Error:
            return []
        finally:
            db.close()
        return [e.decode_event(body) for (body,) in rows]

    async def _compare(self) -> None:
        report = self.report
        store = SqliteStore(self._home / "state" / "deskhand.db", load_statements())
        try:
            log = [recorded.event for recorded in await store.events(SESSION)]
            graph = await load_tasks(store, SESSION)
            _, breaks = await store.audit()
            report.faults += [f"chain: {broken}" for broken in breaks]
            report.faults += [
                f"still waiting: {row.inbox_id}" for row in await store.list_waiting(SESSION)
            ]
        finally:
            await store.close()
        wanted = {f"step {n}" for n in range(1, self._steps + 1)}
        report.completed = sum(task.status == "completed" for task in graph.values())
        if {task.title for task in graph.values()} != wanted or list(graph) != list(
            range(1, self._steps + 1)
        ):
            report.faults.append(f"the tasks are not those that were planned: {sorted(graph)}")
        calls = {
            call.id: call
            for event in log
            if isinstance(event, e.ModelReplied)
            for call in event.message.calls
        }
        good = [
            each.result
            for each in log
            if isinstance(each, e.ToolFinished) and each.result.status == "ok"
        ]
        told = [
            r.text.split("\n")[0]
            for r in good
            if r.text.startswith("ok, [x]") and r.call_id in calls
        ]
        report.completed_twice = sum(count - 1 for count in collections.Counter(told).values())
        noted = self._home / "done.txt"
        effects = noted.read_text().splitlines() if noted.exists() else []
        report.effects_twice = sum(count - 1 for count in collections.Counter(effects).values())
        report.effects_lost = len(wanted - {*effects})
        nudged = (
            each
            for each in log
            if isinstance(each, e.MessageReceived) and each.principal.id == "deep-work"
        )
        report.nudges = sum(1 for _ in nudged)
        report.told_done = sum(_tells_the_end(each) for each in log)


def _tells_the_end(event: e.AnyEvent) -> bool:
    return (
        isinstance(event, e.CommandRun) and event.name == "deep-work" and "(100 %)" in event.reply
    )


async def torture(steps: int, kills: int, seed: int) -> DeepTortureReport:
    """Run it in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="deskhand-deep-") as home:
        return await DeepTorture(Path(home), steps, kills, seed).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", default="")
    chosen = parser.parse_args()
    if chosen.child:
        tune_interpreter()
        anyio.run(live, Path(chosen.child), chosen.steps)
        return
    report = anyio.run(torture, chosen.steps, chosen.kills, chosen.seed)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.good and report.kills == chosen.kills else 1)


if __name__ == "__main__":
    main()
