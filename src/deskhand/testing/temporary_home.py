"""A Deskhand whose model does what the person says as JSON, and repeats what it is told: for what
runs beside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..config.config import Config, Home, Settings
from ..config.home import FILE_NAME
from ..models.base import Request
from ..runtime.app import App, Parts, open_app
from ..sandbox.choose import Proven, open_sandbox
from ..types.events import MessageReceived, ToolFinished, TurnEnded
from ..types.identity import Address, Inbound, Principal, Said, When
from ..types.messages import Message, Text, ToolCall
from ..types.process import Process
from .scripted import ScriptedModel, say

OWNER = Principal("owner", ("owner",))
POLL_S = 0.01
PATIENCE_S = 120.0
"""For what hangs: on a busy machine a command may take twenty times as long to begin."""


def script(request: Request) -> Message:
    """A list of [tool, arguments] becomes calls; the result of a background command is repeated;
    else `done`. Of several messages that came together one with calls counts."""
    last = request.messages[-1].message
    if last.role == "tool":
        return say("done")
    new = takewhile(lambda each: each.message.role == "user", reversed(request.messages))
    texts = [each.message.text for each in new]
    calls = next(filter(None, map(_parse_calls, texts)), [])
    if "[background" in texts[0] and not calls:
        return say(f"heard {texts[0][texts[0].index('[background') :]}")
    if not calls:
        return say("done")
    number = len(request.messages)
    made = [
        ToolCall(f"c{number}-{n}", name, msgspec.Raw(msgspec.json.encode(a)))
        for n, (name, a) in enumerate(calls)
    ]
    return say("", *made)


def _parse_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls that stand in a message; [] for none."""
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(text[text.find("[[") :], type=list[tuple[str, dict[str, Any]]])
    return []


class TemporaryHome:
    """One home, and as many lives as a test gives it."""

    def __init__(self, home: Path, proven: Proven | None = None, **config: Any) -> None:
        config = {"defaults": {"models": ["scripted/x"]} | config.pop("defaults", {})} | config
        self.settings = Settings(
            Home(home),
            msgspec.convert(config, Config, strict=False),
            (),
            {"HOME": str(home.parent)},
            home / FILE_NAME,
        )
        self.model = ScriptedModel(script)
        self._proven = proven

    async def proven(self) -> Proven:
        """The sandbox, tried out once."""
        self._proven = self._proven or await open_sandbox()
        return self._proven

    def parts(self, **more: Any) -> Parts:
        return Parts(lambda name: self.model, sandbox=self.proven, **more)

    @asynccontextmanager
    async def running(self, **more: Any) -> AsyncIterator[App]:
        async with (
            open_app(self.settings, self.parts(**more)) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def say(
        self, app: App, text: str, chat: str = "1", id_: str = "", when: When = "steer"
    ) -> str:
        """The person says this; returns the session."""
        address = Address("terminal", chat=chat)
        body = Said(Message("user", (Text(text),)))
        inbound = Inbound(
            id_ or app.parts.ids.new("said"),
            address,
            "owner",
            app.parts.clock.now(),
            body,
            when=when,
        )
        return (await app.door.submit(inbound)).session

    async def call(self, app: App, name: str, /, chat: str = "1", **arguments: Any) -> str:
        """One call in a turn of its own. Returns its result."""
        session = f"default/terminal:{chat}"
        before = len(await results(app, session))
        await self.say(app, msgspec.json.encode([[name, arguments]]).decode(), chat)
        await until(app, lambda found: len(found) > before, session)
        return (await results(app, session))[before]


async def results(app: App, session: str) -> list[str]:
    events = [recorded.event for recorded in await app.store.events(session)]
    return [event.result.text for event in events if isinstance(event, ToolFinished)]


async def until(app: App, found: Callable[[list[str]], bool], session: str) -> None:
    """Until the session is at rest and its results are so."""
    with anyio.fail_after(PATIENCE_S):
        while not (found(await results(app, session)) and await at_rest(app, session)):  # noqa: ASYNC110 -- of the log
            await anyio.sleep(POLL_S)


async def at_rest(app: App, session: str) -> bool:
    events = [recorded.event for recorded in await app.store.events(session)]
    opened = sum(isinstance(event, MessageReceived) for event in events)
    ended = [event for event in events if isinstance(event, TurnEnded)]
    return bool(ended) and sum(len(event.answers) for event in ended) >= opened


async def heard(app: App, session: str) -> list[str]:
    """What the conversation was told of background commands."""
    events = [recorded.event for recorded in await app.store.events(session)]
    return [
        event.message.text
        for event in events
        if isinstance(event, MessageReceived) and event.principal.kind == "agent"
    ]


async def rows(app: App, session: str = "default/terminal:1") -> list[Process]:
    return await app.background.list_processes(session)


async def wait_for(condition: Callable[[], Any], seconds: float = PATIENCE_S) -> Any:
    """What the condition gives once it gives something."""
    with anyio.fail_after(seconds):
        while not (found := await condition()):  # noqa: ASYNC110 -- it is whatever a test looks at
            await anyio.sleep(POLL_S)
    return found


def processes_with(mark: str) -> list[int]:
    """The processes of this machine whose command line has `mark`."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and mark.encode() in (each / "cmdline").read_bytes():
                found.append(int(each.name))
        except OSError:
            continue
    return found
