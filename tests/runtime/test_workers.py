"""A server and a worker in one process, on one PostgreSQL database: what the server knows of what
the worker does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.assembly.host import Host
from deskhand.config.config import Config, Home, Settings
from deskhand.jobs.hooks import _wait_for_agent, run_job_hook
from deskhand.jobs.ledger import RunEntry, new_run
from deskhand.runtime.app import App, Parts, open_app
from deskhand.runtime.screen_api import ELSEWHERE, ScreenApi
from deskhand.testing.postgres import PostgresServer, open_schema, running_server
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.door import Progress
from deskhand.types.errors import JobInvalid
from deskhand.types.events import TurnEnded
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.jobs import Job
from deskhand.types.messages import Message, Text
from deskhand.web.screen_views import Screen

OWNER = Principal("owner", ("owner",))
AGENTS = ("ann", "ben")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    with open_schema(server) as address:
        yield address


@asynccontextmanager
async def working(home: Path, url: str, model: ScriptedModel, worker: str) -> AsyncIterator[App]:
    config = msgspec.convert(
        {
            "store": url,
            "defaults": {"models": ["scripted/x"]},
            "agents": {agent: {} for agent in AGENTS},
            "web": {"enabled": False},
        },
        Config,
    )
    settings = Settings(Home(home, worker), config)
    async with (
        open_app(settings, Parts(lambda name: model, {})) as app,
        anyio.create_task_group() as tasks,
    ):
        begun = anyio.Event()
        tasks.start_soon(app.run, begun.set)
        with anyio.fail_after(20):
            await begun.wait()
        yield app
        tasks.cancel_scope.cancel()


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not true():
            await anyio.sleep(0.01)


async def first_end(app: App, session: str) -> str:
    """How the first turn of this session ends."""
    with anyio.fail_after(20):
        while True:
            for recorded in await app.store.events(session):
                if isinstance(recorded.event, TurnEnded):
                    return recorded.event.reason
            await anyio.sleep(0.01)


async def write(app: App, agent: str, text: str) -> str:
    inbound = Inbound(
        external_id=text,
        address=Address("web", chat="x"),
        sender="owner",
        at=1.0,
        body=Said(Message("user", (Text(text),))),
        session=f"{agent}/web:owner:x",
    )
    receipt = await app.door.submit(inbound)
    assert receipt.status == "accepted"
    return receipt.session


@asynccontextmanager
async def both(home: Path, url: str) -> AsyncIterator[tuple[App, App, str, str]]:
    """The server, the worker, and an agent that each of them drives."""
    home.mkdir()
    model = ScriptedModel(piece=3, pause_s=0.02)
    async with (
        working(home, url, model, "") as server,
        working(home, url, model, "two") as worker,
    ):
        await until(lambda: len(server.share.held) == 1 and len(worker.share.held) == 1)
        (own,), (other,) = server.share.held, worker.share.held
        yield server, worker, own, other


async def test_who_follows_on_the_server_sees_what_a_worker_writes(
    tmp_path: Path, url: str
) -> None:
    async with both(tmp_path / "home", url) as (server, worker, own, other):
        for agent in (other, own):
            session = await write(server, agent, f"hello {agent}")
            assert worker.dispatch.drives(session) is (agent == other)
            seen = []
            with anyio.fail_after(20):
                async for item in server.door.follow(session, OWNER):
                    if not isinstance(item, Progress):
                        seen.append(item)
                    if not isinstance(item, Progress) and isinstance(item.event, TurnEnded):
                        break
            assert [item.n for item in seen] == list(range(1, len(seen) + 1))
            assert await server.store.events(session) == seen


async def test_what_a_worker_is_saying_is_seen_while_it_says_it(tmp_path: Path, url: str) -> None:
    async with both(tmp_path / "home", url) as (server, worker, _, other):
        worker.parts.model("x").piece = 1  # type: ignore[attr-defined]
        session = await write(server, other, "a long answer, letter by letter, that takes a while")
        pieces = ""
        late = ""
        with anyio.fail_after(20):
            async for item in server.door.follow(session, OWNER):
                if not isinstance(item, Progress):
                    if isinstance(item.event, TurnEnded):
                        break
                elif item.kind == "text":
                    assert item.offset == len(pieces)
                    pieces += item.text
                    if len(pieces) > 10 and not late:
                        late = await first_text(server, session)
        assert len(pieces) > 20 and late.startswith(pieces[:10]), "who comes late sees all of it"


async def first_text(app: App, session: str) -> str:
    """The first that somebody sees of an answer who follows from now on."""
    async for item in app.door.follow(session, OWNER):
        if isinstance(item, Progress):
            assert item.kind == "snapshot"
            return item.text
    return ""


async def test_a_stop_reaches_the_worker_at_once(tmp_path: Path, url: str) -> None:
    async with both(tmp_path / "home", url) as (server, worker, _, other):
        for pool in (server, worker):
            pool.parts.model("x").pause_s = 5.0  # type: ignore[attr-defined]
        session = await write(server, other, "take your time")
        await until(lambda: worker.dispatch.turn(session) is not None)
        with anyio.fail_after(3):
            await server.door.stop(session, OWNER)
            assert await first_end(server, session) == "stopped"


async def test_listeners_of_the_server_hear_of_it_once(tmp_path: Path, url: str) -> None:
    async with both(tmp_path / "home", url) as (server, _, own, other):
        heard = []

        class Ear:
            listens_to = (TurnEnded,)

            def on_event(self, recorded: object) -> None:
                heard.append(recorded)

        server.publisher.join(Ear())
        sessions = [await write(server, agent, f"again {agent}") for agent in (own, other)]
        await until(lambda: len(heard) >= 2)
        await anyio.sleep(0.2)
        assert sorted(each.session for each in heard) == sorted(sessions)  # type: ignore[attr-defined]


async def test_hooks_run_only_where_the_server_drives(tmp_path: Path, url: str) -> None:
    async with both(tmp_path / "home", url) as (server, _, _, other):
        job = Job(name="j", agent=other, prompt="x", schedule="every 1h")
        entry = RunEntry(new_run(job, "slot", 1.0).run, job)
        host: Host = server.tool_wiring.host
        with pytest.raises(JobInvalid, match=f"agents.{other}.on_server"):
            await run_job_hook(host, entry, OWNER, folder=tmp_path, script="x.sh", stdin=b"")


async def test_a_hook_waits_until_its_agent_is_driven(tmp_path: Path, url: str) -> None:
    """As when Deskhand starts, with a job that is due."""
    home = tmp_path / "home"
    home.mkdir()
    async with working(home, url, ScriptedModel(), "") as server:
        for agent in AGENTS:
            await _wait_for_agent(server.tool_wiring.host, agent)
            assert agent in server.share.held


async def test_a_person_on_one_process_resets_the_rounds_of_another(
    tmp_path: Path, url: str
) -> None:
    async with both(tmp_path / "home", url) as (server, worker, own, _):
        await write(server, own, "first")
        assert not server.rounds.counted
        await worker.rounds.begin_round("a command")
        await write(server, own, "second")
        assert not await worker.rounds.are_counted()


async def test_who_ends_leaves_everything_to_the_others(tmp_path: Path, url: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    model = ScriptedModel()
    async with working(home, url, model, "") as server:
        async with working(home, url, model, "two") as worker:
            await until(lambda: len(worker.share.held) == 1)
            (other,) = worker.share.held
        await until(lambda: server.share.held == set(AGENTS))
        session = await write(server, other, "who is there?")
        assert await first_end(server, session) == "done"


async def test_what_the_agent_of_a_worker_sees_is_not_watched_on_the_server(
    tmp_path: Path, url: str
) -> None:
    async with both(tmp_path / "home", url) as (server, _, own, other):
        screen = ScreenApi(server)
        assert screen.list_views(OWNER, f"{own}/web:owner:x") == Screen([])
        assert screen.list_views(OWNER, f"{other}/web:owner:x") == Screen([], ELSEWHERE)
        assert await screen.take_picture(OWNER, f"{other}/web:owner:x", "browser-1-1") is None
