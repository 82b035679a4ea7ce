"""A long conversation goes on in little room: what leaves it is summed up, and what holds still
holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.importers.jsonl import before_compaction, export_lines
from deskhand.models.base import Reply, Request
from deskhand.models.window import estimate_request_tokens
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types import events as e
from deskhand.types.errors import ModelUnavailable
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage

ANN = Principal("ann", ("owner",))
SESSION = "default/memory:1"
SUMMARY = "Ann wants a report about otters; it is called otters.txt."


class Long:
    """A home whose agent has little room. `answer` is what the model says; without tools it sums
    up."""

    def __init__(self, home: Path, answer: Callable[[Request], Message], **config: object) -> None:
        given = {"defaults": {"models": ["scripted/x"]}} | config
        self.settings = Settings(Home(home), msgspec.convert(given, Config))
        self.channel, self.asked = MemoryChannel(), list[Request]()
        self.summed, self.warmth = list[str](), list[float | None]()
        self.summary: Message | Exception = say(SUMMARY)
        self.clock = SetClock(1_700_000_000.0)
        self.answer, self.model = answer, ScriptedModel(self._script)

    def _script(self, request: Request) -> Message | Reply:
        if request.tools:
            self.asked.append(request)
            said = self.answer(request)
            return Reply(
                said, "calls" if said.calls else "stop", Usage(estimate_request_tokens(request), 10)
            )
        self.summed.append("\n".join(request.system))
        self.warmth.append(request.temperature)
        if isinstance(self.summary, Exception):
            raise self.summary
        return self.summary

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        parts = Parts(
            lambda name: self.model,
            channels=(self.channel,),
            authorize=lambda inbound: ANN,
            clock=self.clock,
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            with anyio.fail_after(40):
                yield app
            tasks.cancel_scope.cancel()

    async def say(self, app: App, text: str) -> str:
        """Say it, and wait for what comes of it."""
        before = len(self.channel.sent)
        self.channel.write(text)
        while len(self.channel.sent) == before:
            await anyio.sleep(0.005)
        parts = self.channel.sent[-1][0].parts
        return "".join(part.text for part in parts if isinstance(part, Text))

    @property
    def view(self) -> str:
        """All that the model was shown at the last call."""
        texts = list[str]()
        for shown in self.asked[-1].messages:
            texts.append(shown.message.text)
            texts += [part.text for part in shown.message.parts if isinstance(part, ToolResult)]
        return "\n".join(texts)


async def kinds(app: App, kind: type[e.Event]) -> list[e.AnyEvent]:
    return [each.event for each in await app.store.events(SESSION) if isinstance(each.event, kind)]


async def test_summaries_have_a_model_and_a_temperature_of_their_own(tmp_path: Path) -> None:
    own = {
        "models": ["scripted/x"],
        "cheap_model": "scripted/cheap",
        "compact_model": "scripted/short",
        "compact_temperature": 0.2,
    }
    long = Long(tmp_path / "home", lambda request: say("fine"), defaults=own)
    async with long.running() as app:
        for said in ("one", "two", "three", "/compact", "go on"):
            await long.say(app, said)
        (aside,) = await kinds(app, e.AskedAside)
        assert isinstance(aside, e.AskedAside) and aside.model == "scripted/short"
        assert long.warmth == [0.2] and long.asked[-1].temperature is None


async def test_what_is_summed_up_is_there_and_can_be_seen_again(tmp_path: Path) -> None:
    long = Long(tmp_path / "home", lambda request: say("fine"))
    async with long.running() as app:
        for said in ("I love otters, write about them", "and their young", "and fish"):
            await long.say(app, said)
        assert "I summarise" in await long.say(app, "/compact otters")
        assert await long.say(app, "go on") == "fine"
        assert long.summed[-1].endswith("keep what matters for: otters")
        assert SUMMARY in long.view and "I love otters" not in long.view and "go on" in long.view
        (compacted,) = await kinds(app, e.Compacted)
        assert isinstance(compacted, e.Compacted) and "4 earlier messages" in compacted.note
        (aside,) = await kinds(app, e.AskedAside)
        assert isinstance(aside, e.AskedAside) and aside.usage.input_tokens and not aside.call_id
        assert "summarised" in await long.say(app, "/context")
        assert "visible to the model again" in await long.say(app, "/uncompact")
        await long.say(app, "and now?")
        assert "I love otters" in long.view and SUMMARY not in long.view and "go on" in long.view
        before = before_compaction(await app.store.events(SESSION), -1)
        exported = [line["content"] for line in export_lines(before) if line["role"] == "user"]
        assert exported == ["I love otters, write about them", "and their young", "and fish"]


async def test_it_knows_all_of_that_after_a_restart(tmp_path: Path) -> None:
    long = Long(tmp_path / "home", lambda request: say("fine"))
    async with long.running() as app:
        for said in ("one otter", "two otters", "three"):
            await long.say(app, said)
        await long.say(app, "/compact")
    async with long.running() as app:
        assert await long.say(app, "go on") == "fine"
        assert SUMMARY in long.view and "one otter" not in long.view
        assert "visible to the model again" in await long.say(app, "/uncompact")
    async with long.running() as app:
        await long.say(app, "and?")
        assert "one otter" in long.view


async def test_without_a_model_it_is_shortened_and_says_so(tmp_path: Path) -> None:
    long = Long(tmp_path / "home", lambda request: say("fine"))
    long.summary = ModelUnavailable("the provider is down")
    async with long.running() as app:
        for said in ("one", "two", "three"):
            await long.say(app, said)
        await long.say(app, "/compact")
        await long.say(app, "go on")
        assert (
            "could not be summed up: the provider is down" in long.view
            and "one" not in long.view.split()
        )


async def test_a_long_task_goes_on_in_little_room(tmp_path: Path) -> None:
    """Sixty steps whose results would fill the window many times: the request stays in view, files
    are named."""

    def answer(request: Request) -> Message:
        done = [c for shown in request.messages for c in shown.message.calls]
        number = int(done[-1].id[1:]) + 1 if done else 0
        if number == 60:
            return say("all sixty are there")
        arguments = {"path": f"f{number}.txt", "content": "x" * 3_000}
        return say(
            "", ToolCall(f"c{number}", "write_file", msgspec.Raw(msgspec.json.encode(arguments)))
        )

    long = Long(
        tmp_path / "home",
        answer,
        defaults={"models": ["zzz/x"], "steps": 80, "tokens": 9_000_000, "context_ratio": 0.3},
    )
    async with long.running() as app:
        said = await long.say(app, "write sixty files")
        assert said == "all sixty are there", said
        assert len(await kinds(app, e.Compacted)) >= 1
        assert (
            "write sixty files" in long.view
            and SUMMARY in long.view
            and "Files changed here:" in long.view
        )
    assert len(list(long.settings.home.workspace("default").glob("f*.txt"))) == 60
    assert (
        max(sum(len(msgspec.json.encode(s.message)) for s in r.messages) for r in long.asked)
        < 4 * 32_768
    )


async def test_the_tool_sums_up_what_was_before(tmp_path: Path) -> None:
    def answer(request: Request) -> Message:
        said = next(m.message.text for m in reversed(request.messages) if m.message.role == "user")
        fresh = request.messages[-1].message.role == "user"
        if "room" in said and fresh:
            return say("", ToolCall("c1", "compact", msgspec.Raw(b'{"focus": "otters"}')))
        return say("fine")

    long = Long(tmp_path / "home", answer)
    async with long.running() as app:
        for said in ("one otter", "two otters", "make room"):
            await long.say(app, said)
        assert SUMMARY in long.view and "one otter" not in long.view and "make room" in long.view
        assert long.summed[-1].endswith("keep what matters for: otters"), "the focus is told"


async def test_rules_and_an_open_approval_outlast_it(tmp_path: Path) -> None:
    """A rule stands outside the context, and what a person was asked waits until they answer."""

    def answer(request: Request) -> Message:
        said = next(m.message.text for m in reversed(request.messages) if m.message.role == "user")
        if request.messages[-1].message.role == "tool":
            return say("done")
        if "delete" in said:
            return say("", ToolCall("d1", "shell", msgspec.Raw(b'{"command": "rm mail.txt"}')))
        if "write" in said:
            return say(
                "", ToolCall("w1", "write_file", msgspec.Raw(b'{"path": "a.txt", "content": "x"}'))
            )
        return say("fine")

    rules = [
        {"verdict": "deny", "tool": "shell", "because": "never delete mail"},
        {"verdict": "ask", "tool": "write_file"},
    ]
    long = Long(tmp_path / "home", answer, policy=rules)
    work = long.settings.home.workspace("default")
    async with long.running() as app:
        work.mkdir(parents=True, exist_ok=True)
        (work / "mail.txt").write_text("dear")
        for said in ("my mail stays", "hello", "hello again"):
            await long.say(app, said)
        await long.say(app, "write it")
        assert "I summarise" in await long.say(app, "/compact")
        assert not await kinds(app, e.Compacted), "not while a call is open"
        assert await long.say(app, "yes") == "done" and (work / "a.txt").read_text() == "x"
        assert await kinds(app, e.Compacted)
        await long.say(app, "delete the mail")
        results = [
            event.result
            for event in await kinds(app, e.ToolFinished)
            if isinstance(event, e.ToolFinished)
        ]
        assert results[-1].status == "denied" and "never delete mail" in results[-1].text
        assert (work / "mail.txt").exists() and "my mail stays" not in long.view
