"""A skill is given the secrets that it declares, after the owner has allowed them once."""

from __future__ import annotations

import shutil
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.net.egress_secrets import SecretRule
from deskhand.runtime.app import App
from deskhand.store.queries import StandingGrant, set_standing_grant
from deskhand.testing.egress import EchoServer
from deskhand.types.events import ApprovalAsked

from .world import World, curl

pytestmark = pytest.mark.timeout(240)
VALUE = "canary-of-the-station"
OTHER = "canary-of-the-others"
SKILL = """---
name: weather
description: Asks the weather.
metadata:
  deskhand-secrets: station
  deskhand-hosts: api.test
---
Run the program.
"""


@pytest.fixture
def asking(world: World) -> World:
    """With a skill for all agents, and two secrets for the same host."""
    world.server = EchoServer()
    folder = world.settings.skills_folder / "weather"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "ask.sh").write_text("env; curl -sSk https://$1/")
    world.secrets.set("station", VALUE, "file")
    world.secrets.set("other", OTHER, "file")
    return world


async def allow_host(world: World, app: App) -> None:
    world.secrets.add_rule("station", SecretRule(world.where))
    world.secrets.add_rule("other", SecretRule(world.where, header="X-Other: {}"))
    world.config["egress"] = {"allow": [world.where]}
    app.current.settings = world.settings


def ask(world: World, **more: Any) -> tuple[str, dict[str, Any]]:
    command = f"bash $SKILL_DIR/ask.sh {world.where}"
    return "run_skill", {"skill": "weather", "command": command, **more}


async def test_a_skill_has_what_it_declares_and_was_allowed(asking: World) -> None:
    world = asking
    server = world.server
    async with world.running() as app:
        await allow_host(world, app)
        (result,) = await world.results(app, "one", ask(world))
        assert "the skill was not given its secrets 'station'" in result.text
        assert VALUE.encode() not in server.requests[-1], "nobody has allowed it"

        await world.answered(app, "two", "no", ask(world, secrets=["station"]))
        assert len(server.requests) == 1
        (asked,) = await world.found(app, "two", ApprovalAsked)
        assert "station" in asked.question

        said = await world.answered(app, "three", "yes", ask(world, secrets=["station"]))
        assert f"Authorization: Bearer {VALUE}".encode() in server.requests[-1]
        assert OTHER.encode() not in server.requests[-1], "it declares one alone"
        assert "GET / HTTP" in said and VALUE not in said
        assert "Bearer {{secret:station}}" in said, "the server has said it, and nobody hears it"

        (result,) = await world.results(app, "four", ask(world))
        assert VALUE.encode() in server.requests[-1], "it is asked once"
        assert "not given" not in result.text and VALUE not in result.text
        text = await world.shell(app, "five", curl(world))
        assert OTHER.encode() in server.requests[-1] and OTHER not in text, "others are as before"
        for session in ("one", "two", "three", "four", "five"):
            events = await app.store.events(f"default/terminal:{session}")
            assert VALUE not in str(events) and OTHER not in str(events)

        own = world.home.workspace("default") / "skills" / "weather"
        shutil.copytree(world.settings.skills_folder / "weather", own)
        (result,) = await world.results(app, "six", ask(world))
        assert "the skill was not given its secrets 'station'" in result.text
        assert VALUE.encode() not in server.requests[-1], "another skill of the same name"


async def test_what_it_does_not_declare_cannot_be_asked_for(asking: World) -> None:
    async with asking.running() as app:
        await allow_host(asking, app)
        said = await asking.answered(app, "one", "yes", ask(asking, secrets=["other"]))
        assert "the skill 'weather' does not declare 'other'" in said
        assert not asking.server.requests


async def test_no_rule_of_the_policy_allows_it_for_a_person(asking: World) -> None:
    """Only a person who saw it does."""
    asking.config["policy"] = [{"tool": "run_skill", "verdict": "allow"}]
    async with asking.running() as app:
        await allow_host(asking, app)
        (result,) = await asking.results(app, "one", ask(asking, secrets=["station"]))
        assert "only the owner can let a skill use a secret" in result.text
        assert not asking.server.requests


async def test_a_yes_is_for_the_skill_as_it_is(asking: World) -> None:
    """What has changed since is another skill: it is withheld, and asked about again."""
    world = asking
    folder = world.settings.skills_folder / "weather"
    value = VALUE.encode()
    async with world.running() as app:
        await allow_host(world, app)
        wanted = ask(world, secrets=["station"])
        await world.answered(app, "one", "always", wanted)
        assert value in world.server.requests[-1]
        (asked,) = await world.found(app, "one", ApprovalAsked)
        assert f"the skill in {folder}" in asked.question
        (result,) = await world.results(app, "again", wanted)
        assert result.status == "ok", "it was allowed for good, and may be said again"

        (folder / "ask.sh").write_text("curl -sSk https://$1/changed")
        (result,) = await world.results(app, "two", ask(world))
        assert "the skill was not given its secrets 'station'" in result.text
        assert b"/changed" in world.server.requests[-1] and value not in world.server.requests[-1]
        await world.answered(app, "two", "no", wanted)
        assert len(await world.found(app, "two", ApprovalAsked)) == 1, "always was for the other"

        await world.start(app, "three", wanted)
        with anyio.fail_after(60):
            while not (asks := await world.found(app, "three", ApprovalAsked)):
                await anyio.sleep(0.01)
        (folder / "ask.sh").write_text("curl -sSk https://$1/swapped")
        await world.answer(app, asks[0].ask_id, "yes")
        assert not [each for each in world.server.requests if b"/swapped" in each and value in each]


async def test_a_tool_that_is_called_so_allows_nothing(asking: World) -> None:
    """An answer to a call of a tool is no answer about a secret, whatever the tool is called."""
    world = asking
    folder = world.settings.skills_folder / "weather"
    arguments = {"skill": "weather", "secret": "station", "folder": str(folder)}
    said = msgspec.json.encode(arguments).decode()
    async with world.running() as app:
        await allow_host(world, app)
        grant = StandingGrant(
            id="x",
            verdict="always",
            agent="default",
            tool="use_secret",
            arguments=said,
            at=1.0,
            by="guest",
        )
        await app.store.change([set_standing_grant(grant)])
        (result,) = await world.results(app, "one", ask(world))
        assert "the skill was not given its secrets 'station'" in result.text
