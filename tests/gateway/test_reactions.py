"""`react`: an emoji on what somebody wrote, durable and set once."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import OWNER, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.identity import Address
from deskhand.types.messages import Message, ToolCall


class Emojis(MemoryChannel):
    """One on which emojis can be set."""

    def __init__(self) -> None:
        super().__init__("memory")
        self.set: list[tuple[str, str, str]] = []

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        self.set.append((address.chat, message_id, emoji))


def reacting(request: Request) -> Message:
    last = request.messages[-1].message
    if last.role == "user":
        return say("", ToolCall("c1", "react_message", msgspec.Raw('{"emoji": "👍"}'.encode())))
    return say(f"Done: {last.parts[0].text}")  # type: ignore[union-attr]


async def talk(home: Path, channel: MemoryChannel) -> str:
    given = {"defaults": {"models": ["scripted/x"], "also_allow": ["react"]}}
    settings = Settings(
        Home(home), msgspec.convert(given, Config), environment={"HOME": str(home.parent)}
    )
    parts = Parts(
        lambda name: ScriptedModel(reacting), channels=(channel,), authorize=lambda inbound: OWNER
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        channel.write("good news", "7", "m41")
        with anyio.fail_after(20):
            while not channel.sent:
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()
    return "".join(getattr(part, "text", "") for part in channel.sent[-1][0].parts)


async def test_it_is_set_on_the_newest_message(tmp_path: Path) -> None:
    channel = Emojis()
    assert "on its way" in await talk(tmp_path, channel)
    assert channel.set == [("7", "m41", "👍")]


async def test_where_nobody_can_react_the_answer_still_comes(tmp_path: Path) -> None:
    channel = MemoryChannel("memory")
    assert await talk(tmp_path, channel)
    assert len(channel.sent) == 1
