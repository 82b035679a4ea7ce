"""An answer is shown while it is written, in the message that it becomes; whatever happens there is
one of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.gateway.streamed_replies import BROKEN_OFF, GOES_ON
from deskhand.models.base import Item, Model, Reply, Request, TextDelta
from deskhand.runtime.app import App, Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryEditor
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.scripted import say
from deskhand.testing.tools import FileTool
from deskhand.types.commit import Outgoing
from deskhand.types.errors import ModelUnavailable
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text, ToolCall

ANN = Principal("ann", ("owner",))
CONFIG = msgspec.convert({"defaults": {"models": ["scripted/test"]}}, Config, strict=False)


class Slow:
    """Says the first half, waits until it is `shown` (or 100 looks long), then the rest. With a
    tool: first it makes a call beside its words."""

    def __init__(
        self, shown: Callable[[str], bool], *, calls: bool = False, fails: int = 0
    ) -> None:
        self.shown = shown
        self.calls = calls
        self.fails = fails
        self.asked = 0

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        self.asked += 1
        done = any(each.message.role == "tool" for each in request.messages)
        first = self.calls and not done
        head, tail = ("let me", " look") if first else ("the answer", " is 42")
        yield TextDelta(head)
        for _ in range(100):
            if self.shown(head):
                break
            await anyio.sleep(0.01)
        if self.fails:
            self.fails -= 1
            raise ModelUnavailable("broken off", 0.0)
        yield TextDelta(tail)
        call = (ToolCall("c", "write", msgspec.Raw(b'{"text":"w"}')),) if first else ()
        message: Message = say(head + tail, *call)
        yield Reply(message, "calls" if call else "stop")


class Busy(MemoryEditor):
    """Asks to wait at the first message. `tried` is what was to be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[str] = []

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        self.tried += [part.text for part in outgoing.parts if isinstance(part, Text)]
        self.retry_after_s = 0.01 if len(self.tried) == 1 else None
        return await super().send(outgoing, mark)


class World:
    """One home and one platform, with as many lives as it takes."""

    def __init__(self, home: Path, *, calls: bool = False) -> None:
        self.settings = Settings(Home(home), CONFIG)
        self.channel: MemoryEditor = MemoryEditor()
        self.home = home
        self.first_s = 0.01
        self.model: Model = Slow(self.shown, calls=calls)

    def shown(self, text: str = "the answer") -> bool:
        return text + GOES_ON in self.channel.posts.values()

    def parts(self, fuse: Fuse) -> Parts:
        self.channel._fuse = fuse
        tools = {"write": FileTool("write", self.home / "w.txt")}
        return Parts(lambda _: self.model, tools, {}, (self.channel,), lambda _: ANN, fused(fuse))

    @asynccontextmanager
    async def running(self, fuse: Fuse | None = None) -> AsyncIterator[App]:
        async with (
            open_app(self.settings, self.parts(fuse or Fuse())) as app,
            anyio.create_task_group() as tasks,
        ):
            app.drafts.first_s = self.first_s
            app.drafts.orphan_check_s = 0.02
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def live(self, fuse: Fuse) -> bool:
        """Run until everything is sent and nothing is left. True when the fuse blew first."""
        blown = False
        try:
            async with self.running(fuse) as app:
                with anyio.fail_after(60):
                    while not await self.settled(app):
                        await anyio.sleep(0.002)
        except* Crash:
            blown = True
        return blown

    async def settled(self, app: App) -> bool:
        if self.channel.waiting or not self.channel.confirmed or await app.store.open_sessions():
            return False
        return not await app.store.outbox_due(1e12, 10) and not await app.store.query(
            "drafts_left", ()
        )


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.005)


async def test_the_answer_is_written_over_its_beginning(tmp_path: Path) -> None:
    world = World(tmp_path / "home", calls=True)
    seen: set[str] = set()

    def shown(text: str) -> bool:
        seen.update(world.channel.posts.values())
        return world.shown(text)

    world.model = Slow(shown, calls=True)
    world.channel.write("go")
    assert not await world.live(Fuse())
    assert list(world.channel.posts.values()) == ["let me look", "the answer is 42"]
    assert {"let me" + GOES_ON, "the answer" + GOES_ON} <= seen
    assert len(world.channel.sent) == 2, "everything else was an edit"


async def test_what_is_done_at_once_is_no_draft(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.first_s = 30.0
    world.model = Slow(lambda _: True)
    world.channel.write("go")
    assert not await world.live(Fuse())
    assert world.channel.posts == {"1": "the answer is 42"} and world.channel.edits == []


async def test_a_second_try_goes_on_in_the_same_message(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.model = Slow(world.shown, fails=1)
    world.channel.write("go")
    assert not await world.live(Fuse())
    assert world.channel.posts == {"1": "the answer is 42"}


async def test_a_platform_that_asks_to_wait_gets_no_previews(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.channel = busy = Busy()
    world.model = Slow(lambda _: len(busy.tried) > 0)
    world.channel.write("go")
    assert not await world.live(Fuse())
    assert busy.tried == ["the answer" + GOES_ON, "the answer is 42"]
    assert list(world.channel.posts.values()) == ["the answer is 42"]


async def test_an_answer_to_a_command_is_not_written_over_a_draft(tmp_path: Path) -> None:
    """It was asked for while a reply was being written, and comes before the next try at that."""
    world = World(tmp_path / "home")
    world.model = Slow(lambda _: "2" in world.channel.confirmed, fails=1)
    world.channel.write("go")
    async with world.running():
        await until(world.shown)
        world.channel.write("/help")
        await until(
            lambda: (
                "the answer is 42" in world.channel.posts.values() and len(world.channel.posts) == 2
            )
        )
    assert world.channel.posts["1"] == "the answer is 42" and "/help" in world.channel.posts["2"]


async def test_a_draft_that_nothing_completes_says_so(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.model = Slow(lambda _: False)
    world.channel.write("go")
    async with world.running() as app:
        await until(world.shown)
        assert await app.store.query("drafts_left", ()) == []
    store = SqliteStore(world.settings.home.database)  # somebody closed the session by hand
    await store._writer.run(lambda db: db.execute("DELETE FROM open_session").fetchall())
    await store.close()
    assert not await world.live(Fuse())
    assert world.channel.posts == {"1": BROKEN_OFF}


def check(world: World, where: str) -> None:
    """One answer, or others with a mark; nothing half beside it."""
    posts = list(world.channel.posts.values())
    finals = [text for text in posts if "is 42" in text]
    unmarked = [text for text in finals if not text.startswith("(may be a duplicate)")]
    halves = [text for text in posts if text.endswith(GOES_ON)]
    assert finals, f"lost: {where}: {posts}"
    assert len(unmarked) <= 1, f"twice, unmarked: {where}: {posts}"
    for half in halves:
        whole = half.removesuffix(GOES_ON)
        twins = [text for text in posts if whole in text and text != half]
        assert twins and all(text.startswith("(may be a duplicate)") for text in twins), (
            f"{where}: {posts}"
        )


async def live_through(home: Path, *crashes: int, calls: bool) -> tuple[int, list[str], World]:
    world = World(home, calls=calls)
    crashed = 0
    passed: list[str] = []
    world.channel.write("go")
    for at in (*crashes, 0):
        fuse = Fuse(at)
        blew = await world.live(fuse)
        crashed += blew
        passed = passed or fuse.passed
        if not blew:
            break
    return crashed, passed, world


@pytest.mark.timeout(240)
@pytest.mark.parametrize("calls", [False, True])
async def test_every_boundary(calls: bool, tmp_path: Path) -> None:
    _, boundaries, world = await live_through(tmp_path / "0", calls=calls)
    check(world, "in peace")
    assert {"before edit", "after edit", "before send", "after send"} <= set(boundaries)
    for at in range(1, len(boundaries) + 1):
        _, passed, world = await live_through(tmp_path / str(at), at, calls=calls)
        check(world, f"{at}: {passed[-1]}")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("first", [4, 6])
async def test_pairs_of_boundaries(first: int, tmp_path: Path) -> None:
    _, boundaries, _ = await live_through(tmp_path / "0", calls=False)
    for a in range(first, len(boundaries) + 1, 4):
        for b in range(2, 16, 3):
            _, passed, world = await live_through(tmp_path / f"{a}-{b}", a, b, calls=False)
            check(world, f"{a}-{b}: {passed[-1]}")
