"""MCP servers that are programs: they run in the sandbox, are begun when they are needed, and
whatever they do harms nobody else."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.config.config import read_settings
from deskhand.runtime.app import App
from deskhand.testing.temporary_home import TemporaryHome, processes_with, results, wait_for
from deskhand.types.events import ToolFinished, TurnEnded
from deskhand.types.messages import Image

from .working import desk_of, running, server_of, tools_of

PARENT = "default/terminal:1"


async def call(
    desk: TemporaryHome, app: App, tool: str, /, server: str = "test", **given: Any
) -> str:
    return await desk.call(app, f"mcp__{server}__{tool}", **given)


async def test_its_tools_are_called(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of("chatty")})
    async with running(desk) as app:
        assert "mcp__test__add" in tools_of(app)
        assert await call(desk, app, "add", a=1, b=2) == "3"
        assert await desk.call(app, "mcp_test_add", a=2, b=2) == "4", "as operator-use calls it"
        await call(desk, app, "picture")
        log = [each.event for each in await app.store.events(PARENT)]
        finished = [each.result for each in log if isinstance(each, ToolFinished)]
        assert any(
            isinstance(part, Image) and part.mime == "image/png" for part in finished[-1].parts
        )
        await call(desk, app, "broken_picture")
        log = [each.event for each in await app.store.events(PARENT)]
        last = [each.result for each in log if isinstance(each, ToolFinished)][-1]
        assert not any(isinstance(part, Image) for part in last.parts), "no model could read it"
        assert "Error executing tool fail" in await call(desk, app, "fail")
        assert "valid integer" in await call(desk, app, "add", a="x", b=2)


async def test_it_sees_nothing_but_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("canary")
    desk = desk_of(tmp_path / "home", mcp={"test": server_of(env={"GIVEN": "${ONE} two"})})
    desk.settings.environment.update({"ONE": "1", "OTHER_KEY": "canary"})  # type: ignore[attr-defined]
    async with running(desk) as app:
        seen = json.loads(await call(desk, app, "environment"))
        assert seen["GIVEN"] == "1 two" and "OTHER_KEY" not in seen and "canary" not in str(seen)
        for path in (
            tmp_path / "secret.txt",
            app.settings.home.root / "config.yaml",
            "/etc/shadow",
        ):
            assert "Error" in await call(desk, app, "read_path", path=str(path))
        assert await call(desk, app, "remember", word="one") == "one\n"
        own = app.settings.home.mcp_server("test")
        assert (own / "words.txt").read_text() == "one\n"


async def test_one_that_hangs_is_begun_again(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of("blocks", timeout_s=1)})
    async with running(desk) as app:
        before = app.features.mcp.status()["test"].link
        assert "timed out" in await call(desk, app, "block", seconds=60)
        assert await call(desk, app, "add", a=4, b=2) == "6"
        assert app.features.mcp.status()["test"].link is not before


async def test_a_slow_call_leaves_its_server_running(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of(timeout_s=1)})
    async with running(desk) as app:
        before = app.features.mcp.status()["test"].link
        assert "timed out" in await call(desk, app, "slow", seconds=60)
        assert await call(desk, app, "add", a=4, b=2) == "6"
        assert app.features.mcp.status()["test"].link is before


async def test_one_that_ends_is_begun_again(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of()})
    async with running(desk) as app:
        told = await call(desk, app, "die")
        assert "it ended with code 3" in told and "I am gone" in told
        assert await call(desk, app, "add", a=4, b=2) == "6"
        assert app.features.mcp.status()["test"].failures == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("flood",), "more than 16 MB"),
        (("missing-program",), "it ended with code"),
    ],
)
async def test_one_that_cannot_be_used_is_told_of(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    server = server_of(*words)
    if words == ("missing-program",):
        server |= {"args": ["-c", "import no_such_module"]}
    desk = desk_of(tmp_path, mcp={"bad": server, "test": server_of()})
    async with desk.running() as app:
        status = app.features.mcp.status
        await wait_for(partial(_has_failed, app, "bad"))
        assert told in status()["bad"].problem
        await wait_for(partial(_is_known, app, "test"))
        assert await call(desk, app, "add", a=1, b=1) == "2", "others go on"
        listed = await desk.call(app, "mcp", action="list")
        assert "bad: failed:" in listed and "test: connected;" in listed


async def _has_failed(app: App, name: str) -> bool:
    state = app.features.mcp.status().get(name)
    return state is not None and bool(state.problem)


async def _is_known(app: App, name: str) -> bool:
    return f"mcp__{name}__add" in tools_of(app)


async def test_an_answer_that_is_too_long_ends_it_and_nothing_else(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of()})
    async with running(desk) as app:
        assert "not shown" in await call(desk, app, "big", megabytes=2)
        assert "more than 16 MB" in await call(desk, app, "big", megabytes=100)
        assert await call(desk, app, "add", a=1, b=1) == "2"


async def test_one_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of(timeout_s=1)})
    async with running(desk) as app:
        assert "imed out" in await call(desk, app, "slow", seconds=30)
        assert await call(desk, app, "add", a=1, b=1) == "2"


async def test_a_stop_cancels_the_call(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of()})
    async with running(desk) as app:
        began = anyio.current_time()
        await desk.say(app, json.dumps([["mcp__test__slow", {"seconds": 60}]]))
        await wait_for(partial(_is_in_use, app))
        await desk.say(app, "/stop")
        await wait_for(partial(_has_ended, app))
        assert anyio.current_time() - began < 20
        assert await call(desk, app, "add", a=1, b=1) == "2"


async def _is_in_use(app: App) -> bool:
    return bool(app.features.mcp.status()["test"].in_use)


async def _has_ended(app: App) -> bool:
    events = [each.event for each in await app.store.events(PARENT)]
    return any(isinstance(each, TurnEnded) for each in events)


async def test_one_that_is_not_needed_is_left(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, mcp={"test": server_of(str(tmp_path), idle_s=1)})
    async with running(desk) as app:
        assert await call(desk, app, "add", a=1, b=1) == "2"
        await wait_for(partial(_is_gone, str(tmp_path)))
        assert await call(desk, app, "add", a=1, b=1) == "2"
    assert not processes_with(str(tmp_path))
    assert await results_of(desk) == ["2", "2"]


async def test_one_that_is_removed_is_left_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    file = home / "deskhand.yaml"
    text = msgspec.yaml.encode({"mcp": {"test": server_of(str(tmp_path / "mark"))}}).decode()
    file.write_text(text)
    settings = read_settings(None, {"DESKHAND_HOME": str(home), "HOME": str(home)})
    desk = TemporaryHome(home)
    desk.settings = settings.with_model("scripted/x")
    async with running(desk) as app:
        assert processes_with(str(tmp_path / "mark"))
        file.write_text("timezone: UTC\n")
        await wait_for(partial(_is_gone, str(tmp_path / "mark")))
        await wait_for(partial(_has_no_tools, app))


async def _has_no_tools(app: App) -> bool:
    return not tools_of(app) and "mcp" not in app.current.agents["default"].tools


async def _is_gone(words: str) -> bool:
    return not processes_with(words)


async def results_of(desk: TemporaryHome) -> list[str]:
    async with desk.running() as app:
        return await results(app, PARENT)


async def test_two_hundred_tools_cost_a_request_little(tmp_path: Path) -> None:
    sizes = []
    for servers in ({}, {"test": server_of("many200")}):
        desk = desk_of(tmp_path / str(len(servers)), mcp=servers)
        async with running(desk) as app:
            assert len(tools_of(app)) == 210 * len(servers)
            await desk.say(app, "hello")
            await wait_for(partial(_has_ended, app))
            request = desk.model.requests[0]
            told = [(each.name, each.description, each.parameters) for each in request.tools]
            sizes.append(len(msgspec.json.encode((request.system, told))))
            if servers:
                listed = next(each for each in request.tools if each.name == "tool_search")
                assert "mcp__test__* (210 tools)" in listed.description
                found = await desk.call(app, "tool_search", query="mcp__test__tool_7")
                assert "mcp__test__tool_7: Tool number 7 of many" in found
                assert await desk.call(app, "mcp__test__tool_7", path="a") == "a 7"
    assert sizes[1] - sizes[0] <= 300, sizes


async def test_resources_and_prompts(tmp_path: Path) -> None:
    desk = desk_of(
        tmp_path,
        mcp={"test": server_of(trusted=True)},
        policy=[{"tool": "mcp_*", "verdict": "allow"}],
    )
    async with running(desk) as app:

        async def mcp(action: str, name: str = "", arguments: dict[str, str] | None = None) -> str:
            given: dict[str, Any] = {"action": action, "server_name": "test"}
            if action in ("connect", "disconnect"):
                return await desk.call(app, "mcp", **given)
            given |= {"name": name, "arguments": arguments or {}}
            return await desk.call(app, "mcp_read", **given)

        listed = await mcp("resources")
        assert "notes://today: today" in listed and "notes://{day}: notes" in listed
        assert "water the plants" in await mcp("read_resource", "notes://today")
        assert "nothing on monday" in await mcp("read_resource", "notes://monday")
        assert "greet(name)" in await mcp("prompts")
        assert "Say hello to Ann." in await mcp("get_prompt", "greet", {"name": "Ann"})
        assert "there is no MCP server 'other'" in await desk.call(
            app, "mcp", action="connect", server_name="other"
        )
        assert "is not now" in await mcp("disconnect")
        assert await mcp("connect") == "test is connected"
