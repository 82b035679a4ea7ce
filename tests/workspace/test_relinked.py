"""A chat whose identity is linked to another user: from then on it is theirs alone."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.memory.facts import NewFact, add_fact
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER
from deskhand.types.messages import Text
from deskhand.types.people import Identity
from deskhand.users.users import open_people

from ..runtime.test_app import said, until

SESSION = "default/memory:1"
CHAT = Identity("memory", "42")
ANN = Principal("ann", ("member",))


def shown(request: Request) -> str:
    parts = [part for each in request.messages for part in each.message.parts]
    return "\n".join([*request.system, *(part.text for part in parts if isinstance(part, Text))])


@pytest.mark.parametrize("afresh", [False, True], ids=["it goes on", "after /start"])
async def test_a_chat_that_is_linked_to_the_owner_is_private_again(
    tmp_path: Path, afresh: bool
) -> None:
    config = msgspec.convert(
        {"defaults": {"models": ["scripted/x"]}, "memory": {"embed_model": "none"}}, Config
    )
    channel, model = MemoryChannel(), ScriptedModel(lambda request: say("Fine."))
    settings = Settings(Home(tmp_path), config)
    parts = Parts(lambda name: model, {}, channels=(channel,))
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        fact = NewFact(
            text="The garage code is 7719",
            scope="user",
            owner="owner",
            label=OWNER,
            writer="person",
            key="k",
        )
        await app.store.change(add_fact(fact, app.parts.clock.now()))
        people = open_people(app.store, app.parts.clock, lambda: {}, lambda: {})
        await people.add_user("ann", "member", CHAT)
        channel.write("What is my garage code?", sender="42")
        await until(lambda: len(said(channel)) == 1)
        assert "7719" not in shown(model.requests[-1])
        assert await app.store.may_see(ANN, SESSION)

        await people.unlink(CHAT)
        await people.link("owner", CHAT)
        count = 1
        if afresh:
            channel.write("/start", sender="42")
            channel.write("/memory", sender="42")
            count = 3
            await until(lambda: len(said(channel)) == count)
            assert "7719" in said(channel)[-1][1]
        channel.write("What is my garage code?", sender="42")
        await until(lambda: len(said(channel)) == count + 1)
        assert "7719" in shown(model.requests[-1])
        channel.write("/memory", sender="42")
        await until(lambda: len(said(channel)) == count + 2)
        assert "7719" in said(channel)[-1][1]
        assert not await app.store.may_see(ANN, SESSION), (
            "what the owner writes now is not ann's to read"
        )
        tasks.cancel_scope.cancel()
