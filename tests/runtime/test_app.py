"""A whole Deskhand with a channel in memory: what people, models and tools see of it."""

from __future__ import annotations

import collections
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.assembly.prompt import MINIMAL_PROMPT
from deskhand.config.clock import SystemClock
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Item, Model, Reply, Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context, Tool
from deskhand.tools.define import tool
from deskhand.types.clock import Clock
from deskhand.types.door import Progress
from deskhand.types.errors import ConfigError
from deskhand.types.events import Compacted, ModelReplied, Recorded, TurnEnded
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage

ANN = Principal("ann", ("owner",))


@asynccontextmanager
async def running(
    home: Path,
    model: Model,
    channel: MemoryChannel,
    config: dict[str, Any] | None = None,
    tools: tuple[Tool, ...] | None = (),
    clock: Clock | None = None,
) -> AsyncIterator[App]:
    """An app that talks on `channel`; with `tools` None it has its real ones."""
    raw = {"defaults": {"models": ["scripted/test"]}, **(config or {})}
    settings = Settings(Home(home), msgspec.convert(raw, Config, strict=False))
    named = None if tools is None else {each.spec.name: each for each in tools}
    clock = clock or SystemClock()
    parts = Parts(lambda name: model, named, {}, (channel,), lambda inbound: ANN, clock=clock)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield app
        tasks.cancel_scope.cancel()


def said(channel: MemoryChannel) -> list[tuple[str, str]]:
    """What was sent: chat and text."""
    return [
        (
            outgoing.address.chat,
            "".join(part.text for part in outgoing.parts if isinstance(part, Text)),
        )
        for outgoing, _ in channel.sent
    ]


async def until(true: Callable[[], bool], seconds: float = 30) -> None:
    with anyio.fail_after(seconds):
        while not true():
            await anyio.sleep(0.005)


def call(name: str, call_id: str = "", **arguments: object) -> ToolCall:
    return ToolCall(call_id or name, name, msgspec.Raw(msgspec.json.encode(arguments)))


def calling(*calls: ToolCall, text: str = "") -> ScriptedModel:
    """Makes these calls in one reply, then says `done`."""

    def script(request: Request) -> Message:
        last = request.messages[-1].message
        return say("done") if last.role == "tool" else say(text, *calls)

    return ScriptedModel(script)


def results(request: Request) -> list[str]:
    return [
        part.text
        for shown in request.messages
        for part in shown.message.parts
        if isinstance(part, ToolResult)
    ]


async def test_an_answer_goes_where_the_message_came_from(tmp_path: Path) -> None:
    channel = MemoryChannel()
    async with running(tmp_path, ScriptedModel(), channel) as app:
        channel.write("one", chat="1")
        channel.write("two", chat="2")
        place = Address("memory", "bot", "3", "t", group=True)
        words = Said(Message("user", (Text("three"),)))
        channel.waiting.append(Inbound("77", place, "ann", 1.0, words))
        await until(lambda: len(channel.sent) == 3)
        assert sorted(said(channel)) == [
            ("1", "You said: one"),
            ("2", "You said: two"),
            ("3", "You said: three"),
        ]
        group = next(outgoing for outgoing, _ in channel.sent if outgoing.address.chat == "3")
        assert (group.address, group.reply_to) == (place, "77")
        sessions = {row.session for row in await app.store.sessions(ANN)}
        assert sessions == {"default/memory:1", "default/memory:2", "default/memory:bot:3:t"}
        assert channel.confirmed == ["1", "2", "77"]


class Counting:
    """A slow model that counts how many calls it answers at once, in all and for each chat."""

    def __init__(self) -> None:
        self.now: collections.Counter[str] = collections.Counter()
        self.most: collections.Counter[str] = collections.Counter()

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        chat = request.messages[0].message.text.rpartition(" ")[2]
        for name in (chat, "all"):
            self.now[name] += 1
            self.most[name] = max(self.most[name], self.now[name])
        await anyio.sleep(0.1)
        for name in (chat, "all"):
            self.now[name] -= 1
        yield Reply(say(f"heard {request.messages[-1].message.text.rpartition(' ')[2]}"), "stop")


async def test_chats_run_side_by_side_and_each_in_order(tmp_path: Path) -> None:
    channel, model = MemoryChannel(), Counting()
    async with running(tmp_path, model, channel):
        for number in range(3):
            for chat in "abcd":
                words = Said(Message("user", (Text(f"{chat}{number}"),)))
                place = Address("memory", chat=chat)
                channel.waiting.append(
                    Inbound(f"{chat}{number}", place, "ann", 1.0, words, when="queue")
                )
        await until(lambda: len(channel.sent) == 12)
    for chat in "abcd":
        assert [text for where, text in said(channel) if where == chat] == [
            f"heard {chat}{n}" for n in range(3)
        ]
    assert model.most.pop("all") == 4
    assert set(model.most.values()) == {1}


async def test_what_is_delivered_again_is_one_turn(tmp_path: Path) -> None:
    """Three times, out of order, and once more after a restart."""
    channel, model = MemoryChannel(), ScriptedModel()
    for restarts in range(2):
        async with running(tmp_path, model, channel):
            for number in ("2", "1", "2", "1", "1", "2"):
                channel.write(f"message {number}", chat=number, external_id=number)
            await until(lambda: not channel.waiting and len(channel.sent) >= 2)
            await anyio.sleep(0.1)
        assert len(channel.confirmed) == 6 * (restarts + 1)
        assert sorted(said(channel)) == [("1", "You said: message 1"), ("2", "You said: message 2")]
        assert len(model.requests) == 2


def write(home: Path, name: str, text: str) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_what_the_model_is_shown(tmp_path: Path) -> None:
    """The files of the workspace in their order, skills by their description alone, the time where
    the person is; all of it as it is at this moment, and memory only where nobody else reads."""
    channel, model, work = MemoryChannel(), ScriptedModel(), tmp_path / "agents/default/workspace"
    for name in ("AGENTS", "CODE", "USER", "SOUL", "RULES"):
        write(work, f"{name}.md", f"these are {name}")
    write(work, "memory/MEMORY.md", "he likes tea")
    write(
        tmp_path,
        "skills/brew/SKILL.md",
        "---\nname: brew\ndescription: Makes tea.\n---\nBoil water first.",
    )
    async with running(
        tmp_path, model, channel, {"timezone": "Asia/Tokyo"}, clock=SetClock(1_700_000_000.0)
    ):
        channel.write("hello")
        await until(lambda: len(channel.sent) == 1)
        write(work, "SOUL.md", "another soul")
        write(
            tmp_path,
            "skills/pour/SKILL.md",
            "---\nname: pour\ndescription: Pours tea.\n---\nSlowly.",
        )
        channel.write("again")
        await until(lambda: len(channel.sent) == 2)
        words = Said(Message("user", (Text("hello all"),)))
        channel.waiting.append(
            Inbound("g", Address("memory", chat="9", group=True), "ann", 1.0, words)
        )
        await until(lambda: len(channel.sent) == 3)
    first, second, group = ("\n".join(request.system) for request in model.requests)
    order = [
        "these are RULES",
        "these are SOUL",
        "these are USER",
        "these are CODE",
        "these are AGENTS",
        "Makes tea.",
    ]
    places = [first.index(words) for words in [*order, "he likes tea", "talking on memory"]]
    assert places == sorted(places)
    assert "Boil water" not in first and "pour" not in first
    assert "another soul" in second and "these are SOUL" not in second and "Pours tea." in second
    assert "he likes tea" not in group and "another soul" in group
    assert model.requests[0].messages[-1].message.text == "[Wednesday, 2023-11-15 07:13] hello"


async def test_reads_run_side_by_side_and_their_results_are_in_order(tmp_path: Path) -> None:
    here, there, channel = anyio.Event(), anyio.Event(), MemoryChannel()

    @tool(reads=LOCAL)
    async def first() -> str:
        """Ends last."""
        here.set()
        await there.wait()
        await anyio.sleep(0.05)
        return "one"

    @tool(reads=LOCAL)
    async def second() -> str:
        """Ends first."""
        await here.wait()
        there.set()
        return "two"

    model = calling(call("first"), call("second"))
    async with running(tmp_path, model, channel, tools=(first, second)):
        channel.write("go")
        await until(lambda: len(channel.sent) == 1)
    assert results(model.requests[-1]) == ["one", "two"]


async def test_a_result_is_shown_as_its_call_ends(tmp_path: Path) -> None:
    """The first call ends only when somebody has seen the result of the second; the log keeps their
    order."""
    seen, channel = anyio.Event(), MemoryChannel()
    shown: list[Progress] = []

    @tool(reads=LOCAL)
    async def first() -> str:
        """Ends last."""
        await seen.wait()
        return "one"

    @tool(reads=LOCAL)
    async def second() -> str:
        """Ends first, after a while: by then the follower has the reply."""
        await anyio.sleep(0.1)
        return "two\ud800" + "x" * 5000

    model = calling(call("first"), call("second"))
    async with running(tmp_path, model, channel, tools=(first, second)) as app:
        channel.write("go")
        await until(lambda: len(model.requests) == 1)
        with anyio.fail_after(10):
            async with aclosing(app.door.follow("default/memory:1", ANN)) as items:
                async for item in items:
                    if isinstance(item, Progress) and item.kind == "tool_result":
                        shown.append(item)
                        seen.set()
                    if isinstance(item, Recorded) and isinstance(item.event, TurnEnded):
                        break
    assert [each.call_id for each in shown] == ["second", "first"] and [
        each.status for each in shown
    ] == ["ok", "ok"]
    assert shown[0].text.startswith("two?xxx") and len(shown[0].text) == 2000
    assert [text[:3] for text in results(model.requests[-1])] == ["one", "two"]


async def test_what_is_not_permitted_is_not_shown_and_not_run(tmp_path: Path) -> None:
    channel = MemoryChannel()
    work = tmp_path / "agents/default/workspace"
    model = calling(call("write_file", path="x", content="x"))
    config = {"defaults": {"models": ["scripted/test"], "tools": ["bash", "read_*"]}}
    async with running(tmp_path, model, channel, config, None):
        channel.write("go")
        await until(lambda: len(channel.sent) == 1)
    assert {each.name for each in model.requests[0].tools} == {
        "shell",
        "read_file",
        "read_output",
        "read_past",
        "read_skill",
    }
    assert results(model.requests[-1])[0].startswith("there is no tool 'write_file'")
    assert not (work / "x").exists()


async def test_what_is_said_beside_calls_is_a_message_of_its_own(tmp_path: Path) -> None:
    @tool(reads=LOCAL)
    async def look() -> str:
        """Looks."""
        return "seen"

    channel = MemoryChannel()
    async with running(tmp_path, calling(call("look"), text="I look."), channel, tools=(look,)):
        channel.write("go")
        await until(lambda: len(channel.sent) == 2)
    assert said(channel) == [("1", "I look."), ("1", "done")]


async def test_a_tool_knows_for_whom_and_where_it_works(tmp_path: Path) -> None:
    known: list[Context] = []

    @tool(reads=LOCAL)
    async def look(context: Context) -> str:
        """Looks."""
        known.append(context)
        return "seen"

    channel, model = MemoryChannel(), calling(call("look"))
    async with running(tmp_path, model, channel, tools=(look,)):
        channel.write("go", chat="5")
        await until(lambda: len(channel.sent) == 1)
    (context,) = known
    assert (context.session, context.principal, context.agent) == (
        "default/memory:5",
        ANN,
        "default",
    )
    assert context.address == Address("memory", chat="5")
    assert context.reach.folder == tmp_path / "agents/default/workspace"
    assert model.requests[0].tools[0].parameters.get("properties", {}) == {}, (
        "the model is not shown it"
    )


async def test_an_answer_is_shown_while_it_is_written(tmp_path: Path) -> None:
    channel = MemoryChannel()
    text = "word " * 40
    model = ScriptedModel(lambda request: say(text), piece=10, pause_s=0.002)
    async with running(tmp_path, model, channel) as app:
        pieces: list[Progress] = []
        channel.write("go")
        await until(lambda: bool(model.requests))
        async with aclosing(app.door.follow("default/memory:1", ANN, 0)) as items:
            async for item in items:
                if isinstance(item, Progress):
                    pieces.append(item)
                elif isinstance(item, Recorded) and isinstance(item.event, ModelReplied):
                    break
    assert len(pieces) > 10
    shown = ""
    for piece in pieces:
        shown = shown[: piece.offset] + piece.text
    assert shown == text


async def test_a_share_of_the_window_is_all_that_a_conversation_fills(tmp_path: Path) -> None:
    """At 12,000 of 32,768 tokens: less than half, more than a quarter."""
    for share, shortened in ((0.5, False), (0.25, True)):
        model = ScriptedModel(lambda request: Reply(say("word"), "stop", Usage(12_000, 0)))
        channel = MemoryChannel()
        config = {"defaults": {"models": ["unknown/test"], "context_ratio": share}}
        async with running(tmp_path / str(share), model, channel, config) as app:
            for number in (1, 2):
                channel.write(f"message {number} " + "w" * 2_000)
                await until(lambda sent=channel.sent, number=number: len(sent) == number)  # type: ignore[misc]
            events = [recorded.event for recorded in await app.store.events("default/memory:1")]
        assert any(isinstance(event, Compacted) for event in events) == shortened


async def test_what_a_turn_used_stands_beneath_its_answer(tmp_path: Path) -> None:
    """Of this turn alone, with all its replies; not beneath what is said on the way, nor beneath a
    command's reply."""

    @tool(reads=LOCAL)
    async def look() -> str:
        """Looks."""
        return "seen"

    def script(request: Request) -> Reply:
        calls = request.messages[-1].message.role != "tool"
        used = Usage(600, 150, 7, 1_200_000)
        return Reply(
            say("I look.", call("look")) if calls else say("done"),
            "calls" if calls else "stop",
            used,
        )

    line = "done\n\nUsage: In 1.2k / Out 300 / Cached 14 / Written 2.4M"
    for shown, answer in ((True, line), (False, "done")):
        channel, home = MemoryChannel(), tmp_path / str(shown)
        async with running(home, ScriptedModel(script), channel, {"show_usage": shown}, (look,)):
            for number in (1, 2):
                channel.write(f"message {number}")
                await until(lambda sent=channel.sent, number=number: len(sent) == 2 * number)  # type: ignore[misc]
            channel.write("/status")
            await until(lambda sent=channel.sent: len(sent) == 5)  # type: ignore[misc]
        assert [text for _, text in said(channel)[:4]] == ["I look.", answer, "I look.", answer]
        assert "Usage:" not in said(channel)[4][1]


async def test_who_goes_round_in_circles_is_stopped_and_the_person_told(tmp_path: Path) -> None:
    ran: list[str] = []

    @tool(reads=LOCAL)
    async def look(at: str) -> str:
        """Looks."""
        ran.append(at)
        return "nothing new"

    for alternating, times in ((False, 5), (True, 8)):
        ran.clear()
        channel = MemoryChannel()

        def script(request: Request, alternating: bool = alternating) -> Message:
            at = "b" if alternating and len(ran) % 2 else "a"
            return say("", call("look", f"c{len(ran)}", at=at))

        async with running(tmp_path / str(times), ScriptedModel(script), channel, tools=(look,)):
            channel.write("go")
            await until(lambda sent=channel.sent: bool(sent))  # type: ignore[misc]
        assert len(ran) == times
        assert said(channel) == [
            ("1", "I stopped: I was repeating the same step without getting further.")
        ]


def processes(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [line] if mark in line else []
    return found


async def test_stop_ends_a_command_with_all_that_it_started(tmp_path: Path) -> None:
    channel, mark = MemoryChannel(), f"98765.{id(tmp_path)}"
    model = calling(call("shell", command=f"setsid nohup sleep {mark} & sleep {mark}"))
    async with running(tmp_path, model, channel, None, None):
        channel.write("go")
        await until(lambda: any(line.startswith(f"sleep {mark}") for line in processes(mark)), 20)
        began = anyio.current_time()
        channel.write("!stop")
        await until(lambda: said(channel) == [("1", "Stopped.")])
        took = anyio.current_time() - began
        await until(lambda: not processes(mark), 2)
    assert took < 5  # of the hour that it would sleep


async def test_what_changes_in_a_turn_is_read_by_its_next_call(tmp_path: Path) -> None:
    """Files of the workspace are read for each call of the model, and not once a turn."""
    work = tmp_path / "agents/default/workspace"
    write(work, "SOUL.md", "you are grave")
    write(work, "USER.md", "he likes tea")

    @tool(reads=LOCAL)
    async def learn() -> str:
        """Learns."""
        write(work, "SOUL.md", "you are merry")
        write(work, "USER.md", "he likes coffee")
        write(
            tmp_path,
            "skills/pour/SKILL.md",
            "---\nname: pour\ndescription: Pours it.\n---\nSlowly.",
        )
        return "learned"

    channel, model = MemoryChannel(), calling(call("learn"))
    async with running(tmp_path, model, channel, tools=(learn,)):
        channel.write("go")
        await until(lambda: len(channel.sent) == 1)
    before, after = ("\n".join(request.system) for request in model.requests)
    assert "you are grave" in before and "he likes tea" in before and "Pours it." not in before
    assert "you are merry" in after and "he likes coffee" in after and "Pours it." in after
    assert "you are grave" not in after and "he likes tea" not in after


async def test_how_much_an_agent_may_write_is_a_setting(tmp_path: Path) -> None:
    """The number reaches the model, of an agent that has its own and of one that has the
    defaults'."""
    config = {
        "defaults": {"models": ["scripted/test"], "output_tokens": 900},
        "agents": {"a": {}, "b": {"output_tokens": 70}},
        "bindings": [{"agent": "b", "chat": "2"}],
    }
    channel, model = MemoryChannel(), ScriptedModel()
    async with running(tmp_path, model, channel, config):
        for chat in ("1", "2"):
            channel.write("hello", chat=chat)
            await until(lambda chat=chat: len(channel.sent) == int(chat))  # type: ignore[misc]
    assert [request.max_output_tokens for request in model.requests] == [900, 70]


async def test_how_much_an_agent_is_told_is_a_setting(tmp_path: Path) -> None:
    """Files of the owner, a preset, topics, and what the channel adds: through the settings, and as
    they are now."""
    model = ScriptedModel()
    home = tmp_path
    write(home, "SYSTEM.md", "the system")
    write(home, "agents/a/AGENT.md", "the agent")
    write(home, "agents/a/workspace/knowledge/tea.md", "# How he takes his tea")

    class Telling(MemoryChannel):
        def instructions(self, address: Address) -> str:
            return f"Mention people in {address.chat} by @name."

    async def shown(**agent: object) -> list[str]:
        channel = Telling()
        async with running(home, model, channel, {"agents": {"a": agent}}):
            channel.write("hello", external_id=str(agent))
            await until(lambda: len(channel.sent) == 1)
        return list(model.requests[-1].system)

    stable, place = await shown(preset="coding", voice=True)
    places = [
        stable.index(words)
        for words in ("the system", "the agent", "# Coding", "# RULES.md", "# Knowledge")
    ]
    assert places == sorted(places) and "How he takes his tea" in stable
    places = [
        place.index(words)
        for words in ("# Context", "with ann (owner)", "Mention people in 1", "spoken aloud")
    ]
    assert places == sorted(places)
    stable, place = await shown(prompt="minimal")
    assert (
        "the agent" in stable
        and "# RULES.md" in stable
        and "tea" not in stable
        and "spoken" not in place
    )
    assert await shown(prompt="none") == [MINIMAL_PROMPT]
    with pytest.raises(ConfigError, match="there is no preset 'codnig'"):
        await shown(preset="codnig")
