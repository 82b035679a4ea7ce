"""Crash at every boundary around one question about several calls: nothing is run that was not
allowed, nothing twice, and nothing that was allowed is lost without a word."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context, Outcome, Spec, make_result
from deskhand.types.events import ApprovalAnswered, ApprovalAsked, ToolFinished
from deskhand.types.identity import Address, Answer, Inbound, Principal
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, ToolCall, ToolResult

CONFIG = msgspec.convert({"defaults": {"models": ["scripted/test"]}}, Config, strict=False)
ANN = Principal("ann", ("owner",))
SESSION = "default/memory:1"
TEXTS = ("a", "b", "c")


class Post:
    """Reaches other machines; what it does must not be repeated."""

    def __init__(self, path: Path, fuse: Fuse) -> None:
        self.spec = Spec("post", "Posts a text.", {"type": "object"}, "network", "never")
        self._path = path
        self._fuse = fuse

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        self._fuse.tick("before post")
        with self._path.open("a") as file:
            file.write(msgspec.json.decode(arguments)["text"] + "\n")
        self._fuse.tick("after post")
        return make_result("posted", LOCAL)


def script(request: Request) -> Message:
    if any(shown.message.role == "tool" for shown in request.messages):
        return say("all done")
    raw = (msgspec.Raw(msgspec.json.encode({"text": text})) for text in TEXTS)
    return say("", *(ToolCall(f"c{i}", "post", each) for i, each in enumerate(raw)))


class World:
    """One home, one person, and as many lives as it takes. The person gives each answer once a
    question is open."""

    def __init__(self, home: Path, answers: tuple[str, ...]) -> None:
        home.mkdir()
        self.settings = Settings(Home(home), CONFIG)
        self.posted = home / "posted.txt"
        self.channel = MemoryChannel()
        self.answers = answers
        self.given: dict[str, str] = {}

    async def live(self, fuse: Fuse) -> bool:
        """Until everything is said. True when the fuse blew first."""
        self.channel._fuse = fuse
        tools = {"post": Post(self.posted, fuse)}
        parts = Parts(
            lambda name: ScriptedModel(script),
            tools,
            {},
            (self.channel,),
            lambda inbound: ANN,
            fused(fuse),
        )
        blown = False
        try:
            async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
                tasks.start_soon(app.run)
                with anyio.fail_after(60):
                    while not await self.settled(app):
                        await self.reply(app)
                        await anyio.sleep(0.002)
                tasks.cancel_scope.cancel()
        except* Crash:
            blown = True
        return blown

    async def settled(self, app: App) -> bool:
        owed = (
            self.channel.waiting
            or not self.channel.confirmed
            or await app.store.outbox_due(1e12, 10)
        )
        return not owed and not await app.store.open_sessions()

    async def reply(self, app: App) -> None:
        for ask in await app.store.open_asks(ANN):
            if ask.ask_id not in self.given:
                self.given[ask.ask_id] = self.answers[len(self.given)]
                answer = Answer(ask.ask_id, self.given[ask.ask_id])
                address = Address("memory", chat="1")
                self.channel.waiting.append(
                    Inbound(ask.ask_id, address, "ann", app.parts.clock.now(), answer)
                )

    async def check(self) -> tuple[list[str], list[str], int]:
        """What was posted, what is told as interrupted, and how many questions were put."""
        async with open_app(self.settings, Parts(lambda name: ScriptedModel(script))) as app:
            events = [each.event for each in await app.store.events(SESSION)]
        results = [event.result for event in events if isinstance(event, ToolFinished)]
        assert [each.call_id for each in results] == ["c0", "c1", "c2"], (
            "each has one result, in order"
        )
        answered = [event for event in events if isinstance(event, ApprovalAnswered)]
        assert {each.ask_id: each.choice for each in answered} == self.given and len(
            answered
        ) == len(self.given)
        posted = self.posted.read_text().split() if self.posted.exists() else []
        assert max(Counter(posted).values(), default=1) == 1, "posted twice"
        return (
            posted,
            _interrupted(results),
            sum(isinstance(event, ApprovalAsked) for event in events),
        )


def _interrupted(results: list[ToolResult]) -> list[str]:
    return [TEXTS[int(each.call_id[1:])] for each in results if each.status == "interrupted"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("answers", "allowed"),
    [(("once",), "abc"), (("each", "once", "no", "once"), "ac"), (("no",), "")],
)
async def test_every_boundary(tmp_path: Path, answers: tuple[str, ...], allowed: str) -> None:
    # How many boundaries there are depends on who is quicker: so it goes on until none is reached
    # any more.
    crashes = missed = at = 0
    while missed < 3:
        at += 1
        world = World(tmp_path / str(at), answers)
        world.channel.write("go")
        crashed = await world.live(Fuse(at))
        if crashed:
            assert not await world.live(Fuse())
        posted, interrupted, asks = await world.check()
        assert set(posted) | set(interrupted) == set(allowed), (at, posted, interrupted)
        assert len(interrupted) <= 1 and asks == len(answers)
        crashes += crashed
        missed = 0 if crashed else missed + 1
    assert crashes >= 12
