"""Plugins: the example of the documentation in a whole Deskhand, and everything that may be wrong
with one."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.assembly.plugins import list_plugins
from deskhand.assembly.tools import load_configured_plugins
from deskhand.config.config import Config, Home, Settings, read_settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import MessageReceived, Recorded, TurnEnded
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

EXAMPLE = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "extending.md").read_text(), re.S
)[0]
PLUGIN = "from deskhand.tools.plugin import Plugin\nplugin = Plugin\n"


def settings_of(home: Path, *plugins: str, **files: str) -> Settings:
    """A home with these files of plugins, of which the configuration names some."""
    folder = home / "plugins"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
        (folder / f"{name}.py").chmod(0o600)
    raw = {"defaults": {"models": ["scripted/x"]}, "plugins": plugins}
    return Settings(
        Home(home), msgspec.convert(raw, Config, strict=False), environment={"HOME": str(home)}
    )


async def talk(settings: Settings, *calls: ToolCall) -> tuple[App, list[Request], MemoryChannel]:
    """One turn in which the model makes these calls, one after the other."""
    asked: list[Request] = []
    channel = MemoryChannel()

    def script(request: Request) -> Message:
        asked.append(request)
        return say("", calls[len(asked) - 1]) if len(asked) <= len(calls) else say("done")

    parts = Parts(
        lambda name: ScriptedModel(script),
        channels=(channel,),
        authorize=lambda inbound: Principal("ann", ("owner",)),
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        channel.write("how much is it?")
        with anyio.fail_after(15):
            while not channel.sent:
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()
    return app, asked, channel


def convert(call_id: str, arguments: bytes) -> ToolCall:
    return ToolCall(call_id, "convert", msgspec.Raw(arguments))


async def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "rates", rates=EXAMPLE)
    good = convert("a", b'{"amount": 10, "to": "CHF"}')
    bad = convert("b", b'{"amount": 10, "to": "BTC"}')
    app, asked, channel = await talk(settings, good, bad)
    assert app.current.plugins.failed == ()
    assert "# Plugin rates\nAmounts of money are in euros" in asked[0].system[0]
    schema = next(tool for tool in asked[0].tools if tool.name == "convert")
    assert set(schema.parameters["properties"]) == {"amount", "to"}
    results = [
        part
        for shown in asked[-1].messages
        for part in shown.message.parts
        if isinstance(part, ToolResult)
    ]
    assert [(result.status, result.text) for result in results] == [
        ("ok", "9.40 CHF, asked by ann in default/memory:1"),
        ("denied", "We do not convert to that."),
    ]
    (outgoing, _), *_ = channel.sent
    assert [part.text for part in outgoing.parts if isinstance(part, Text)] == [
        "done\n(rates of today)"
    ]


async def test_the_end_that_a_plugin_changed_is_in_the_log(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "rates", rates=EXAMPLE)
    seen: list[object] = []
    channel = MemoryChannel()
    parts = Parts(
        lambda name: ScriptedModel(),
        channels=(channel,),
        authorize=lambda inbound: Principal("ann", ("owner",)),
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        channel.write("hello")
        with anyio.fail_after(15):
            while not channel.sent:
                await anyio.sleep(0.005)
        seen = [recorded.event for recorded in await app.store.events("default/memory:1")]
        tasks.cancel_scope.cancel()
    (end,) = [event for event in seen if isinstance(event, TurnEnded)]
    assert end.said == "You said: hello\n(rates of today)"


async def test_nothing_is_imported_that_is_not_named(tmp_path: Path) -> None:
    told = tmp_path / "told"
    settings = settings_of(
        tmp_path / "home", other=f"import pathlib; pathlib.Path({str(told)!r}).touch()\n{PLUGIN}"
    )
    app, asked, _ = await talk(settings)
    assert (
        app.current.plugins.loaded == ()
        and not told.exists()
        and "# Plugin" not in asked[0].system[0]
    )
    assert list(list_plugins(settings.home)) == ["other"] and not told.exists()
    load_configured_plugins(settings_of(tmp_path / "home", "other"))
    assert told.exists()


def plugin_with(method: str, body: str) -> str:
    head = "from deskhand.tools.plugin import Plugin\nclass P(Plugin):\n"
    return f"{head}    def {method}(self): {body}\nplugin = P\n"


BROKEN = {
    "raises": ("1 / 0", "ZeroDivisionError: division by zero"),
    "syntax": ("def", "SyntaxError: invalid syntax"),
    "leaves": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "imports": (
        "import nothing_like_this",
        "ModuleNotFoundError: No module named 'nothing_like_this'",
    ),
    "empty": ("", "it has no variable `plugin` that is a deskhand.tools.plugin.Plugin"),
    "odd": ("plugin = 7", "it has no variable `plugin`"),
    "hook": (
        plugin_with("get_hooks", "return {'before_lunch': print}"),
        "there is no hook 'before_lunch'; there are: ",
    ),
    "method": (plugin_with("get_tools", "raise KeyError('x')"), "KeyError: 'x'"),
    "prompt": (plugin_with("get_system_prompt", "return 3"), "get_system_prompt must return text"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_plugin_is_named_and_everything_else_starts(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    text, why = BROKEN[name]
    with caplog.at_level(logging.WARNING, "deskhand"):
        app, _, channel = await talk(
            settings_of(tmp_path, name, "good", good=PLUGIN, **{name: text})
        )
    (failed,) = app.current.plugins.failed
    assert why in failed.why and failed.place == str(tmp_path / "plugins" / f"{name}.py")
    assert [plugin.name for plugin in app.current.plugins.loaded] == ["good"] and channel.sent
    assert f"the plugin {name!r} is not loaded: {failed.place}: {why}" in caplog.text


def tool_called(name: str) -> str:
    return (
        "from deskhand.tools.define import tool\nfrom deskhand.tools.plugin import Plugin\n"
        f"@tool(name={name!r})\nasync def mine() -> str:\n    'Mine.'\n    return ''\n"
        "class P(Plugin):\n    def get_tools(self): return [mine]\nplugin = P\n"
    )


@pytest.mark.parametrize("taken", ["shell", "bash", "kv_get"])
def test_a_tool_cannot_take_the_name_of_another(tmp_path: Path, taken: str) -> None:
    """A rule for `bash` is one for `shell`: a plugin's `bash` would slip past it."""
    plugins = load_configured_plugins(settings_of(tmp_path, "thief", thief=tool_called(taken)))
    assert plugins.tools == () and f"there is already a tool {taken!r}" in plugins.failed[0].why


def test_the_second_of_two_tools_of_one_name_is_left_out(tmp_path: Path) -> None:
    plugins = load_configured_plugins(
        settings_of(tmp_path, "one", "two", one=tool_called("mine"), two=tool_called("mine"))
    )
    assert [p.name for p in plugins.loaded] == ["one"] and plugins.failed[0].name == "two"


@pytest.mark.parametrize("name", ["../evil", "a/b", "", "a.b", "-x", "ä"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "evil.py").write_text(PLUGIN)
    plugins = load_configured_plugins(settings_of(tmp_path / "home", name))
    assert "is not a valid plugin name" in plugins.failed[0].why


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "mine", mine=PLUGIN)
    file = tmp_path / "plugins" / "mine.py"
    assert load_configured_plugins(settings).failed == ()
    for mode in (0o620, 0o602, 0o666):
        file.chmod(mode)
        assert (
            load_configured_plugins(settings).failed[0].why
            == f"others can write it; run: chmod go-w {file}"
        )
    file.chmod(0o600)
    file.parent.chmod(0o770)
    assert (
        load_configured_plugins(settings).failed[0].why
        == f"others can write its folder; run: chmod go-w {file.parent}"
    )
    file.parent.chmod(0o755)
    assert load_configured_plugins(settings).failed == ()


def test_a_link_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home", "mine")
    (tmp_path / "elsewhere.py").write_text(PLUGIN)
    (tmp_path / "home" / "plugins" / "mine.py").symlink_to(tmp_path / "elsewhere.py")
    assert load_configured_plugins(settings).failed[0].why == (
        "it is a link; replace it with the file itself"
    )


def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whoever we are: /proc/1 belongs to root; as root we give a file away."""
    settings = settings_of(tmp_path, "mine", mine=PLUGIN)
    file = tmp_path / "plugins" / "mine.py"
    if os.getuid() == 0:
        os.chown(file, 12345, -1)
        assert (
            load_configured_plugins(settings)
            .failed[0]
            .why.startswith("it belongs to another user; if you trust it, run: ")
        )
    else:
        with pytest.raises(PermissionError):
            os.chown(
                file, 0, -1
            )  # nobody but root can make such a file, so here it cannot be shown


def test_bytes_that_were_compiled_before_are_not_run(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "mine", mine=PLUGIN)
    cache = tmp_path / "plugins" / "__pycache__"
    load_configured_plugins(settings)
    assert not cache.exists() and "deskhand_plugin_mine" in sys.modules


def test_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "far-1.0.dist-info").mkdir(parents=True)
    (site / "far-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: far\nVersion: 1.0\n"
    )
    (site / "far-1.0.dist-info" / "entry_points.txt").write_text(
        "[deskhand.plugins]\nfar = far_plugin:Far\n"
    )
    (site / "far_plugin.py").write_text(
        "from deskhand.tools.plugin import Plugin\nclass Far(Plugin):\n"
        "    def get_system_prompt(self): return 'I am far.'\n"
    )
    monkeypatch.syspath_prepend(str(site))
    assert "far" not in {
        plugin.name for plugin in load_configured_plugins(settings_of(tmp_path / "home")).loaded
    }
    assert (
        "far_plugin" not in sys.modules
        and list_plugins(Home(tmp_path / "home"))["far"] == "far_plugin:Far"
    )
    plugins = load_configured_plugins(settings_of(tmp_path / "home", "far", "unknown"))
    assert plugins.prompt == "# Plugin far\nI am far." and plugins.hooks("main") is None
    assert "no installed package has a plugin 'unknown'" in plugins.failed[0].why


async def test_plugins_come_and_go_while_it_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next turn of a warm conversation has what the configuration names then; what stays is not
    loaded again."""
    count = (
        "import pathlib\nwith pathlib.Path(__file__).with_suffix('.count').open('a') as file: "
        "file.write('x')\n"
    )
    file = tmp_path / "deskhand.yaml"
    settings_of(tmp_path, stays=count + tool_called("first"), comes=tool_called("second"))
    file.write_text("plugins: [stays]\ndefaults: {models: [scripted/x]}\n")
    settings = read_settings(file, {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)})
    asked: list[Request] = []
    channel = MemoryChannel()

    def script(request: Request) -> Message:
        asked.append(request)
        return say("yes")

    model, owner = ScriptedModel(script), Principal("ann", ("owner",))
    parts = Parts(lambda name: model, channels=(channel,), authorize=lambda inbound: owner)

    async def own_tools() -> set[str]:
        """Those of the plugins, in the next turn."""
        told = len(channel.sent)
        channel.write("go")
        while len(channel.sent) == told:
            await anyio.sleep(0.005)
        return {tool.name for tool in asked[-1].tools} & {"first", "second"}

    async def names(plugins: str, then: str) -> None:
        file.write_text(f"plugins: {plugins}\n")
        while then not in caplog.text:
            await anyio.sleep(0.01)

    caplog.set_level(logging.INFO, "deskhand")
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        with anyio.fail_after(15):
            assert await own_tools() == {"first"}
            await names("[stays, comes]", "Plugins: stays, comes")
            assert await own_tools() == {"first", "second"}
            await names("[stays, ", "The configuration was not reloaded: ")
            assert await own_tools() == {"first", "second"}
            await names("[comes]", "Plugins: comes\n")
            with app.feed.following("default/memory:1") as follower:
                assert await own_tools() == {"second"}
            seen = [type(item.event) for item in follower.items if isinstance(item, Recorded)]
            assert MessageReceived in seen, "who follows need not read the log"
        tasks.cancel_scope.cancel()
    assert (tmp_path / "plugins/stays.count").read_text() == "x"
    assert [shown.message.text for shown in asked[-1].messages].count("yes") == 3
