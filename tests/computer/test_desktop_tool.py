"""The desktop tool in a whole Deskhand: what is asked before anything is done, and what a yes is
for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deskhand.computer.desktop.host import DesktopConfig, DesktopHost
from deskhand.computer.desktop.tool import DesktopTool
from deskhand.runtime.app import OWNER, App
from deskhand.testing.temporary_home import TemporaryHome, results, until, wait_for
from deskhand.types.errors import ToolError
from deskhand.types.events import ToolFinished
from deskhand.types.identity import Principal
from deskhand.types.messages import Image, Text, ToolResult
from tests.tools.conftest import Hands, hands, room

__all__ = ["hands", "room"]

SESSION = "default/terminal:1"


@pytest.fixture
def desk(tmp_path: Path) -> TemporaryHome:
    defaults: dict[str, Any] = {"models": ["scripted/x"], "desktop": True}
    home = TemporaryHome(tmp_path, defaults=defaults, desktop={"screen": "virtual"})
    started = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    home.settings = msgspec.structs.replace(home.settings, started_with=started)
    return home


async def ask(desk: TemporaryHome, running: App, /, **arguments: Any) -> str:
    """Have this done; the question that a person is asked before."""
    await desk.say(running, msgspec.json.encode([["desktop", arguments]]).decode())
    (asked,) = await wait_for(lambda: running.store.open_asks(OWNER))
    return str(asked.question)


async def allow(desk: TemporaryHome, app: App) -> str:
    """Say yes; what came of it."""
    before = len(await results(app, SESSION))
    await desk.say(app, "yes")
    await until(app, lambda found: len(found) > before, SESSION)
    return (await results(app, SESSION))[before]


def ref_of(shown: str, words: str) -> str:
    return next(line.split()[0] for line in shown.splitlines() if words in line)


async def test_a_person_is_shown_what_is_pressed_and_may_allow_a_program(
    desk: TemporaryHome,
) -> None:
    async with desk.running() as app:
        assert "launch" in await ask(desk, app, action="launch", app="galculator")
        shown = await allow(desk, app)
        assert 'button "7"' in shown
        seven = ref_of(shown, 'button "7"')
        question = await ask(desk, app, action="press", ref=seven)
        assert 'button "7" in the window "galculator' in question
        assert '"7"' in await allow(desk, app)

        eight = ref_of(shown, 'button "8"')
        question = await ask(desk, app, action="drag", ref=seven, to=eight)
        assert 'button "7" to button "8" in the window "galculator' in question
        assert "nothing has changed" in await allow(desk, app)
        assert 'button "8"' in await ask(desk, app, action="click", ref=eight, times=2)
        assert '"788"' in await allow(desk, app)

        question = await ask(desk, app, action="use_app", ref=seven)
        assert 'Use the program "/usr/bin/galculator"' in question
        assert "believed here" in await allow(desk, app)
        said = await desk.call(app, "desktop", action="press", ref=seven)
        assert '"7887"' in said, "it is not asked again"


async def test_what_windows_say_is_the_owners_and_from_outside(desk: TemporaryHome) -> None:
    async with desk.running() as app:
        await ask(desk, app, action="launch", app="galculator")
        await allow(desk, app)
        await desk.call(app, "desktop", action="look")
        events = [each.event for each in await app.store.events(SESSION)]
        parts = [
            part
            for event in events
            if isinstance(result := getattr(event, "result", None), ToolResult)
            for part in result.parts
            if isinstance(part, Text)
        ]
        assert {part.label.integrity for part in parts} == {"untrusted"}
        assert {part.label.readers for part in parts} == {("role:owner",)}
        assert parts[-1].label.source == "desktop:/usr/bin/galculator"


async def test_it_is_off_until_somebody_turns_it_on(tmp_path: Path) -> None:
    async with TemporaryHome(tmp_path).running() as app:
        assert "desktop" not in app.current.agent("default").tools


async def test_only_owners_have_it_used(hands: Hands) -> None:
    tool = DesktopTool(DesktopHost(DesktopConfig, dict))
    raw = msgspec.Raw(b'{"action": "windows"}')
    context = await hands.context()
    bob = msgspec.structs.replace(context, principal=Principal("bob", ("member",)))
    with pytest.raises(ToolError, match="only an owner"):
        await tool.run(raw, bob)


async def test_errors_are_the_owners_too(desk: TemporaryHome) -> None:
    async with desk.running() as app:
        await ask(desk, app, action="launch", app="galculator")
        await allow(desk, app)
        said = await desk.call(app, "desktop", chat="2", action="look", window="nowhere")
        assert "galculator" in said
        last = [each.event for each in await app.store.events("default/terminal:2")]
        results_ = [each.result for each in last if isinstance(each, ToolFinished)]
        assert {part.label.readers for part in results_[-1].parts} == {("role:owner",)}


async def test_the_clipboard_is_read_and_filled_when_somebody_says_so(desk: TemporaryHome) -> None:
    async with desk.running() as app:
        question = await ask(desk, app, action="copy", text="Grüße")
        assert 'Put "Grüße" on the clipboard' in question
        assert await allow(desk, app) == "it is on the clipboard"
        assert "Read what is on the clipboard" in await ask(desk, app, action="clipboard")
        assert await allow(desk, app) == "Grüße"
        last = [each.event for each in await app.store.events(SESSION)]
        read = [each.result for each in last if isinstance(each, ToolFinished)][-1]
        assert {part.label.source for part in read.parts} == {"desktop:the clipboard"}


async def test_a_picture_of_a_window_shows_its_refs(desk: TemporaryHome) -> None:
    async with desk.running() as app:
        await ask(desk, app, action="launch", app="galculator")
        shown = await allow(desk, app)
        said = await desk.call(app, "desktop", action="screenshot", window="galculator")
        count = sum(line.startswith("e") and " button " in line for line in shown.splitlines())
        drawn = int(said.rpartition("]")[2].split()[0])
        assert drawn > count > 20
        last = [each.event for each in await app.store.events(SESSION)]
        parts = [each.result for each in last if isinstance(each, ToolFinished)][-1].parts
        assert [part.mime for part in parts if isinstance(part, Image)] == ["image/jpeg"]
