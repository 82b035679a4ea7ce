"""Which agent answers where."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.clock import SystemClock
from deskhand.config.config import Config, Home, Settings, read_settings
from deskhand.config.routing import Binding, route
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import FileTool
from deskhand.types.identity import Address, Answer, Inbound, Principal
from deskhand.types.messages import Message, Text, ToolCall

AGENTS = ("main", "coder", "sales")
BINDINGS = (
    Binding("sales", "chat", "shop"),
    Binding("coder", "chat", chat="7"),
    Binding("main", "chat", chat="7"),
    Binding("coder", "mail"),
)
PLACES = [
    (Address("chat", "shop", "7"), "sales", "the first that fits wins"),
    (Address("chat", "", "7"), "coder", "also of two that are the same"),
    (Address("chat", "shop2", "8"), "main", "none fits: the first agent"),
    (Address("chat", "sales", "8"), "sales", "none fits: the agent called as the account"),
    (Address("mail", "sales", "8"), "coder", "a binding is before the account"),
    (Address("other", "", "7"), "main", "the same chat of another channel"),
]


@pytest.mark.parametrize(("place", "agent", "why"), PLACES, ids=[why for _, _, why in PLACES])
def test_who_answers(place: Address, agent: str, why: str) -> None:
    assert route(BINDINGS, AGENTS, place) == agent


def test_bindings_as_two_systems_write_them(tmp_path: Path) -> None:
    (tmp_path / "deskhand.yaml").write_text("""
agents: {main: {}, coder: {}, sales: {}}
bindings:
- {agentId: sales, match: {channel: chat, accountId: shop, peer: {kind: direct, id: 12}}}
- {agent: coder, channel: mail, chat: 7}
""")
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)})
    assert settings.config.bindings == (
        Binding("sales", "chat", "shop", "12"),
        Binding("coder", "mail", chat="7"),
    )
    assert settings.warnings == ()


async def test_several_conversations_in_one_chat(tmp_path: Path) -> None:
    """`/start NAME` begins one, or goes back to it, and it stays chosen: over a restart, and in
    that chat alone."""
    channel, ann, model = MemoryChannel(), Principal("ann", ("owner",)), ScriptedModel()
    settings = Settings(Home(tmp_path), Config()).with_model("scripted/x")

    async def write(*texts: str, chat: str = "1") -> list[str]:
        parts = Parts(lambda name: model, {}, channels=(channel,), authorize=lambda inbound: ann)
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            for text in texts:
                channel.write(text, chat=chat)
                sent = len(channel.sent) + 1
                with anyio.fail_after(20):
                    while len(channel.sent) < sent:
                        await anyio.sleep(0.005)
            sessions = {row.session: row.turns for row in await app.store.sessions(ann)}
            tasks.cancel_scope.cancel()
        return sorted(f"{session} {turns}" for session, turns in sessions.items())

    await write("hello", "/start Taxes", "one")
    said = "".join(part.text for part in channel.sent[1][0].parts if isinstance(part, Text))
    assert "taxes" in said
    assert {outgoing.address.chat for outgoing, _ in channel.sent} == {"1"}, (
        "the answers come into the same chat"
    )
    assert await write("two") == ["default/memory:1 1", "default/memory:1:taxes 2"]
    assert await write("elsewhere", chat="2") == [
        "default/memory:1 1",
        "default/memory:1:taxes 2",
        "default/memory:2 1",
    ]
    assert (await write("/start", "three"))[0] == "default/memory:1 2"
    assert (await write("/start taxes", "four", "/start 7", "five"))[:2] == [
        "default/memory:1 3",
        "default/memory:1:taxes 3",
    ]
    shown = "\n".join(each.message.text for asked in model.requests for each in asked.messages)
    assert "five" in shown and "/start" not in shown, "the model hears nothing of it"


async def test_a_button_answers_the_conversation_that_asked(tmp_path: Path) -> None:
    """Whatever was chosen in that chat since; and a made up button answers nothing in the chat of
    another."""
    channel = MemoryChannel()
    acts = tmp_path / "acts.txt"
    settings = Settings(Home(tmp_path), Config()).with_model("scripted/x")
    act = FileTool("act", acts)
    act.spec = msgspec.structs.replace(act.spec, effect="network")
    call = ToolCall("c1", "act", msgspec.Raw(b'{"text":"go"}'))

    def script(request: Request) -> Message:
        wanted = request.messages[-1].message.text.endswith("act")
        return say("", call) if wanted else say("done")

    def who(inbound: Inbound) -> Principal:
        return Principal(inbound.sender, ("approver",))

    parts = Parts(
        lambda name: ScriptedModel(script), {"act": act}, channels=(channel,), authorize=who
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)

        async def sent(number: int) -> None:
            with anyio.fail_after(20):
                while len(channel.sent) < number:
                    await anyio.sleep(0.005)

        def press(sender: str, chat: str) -> None:
            channel.waiting.append(
                Inbound(
                    f"p{sender}", Address("memory", chat=chat), sender, SystemClock().now(), answer
                )
            )

        channel.write("act", chat="1", sender="ann")
        await sent(1)
        asked = channel.sent[0][0].ask
        assert asked is not None
        answer = Answer(asked.ask_id, "once")
        channel.write("/start taxes", chat="1", sender="ann")
        await sent(2)
        press("eve", "2")
        await sent(3)
        assert not acts.exists(), "she takes no part in it"
        press("ann", "1")
        await sent(4)
        assert acts.read_text().endswith("go\n")
        assert {
            row.session for row in await app.store.sessions(Principal("eve", ("approver",)))
        } <= {"default/memory:2"}
        tasks.cancel_scope.cancel()
