"""Every channel passes the suite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack

import aiohttp
import pytest
from aiohttp import web

from deskhand.channels.base import Channel
from deskhand.testing.channel import MemoryEditor
from deskhand.testing.channel_suite import CASES, Case, Stage
from deskhand.testing.platform import HttpChannel, Platform, Update
from deskhand.testing.telegram import TelegramServer
from deskhand.types.identity import Address

ANN = 77


class MemoryStage:
    nowhere = Address("memory", chat="nowhere")

    def __init__(self) -> None:
        self._channel = MemoryEditor()

    def open(self) -> Channel:
        return self._channel

    async def says(self, text: str) -> None:
        self._channel.write(text)

    def said(self) -> Sequence[str]:
        return [post.replace("**", "") for post in self._channel.posts.values()]

    async def away(self, gone: bool) -> None:
        self._channel.away = gone


class PlatformStage:
    """The platform that drops and doubles, here without whims of its own but the doubling."""

    nowhere = None

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._platform = Platform(1)
        self._platform.dropped = 0.0
        self._session = session
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def start(self) -> None:
        self._runner = web.AppRunner(self._platform.app(), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    def open(self) -> Channel:
        return HttpChannel(f"http://127.0.0.1:{self._port}", self._session)

    async def says(self, text: str) -> None:
        self._platform.updates.append(Update(len(self._platform.updates) + 1, "chat1", text))

    def said(self) -> Sequence[str]:
        return [sent.text for sent in self._platform.sent]

    async def away(self, gone: bool) -> None:
        assert self._runner is not None
        await (self._runner.cleanup() if gone else self.start())


class TelegramStage:
    nowhere = Address("telegram", "4200", "12345")

    def __init__(self, server: TelegramServer, open_: Callable[[], Channel]) -> None:
        self._server, self.open = server, open_

    async def says(self, text: str) -> None:
        self._server.chats.says(ANN, text)

    def said(self) -> Sequence[str]:
        return self._server.chats.said(ANN)

    async def away(self, gone: bool) -> None:
        await (self._server.stop() if gone else self._server.start(self._server.port))


@pytest.fixture(params=["memory", "platform", "telegram"])
async def stage(
    request: pytest.FixtureRequest, server: TelegramServer, open_channel: Callable[[], Channel]
) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            yield MemoryStage()
        elif request.param == "platform":
            found = PlatformStage(await stack.enter_async_context(aiohttp.ClientSession()))
            await found.start()
            yield found
            await found.away(True)
        else:
            yield TelegramStage(server, open_channel)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_conformance(case: Case, stage: Stage) -> None:
    await case(stage)
