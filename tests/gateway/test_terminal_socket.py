"""A terminal beside the process that drives: it hears every piece, and loses nothing when that
process dies."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.gateway.terminal_socket import SocketFrame, SocketRequest, ask_health, serve_socket
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.door import Progress
from deskhand.types.events import ModelReplied, Recorded, TurnEnded
from deskhand.types.health import Health
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Message, Text

SESSION = "default/terminal:t"
HEALTHY = Health("ok", 1.0, "1", 1, 1.0, "", ())


@asynccontextmanager
async def driving(
    home: Path, pieces: int, pause_s: float = 0.01
) -> AsyncIterator[subprocess.Popen[str]]:
    """Another process that drives this home, and answers on its socket."""
    argv = [
        sys.executable,
        str(Path(__file__).with_name("driving.py")),
        str(home),
        str(pieces),
        str(pause_s),
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "driving\n"
            with anyio.fail_after(20):
                while await ask_health(home / "state" / "deskhand.sock") is None:
                    await anyio.sleep(0.01)
            yield process
        finally:
            process.kill()


@asynccontextmanager
async def beside(home: Path) -> AsyncIterator[App]:
    """An app that does not drive."""
    settings = Settings(Home(home), Config()).with_model("scripted/quick")
    async with open_app(
        settings, Parts(lambda name: ScriptedModel(lambda request: say("all over again")), {})
    ) as app:
        yield app


async def submit(app: App, number: int = 1) -> int:
    said = Said(Message("user", (Text("hello"),)))
    receipt = await app.door.submit(
        Inbound(f"in-{number}", Address("terminal", chat="t"), "owner", 1.0, said)
    )
    return receipt.after


async def follow(app: App, after: int, seen: list[Recorded | Progress]) -> None:
    """Up to the end of the turn."""
    with anyio.fail_after(40):
        async with aclosing(app.door.follow(SESSION, OWNER, after)) as items:
            async for item in items:
                seen.append(item)
                if isinstance(item, Recorded) and isinstance(item.event, TurnEnded):
                    return


def recorded(seen: list[Recorded | Progress]) -> list[Recorded]:
    return [item for item in seen if isinstance(item, Recorded)]


def pieces(seen: list[Recorded | Progress]) -> list[Progress]:
    return [
        item for item in seen if isinstance(item, Progress) and item.kind in ("text", "snapshot")
    ]


async def test_a_follower_that_leaves_breaks_nothing(tmp_path: Path) -> None:
    """However it leaves: the socket goes on answering the others."""
    path = tmp_path / "s"
    left = anyio.Event()

    async def talk(
        session: str, principal: Principal, after: int
    ) -> AsyncGenerator[Recorded | Progress]:
        for offset in range(2_000):
            yield Progress("text", 1, offset=offset, text="x" * 1_000)
            await anyio.sleep(0)
            if left.is_set() and offset % 100 == 0:
                await anyio.sleep(0.001)

    async def health() -> Health:
        return HEALTHY

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_socket, path, talk, health)
        with anyio.fail_after(20):
            while not path.exists():
                await anyio.sleep(0.001)
            for number in range(60):
                stream = await anyio.connect_unix(path)
                await stream.send(msgspec.json.encode(SocketRequest(SESSION, OWNER)) + b"\n")
                await stream.receive(10 + number * 1_000)
                if number % 2:  # unread bytes and a reset, and not a plain end
                    stream.extra_attributes[anyio.abc.SocketAttribute.raw_socket]().setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                await stream.aclose()
            left.set()
            assert await ask_health(path) == HEALTHY
        tasks.cancel_scope.cancel()


async def test_what_the_model_says_is_heard_piece_by_piece(tmp_path: Path) -> None:
    seen: list[Recorded | Progress] = []
    async with driving(tmp_path, 60):
        async with beside(tmp_path) as app:
            await follow(app, await submit(app), seen)
            log = await app.store.events(SESSION)
        mode = (tmp_path / "state" / "deskhand.sock").stat().st_mode
    assert mode & 0o777 == 0o600
    assert (
        [item.n for item in recorded(seen)]
        == [item.n for item in log]
        == list(range(1, len(log) + 1))
    )
    heard = pieces(seen)
    assert len(heard) > 20, "as it is said, not at the end"
    text = next(
        item.event.message.text for item in recorded(seen) if isinstance(item.event, ModelReplied)
    )
    said = ""
    for piece in heard:
        assert piece.offset == len(said) or piece.kind == "snapshot"
        said = said[: piece.offset] + piece.text
    assert text.startswith(said) and said


async def test_who_comes_late_gets_what_was_said_so_far(tmp_path: Path) -> None:
    first: list[Recorded | Progress] = []
    late: list[Recorded | Progress] = []
    async with (
        driving(tmp_path, 150),
        beside(tmp_path) as app,
        beside(tmp_path) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(follow, app, await submit(app), first)
        with anyio.fail_after(20):
            while len(pieces(first)) < 20:
                await anyio.sleep(0.01)
        await follow(other, 0, late)
    heard = pieces(late)
    assert heard[0].kind == "snapshot" and "piece 005" in heard[0].text and len(heard) > 5
    assert [item.n for item in recorded(late)] == [item.n for item in recorded(first)]


async def test_the_other_process_is_killed_in_mid_stream(tmp_path: Path) -> None:
    """The follower goes on with the log, takes over, and ends with the same events as everybody."""
    seen: list[Recorded | Progress] = []
    async with (
        driving(tmp_path, 2000) as process,
        beside(tmp_path) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(follow, app, await submit(app), seen)
        with anyio.fail_after(20):
            while len(pieces(seen)) < 20:
                await anyio.sleep(0.01)
        process.kill()
        process.wait()
        with anyio.fail_after(20):
            while not any(isinstance(item, Progress) and item.kind == "reset" for item in seen):
                await anyio.sleep(0.01)
        tasks.start_soon(app.run)
        with anyio.fail_after(40):
            while not any(isinstance(item.event, TurnEnded) for item in recorded(seen)):
                await anyio.sleep(0.01)
        log = await app.store.events(SESSION)
        tasks.cancel_scope.cancel()
    assert (
        [item.n for item in recorded(seen)]
        == [item.n for item in log]
        == list(range(1, len(log) + 1))
    )
    assert next(
        item.event.message.text for item in recorded(seen) if isinstance(item.event, ModelReplied)
    ) == ("all over again")


async def test_one_that_begins_to_drive_later_is_found(tmp_path: Path) -> None:
    seen: list[Recorded | Progress] = []
    async with beside(tmp_path) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(follow, app, await submit(app), seen)
        await anyio.sleep(0.2)
        async with driving(tmp_path, 300):
            with anyio.fail_after(30):
                while not pieces(seen):
                    await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A home whose socket has a longer path than the kernel takes."""
    return tmp_path / ("d" * 60) / ("e" * 60)


async def test_a_home_may_lie_deep(deep: Path) -> None:
    seen: list[Recorded | Progress] = []
    async with driving(deep, 40):
        async with beside(deep) as app:
            await follow(app, await submit(app), seen)
        assert (await ask_health(deep / "state" / "deskhand.sock")) is not None
    assert pieces(seen)


async def test_health_is_answered_and_a_socket_that_nobody_serves_is_no_trouble(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state" / "deskhand.sock"
    assert await ask_health(path) is None
    async with driving(tmp_path, 1) as process:
        health = await ask_health(path)
        assert health is not None and health.pid == process.pid
        assert {"driver", "store", "owed"} <= {fact.name for fact in health.facts}
    assert path.exists() and await ask_health(path) is None, "it was killed, so the file stays"
    async with driving(tmp_path, 1):
        assert await ask_health(path) is not None, "and does not stand in the way of the next"


@pytest.mark.parametrize(
    "asked", [b"\n", b"{}x\n", b'{"session": 7}\n', b"x" * 100_000, b'{"principal": {"id": 1}}\n']
)
async def test_nonsense_is_hung_up_on(tmp_path: Path, asked: bytes) -> None:
    async with driving(tmp_path, 1):
        async with await anyio.connect_unix(tmp_path / "state" / "deskhand.sock") as stream:
            await stream.send(asked)
            with (
                anyio.fail_after(20),
                pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)),
            ):
                await stream.receive()
        assert await ask_health(tmp_path / "state" / "deskhand.sock") is not None


async def test_whose_session_it_is_counts_here_too(tmp_path: Path) -> None:
    async with driving(tmp_path, 1):
        async with beside(tmp_path) as app:
            await submit(app)
        async with await anyio.connect_unix(tmp_path / "state" / "deskhand.sock") as stream:
            await stream.send(
                msgspec.json.encode(SocketRequest(SESSION, Principal("eve", ("member",)))) + b"\n"
            )
            line = msgspec.json.decode(await stream.receive(), type=SocketFrame)
    assert "is not yours to see" in line.error and line.recorded is None


async def test_another_user_is_not_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who asks is what the kernel says, not the peer."""
    path = tmp_path / "other.sock"
    async with beside(tmp_path) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(serve_socket, path, app.door.follow, app.health, os.getuid() + 1)
        with anyio.fail_after(20):
            while "another user of this machine" not in caplog.text:
                assert await ask_health(path) is None
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert not path.exists()
