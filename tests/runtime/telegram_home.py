"""A home with a bot on a Telegram that is only pretended, as tests drive it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Model, Request
from deskhand.runtime.app import App, Parts, open_app, with_channels
from deskhand.testing.crash import Fuse, fused
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.telegram.chat import Post
from deskhand.testing.telegram.server import TelegramServer
from deskhand.testing.tools import FileTool
from deskhand.tools.base import Context, Done, Outcome, Spec, Tool, make_result
from deskhand.tools.conversation_tools import SendMessage, ask_user
from deskhand.tools.define import tool
from deskhand.types.commit import Outgoing
from deskhand.types.labels import LOCAL
from deskhand.types.messages import File, Image, Text, ToolCall
from deskhand.types.people import Identity

ANN = 77
BOB = 88
EVE = 99
FAMILY = -100
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40
LONG = "This is an answer that takes its time, word after word, until it has come to its end."


@tool(effect="none", replay="commit")
async def send_back(name: str, context: Context) -> Outcome:
    """Send a file of the workspace, and a picture."""
    data = context.reach.files.read(name, 1000)
    blob = await context.reach.host.put_blob(data)
    picture = await context.reach.host.put_blob(PNG)
    items = (
        Text("here"),
        File(blob, "back.txt", "text/plain", len(data)),
        Image(picture, "image/png", "p.png"),
    )
    return Done((Text("sent"),), outbox=(Outgoing(f"{context.key}:send", context.address, items),))


class SlowTool:
    """Is at work until `go` is set."""

    def __init__(self, name: str = "read_file") -> None:
        self.spec = Spec(name, "Takes its time.", {"type": "object"}, "none", "again")
        self.go = anyio.Event()

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        await self.go.wait()
        return make_result("read", LOCAL)


class World:
    """One home, one bot, and as many lives as it takes. Ann is an owner; Bob stands in
    `allow_from`."""

    def __init__(self, home: Path, server: TelegramServer) -> None:
        self.home = home
        self.server = server
        self.chats = server.chats
        self.model: Model = ScriptedModel()
        self.channel: dict[str, Any] = {"allow_from": [BOB]}
        self.config: dict[str, Any] = {}
        self.fuse = Fuse()
        self.slow = SlowTool()
        self.secrets: dict[str, str] = {}
        self.more_tools: dict[str, Tool] = {}

    def settings(self) -> Settings:
        channel = {"base_url": self.server.base_url.removesuffix("/bot"), **self.channel}
        raw = {
            "defaults": {"models": ["scripted/x"]},
            "channels": {"telegram": channel},
        } | self.config
        config = msgspec.convert(raw, Config, strict=False)
        return Settings(
            Home(self.home),
            config,
            environment={"TELEGRAM_BOT_TOKEN": self.server.token, **self.secrets},
        )

    def parts(self) -> Parts:
        act = FileTool("act", self.home / "acts.txt", fuse=self.fuse)
        act.spec = msgspec.structs.replace(act.spec, effect="network")
        tools: dict[str, Tool] = {
            "act": act,
            "ask_user": ask_user,
            "send_back": send_back,
            "read_file": self.slow,
        }
        tools |= self.more_tools
        tools["send_message"] = SendMessage(frozenset({"terminal"}))
        return with_channels(
            Parts(lambda _: self.model, tools, store=fused(self.fuse)), self.settings()
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        async with (
            open_app(self.settings(), self.parts()) as app,
            anyio.create_task_group() as tasks,
        ):
            app.drafts.first_s = 0.01
            app.drafts.work_s = 0.02
            app.drafts.orphan_check_s = 0.05
            if "ann" not in {user.name for user in await app.people.users()}:
                await app.people.add_user("ann", "owner", Identity("telegram", str(ANN)))
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()


async def until(true: Callable[[], object]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.01)


def calling(tool_name: str, **arguments: object) -> ScriptedModel:
    """Calls this tool, then says what came of it."""

    def script(request: Request) -> Any:
        last = request.messages[-1].message
        if last.role == "tool":
            return say("so: " + "".join(getattr(part, "text", "") for part in last.parts))
        return say(
            "",
            ToolCall(
                f"c{len(request.messages)}", tool_name, msgspec.Raw(msgspec.json.encode(arguments))
            ),
        )

    return ScriptedModel(script)


async def asked(world: World, chat: int) -> Post:
    await until(lambda: world.chats.said(chat) and world.chats.last(chat).buttons)
    return world.chats.last(chat)
