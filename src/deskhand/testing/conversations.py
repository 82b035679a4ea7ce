"""Many conversations in one running Deskhand, each with a model of its own, and everything that
came out of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..assembly.tools import make_tools, skills_of
from ..config.config import Config, Home, Settings
from ..models.base import Request
from ..net.client import Net
from ..runtime.app import OWNER, App, Parts, open_app
from ..sandbox.choose import Proven, open_sandbox
from ..tools.base import Tool, get_effect_function
from ..tools.queries import set_label
from ..types.commit import Outgoing
from ..types.effects import Effect
from ..types.identity import Address
from ..types.labels import Label
from ..types.messages import Message, ToolCall
from .channel import MemoryChannel
from .person import Consent, PersonTalk, talk
from .scripted import Script, ScriptedModel, say

HERE = "memory"
ELSEWHERE = "mail"
"""The channel on which the owner talks, and another one."""
_MARK = re.compile(r"\(conversation ([\w-]+)\)")


class Conversations:
    """A home with its real tools, and `extra` ones. `sent` is what left it, `aside` what a model
    says to a question that is put to it away from a conversation."""

    def __init__(
        self,
        home: Path,
        extra: Sequence[Tool] = (),
        net: Net | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        given = {"defaults": {"models": ["scripted/x"]}, "web_fetch": {"pause_s": 0}} | (
            config or {}
        )
        made = msgspec.convert(given, Config, strict=False)
        self.settings = Settings(Home(home), made, environment={"HOME": str(home.parent)})
        self.work = self.settings.home.workspace("default")
        self.channels = (MemoryChannel(HERE), MemoryChannel(ELSEWHERE))
        self.tools: dict[str, Tool] = {
            **make_tools(self.settings, "default", skills_of(self.settings, "default")),
            **{tool.spec.name: tool for tool in extra},
        }
        self.aside = "short"
        self.model = ScriptedModel(self._say, piece=100_000)
        self._net, self._scripts = net or Net(), dict[str, Script]()
        self._app: App | None = None
        self._proven: Proven | None = None

    @property
    def app(self) -> App:
        assert self._app is not None, "it does not run"
        return self._app

    @property
    def sent(self) -> list[Outgoing]:
        return [outgoing for channel in self.channels for outgoing, _ in channel.sent]

    def _say(self, request: Request) -> Message:
        if not request.tools:
            return say(self.aside)
        texts = (shown.message.text for shown in request.messages if shown.message.role == "user")
        found = next(match for text in texts if (match := _MARK.search(text)))
        return self._scripts[found[1]](request)  # type: ignore[return-value]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        parts = Parts(
            lambda name: self.model,
            tools=self.tools,
            channels=self.channels,
            authorize=lambda inbound: OWNER,
            sandbox=self._sandbox,
            net=self._net,
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            self._app = app
            tasks.start_soon(app.run)
            yield
            tasks.cancel_scope.cancel()

    async def _sandbox(self) -> Proven:
        self._proven = self._proven or await open_sandbox()
        return self._proven

    async def hold(
        self, name: str, said: str, script: Script, consent: Consent, turns: int = 4
    ) -> PersonTalk:
        """One conversation, which nothing connects with any other."""
        self._scripts[name] = script
        try:
            address = Address(HERE, chat=name)
            return await talk(self.app, address, f"{said}\n(conversation {name})", consent, turns)
        finally:
            del self._scripts[name]

    async def mark(self, path: str, source: str) -> None:
        """What stands in this file came from there."""
        real = str((self.work / path).resolve())
        label = Label("untrusted", source=source)
        await self.app.store.change((set_label(real, label, "s", 0.0),))

    def effect(self, call: ToolCall, chat: str) -> Effect:
        """What this call does, made in this conversation."""
        tool = self.tools[call.name]
        judged = get_effect_function(tool)
        return judged(call.arguments, Address(HERE, chat=chat)) if judged else tool.spec.effect

    async def settled(self) -> None:
        """Wait until all that is owed has been sent."""
        with anyio.fail_after(20):
            while await self.app.store.outbox_due(1e12, 9):  # noqa: ASYNC110 -- the store tells nobody
                await anyio.sleep(0.005)
