"""One process after the other ends and is started again, also by a new version, while people
write."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg
import pytest

import deskhand
from deskhand.store.postgres_schema import load_migrations
from deskhand.testing.llm import FakeLLM
from deskhand.testing.postgres import open_schema, running_server
from deskhand.testing.telegram.server import TelegramServer

from .test_worker import House

PEOPLE = (71, 72, 73)
CONFIG = """
store: {store}
providers: {{fake: {{base_url: "{llm}"}}}}
defaults: {{models: [fake/model]}}
agents: {{ann: {{}}, ben: {{}}, cal: {{}}}}
bindings:
  - {{chat: "71", agent: ann}}
  - {{chat: "72", agent: ben}}
  - {{chat: "73", agent: cal}}
channels: {{telegram: {{base_url: "{telegram}", token_env: BOT}}}}
web: {{port: 0}}
"""
PROCESSES: tuple[tuple[str, ...], ...] = (("worker", "one"), ("serve",), ("worker", "two"))


class People:
    """Each writes as soon as there is an answer. `waited_s` are how long they had to wait."""

    def __init__(self, telegram: TelegramServer) -> None:
        self._telegram = telegram
        self.waited_s: list[float] = []
        self.written = dict.fromkeys(PEOPLE, 0)
        self.more = True

    async def write(self, person: int) -> None:
        chats = self._telegram.chats
        while self.more:
            began = time.monotonic()
            self.written[person] += 1
            chats.says(person, f"number {self.written[person]}")
            while len(chats.said(person)) < self.written[person]:
                await anyio.sleep(0.02)
            self.waited_s.append(time.monotonic() - began)
            await anyio.sleep(0.3)


@contextmanager
def processes(house: House) -> Iterator[dict[tuple[str, ...], ExitStack]]:
    """All of them, each to be ended by closing it."""
    with ExitStack() as all_of_them:
        running = dict[tuple[str, ...], ExitStack]()
        for command in PROCESSES:
            running[command] = all_of_them.enter_context(ExitStack())
            running[command].enter_context(house.running(*command))
        yield running


@asynccontextmanager
async def talking(
    house: House,
) -> AsyncIterator[tuple[People, dict[tuple[str, ...], ExitStack], str]]:
    """People who write, all processes, and their database. In the end each message has one
    answer."""
    async with FakeLLM() as llm, TelegramServer() as telegram:
        with running_server() as server, open_schema(server) as url:
            config = CONFIG.format(
                store=url, llm=llm.url, telegram=telegram.base_url.removesuffix("/bot")
            )
            (house.home / "deskhand.yaml").write_text(config)
            (house.home / ".env").write_text(f"BOT={telegram.token}\n")
            (house.home / ".env").chmod(0o600)
            for person in PEOPLE:
                linked = await anyio.to_thread.run_sync(
                    house.run, "users", "link", "owner", "telegram", str(person)
                )
                assert linked.returncode == 0, linked.stderr
            people = People(telegram)
            with processes(house) as running:
                async with anyio.create_task_group() as tasks:
                    for person in PEOPLE:
                        tasks.start_soon(people.write, person)
                    await all_are_answered_again(people)
                    people.waited_s.clear()
                    yield people, running, url
                    people.more = False
    for person in PEOPLE:
        said = telegram.chats.said(person)
        assert len(said) == people.written[person], "an answer for each message, and no more"
    sys.stdout.write(
        f"{len(people.waited_s)} messages, the slowest answer after {max(people.waited_s):.1f} s\n"
    )


@pytest.mark.timeout(400)
async def test_a_restart_of_each_drops_nothing(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    async with talking(house) as (people, running, _):
        for command in ("worker", "one"), ("serve",), ("worker", "two"):
            await restart(house, running[command], command)
            await all_are_answered_again(people)


@pytest.mark.timeout(400)
async def test_an_upgrade_drops_nothing(tmp_path: Path) -> None:
    """The files of a version that changes the tables are put in place while the old one runs; then
    the server is started anew, and the workers."""
    package = tmp_path / "lib" / "deskhand"
    shutil.copytree(
        Path(deskhand.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    house = House(tmp_path / "home")
    house.env["PYTHONPATH"] = str(package.parent)
    number = load_migrations()[-1][0] + 1
    async with talking(house) as (people, running, url):
        later = package / "store" / "migrations" / "postgresql" / f"{number:04}_later.sql"
        later.write_text("CREATE TABLE later(x INTEGER);\n")
        for command in ("serve",), ("worker", "one"), ("worker", "two"):
            await restart(house, running[command], command)
            await all_are_answered_again(people)
        with psycopg.connect(url) as db:
            assert db.execute("SELECT max(version) FROM schema_version").fetchone() == (number,)


async def restart(house: House, process: ExitStack, command: tuple[str, ...]) -> None:
    await anyio.to_thread.run_sync(process.close)
    process.enter_context(house.running(*command))


async def all_are_answered_again(people: People) -> None:
    """Everybody writes twice more, and is answered."""
    wanted = {person: number + 2 for person, number in people.written.items()}
    with anyio.fail_after(90):
        while any(people.written[person] < number for person, number in wanted.items()):
            await anyio.sleep(0.05)
