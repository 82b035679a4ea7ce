"""Macros: what was done once is kept as a file, and done again without a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio.from_thread
import anyio.to_thread
import msgspec
import pytest

from deskhand.codemode.inside.macro_player import Mismatch, parse_found, parse_selector, play_macro
from deskhand.codemode.macros import (
    Acted,
    Macro,
    Step,
    fill_slots,
    parse_macro,
    put_slots,
    record_steps,
    render_macro,
)
from deskhand.runtime.app import OWNER, App
from deskhand.testing.temporary_home import TemporaryHome, results, until, wait_for
from deskhand.types.errors import ConfigError, ToolError
from tests.computer.conftest import Surfer, hands, room, surfer

__all__ = ["hands", "room", "surfer"]

SHOP = '[https://shop.example/ "Shop"]'
SEARCH = f"""{SHOP}
heading "Shop" level 1
form "Search"
 e1 textbox "What"
 e2 button "Go"
list "Offers"
 row "Lamp"
  e3 button "Buy"
 row "Tent"
  e4 button "Buy\""""


def act(shown: str = "", /, **arguments: Any) -> Acted:
    return Acted(arguments, shown)


# What is recorded


def test_what_was_done_becomes_steps() -> None:
    steps = record_steps(
        "browser",
        [
            act(SEARCH, action="open", url="https://shop.example/"),
            act(SEARCH, action="look"),
            act("nothing has changed", action="type", ref="e1", text="lamp", submit=True),
            act(f'{SHOP}\nheading "Thank you"', action="click", ref="[e4]"),
        ],
    )
    assert steps == (
        {"action": "open", "url": "https://shop.example/", "expect": "Shop"},
        {"action": "type", "element": 'textbox "What"', "text": "lamp", "submit": True},
        {
            "action": "click",
            "element": 'button "Buy"',
            "within": 'row "Tent"',
            "expect": "Thank you",
        },
    )


def test_it_begins_where_a_page_was_opened_or_where_it_is_told() -> None:
    acted = [
        act(action="open", url="https://a.example/"),
        act(action="press", keys="Enter"),
        act(action="open", url="https://b.example/"),
        act(action="press", keys="Tab"),
    ]
    assert [step["action"] for step in record_steps("browser", acted)] == ["open", "press"]
    assert len(record_steps("browser", acted, 3)) == 3


def test_refs_of_another_page_are_forgotten() -> None:
    other = '[https://other.example/ "Other"]\ne9 button "Buy"'
    steps = record_steps(
        "browser",
        [
            act(SEARCH, action="open", url="https://shop.example/"),
            act(other, action="click", ref="e2"),
            act("", action="click", ref="e9"),
        ],
    )
    assert "within" not in steps[-1]


def test_a_window_that_is_looked_at_is_a_step_of_the_desktop() -> None:
    shown = '[window "editor: notes"]\ne1 textbox\ne2 button "Save"'
    steps = record_steps(
        "desktop",
        [
            act(shown, action="look", window="editor"),
            act(action="look"),
            act(action="type", ref="e1", text="hello"),
        ],
    )
    assert steps == (
        {"action": "look", "window": "editor"},
        {"action": "type", "element": "textbox", "text": "hello"},
    )


@pytest.mark.parametrize(
    ("acted", "why"),
    [
        ([], "nothing was done"),
        ([act(SEARCH, action="look")], "nothing was done"),
        ([act(action="click", ref="e7")], "what e7 was is not known"),
        (
            [
                act('e1 password "Password"', action="look"),
                act(action="type", ref="e1", text="hunter2"),
            ],
            "keeps no passwords",
        ),
        ([act(action="open", url="https://x.example/{{a}}")], "marks slots"),
        ([act(action="press", keys="Tab")] * 61, "at most 60 steps"),
    ],
)
def test_what_cannot_be_kept(acted: list[Acted], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        record_steps("browser", acted)


def test_slots_stand_for_values() -> None:
    steps: list[Step] = [
        {"action": "open", "url": "https://shop.example/week/48"},
        {"action": "type", "element": 'textbox "Week"', "text": "week 48 of 2026", "submit": True},
    ]
    put = put_slots(steps, {"week": "48", "year": "2026"})
    assert put[0]["url"] == "https://shop.example/week/{{week}}"
    assert put[1]["text"] == "week {{week}} of {{year}}" and put[1]["submit"] is True
    macro = Macro("browser", put, "", {"week": "48", "year": ""})
    filled = fill_slots(macro, {"year": "2027"})
    assert filled[1]["text"] == "week 48 of 2027"
    with pytest.raises(ToolError, match="have to be given: year"):
        fill_slots(macro, {})
    with pytest.raises(ToolError, match="no slot 'month'"):
        fill_slots(macro, {"month": "1"})
    for slots in ({"week": "99"}, {"Week": "48"}, {"week": ""}):
        with pytest.raises(ToolError):
            put_slots(steps, slots)


# Its file


def test_a_file_is_what_was_kept() -> None:
    steps: tuple[Step, ...] = (
        {"action": "open", "url": "https://shop.example/"},
        {"action": "type", "element": 'textbox "What \\"now\\""', "text": "48", "submit": True},
        {"action": "click", "element": 'button "Go"', "clicks": 2, "expect": "Größe: no"},
    )
    macro = Macro("browser", steps, "Look: something", {"w": "true"}, ("shop.example",))
    text = render_macro(macro)
    assert 'element: button "Go"' in text, "it is written as it is shown"
    assert parse_macro(text) == macro


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tool: browser\nsteps: []", "1 to 60 steps"),
        ("tool: shell\nsteps: [{action: x}]", "Invalid enum value 'shell'"),
        ("steps: [{action: x}]", "tool"),
        ("tool: browser\nsteps: [{url: x}]", "step 1 has no action"),
        ("tool: browser\nsteps: [{action: click, element: the button}]", "names no element"),
        ("tool: browser\nsteps: [{action: click, clicks: two}]", "step 1: clicks"),
        ("tool: browser\nsteps: [{action: type, submit: maybe}]", "true or false"),
        ("tool: browser\nsteps: [{action: type, text: '{{x}}'}]", "not among the slots"),
        ("tool: browser\nsteps: [{action: type, text: [a]}]", "no text"),
        ("tool: browser\nsteps: [action]", "object"),
        ("a: [", "not valid YAML"),
        ("tool: browser\nwhat: x\nsteps: [{action: x}]", "unknown field"),
    ],
)
def test_a_file_that_is_wrong_says_where(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_macro(text)


def test_elements_are_read_as_they_are_shown() -> None:
    assert parse_selector('button "a \\"b\\" \\\\ c"') == ("button", 'a "b" \\ c')
    assert parse_selector("textbox") == ("textbox", "")
    for wrong in ("", "Button", 'button "', "button Save", 'e1 button "Save"'):
        with pytest.raises(Mismatch):
            parse_selector(wrong)
    shown = parse_found('e12 button "Buy" = "x" disabled in row "Tent" in list "Offers"')
    assert shown is not None and (shown.ref, shown.name) == ("e12", "Buy")
    assert 'row "Tent"' in shown.path
    assert parse_found("nothing has this role and these words in its name") is None


# What is played


class Page:
    """Answers as the tool does: `finds` are lines by role and words; `words` those that come when
    they are waited for."""

    def __init__(self, *lines: str, words: str = "") -> None:
        self.lines = lines
        self.words = words
        self.made: list[dict[str, Any]] = []
        self.refused = ""

    def __call__(self, tool: str, **arguments: Any) -> str:
        self.made.append({"tool": tool, **arguments})
        match arguments.get("action"):
            case "find":
                role, text = arguments["role"], arguments["text"].casefold()
                found = [
                    line for line in self.lines if f" {role}" in line and text in line.casefold()
                ]
                return "\n".join([SHOP, *found])
            case "wait":
                there = arguments["text"] in self.words
                return SHOP if there else f'["{arguments["text"]}" has not come in 10 s]'
            case "type" if self.refused:
                raise ToolError(self.refused)
            case None:
                self.refused = ""
                return "allowed"
            case _:
                return "done"

    def play(self, *steps: Step, hosts: tuple[str, ...] = ()) -> str:
        return play_macro(self, ToolError, "browser", [*steps], [*hosts])

    @property
    def acted(self) -> list[dict[str, Any]]:
        return [each for each in self.made if each.get("action") not in ("find", "wait")]


def test_steps_are_taken_by_what_is_shown_now() -> None:
    page = Page('e8 button "Buy" in row "Lamp"', 'e9 button "Buy" in row "Tent"', words="Thank you")
    said = page.play(
        {"action": "open", "url": "https://shop.example/"},
        {"action": "click", "element": 'button "Buy"', "within": 'row "Tent"', "expect": "Thank"},
    )
    assert said.startswith("[all 2 steps were taken]")
    assert page.acted[-1] == {"tool": "browser", "action": "click", "ref": "e9"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (('e1 button "Delete all"',), "nothing is button"),
        (('e1 button "Buy"', 'e2 button "Buy"'), "2 elements are"),
        (('e1 button "Buy it"', 'e2 button "Buy me"'), "nothing is button"),
        (('e1 link "Buy"',), "nothing is button"),
    ],
)
def test_it_stops_rather_than_guess(lines: tuple[str, ...], why: str) -> None:
    page = Page(*lines)
    said = page.play(
        {"action": "open", "url": "https://shop.example/"},
        {"action": "click", "element": 'button "Buy"'},
        {"action": "press", "keys": "Enter"},
    )
    assert why in said and "1 of 3 steps were taken" in said
    assert [each["action"] for each in page.acted] == ["open"]


def test_what_is_called_a_little_otherwise_is_taken_and_told() -> None:
    page = Page('e1 button "Cancel"', 'e2 button "Search now"')
    said = page.play({"action": "click", "element": 'button "Search"'})
    assert page.acted[-1]["ref"] == "e2"
    assert 'button "Search now" was taken for button "Search"' in said


def test_what_does_not_come_afterwards_stops_it() -> None:
    page = Page('e1 button "Buy"')
    said = page.play(
        {"action": "click", "element": 'button "Buy"', "expect": "Thank you"},
        {"action": "press", "keys": "Enter"},
    )
    assert "'Thank you' is not shown afterwards" in said and "0 of 2" in said
    assert [each["action"] for each in page.acted] == ["click"], "it is not done twice"


def test_a_host_is_asked_for_where_nothing_may_be_typed_yet() -> None:
    page = Page('e1 textbox "What"')
    page.refused = "nothing is typed or given to this page yet: ask"
    step: Step = {"action": "type", "element": 'textbox "What"', "text": "x"}
    assert "all 1 steps" in page.play(step, hosts=("shop.example",))
    assert [each.get("host") for each in page.acted] == [None, "shop.example", None]
    page.refused = "nothing is typed or given to this page yet: ask"
    assert "failed: nothing is typed" in page.play(step)


# In a real browser


async def record(surfer: Surfer, *calls: dict[str, Any]) -> list[Acted]:
    """Make these calls; `on` names an element by its name."""
    acted = []
    for call in calls:
        given = {key: value for key, value in call.items() if key != "on"}
        if "on" in call:
            given["ref"] = await surfer.ref(call["on"])
            acted.append(Acted({"action": "find"}, await surfer("find", text=call["on"])))
        acted.append(Acted(given, await surfer(**given)))
    return acted


async def play(surfer: Surfer, macro: Macro) -> str:
    """As a script does, which waits for each call."""

    def call(tool: str, **arguments: Any) -> str:
        made: Callable[[], Any] = partial(surfer, **arguments)
        return str(anyio.from_thread.run(made))

    steps = fill_slots(macro, {})
    return await anyio.to_thread.run_sync(
        play_macro, call, ToolError, macro.tool, json.loads(json.dumps(steps)), []
    )


async def test_it_is_done_again_in_a_browser(surfer: Surfer) -> None:
    html = """<title>Shop</title><h1>Shop</h1><label>What <input id=what></label>
    <button onclick="document.title = 'found ' + what.value;
      document.body.insertAdjacentHTML('beforeend', '<h2>Results</h2>')">LABEL</button>"""
    surfer.site.page("/shop", html.replace("LABEL", "Search"))
    url = surfer.site.url("/shop")
    acted = await record(
        surfer,
        {"action": "open", "url": url},
        {"action": "type", "on": "What", "text": "a lamp"},
        {"action": "click", "on": "Search"},
    )
    steps = put_slots(record_steps("browser", acted), {"what": "a lamp"})
    kept = parse_macro(render_macro(Macro("browser", steps, "", {"what": "a tent"})))
    assert [step["action"] for step in kept.steps] == ["open", "type", "click"]
    await surfer("close")
    said = await play(surfer, kept)
    assert said.startswith("[all 3 steps were taken]") and await surfer.title() == "found a tent"

    surfer.site.page("/shop", html.replace("LABEL", "Search now"))
    assert "was taken for" in await play(surfer, kept)
    assert await surfer.title() == "found a tent"


def test_the_player_needs_nothing_but_python() -> None:
    """It runs in the sandbox, where our packages are not."""
    source = Path(play_macro.__code__.co_filename).read_text()
    imported = {
        line.split()[1] for line in source.splitlines() if line.startswith(("import", "from"))
    }
    assert imported <= {"__future__", "re", "collections.abc", "difflib", "typing"}


# In a whole Deskhand


async def test_a_macro_is_kept_listed_and_run(tmp_path: Path) -> None:
    defaults: dict[str, Any] = {"models": ["scripted/x"], "desktop": True}
    home = TemporaryHome(tmp_path, defaults=defaults, desktop={"screen": "virtual"})
    started = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    home.settings = msgspec.structs.replace(home.settings, started_with=started)
    async with home.running() as app:
        shown = await allowed(home, app, action="launch", app="galculator")
        refs = {name: ref_of(shown, f'button "{name}"') for name in ("7", "+", "8", "=")}
        await allowed(home, app, action="use_app", ref=refs["7"])
        for name in ("7", "+", "8", "="):
            await home.call(app, "desktop", action="press", ref=refs[name])
        said = await home.call(
            app, "macro", action="save", name="add", tool="desktop", steps=4, slots={"second": "8"}
        )
        assert said == "kept as macros/add.yaml, 4 steps"
        path = app.settings.home.workspace("default") / "macros" / "add.yaml"
        assert 'element: button "{{second}}"' in path.read_text()
        assert "add (slots: second): 4 steps" in await home.call(app, "macro", action="list")
        asked = len(home.model.requests)
        said = await home.call(app, "macro", action="run", name="add", slots={"second": "9"})
        assert "[all 4 steps were taken]" in said and '"16"' in said
        assert len(home.model.requests) == asked + 2, "one to ask for it, one to hear of it"

        wrong = await home.call(app, "macro", action="run", name="none")
        assert "macros/none.yaml" in wrong
        path.write_text("steps: [")
        assert "is no macro" in await home.call(app, "macro", action="run", name="add")


async def allowed(home: TemporaryHome, app: App, /, **arguments: Any) -> str:
    """What comes of this on the desktop once a person has allowed it."""
    session = "default/terminal:1"
    before = len(await results(app, session))
    await home.say(app, msgspec.json.encode([["desktop", arguments]]).decode())
    await wait_for(lambda: app.store.open_asks(OWNER))
    await home.say(app, "yes")
    await until(app, lambda found: len(found) > before, session)
    return (await results(app, session))[before]


def ref_of(shown: str, words: str) -> str:
    return next(line.split()[0] for line in shown.splitlines() if words in line)
