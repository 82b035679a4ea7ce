"""Whatever way words from outside take through a team, they come to the lead with their label."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from deskhand.runtime.app import App
from deskhand.sandbox.choose import open_sandbox
from deskhand.testing.temporary_home import wait_for
from deskhand.tools.queries import set_label
from deskhand.types.events import MessageReceived, ToolFinished
from deskhand.types.labels import Label, join_labels
from deskhand.types.messages import Text

from .working import LEAD_SESSION, begin, call, desk_of, task_is

OUTSIDE = Label("untrusted", source="https://evil.example/")
WORDS = "the secret of the page"
NAMES = ("ann", "bo", "cy")


def _way(ways: list[str], names: list[str]) -> list[Any]:
    """The calls of whoever is at the beginning of this way: the last one writes to the lead."""
    if not ways:
        return [["message_teammate", {"to": "lead", "content": WORDS}]]
    rest = json.dumps(_way(ways[1:], names[1:]))
    match ways[0]:
        case "mail":
            return [["message_teammate", {"to": names[0], "content": rest}]]
        case "board":
            given = {"action": "create", "title": WORDS, "description": rest, "owner": names[0]}
            return [["manage_tasks", given]]
        case _:
            return [["compact", {}], ["message_teammate", {"to": names[0], "content": rest}]]


async def _told(app: App) -> list[Label]:
    """The labels with which the lead was told of these words."""
    events = [each.event for each in await app.store.events(LEAD_SESSION)]
    heard = [each for each in events if isinstance(each, MessageReceived)]
    parts = [part for each in heard for part in each.message.parts if isinstance(part, Text)]
    told = [part for part in parts if part.text.endswith(WORDS)]
    return [part.label for part in told if "message from" in part.text]


@pytest.mark.parametrize("seed", range(8))
async def test_the_label_comes_along(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    ways = [chance.choice(("mail", "board", "summary")) for _ in range(chance.randint(1, 3))]
    first = chance.choice(NAMES)
    names = list[str]()
    for _ in ways:  # nobody writes to itself
        last = names[-1] if names else first
        names.append(chance.choice([name for name in NAMES if name != last]))
    desk = desk_of(tmp_path, await open_sandbox())
    async with desk.running() as app:
        await begin(desk, app)
        page = desk.settings.home.workspace("default") / "page.txt"
        page.write_text(WORDS)
        await app.store.change((set_label(str(page), OUTSIDE, "", 1.0),))
        for name in NAMES:
            await call(desk, app, "spawn_teammate", name=name, role="", prompt="begin")
        calls = [["read_file", {"path": "page.txt"}], *_way(ways, names)]
        await call(desk, app, "message_teammate", to=first, content=json.dumps(calls))
        labels = await wait_for(lambda: _told(app))
        assert {label.integrity for label in labels} == {"untrusted"}, ways
        assert all("evil.example" in str(label) for label in labels)


async def test_the_task_list_keeps_the_label(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, await open_sandbox())
    async with desk.running() as app:
        await begin(desk, app)
        page = desk.settings.home.workspace("default") / "page.txt"
        page.write_text(WORDS)
        await app.store.change((set_label(str(page), OUTSIDE, "", 1.0),))
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        wanted = json.dumps([["read_file", {"path": "page.txt"}]])
        await call(desk, app, "manage_tasks", action="create", title="read", description=wanted)
        done = await task_is(app, 1, "completed")
        assert WORDS in done.result and done.label.integrity == "untrusted"
        await call(desk, app, "manage_tasks", action="get", task_id=1)
        events = [each.event for each in await app.store.events(LEAD_SESSION)]
        shown = [each.result for each in events if isinstance(each, ToolFinished)][-1]
        read = join_labels(part.label for part in shown.parts if isinstance(part, Text))
        assert WORDS in shown.text and read.integrity == "untrusted"


async def test_what_a_script_has_read_marks_its_answer(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, await open_sandbox())
    async with desk.running() as app:
        page = desk.settings.home.workspace("default") / "page.txt"
        page.write_text(WORDS)
        await app.store.change((set_label(str(page), OUTSIDE, "", 1.0),))
        await call(desk, app, "run_script", script="print(len(read_file('page.txt')))")
        events = [each.event for each in await app.store.events(LEAD_SESSION)]
        (result,) = [each.result for each in events if isinstance(each, ToolFinished)]
        labels = [part.label for part in result.parts if isinstance(part, Text)]
        assert {label.integrity for label in labels} == {"untrusted"}
