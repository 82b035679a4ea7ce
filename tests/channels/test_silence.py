"""A platform that falls silent while its connection stays is given up.

No wait is shorter here than in use, so all channels wait side by side.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest
from anyio.abc import SocketStream

from deskhand.channels.base import Channel, Closing, Healthy
from deskhand.channels.matrix.channel import open_matrix
from deskhand.channels.mqtt.channel import open_mqtt
from deskhand.channels.settings import ChannelConfig
from deskhand.channels.slack.channel import open_slack
from deskhand.channels.telegram.channel import open_telegram
from deskhand.channels.twitch.channel import open_twitch
from deskhand.testing.broker import free_port, mosquitto
from deskhand.testing.channel import MemoryContext
from deskhand.testing.matrix.synapse import Homeserver, Synapse
from deskhand.testing.slack.server import SlackServer
from deskhand.testing.telegram.server import TelegramServer
from deskhand.testing.twitch.server import TwitchServer
from deskhand.types.errors import ChannelError
from deskhand.types.identity import Inbound

LEAST_S = 20.0
MOST_S = 100.0
SETTLE_S = 2.0
FallSilent = Callable[[], object]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    with Homeserver(tmp_path_factory.mktemp("synapse")) as found:
        yield found


@asynccontextmanager
async def on_telegram(folder: Path) -> AsyncIterator[tuple[Channel, FallSilent]]:
    async with TelegramServer() as server:
        config = ChannelConfig(base_url=server.base_url.removesuffix("/bot"))
        server.hang("getUpdates", times=2)
        yield open_telegram(MemoryContext("telegram", config, folder, server.token)), lambda: None


@asynccontextmanager
async def on_slack(folder: Path) -> AsyncIterator[tuple[Channel, FallSilent]]:
    async with SlackServer() as server:
        config = ChannelConfig(base_url=server.base_url.removesuffix("/"))
        tokens = {"SLACK_BOT_TOKEN": server.token, "SLACK_APP_TOKEN": server.app_token}
        context = MemoryContext("slack", config, folder, tokens=tokens)
        yield open_slack(context), server.go_deaf


@asynccontextmanager
async def on_twitch(folder: Path) -> AsyncIterator[tuple[Channel, FallSilent]]:
    async with TwitchServer() as server:
        config = ChannelConfig(
            base_url=server.base_url.removesuffix("/helix/"), rooms=(server.channel.login,)
        )
        tokens = {"TWITCH_ACCESS_TOKEN": server.token.access}
        context = MemoryContext("twitch", config, folder, tokens=tokens)
        yield open_twitch(context), server.events.stall


@asynccontextmanager
async def on_mqtt(folder: Path) -> AsyncIterator[tuple[Channel, FallSilent]]:
    """Through a wire that hands on nothing any more."""
    folder.mkdir()
    wire = Wire(free_port())
    config = ChannelConfig(base_url=f"mqtt://127.0.0.1:{wire.port}")
    async with (
        mosquitto(folder, wire.broker_port),
        await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=wire.port) as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, wire.join)
        yield open_mqtt(MemoryContext("mqtt", config, folder / "state")), wire.fall_silent
        tasks.cancel_scope.cancel()


class Wire:
    def __init__(self, port: int) -> None:
        self.port = port
        self.broker_port = free_port()
        self._is_silent = False

    def fall_silent(self) -> None:
        self._is_silent = True

    async def join(self, client: SocketStream) -> None:
        async with (
            client,
            await anyio.connect_tcp("127.0.0.1", self.broker_port) as broker,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._carry, broker, client)
            await self._carry(client, broker)
            tasks.cancel_scope.cancel()

    async def _carry(self, source: SocketStream, target: SocketStream) -> None:
        try:
            async for data in source:
                if not self._is_silent:
                    await target.send(data)
        except anyio.BrokenResourceError:
            return


async def wait_for_fault(
    opened: tuple[Channel, FallSilent], name: str, faults: dict[str, str]
) -> None:
    """Read until it fails, with the platform silent soon after the start."""
    channel, fall_silent = opened
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_silence_later, fall_silent)
        receiving = cast(AsyncGenerator[Inbound], channel.receive())
        async with aclosing(receiving):
            with pytest.raises(ChannelError):
                await anext(receiving)
        tasks.cancel_scope.cancel()
    assert anyio.current_time() - began > LEAST_S, f"{name} failed before it was silent for long"
    assert isinstance(channel, Healthy)
    faults[name] = channel.health().error
    if isinstance(channel, Closing):
        await channel.close()


async def _silence_later(fall_silent: FallSilent) -> None:
    await anyio.sleep(SETTLE_S)
    fall_silent()


@pytest.mark.timeout(150)
async def test_a_platform_that_falls_silent_is_given_up(home: Homeserver, tmp_path: Path) -> None:
    """And is told of in the health. Discord and mail have tests of their own, which are shorter."""
    faults: dict[str, str] = {}
    async with (
        on_telegram(tmp_path / "telegram") as telegram,
        on_slack(tmp_path / "slack") as slack,
        on_twitch(tmp_path / "twitch") as twitch,
        on_mqtt(tmp_path / "mqtt") as mqtt,
        Synapse(home) as synapse,
    ):
        bot = await synapse.register("silent")
        config = ChannelConfig(base_url=synapse.url)
        context = MemoryContext("matrix", config, tmp_path / "matrix", bot.token)
        synapse.hang("/sync", after=1)
        matrix = open_matrix(context), lambda: None
        with anyio.fail_after(MOST_S):
            async with anyio.create_task_group() as tasks:
                for name, opened in (
                    ("telegram", telegram),
                    ("slack", slack),
                    ("twitch", twitch),
                    ("mqtt", mqtt),
                    ("matrix", matrix),
                ):
                    tasks.start_soon(wait_for_fault, opened, name, faults)
    assert set(faults) == {"telegram", "slack", "twitch", "mqtt", "matrix"}
    assert all(faults.values()), faults
