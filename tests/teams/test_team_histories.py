"""Random histories of a lead, teammates, their mail and tasks, stops, kills and restarts: what is
written is given once, each task of the list is done once, and nothing outlives a stop."""

from __future__ import annotations

import collections
import json
import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.store.queries import subagents_of, teammates_of
from deskhand.store.sqlite import SqliteStore
from deskhand.teams.leases import find_claimable
from deskhand.teams.mail import render_mail
from deskhand.teams.queries import inbox_of
from deskhand.testing.crash import Crash, Fuse, OpenDatabase, fused
from deskhand.testing.postgres import database_at, open_schema, running_server
from deskhand.testing.temporary_home import TemporaryHome, wait_for
from deskhand.types.errors import NotLeading
from deskhand.types.events import CommandRun, MessageReceived, Recorded, TurnEnded
from deskhand.types.subagents import SubagentTask, id_of

from .working import LEAD_SESSION, board, desk_of

HISTORIES = 200 if os.environ.get("TESTS") == "all" else 12
NAMES = ("ann", "bo", "cy")
MOMENT_S = 1.0
"""What is over so soon after a stop may have been over when it came."""
WORDS = ("how far are you?", "/stop", "/stop", "instead", "/undo", "/start", "/teams")


class History:
    """What happens, all of it from one seed: `said` in `lives`, each of which ends where its fuse
    blows (0: it does not)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.lives = [self._random.randint(5, 150) for _ in range(self._random.randint(0, 3))]
        self.lives.append(0)
        self.said = ["/teams on", json.dumps([self._spawn()])]
        self.said += [self._message() for _ in range(self._random.randint(1, 6))]
        self.latency_s = self._random.choice((0.005, 0.05, 0.15))
        self.pauses_s = [self._random.choice((0.0, 0.02, 0.1, 0.3)) for _ in self.said]

    def _message(self) -> str:
        if self._random.random() < 0.3:
            return self._random.choice(WORDS)
        ways = (self._spawn, self._write, self._task, self._task, self._shut_down, self._script)
        made = [self._random.choice(ways)() for _ in range(self._random.randint(1, 4))]
        return json.dumps(made)

    def _spawn(self) -> list[Any]:
        prompt = "begin" if self._random.random() < 0.5 else json.dumps([self._deed()])
        plans = self._random.random() < 0.2
        name = self._random.choice(NAMES)
        given = {"name": name, "role": "", "prompt": prompt, "plan_first": plans}
        return ["spawn_teammate", given]

    def _write(self) -> list[Any]:
        words = "look" if self._random.random() < 0.5 else json.dumps([self._deed()])
        if self._random.random() < 0.2:
            return ["broadcast", {"content": words}]
        return ["message_teammate", {"to": self._random.choice(NAMES), "content": words}]

    def _task(self) -> list[Any]:
        given: dict[str, Any] = {"action": "create", "title": f"t{self._random.randint(0, 99)}"}
        if self._random.random() < 0.3:
            given["owner"] = self._random.choice(NAMES)
        if self._random.random() < 0.2:
            given["depends_on"] = [1]
        return ["manage_tasks", given]

    def _shut_down(self) -> list[Any]:
        return ["shutdown_request", {"teammate": self._random.choice(NAMES)}]

    def _script(self) -> list[Any]:
        made = "call('manage_tasks', action='create', title=f'by script {n}')"
        return ["run_script", {"script": f"for n in range({self._random.randint(1, 2)}): {made}"}]

    def _deed(self) -> list[Any]:
        """What a teammate does."""
        to = self._random.choice((*NAMES, "lead", "all"))
        return self._random.choice(
            (
                ["message_teammate", {"to": to, "content": "hello"}],
                ["manage_tasks", {"action": "create", "title": "found"}],
                ["manage_tasks", {"action": "update", "task_id": 1, "status": "blocked"}],
                ["message_teammate", {"to": "lead", "content": "p", "msg_type": "plan_"}],
                ["idle", {}],
            )
        )


async def live(desk: TemporaryHome, history: History, fuse: Fuse, database: OpenDatabase) -> bool:
    """One life. True when the fuse blew."""
    crashed = False
    try:
        async with desk.running(store=fused(fuse, database)) as app:
            await wait_for(lambda: _is_driving(app))
            for n, text in enumerate(history.said):
                when = "interrupt" if text == "instead" else "steer"
                await desk.say(app, text, id_=f"{n}", when=when)  # type: ignore[arg-type]
                await anyio.sleep(history.pauses_s[n])
            await wait_for(lambda: is_settled(app))
    except* Crash:
        crashed = True
    except* NotLeading:
        assert fuse.has_blown, "after a crash this process is no worker, and writes nothing"
    return crashed


async def _is_driving(app: App) -> bool:
    return app.dispatch.is_driving


async def is_settled(app: App) -> bool:
    if await app.store.open_sessions() or await app.store.query("subagent_open", ()):
        return False
    graph = await board(app)
    team = [mate for mate in teammates_of(app.store, LEAD_SESSION) if mate.state == "active"]
    if any(find_claimable(graph, mate.name) for mate in team if not mate.waits):
        return False
    waiting = {mate.id for mate in team if mate.waits}
    if any(task.lease and id_of(task.lease) not in waiting for task in graph.values()):
        return False
    return not await app.store.query("mail_wanted", ())


async def check(app: App) -> collections.Counter[str]:
    """What must hold once all is over. Returns what there was."""
    log = await app.store.events(LEAD_SESSION)
    tasks = subagents_of(app.store, LEAD_SESSION, 1000)
    how = collections.Counter[str]()
    for task in tasks:
        check_work(task, log, await app.store.events(task.session))
        how[task.state] += 1
    await check_mail(app, log, tasks, how)
    await check_board(app, tasks, how)
    check_stops(log, tasks)
    team = teammates_of(app.store, LEAD_SESSION)
    assert sum(mate.state == "active" for mate in team) <= 5
    return how


def check_work(task: SubagentTask, parents: list[Recorded], own: list[Recorded]) -> None:
    said = f"{task.name} {task.title}"
    assert not task.is_live and task.ended_at is not None, said
    given = _count(own, task.key)
    assert given <= 1, f"{said} was given {given} times"
    assert task.state != "done" or given == 1, f"{said} is done, and was never given"
    assert _count(parents, f"{task.key}:end") <= 1, f"{said} was told twice"
    ended = [each for each in own if isinstance(each.event, TurnEnded)]
    heard = [each for each in own if isinstance(each.event, MessageReceived)]
    assert len(ended) <= len(heard) + 1, f"{said} went on after its end"


def _count(log: list[Recorded], key: str) -> int:
    heard = (each.event for each in log if isinstance(each.event, MessageReceived))
    return sum(event.external_id == key for event in heard)


async def check_mail(
    app: App, log: list[Recorded], tasks: list[SubagentTask], how: collections.Counter[str]
) -> None:
    stopped = any(isinstance(each.event, CommandRun) for each in log)
    for mail in await inbox_of(app.store, LEAD_SESSION, "lead", 1000):
        told = _count(log, f"subagent:mail:{mail.id}")
        assert told == 1 or (told == 0 and stopped), f"{mail} was told {told} times"
        how["mail given"] += 1
    for name in NAMES:
        given = await inbox_of(app.store, LEAD_SESSION, name, 1000)
        texts = collections.Counter(render_mail(mail) for mail in given)
        got = [each.request.task for each in tasks if each.request.teammate == name]
        for text, number in texts.items():
            assert got.count(text) == number, f"{text} was given {got.count(text)} times"
        how["mail given"] += len(given)


async def check_board(app: App, tasks: list[SubagentTask], how: collections.Counter[str]) -> None:
    for id_, task in (await board(app)).items():
        works = [
            each
            for each in tasks
            if each.request.task.startswith(f"[Task #{id_} of the team's list")
        ]
        done = [each for each in works if each.state == "done"]
        assert len(done) <= 1, f"#{id_} was done {len(done)} times"
        if done and task.status == "pending":
            raise AssertionError(f"#{id_} was done, and is pending")
        how[f"task {task.status}"] += 1
        spans = sorted((each.at, each.ended_at or 0.0) for each in works)
        for (_, end), (begin, _) in pairwise(spans):
            assert begin >= end, f"two worked on #{id_} at once"


def check_stops(log: list[Recorded], tasks: list[SubagentTask]) -> None:
    """Nobody is told anything of what was begun before a stop, and nothing of it is done after."""
    stops = [
        each for each in log if isinstance(each.event, CommandRun) and each.event.name == "stop"
    ]
    for task in tasks:
        for stop in (each for each in stops if task.at <= each.at):
            assert task.told
            assert task.state != "done" or (task.ended_at or 0.0) <= stop.at + MOMENT_S
            assert not any(
                isinstance(each.event, MessageReceived)
                and each.event.external_id == f"{task.key}:end"
                and each.at > stop.at + MOMENT_S
                for each in log
            ), task.title


async def through(
    home: Path, seed: int, proven: Proven, database: OpenDatabase = SqliteStore
) -> collections.Counter[str]:
    history = History(seed)
    desk = desk_of(home, proven)
    desk.model.latency_s = history.latency_s
    for at in history.lives:
        if not await live(desk, history, Fuse(at), database):
            break
    async with desk.running(store=database) as app:
        await wait_for(lambda: is_settled(app))
        return await check(app)


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
    assert how["done"] > HISTORIES and how["mail given"] and how["task completed"]


@pytest.mark.timeout(600)
async def test_random_histories_on_postgresql(tmp_path: Path) -> None:
    proven = await open_sandbox()
    how = collections.Counter[str]()
    with running_server() as server:
        for seed in range(max(HISTORIES // 10, 5)):
            with open_schema(server) as url:
                how += await through(tmp_path / str(seed), seed, proven, database_at(url))
    assert how["done"]
