"""Users are changed in a conversation by an owner who is there, and by nobody and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.assembly.judge import judge
from deskhand.assembly.tools import make_tools, skills_of
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.policy.checks import AgentPolicy
from deskhand.policy.permission_modes import PERMISSION_MODES, mode_rules
from deskhand.policy.rules import Case
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import ApprovalAsked
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import OWNER, Label
from deskhand.types.messages import Message, ToolCall, ToolResult
from deskhand.users.tool import REFUSED, ManageUsers

ANN = Principal("ann", ("owner",))
BOB = Principal("bob", ("member",))


class Talk:
    """A Deskhand in which one person's agent calls the tool, and the person says yes."""

    def __init__(self, home: Path, who: Principal, **config: Any) -> None:
        self.home = home
        self.who = who
        self.config = {"defaults": {"models": ["scripted/x"]}, **config}
        self.asked: list[str] = []
        self.users: dict[str, tuple[str, ...]] = {}

    async def do(self, **arguments: str) -> tuple[str, str]:
        """Call it. Returns the status and what the model was told."""
        told: list[ToolResult] = []

        def script(request: Request) -> Message:
            last = request.messages[-1].message
            told.extend(part for part in last.parts if isinstance(part, ToolResult))
            return say("done", *(() if told else [call]))

        call = ToolCall("c", "manage_users", msgspec.Raw(msgspec.json.encode(arguments)))
        settings = Settings(Home(self.home), msgspec.convert(self.config, Config, strict=False))
        channel = MemoryChannel()
        model, clock = ScriptedModel(script), SetClock(1_700_000_000.0)
        parts = Parts(
            lambda name: model, channels=(channel,), authorize=lambda inbound: self.who, clock=clock
        )
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            number = len(await app.store.events("default/memory:1")) + 1
            channel.write("go", external_id=f"go{number}")
            with anyio.fail_after(20):
                while not told:
                    await anyio.sleep(0.005)
                    await self._yes(app, channel, number)
            self.users = {user.name: user.roles for user in await app.people.users()}
            tasks.cancel_scope.cancel()
        return told[0].status, told[0].text

    async def _yes(self, app: App, channel: MemoryChannel, number: int) -> None:
        events = await app.store.events("default/memory:1", number - 1)
        found = [r.event.question for r in events if isinstance(r.event, ApprovalAsked)]
        if len(found) == 1 and found != self.asked:
            self.asked = found
            channel.write("yes", external_id=f"yes{number}")


async def test_an_owner_manages_users_with_a_yes_for_each_change(tmp_path: Path) -> None:
    talk = Talk(tmp_path, ANN)
    status, text = await talk.do(
        action="add", username="gavin", transport="telegram", external_id="42"
    )
    assert (status, text) == ("ok", "ok, gavin: member; known as telegram:42")
    assert talk.asked and "manage_users" in talk.asked[0]
    for arguments, said in (
        (
            {"action": "link", "username": "gavin", "transport": "slack", "external_id": "U1"},
            "slack:U1, telegram:42",
        ),
        (
            {"action": "unlink", "transport": "slack", "external_id": "U1"},
            "ok, unlinked slack:U1",
        ),
        ({"action": "add_role", "username": "gavin", "role": "admin"}, "gavin: member, owner;"),
        ({"action": "remove_role", "username": "gavin", "role": "admin"}, "gavin: member;"),
    ):
        assert said in (await talk.do(**arguments))[1]
    talk.asked = []
    assert (await talk.do(action="list"))[
        1
    ] == "gavin: member; known as telegram:42\nowner: owner; known as nobody"
    assert talk.asked == [], "looking needs no yes"
    status, text = await talk.do(action="add", username="No Name")
    assert status == "error" and text.startswith("invalid user name 'No Name'")
    assert (await talk.do(action="remove", username="gavin"))[0] == "ok" and list(talk.users) == [
        "owner"
    ]


@pytest.mark.parametrize("role", ["approver", "member", "viewer-of-mine", "guest"])
async def test_everybody_else_is_refused(role: str, tmp_path: Path) -> None:
    """Without bothering an owner with a question, also where everything is allowed."""
    who = Principal("bob", (role,))
    talk = Talk(
        tmp_path,
        who,
        permission_mode="everything",
        roles={"viewer-of-mine": {"agents": ["default"]}},
    )
    for action in ("list", "add", "remove", "link", "unlink", "add_role", "remove_role"):
        assert await talk.do(action=action, username="bob", role="owner") == ("error", REFUSED)
    assert talk.asked == [] and list(talk.users) == ["owner"]


def case(who: Principal, action: str = "add", context: Label = OWNER) -> Case:
    arguments = msgspec.json.encode({"action": action, "username": "x"})
    effect = ManageUsers(None).effect_of(msgspec.Raw(arguments), Address("memory"))
    return Case("default", "manage_users", effect, who, context, arguments)


def test_no_permission_mode_lets_an_agent_change_users_alone() -> None:
    for mode in PERMISSION_MODES:
        policy = AgentPolicy(mode_rules(mode))
        verdict = "deny" if mode == "read-only" else "ask"
        assert judge(case(ANN), policy).verdict == verdict
        assert judge(case(ANN, "list"), policy).verdict == "allow"
        assert judge(case(ANN, context=Label()), policy).verdict == verdict


def test_a_job_has_no_user() -> None:
    """Whoever's it is: the tool is reached, and refuses."""
    policy = AgentPolicy()
    for who in (
        Principal("job", ("owner",), "clock", "ann"),
        Principal("sub", ("owner",), "agent", "ann"),
    ):
        assert judge(case(who), policy).verdict == "allow"


@pytest.mark.parametrize("kind", ["clock", "agent", "system"])
async def test_what_is_no_person_is_refused(kind: str, tmp_path: Path) -> None:
    who = Principal("job", ("owner",), kind, "ann")  # type: ignore[arg-type]
    talk = Talk(tmp_path, who)
    assert await talk.do(action="add", username="eve", role="owner") == ("error", REFUSED)
    assert list(talk.users) == ["owner"]


def test_all_see_it(tmp_path: Path) -> None:
    settings = Settings(Home(tmp_path), Config())
    assert "manage_users" in make_tools(settings, "default", skills_of(settings, "default"))
