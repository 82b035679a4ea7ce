"""The requests of a custom tool carry the secrets that it names, and no others."""

from __future__ import annotations

import os

import anyio
import pytest

from deskhand.net.egress_secrets import SecretRule
from deskhand.runtime.app import App
from deskhand.testing.egress import EchoServer

from .world import World

pytestmark = pytest.mark.timeout(240)
VALUE = "canary-of-the-station"
OTHER = "canary-of-the-others"
FILE = '''
import subprocess
from deskhand.customtools import tool

def ask(url: str) -> str:
    return subprocess.run(["curl", "-sSk", url], capture_output=True, text=True).stdout

@tool(hosts=["api.test"], secrets=["station"])
def weather(url: str) -> str:
    """Ask the weather."""
    return ask(url)

@tool(hosts=["api.test"])
def plain(url: str) -> str:
    """Ask without a secret."""
    return ask(url)
'''


async def allow_host(world: World, app: App) -> None:
    world.secrets.set("station", VALUE, "file")
    world.secrets.set("other", OTHER, "file")
    world.secrets.add_rule("station", SecretRule(world.where))
    world.secrets.add_rule("other", SecretRule(world.where, header="X-Other: {}"))
    world.config["egress"] = {"allow": [world.where]}
    app.current.settings = world.settings


async def test_a_tool_has_the_secrets_that_it_names(world: World) -> None:
    world.server = EchoServer()
    tools = world.home.workspace("default") / "tools"
    tools.mkdir(parents=True)
    (tools / "station.py").write_text(FILE)
    os.utime(tools / "station.py", (1.0, 1.0))  # one that is still written is not loaded
    async with world.running() as app:
        with anyio.fail_after(20):
            while "weather" not in app.current.agent("default").tools:
                await anyio.sleep(0.05)
        await allow_host(world, app)
        url = {"url": f"https://{world.where}/"}
        said = await world.answered(app, "one", "yes", ("weather", url))
        assert world.server.requests, said
        assert f"Authorization: Bearer {VALUE}".encode() in world.server.requests[-1]
        assert OTHER.encode() not in world.server.requests[-1], "it names one alone"
        assert "GET / HTTP" in said and VALUE not in said

        said = await world.answered(app, "two", "yes", ("plain", url))
        assert "GET / HTTP" in said
        assert VALUE.encode() not in world.server.requests[-1]
        assert OTHER.encode() not in world.server.requests[-1]
