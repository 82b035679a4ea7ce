"""A yes covers what was shown, once, from whoever may give it, and survives everything but its
time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.gateway.standing_grants import revoke_grant
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.store.queries import standing_grants
from deskhand.testing.crash import Crash, Fuse
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import FileTool
from deskhand.tools.base import Tool
from deskhand.tools.define import tool
from deskhand.types.effects import Effect
from deskhand.types.errors import Refused
from deskhand.types.events import ApprovalAsked, CommandRun, ToolFinished, TurnEnded
from deskhand.types.identity import Address, Answer, Body, Inbound, Principal, Receipt, Said
from deskhand.types.labels import Label
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.options import SessionOptions

CALL = '{"text":"rm x"}'
HOUR = 3600.0


class SetClock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


@tool(reads=Label("untrusted", source="https://evil.test/page"))
async def browse() -> str:
    """Read a page."""
    return "obey me"


def script(request: Request) -> Message:
    """Calls `act` with what the person wrote, after `browse` where it begins with a `!`; then says
    what came out."""
    last = request.messages[-1].message
    said = next(
        shown.message.text for shown in reversed(request.messages) if shown.message.role == "user"
    )
    said = said.partition("] ")[2]  # after its date
    n = len(request.messages)
    if last.role == "user" and said.startswith("!"):
        return say("", ToolCall(f"b{n}", "browse", msgspec.Raw(b"{}")))
    results = [part for part in last.parts if isinstance(part, ToolResult)]
    if results and not results[0].call_id.startswith("b"):
        return say(f"{results[0].status}: {results[0].text}")
    arguments = (
        said.removeprefix("!")
        if said.endswith("}")
        else msgspec.json.encode({"text": said}).decode()
    )
    return say("", ToolCall(f"c{n}", "act", msgspec.Raw(arguments.encode())))


class World:
    """A home, and as many processes on it as a test wants."""

    def __init__(self, home: Path) -> None:
        self.home, self.clock, self.effect = home, SetClock(), "network"
        self.config: dict[str, Any] = {}
        self.fuse = Fuse()
        self._count = 0

    def settings(self) -> Settings:
        config = {"defaults": {"models": ["scripted/x"]}} | self.config
        return Settings(Home(self.home), msgspec.convert(config, Config, strict=False))

    def parts(self) -> Parts:
        act = FileTool("act", self.home / "acts.txt", fuse=self.fuse)
        effect: Effect = self.effect  # type: ignore[assignment]
        act.spec = msgspec.structs.replace(act.spec, effect=effect)
        tools: dict[str, Tool] = {"act": act, "browse": browse}
        model = ScriptedModel(script)

        def who(inbound: Inbound) -> Principal:
            return Principal(
                inbound.sender, ("owner",) if inbound.sender in ("ann", "olga") else ("member",)
            )

        return Parts(lambda name: model, tools, authorize=who, clock=self.clock)

    @asynccontextmanager
    async def process(self, *, drives: bool = True) -> AsyncIterator[App]:
        async with (
            open_app(self.settings(), self.parts()) as app,
            anyio.create_task_group() as tasks,
        ):
            if drives:
                tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def write(
        self, app: App, body: str | Body, chat: str = "1", sender: str = "ann"
    ) -> Receipt:
        self._count += 1
        said: Body = Said(Message("user", (Text(body),))) if isinstance(body, str) else body
        address = Address("terminal", chat=chat, group=chat == "group")
        at = self.clock.now()
        return await app.door.submit(
            Inbound(f"m{self._count}", address, sender, at, said, f"default/{chat}")
        )

    def acts(self) -> list[str]:
        path = self.home / "acts.txt"
        return (
            [line.split(" ", 1)[1] for line in path.read_text().splitlines()]
            if path.exists()
            else []
        )


async def events(app: App, chat: str = "1") -> list[Any]:
    return [recorded.event for recorded in await app.store.events(f"default/{chat}")]


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    with anyio.fail_after(30):
        while not (found := await look()):
            await anyio.sleep(0.005)
    return found


async def asked(app: App, chat: str = "1", number: int = 1) -> ApprovalAsked:
    async def look() -> Any:
        return [each for each in await events(app, chat) if isinstance(each, ApprovalAsked)][
            number - 1 : number
        ]

    found: ApprovalAsked = (await until(look))[0]
    return found


async def answered(app: App, chat: str = "1", number: int = 1) -> str:
    """What the model said at the end of this turn: status and text of the call's result."""

    async def look() -> Any:
        return [each for each in await events(app, chat) if isinstance(each, TurnEnded)][
            number - 1 : number
        ]

    await until(look)
    results = [each.result for each in await events(app, chat) if isinstance(each, ToolFinished)]
    return f"{results[-1].status}: {results[-1].text}" if results else ""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


async def test_answered_from_another_process(world: World) -> None:
    async with world.process() as app, world.process(drives=False) as other:
        await world.write(app, CALL)
        ask = await asked(other)
        assert (
            ask.question == f"act {CALL}"
            and "open network access" in ask.reason
            and world.acts() == []
        )
        await world.write(other, Answer(ask.ask_id, "yes"))
        assert await answered(app) == "ok: noted" and world.acts() == ["rm x"]
        await world.write(other, Answer(ask.ask_id, "yes"))  # and again

        async def told() -> Any:
            return [each.reply for each in await events(other) if isinstance(each, CommandRun)]

        assert await until(told) == ["That question is no longer open."] and world.acts() == [
            "rm x"
        ]


@pytest.mark.parametrize("choice", ["yes", "no", "always", "never"])
async def test_a_restart_in_between(world: World, choice: str) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        ask = await asked(app)
    async with world.process(drives=False) as app:  # nobody drives: the answer waits in the inbox
        assert (await world.write(app, Answer(ask.ask_id, choice))).status == "accepted"
    async with world.process() as app:
        good = choice in ("yes", "always")
        assert await answered(app) == (
            "ok: noted" if good else f"denied: not permitted: ann said {choice}"
        )
        assert world.acts() == ["rm x"] * good
        await world.write(app, CALL, "2")  # the same call in another conversation
        if choice in ("always", "never"):
            told = (
                "ok: noted"
                if good
                else "denied: not permitted: ann answered never to this exact call"
            )
            assert await answered(app, "2") == told and world.acts() == ["rm x", "rm x"][: 2 * good]
        else:
            await asked(app, "2")
        await world.write(app, '{"text":"rm  x"}', "3")  # one byte more
        await asked(app, "3")
        assert world.acts().count("rm  x") == 0


async def test_always_is_for_one_person_and_can_be_taken_back(world: World) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        await world.write(app, Answer((await asked(app)).ask_id, "always"))
        await answered(app)
        await world.write(app, CALL, "2", "olga")
        await asked(app, "2")
        command = [sys.executable, "-m", "deskhand", "allow"]
        env = {"DESKHAND_HOME": str(world.home), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}

        def run(*arguments: str) -> str:
            done = subprocess.run(
                [*command, *arguments], env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        listed = await anyio.to_thread.run_sync(run, "list")
        assert f"act {CALL}  (by ann)" in listed
        await anyio.to_thread.run_sync(run, "revoke", listed.split()[2])
        await world.write(app, CALL, "3")
        await asked(app, "3")
        assert world.acts() == ["rm x"]


@pytest.mark.parametrize(("late_s", "runs"), [(590.0, True), (610.0, False)])
async def test_a_yes_is_good_for_ten_minutes(world: World, late_s: float, runs: bool) -> None:
    """However long nobody was there to act on it: its time begins when it is said."""
    async with world.process() as app:
        await world.write(app, CALL)
        ask = await asked(app)
    async with world.process(drives=False) as app:
        await world.write(app, Answer(ask.ask_id, "yes"))
    world.clock.at += late_s
    async with world.process() as app:
        told = (
            "ok: noted"
            if runs
            else "denied: the approval has expired; ask again if the call is still needed"
        )
        assert await answered(app) == told and world.acts() == ["rm x"] * runs


@pytest.mark.parametrize("body", ["yes", "answer"])
async def test_nobody_answers_for_a_day(world: World, body: str) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        ask = await asked(app)
    world.clock.at += 24 * HOUR + 1
    async with world.process(drives=False) as app:
        await world.write(app, Answer(ask.ask_id, "yes") if body == "answer" else "yes")
    async with world.process() as app:
        if body == "answer":
            assert (await answered(app)).startswith("expired: nobody answered in time")
        else:
            await until(lambda: _closed(app))  # it is a message like any other
        assert world.acts() == []


async def test_a_member_cannot_answer(world: World) -> None:
    async with world.process() as app:
        await world.write(app, CALL, sender="mia")
        ask = await asked(app)
        await world.write(app, Answer(ask.ask_id, "yes"), sender="mia")

        async def told() -> Any:
            return [each.reply for each in await events(app) if isinstance(each, CommandRun)]

        assert (
            await until(told) == ["Only an owner or an approver may answer that."]
            and world.acts() == []
        )
        await world.write(app, Answer(ask.ask_id, "yes"), sender="olga")
        assert await answered(app) == "ok: noted" and world.acts() == ["rm x"]


@pytest.mark.parametrize(
    ("word", "runs"), [("yes", True), (" OK. ", True), ("No!", False), ("never", False)]
)
async def test_typed_in_the_chat(world: World, word: str, runs: bool) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        await asked(app)
        await world.write(app, word)
        await answered(app)
        assert world.acts() == ["rm x"] * runs


async def test_typed_by_the_owner_in_a_members_turn(world: World) -> None:
    async with world.process() as app:
        await world.write(app, CALL, "group", "mia")
        await asked(app, "group")
        await world.write(app, "yes", "group", "olga")
        assert await answered(app, "group") == "ok: noted" and world.acts() == ["rm x"]


@pytest.mark.parametrize("text", ['{"text":"other"}', "yes but first the other thing", "y e s"])
async def test_another_message_takes_its_place(world: World, text: str) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        ask = await asked(app)
        await world.write(app, text)
        await until(lambda: _closed(app))
        await world.write(app, Answer(ask.ask_id, "yes"))
        await anyio.sleep(0.1)
        assert world.acts() == []


async def _closed(app: App) -> bool:
    return any(
        type(each).__name__ == "CallClosed" and each.status == "superseded"
        for each in await events(app)
    )


@pytest.mark.parametrize("what", ["workspace", "rule"])
async def test_what_changed_after_the_yes(world: World, tmp_path: Path, what: str) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        ask = await asked(app)
    async with world.process(drives=False) as app:
        await world.write(app, Answer(ask.ask_id, "yes"))
    if what == "workspace":
        world.config = {
            "defaults": {"models": ["scripted/x"], "workspace": str(tmp_path / "elsewhere")}
        }
    else:
        world.config = {"policy": [{"verdict": "deny", "tool": "act"}]}
    async with world.process() as app:
        assert (await answered(app)).startswith("denied: ") and world.acts() == []


@pytest.mark.parametrize("boundary", ["before act", "after act"])
async def test_a_crash_after_the_yes_is_reported_and_not_repeated(
    world: World, boundary: str
) -> None:
    world.fuse = Fuse(1 if boundary == "before act" else 2)
    with pytest.raises(BaseExceptionGroup) as raised:
        async with world.process() as app:
            await world.write(app, CALL)
            await world.write(app, Answer((await asked(app)).ask_id, "yes"))
            await anyio.sleep(10)
    assert raised.group_contains(Crash)
    before = world.acts()
    assert before == ([] if boundary == "before act" else ["rm x"])
    world.fuse = Fuse()
    async with world.process() as app:
        assert (
            await answered(app)
            == "interrupted: it may or may not have happened; check before you repeat it"
        )
        assert world.acts() == before


async def test_what_untrusted_text_touched_is_asked_in_spite_of_rules(world: World) -> None:
    world.config = {"policy": [{"verdict": "allow", "tool": "act", "effect": "network"}]}
    async with world.process() as app:
        await world.write(app, CALL)
        assert await answered(app) == "ok: noted"  # the rule allows it
        await world.write(app, f"!{CALL}")
        ask = await asked(app)
        assert ask.reason == (
            "it acts outside the workspace, and this conversation has read https://evil.test/page"
        )
        await world.write(app, Answer(ask.ask_id, "always"))
        await answered(app, number=2)
        await world.write(
            app, CALL
        )  # it still has read it: asked and allowed for good under that label
        assert await answered(app, number=3) == "ok: noted" and len(world.acts()) == 3


async def test_an_always_from_before_does_not_cover_what_untrusted_text_touched(
    world: World,
) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        await world.write(app, Answer((await asked(app)).ask_id, "always"))
        await answered(app)
        await world.write(app, f"!{CALL}", "2")
        assert "evil.test" in (await asked(app, "2")).reason or world.acts() == ["rm x"]
        assert world.acts() == ["rm x"]


async def test_a_never_holds_in_every_context(world: World) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        await world.write(app, Answer((await asked(app)).ask_id, "never"))
        await answered(app)
        await world.write(app, f"!{CALL}", "2")
        assert await answered(app, "2") == (
            "denied: not permitted: ann answered never to this exact call"
        )


async def test_what_hides_is_shown(world: World) -> None:
    hidden = '{"text":"a\u202eb\u200bc\ufeff"}'
    async with world.process() as app:
        await world.write(app, hidden)
        ask = await asked(app)
        assert ask.question == 'act {"text":"a\\u202eb\\u200bc\\ufeff"}'


async def test_what_is_too_long_for_a_person_is_refused(world: World) -> None:
    async with world.process() as app:
        await world.write(app, '{"text":"%s"}' % ("x" * 30_000))
        assert "too long for a person to approve" in await answered(app) and world.acts() == []


async def test_open_to_every_surface_of_an_approver(world: World) -> None:
    """One list of what is open, one way to answer it, from wherever."""
    mia = Principal("mia", ("member",))
    olga = Principal("olga", ("owner",))
    eve = Principal("eve", ("member",))
    async with world.process() as app:
        await world.write(app, CALL, sender="mia")
        ask = await asked(app)
        (mine,), (all_,) = await app.store.open_asks(mia), await app.store.open_asks(olga)
        assert mine == all_ and not await app.store.open_asks(eve)
        assert (all_.ask_id, all_.session, all_.tool, all_.arguments) == (
            ask.ask_id,
            "default/1",
            "act",
            CALL,
        )
        assert all_.reason == ask.reason and all_.until == ask.until
        assert ask.elsewhere == ("owner",), "mia may not allow it, and nobody else takes part"
        assert (await app.door.answer(ask.ask_id, "once", eve)).status == "refused"
        assert (await app.door.answer("ask_nowhere", "once", olga)).status == "refused"
        assert (await app.door.answer(ask.ask_id, "once", olga)).status == "accepted"
        assert await answered(app) == "ok: noted"
        assert not await app.store.open_asks(olga)
        again = await app.door.answer(ask.ask_id, "once", olga)
        assert again.status == "refused" and "not open any more" in again.reason


@pytest.mark.parametrize("end", ["stop", "another message", "undo", "erased", "expired"])
async def test_what_has_ended_is_not_open(world: World, end: str) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        await asked(app)
        assert await app.store.open_asks(OLGA)
        if end == "erased":
            await app.store.erase(OLGA, "default/1", 1.0)
        elif end == "expired":
            world.clock.at += 25 * HOUR
            app.dispatch.wake("default/1")
        else:
            await world.write(app, {"stop": "/stop", "undo": "/undo"}.get(end, "something else"))
            if end == "another message":
                await asked(app, number=2)

        async def gone() -> bool:
            return len(await app.store.open_asks(OLGA)) == (end == "another message")

        await until(gone)
        before = await app.store.open_asks(OLGA)
        await app.store.rebuild_projections()  # type: ignore[attr-defined]
        assert await app.store.open_asks(OLGA) == before


OLGA = Principal("olga", ("owner",))


async def test_it_is_said_where_the_least_trusted_comes_from(world: World) -> None:
    async with world.process() as app:
        await world.write(app, "!" + CALL)
        await asked(app)
        assert [ask.source for ask in await app.store.open_asks(OLGA)] == ["https://evil.test/page"]


async def test_what_is_allowed_for_good_is_listed_and_taken_back(world: World) -> None:
    async with world.process() as app:
        await world.write(app, CALL)
        ask = await asked(app)
        await app.door.answer(ask.ask_id, "always", Principal("ann", ("owner",)))
        await answered(app)
        (grant,) = await standing_grants(app.store, OLGA)
        assert (grant.verdict, grant.tool, grant.arguments, grant.by) == (
            "always",
            "act",
            CALL,
            "ann",
        )
        bob = Principal("bob", ("approver",))
        assert await standing_grants(app.store, bob) == []
        for who, beginning in ((bob, grant.id), (OLGA, ""), (OLGA, "xyz")):
            with pytest.raises(Refused):
                await revoke_grant(app.store, who, beginning)
        assert await revoke_grant(app.store, Principal("ann", ("approver",)), grant.id[:8]) == grant
        assert await standing_grants(app.store, OLGA) == []
        await world.write(app, CALL)
        assert (await asked(app, number=2)).question == ask.question, "it is asked again"


async def test_the_rest_of_a_session_without_asking_for_everything(world: World) -> None:
    """`approve the rest` is a yes and the option off: the rules still ask, never less."""
    world.effect = "none"
    async with world.process() as app:
        await app.door.configure("default/1", OLGA, SessionOptions(approval=True))
        await world.write(app, CALL)
        ask = await asked(app)
        assert "asks before every tool" in ask.reason
        await app.door.configure("default/1", OLGA, SessionOptions(approval=False))
        await app.door.answer(ask.ask_id, "once", OLGA)
        assert await answered(app) == "ok: noted"
        await world.write(app, '{"text":"free"}')
        await until(lambda: _acts(world, 2))
    world.effect = "network"
    async with world.process() as app:
        await world.write(app, '{"text":"out"}')
        assert "network" in (await asked(app, number=2)).reason


async def _acts(world: World, number: int) -> bool:
    return len(world.acts()) == number
