"""Deferred tools in a whole Deskhand: how long a first request is, and what becomes of tools that
are loaded."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.assembly.tools import FOREIGN_TOOLS_TOKENS
from deskhand.config.config import Config, Home, Settings
from deskhand.evals.replay import is_same_request
from deskhand.models.base import Request
from deskhand.policy.profiles import CORE_TOOLS
from deskhand.policy.profiles import DEFERRED_TOOLS as ALL_DEFERRED_TOOLS
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.deferred import TOOL_SEARCH, estimate_schema_tokens, list_offered_specs
from deskhand.types.messages import Message, ToolCall, ToolResult
from deskhand.types.options import SessionOptions

ONLY_WHERE_SET = ("mcp", "mcp_read", "image_gen", "remote_agent", "desktop")
DEFERRED_TOOLS = [name for name in ALL_DEFERRED_TOOLS if name not in ONLY_WHERE_SET]
"""Those of MCP are there where servers are."""
MOST_TOKENS = 1_600
"""What the tools of an agent with the usual settings may take of each request."""


class Desk:
    """A home, and the turns that are taken in it, each by a new process. `asked` is all that its
    model was asked."""

    def __init__(self, home: Path, **config: object) -> None:
        made = msgspec.convert(
            {"defaults": {"models": ["openai/gpt-5.6-sol"]}} | config, Config, strict=False
        )
        self.settings = Settings(Home(home), made, environment={"HOME": str(home.parent)})
        self.asked: list[Request] = []
        self.turns = 0

    async def turn(self, *calls: tuple[str, dict[str, object]], replay: bool = False) -> list[str]:
        """Call these tools, one after the other; what the model was told."""
        told: list[str] = []
        self.turns += 1

        def script(request: Request) -> Message:
            self.asked.append(request)
            last = request.messages[-1].message
            told.extend(part.text for part in last.parts if isinstance(part, ToolResult))
            if len(told) == len(calls):
                return say("done")
            name, arguments = calls[len(told)]
            return say(
                "",
                ToolCall(
                    f"c{self.turns}_{len(told)}", name, msgspec.Raw(msgspec.json.encode(arguments))
                ),
            )

        channel = MemoryChannel()
        model = ScriptedModel(script)
        parts = Parts(lambda name: model, channels=(channel,), authorize=lambda inbound: OWNER)
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            channel.write("go", external_id=f"m{self.turns}")
            with anyio.fail_after(60):
                while not channel.sent:
                    await anyio.sleep(0.005)
            if replay:
                await self._replayed(app)
            tasks.cancel_scope.cancel()
        return told

    async def _replayed(self, app: App) -> None:
        replaying = app.features.replaying
        found = await replaying.run(await replaying.load_recording("default/memory:1"))
        assert found.same and not found.differs
        assert all(map(is_same_request, found.requests, self.asked[-len(found.requests) :]))

    async def tools(self) -> dict[str, int]:
        """What is offered first, each with its tokens."""
        await self.turn()
        return {schema.name: estimate_schema_tokens(schema) for schema in self.asked[-1].tools}


def names(request: Request) -> list[str]:
    return [schema.name for schema in request.tools]


async def test_a_request_with_the_usual_settings_is_short(tmp_path: Path) -> None:
    offered = await Desk(tmp_path / "h").tools()
    assert sum(offered.values()) <= MOST_TOKENS, offered
    assert CORE_TOOLS - {"manage_users"} <= {*offered} and not {*DEFERRED_TOOLS} & {*offered}
    everything = await Desk(
        tmp_path / "all", defaults={"models": ["openai/x"], "deferred_tools": []}
    ).tools()
    assert {*everything} == {*offered, *DEFERRED_TOOLS} - {TOOL_SEARCH}
    assert sum(everything.values()) > 1.5 * sum(offered.values())


async def test_loaded_tools_are_appended_and_stay_over_a_restart_and_in_a_replay(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path / "h")
    loaded, stored, more = await desk.turn(
        (TOOL_SEARCH, {"query": "kv_get, kv_set"}),
        ("kv_set", {"key": "a", "value": "b"}),
        (TOOL_SEARCH, {"query": "remind me"}),
        replay=True,
    )
    assert loaded.startswith(
        "You can call these from your next reply on:\n- kv_set: Remember a value under a key\n"
    )
    assert stored.startswith("ok") and "- cron: " in more
    first, second, third, fourth = desk.asked
    assert TOOL_SEARCH in names(first) and "kv_set" not in names(first)
    assert second.tools == third.tools and second.tools[: len(first.tools)] == first.tools
    assert names(second)[len(first.tools) :] == ["kv_set", "kv_get"]
    assert (
        fourth.tools[: len(third.tools)] == third.tools
        and names(fourth)[len(third.tools)] == "cron"
    )
    assert await desk.turn(("kv_get", {"key": "a"}), replay=True) == ["b"]
    assert desk.asked[-1].tools == desk.asked[-2].tools == fourth.tools, (
        "another process reads it from the log"
    )


async def test_a_deferred_tool_just_runs_where_it_is_called(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path / "h",
        policy=[{"verdict": "deny", "tool": "kv_delete", "because": "we keep things"}],
    )
    stored, wrong, denied = await desk.turn(
        ("kv_set", {"key": "a", "value": "b"}),
        ("kv_set", {"key": "a"}),
        ("kv_delete", {"key": "a"}),
    )
    assert stored.startswith("ok") and "Expected an object with: key, value, namespace?" in wrong
    assert "we keep things" in denied, "behind the same gate as any other"
    assert len({tuple(names(request)) for request in desk.asked}) == 1, (
        "and the next request has the same tools"
    )


async def test_what_other_words_name_runs_without_being_loaded(tmp_path: Path) -> None:
    """Results and prompts name tools: whoever calls one of those need not load it first."""
    desk = Desk(tmp_path / "h")
    calls: tuple[tuple[str, dict[str, object]], ...] = (
        ("think", {"thought": "first this"}),
        ("list_skills", {}),
        ("search_memories", {"query": "tea"}),
        ("search_past", {"query": "tea"}),
        ("check_background", {}),
        ("background_run", {"command": "true"}),
        ("send_file", {"path": "none.txt"}),
        ("exit_plan_mode", {"plan": " "}),
        ("enter_plan_mode", {}),
    )
    told = await desk.turn(*calls)
    found = {name: said for (name, _), said in zip(calls, told, strict=True)}
    assert not {name for name, _ in calls} & {*names(desk.asked[0])}
    assert "noted" in found["think"] and "deskhand-help" in found["list_skills"]
    assert "nothing is known about that" in found["search_memories"]
    assert "No background commands" in found["check_background"]
    assert "Background task" in found["background_run"]
    assert "there is no 'none.txt'" in found["send_file"]
    assert "plan mode is not on" in found["exit_plan_mode"]
    assert "Plan mode is on" in found["enter_plan_mode"]
    listed = next(tool.description for tool in desk.asked[0].tools if tool.name == TOOL_SEARCH)
    assert all(re.search(rf"\b{name}\b", listed) for name in DEFERRED_TOOLS)
    # The first and the last: the result of the background task may bring one more request.
    before, after = (set(names(desk.asked[at])) for at in (0, -1))
    assert after - before == {"exit_plan_mode"}, "plan mode has what ends it"


async def test_what_an_agent_may_not_use_is_neither_found_nor_loaded(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "h", defaults={"models": ["openai/x"], "deny": ["kv_*"]})
    (told,) = await desk.turn((TOOL_SEARCH, {"query": "kv_set"}))
    assert "no tool that you may use now matches 'kv_set'; there are: list_symbols, " in told
    assert (
        "kv_" not in told.partition("there are")[2] and desk.asked[0].tools == desk.asked[-1].tools
    )
    assert "kv_" not in next(
        schema.description for schema in desk.asked[0].tools if schema.name == TOOL_SEARCH
    )
    planning = Desk(tmp_path / "planning")
    _, held, found = await planning.turn(
        ("enter_plan_mode", {}),
        (TOOL_SEARCH, {"query": "kv_set"}),
        (TOOL_SEARCH, {"query": "kv_set kv_get"}),
    )
    assert (
        "more tools are available after the plan is approved" in held
        and "kv_get" in found
        and "kv_set" not in found
    )
    assert [names(request)[-1] for request in planning.asked[1:]] == [
        TOOL_SEARCH,
        TOOL_SEARCH,
        "kv_get",
    ]
    without = await Desk(
        tmp_path / "without", defaults={"models": ["openai/x"], "deny": [TOOL_SEARCH]}
    ).tools()
    assert TOOL_SEARCH not in without and "cron" in without, "whoever cannot load any has all"


async def test_what_is_named_is_never_deferred(tmp_path: Path) -> None:
    named = await Desk(
        tmp_path / "a", defaults={"models": ["openai/x"], "also_allow": ["kv_*", "cron", "think"]}
    ).tools()
    assert {"kv_get", "kv_list", "cron", "think", TOOL_SEARCH} <= {*named}
    assert not {"process", "send_file", "exit_plan_mode"} & {*named}
    listed = await Desk(
        tmp_path / "b", defaults={"models": ["openai/x"], "tools": ["read_*", "process"]}
    ).tools()
    assert {*listed} == {"read_file", "read_output", "read_skill", "read_past", "process"}
    coding = await Desk(
        tmp_path / "c", defaults={"models": ["openai/x"], "profile": "coding"}
    ).tools()
    assert {"process", "think", "exit_plan_mode"} <= {*coding} and TOOL_SEARCH not in coding
    every = await Desk(
        tmp_path / "d", defaults={"models": ["openai/x"], "deferred_tools": ["*"]}
    ).tools()
    assert {*every} == CORE_TOOLS | {TOOL_SEARCH}, "some are needed by every conversation"
    chosen = await Desk(
        tmp_path / "e", defaults={"models": ["openai/x"], "deferred_tools": ["web_*", "cron"]}
    ).tools()
    assert "process" in chosen and "cron" not in chosen and "web_search" in chosen


PLUGIN = """
from deskhand.tools.define import tool
from deskhand.tools.plugin import Plugin

def made(n):
    async def run(city: str) -> str:
        return city
    run.__name__ = f"weather_{n}"
    run.__doc__ = f"The weather of day {n}.\\n\\n" + "What else there is to be said about it. " * 8
    return tool(run)

class Weather(Plugin):
    def get_tools(self):
        return [made(n) for n in range(NUMBER)]

plugin = Weather
"""


@pytest.mark.parametrize(("number", "deferred"), [(3, False), (40, True)])
async def test_tools_of_plugins_are_deferred_where_they_would_take_much(
    number: int, deferred: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "h" / "plugins"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "weather.py").write_text(PLUGIN.replace("NUMBER", str(number)))
    (folder / "weather.py").chmod(0o600)
    desk = Desk(tmp_path / "h", plugins=["weather"])
    offered = await desk.tools()
    assert ("weather_2" not in offered) is deferred
    assert sum(offered.values()) < MOST_TOKENS + FOREIGN_TOOLS_TOKENS
    if deferred:
        loaded, said = await desk.turn(
            (TOOL_SEARCH, {"query": "weather_7"}), ("weather_7", {"city": "Ulm"})
        )
        assert "- weather_7: The weather of day 7" in loaded and said == "Ulm"
        assert names(desk.asked[-1])[-1] == "weather_7"


async def test_the_tools_of_the_task_list(tmp_path: Path) -> None:
    """`manage_tasks` is there from the first request on in deep work, and elsewhere where it is
    wanted."""
    desk = Desk(tmp_path / "h")
    _, made = await desk.turn(
        (TOOL_SEARCH, {"query": "task list"}),
        ("manage_tasks", {"action": "create", "title": "one"}),
    )
    before = names(desk.asked[0])
    after = names(desk.asked[1])
    assert (
        "#1 one" in made
        and "manage_tasks" in after[len(before) :]
        and after[: len(before)] == before
    )
    async with open_app(desk.settings, Parts(lambda name: ScriptedModel())) as app:
        tools = app.current.agent("default").tools
        assert "manage_tasks" in [
            spec.name for spec in list_offered_specs(tools, SessionOptions(mode="deep_work"))
        ]
