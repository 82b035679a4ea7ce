"""The browser by the names of other systems, and sub-agents that have nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec

from deskhand.computer.browser.other_names import make_browser_views
from deskhand.policy.profiles import BROWSER_VIEW_TOOLS
from deskhand.subagents.kinds import KINDS, choose_tools
from deskhand.testing.temporary_home import TemporaryHome
from deskhand.tools.base import Done
from tests.tools.conftest import text_of

from .conftest import Surfer


async def test_ten_names_of_agent_computer(surfer: Surfer) -> None:
    views = {each.spec.name: each for each in make_browser_views(surfer.tool)}
    assert set(views) == set(BROWSER_VIEW_TOOLS)
    surfer.site.page("/page", "<title>t</title><label>Name <input></label><p>words")

    async def call(name: str, **arguments: str) -> str:
        raw = msgspec.Raw(msgspec.json.encode(arguments))
        done = await views[f"browser_{name}"].run(raw, await surfer.context())
        assert isinstance(done, Done)
        return text_of(done)

    assert 'e1 textbox "Name"' in await call("navigate", url=surfer.site.url("/page"))
    await call("fill", ref="e1", text="An")
    assert '= "Ann"' in await call("type", ref="e1", text="n")
    assert "nothing has changed" in await call("press", key="Tab")
    await call("click", ref="e1")
    await call("scroll", direction="down")
    assert "words" in await call("text")
    assert 'textbox "Name"' in await call("snapshot")
    assert "tab 1" in await call("tabs")
    assert await call("screenshot")


async def test_actions_of_operator_use(surfer: Surfer) -> None:
    surfer.site.page("/page", "<title>t</title><label>Name <input></label>")
    assert "textbox" in await surfer("goto", url=surfer.site.url("/page"))
    await surfer("key", key="Tab")
    assert "Name" in await surfer("scrape")


async def test_who_has_the_browser_for_a_task_has_nothing_else(tmp_path: Path) -> None:
    named = {
        "models": ["scripted/x"],
        "desktop": True,
        "also_allow": ["browser_*", "computer_task"],
    }
    async with TemporaryHome(tmp_path, defaults=named).running() as app:
        tools = app.current.agent("default").tools
        assert {"browser", "browser_task", "browser_click", "desktop", "computer_task"} <= set(
            tools
        )
        assert choose_tools(KINDS["browser"], tools, nests=True) == ["request_host", "browser"]
        assert choose_tools(KINDS["computer"], tools, nests=True) == ["desktop"]
    async with TemporaryHome(tmp_path / "b", defaults={"browser": False}).running() as app:
        tools = app.current.agent("default").tools
        assert not {"browser", "browser_task", "desktop"} & set(tools)
