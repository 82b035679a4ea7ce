"""Random histories of conversations, sub-agents, scripts, stops, kills and restarts: every task
ends once and is told once, to the one who gave it, nothing outlives a stop, and no budget is
passed."""

from __future__ import annotations

import collections
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from deskhand.budgets.queries import sum_used
from deskhand.models.base import Reply, Request
from deskhand.models.window import estimate_request_tokens
from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.store.sqlite import SqliteStore
from deskhand.subagents.kinds import SCRIPT
from deskhand.testing.crash import Crash, Fuse, OpenDatabase, fused
from deskhand.testing.postgres import database_at, open_schema, running_server
from deskhand.testing.temporary_home import TemporaryHome, wait_for
from deskhand.types.events import (
    CommandRun,
    MessageReceived,
    Recorded,
    TurnEnded,
)
from deskhand.types.messages import Usage
from deskhand.types.subagents import SubagentTask

from .working import PARENT, answering, calls, desk_of, tasks_of

HISTORIES = 200 if os.environ.get("TESTS") == "all" else 12
PER_SESSION = 4
KINDS = ("", "explore", "research", "plan", "code", "general", "other")
EVER = 1 << 40
MOMENT_S = 1.0
"""What is over so soon after a stop may have been over when it came."""
WORDS = ("how far are you?", "/stop", "/stop", "/stop", "/status", "instead", "/undo", "/start")


class History:
    """What happens, all of it from one seed: `said` in `lives`, each of which ends where its fuse
    blows (0: it does not)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.lives = [self._random.randint(5, 120) for _ in range(self._random.randint(0, 3))]
        self.lives.append(0)
        self.said = [self._message() for _ in range(self._random.randint(1, 5))]
        self.latency_s = self._random.choice((0.005, 0.05, 0.15))
        self.pauses_s = [self._random.choice((0.0, 0.02, 0.1, 0.3)) for _ in self.said]
        self.tokens = self._random.choice((None, None, 30_000, 60_000))

    def _message(self) -> str:
        if self._random.random() < 0.4:
            return self._random.choice(WORDS)
        return calls(*(self._spawn(2) for _ in range(self._random.randint(1, 3))))

    def _spawn(self, below: int) -> tuple[str, dict[str, Any]]:
        if self._random.random() < 0.15:
            number = self._random.randint(1, 3)
            return "run_script", {"script": f"for n in range({number}): list_files(depth=n + 1)"}
        kind = self._random.choice(KINDS)
        task = f"task {self._random.randint(0, 999)}"
        nests = below and kind in ("", "other") and self._random.random() < 0.5
        if nests:
            task = calls(*(self._spawn(below - 1) for _ in range(self._random.randint(1, 2))))
        arguments = {"task": task, "agent": kind}
        if self._random.random() < 0.3:
            return "subagents", {"action": "create", **arguments}
        return "spawn_agent", {**arguments, "wait": self._random.random() < 0.8}


async def live(desk: TemporaryHome, history: History, fuse: Fuse, database: OpenDatabase) -> bool:
    """One life. True when the fuse blew."""
    crashed = False
    try:
        async with desk.running(store=fused(fuse, database)) as app:
            await wait_for(lambda: is_driving(app))
            for n, text in enumerate(history.said):
                when = "interrupt" if text == "instead" else "steer"
                await desk.say(app, text, id_=f"{n}", when=when)  # type: ignore[arg-type]
                await anyio.sleep(history.pauses_s[n])
            await wait_for(lambda: is_settled(app))
    except* Crash:
        crashed = True
    return crashed


async def is_driving(app: App) -> bool:
    return app.dispatch.is_driving


async def is_settled(app: App) -> bool:
    return not await app.store.query("subagent_open", ()) and not await app.store.open_sessions()


async def check(app: App) -> collections.Counter[str]:
    """What must hold once all is over. Returns how the tasks ended."""
    how = collections.Counter[str]()
    todo = [PARENT]
    while todo:
        session = todo.pop()
        log = await app.store.events(session)
        tasks = tasks_of(app, session)
        for task in tasks:
            check_task(task, log, await app.store.events(task.session))
            how[task.state] += 1
            how["scripts"] += task.request.kind == SCRIPT
        check_number(tasks)
        todo += {task.session for task in tasks}
    return how


def check_task(task: SubagentTask, parents: Sequence[Recorded], own: Sequence[Recorded]) -> None:
    said = f"{task.title} of {task.parent}"
    assert not task.is_live and task.ended_at is not None, said
    given = [
        each
        for each in own
        if isinstance(each.event, MessageReceived) and each.event.external_id == task.key
    ]
    assert len(given) <= 1, f"{said} was given {len(given)} times"
    if task.state == "done":
        assert len(given) == 1, f"{said} is done, and was never given"
    told = [
        each
        for each in parents
        if isinstance(each.event, MessageReceived) and each.event.external_id == f"{task.key}:end"
    ]
    assert len(told) <= 1, f"{said} was told {len(told)} times"
    ended = [each for each in own if isinstance(each.event, TurnEnded)]
    assert len(ended) <= len(given) + 1, f"{said} went on after its end"


def check_number(tasks: list[SubagentTask]) -> None:
    """Never more at once than may be."""
    changes = [(task.at, 1) for task in tasks]
    changes += [(task.ended_at or 0.0, -1) for task in tasks]
    now = 0
    for _, change in sorted(changes):
        now += change
        assert now <= PER_SESSION


async def through(
    home: Path, seed: int, proven: Proven, database: OpenDatabase = SqliteStore
) -> collections.Counter[str]:
    history = History(seed)
    desk = desk_of(
        home,
        proven,
        agents={"default": {}, "other": {}},
        subagents={"per_session": PER_SESSION},
        budgets={"all": {"tokens": history.tokens}} if history.tokens else {},
    )
    desk.model.script = using_tokens
    desk.model.latency_s = history.latency_s
    for at in history.lives:
        if not await live(desk, history, Fuse(at), database):
            break
    async with desk.running(store=database) as app:
        await wait_for(lambda: is_settled(app))
        how = await check(app)
        await check_stops(app)
        used = sum_used(app.store, "all", "", since=0, until=EVER).tokens
        assert history.tokens is None or used <= history.tokens, "a budget was passed"
        how["budget met"] += history.tokens is not None and used > 0.8 * history.tokens
    return how


def using_tokens(request: Request) -> Reply:
    """As `answering`, with as many tokens as such a request has."""
    message = answering(request)
    used = Usage(estimate_request_tokens(request), 20)
    return Reply(message, "calls" if message.calls else "stop", used)


async def check_stops(app: App) -> None:
    """Nobody is told anything of what was begun before a stop, and nothing of it is done after."""
    log = await app.store.events(PARENT)
    stops = [
        each for each in log if isinstance(each.event, CommandRun) and each.event.name == "stop"
    ]
    for task in tasks_of(app):
        for stop in stops:
            if task.at > stop.at:
                continue
            assert task.told
            assert task.state != "done" or (task.ended_at or 0.0) <= stop.at + MOMENT_S
            assert not any(
                isinstance(each.event, MessageReceived)
                and each.event.external_id == f"{task.key}:end"
                and each.at > stop.at + MOMENT_S
                for each in log
            ), task.title


@pytest.mark.timeout(900)
async def test_random_histories(tmp_path: Path) -> None:
    proven = await open_sandbox()
    how = collections.Counter[str]()
    for seed in range(HISTORIES):
        try:
            how += await through(tmp_path / str(seed), seed, proven)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert how["done"] > HISTORIES and how["scripts"] and how["budget met"]


@pytest.mark.timeout(600)
async def test_random_histories_on_postgresql(tmp_path: Path) -> None:
    proven = await open_sandbox()
    how = collections.Counter[str]()
    with running_server() as server:
        for seed in range(max(HISTORIES // 10, 5)):
            with open_schema(server) as url:
                how += await through(tmp_path / str(seed), seed, proven, database_at(url))
    assert how["done"]
