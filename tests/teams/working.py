"""A Deskhand whose teammates do what they are told as JSON, and say what their tools gave."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from deskhand.models.base import Request
from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven
from deskhand.store.queries import teammates_of
from deskhand.testing.scripted import say
from deskhand.testing.temporary_home import TemporaryHome, heard, results, script, wait_for
from deskhand.tools.queries import load_tasks
from deskhand.types.messages import Message, ToolResult
from deskhand.types.tasks import Task

LEAD_SESSION = "default/terminal:1"
_IDENTITY = re.compile(r"You are ([a-z]+)[^\n]*, a teammate in a team")


def who_asks(request: Request) -> str:
    """The name of the teammate whose request this is; '' for the lead."""
    found = _IDENTITY.search("\n".join(request.system))
    return found[1] if found else ""


def answering(request: Request) -> Message:
    """The lead makes the calls that it is told; a teammate too, and says what came of them or what
    it was told."""
    name = who_asks(request)
    last = request.messages[-1].message
    if not name:
        return script(_with_calls_last(request))
    if last.role == "tool":
        given = (part.text for part in last.parts if isinstance(part, ToolResult))
        return say(f"{name} saw: {' '.join(given)}")
    if "[[" in last.text:
        return script(request)
    return say(f"{name} did {last.text.splitlines()[-1]}")


def _with_calls_last(request: Request) -> Request:
    """What teammates say may come together with what a person wants."""
    new = list(takewhile(lambda each: each.message.role == "user", reversed(request.messages)))
    wanted = [each for each in new if "[[" in each.message.text and not is_told(each.message.text)]
    return replace(request, messages=(*request.messages, wanted[0])) if wanted else request


def is_told(text: str) -> bool:
    return "[teammate " in text or "[message from " in text


def desk_of(home: Path, proven: Proven | None = None, **config: Any) -> TemporaryHome:
    desk = TemporaryHome(home, proven, **config)
    desk.model.script = answering
    return desk


async def begin(desk: TemporaryHome, app: App) -> None:
    """Teams are on in the conversation of the lead."""
    await desk.say(app, "/teams on")


async def call(desk: TemporaryHome, app: App, name: str, /, **arguments: Any) -> str:
    """The lead makes this call. Returns its result."""
    return await desk.call(app, name, **arguments)


async def told(app: App, count: int) -> list[str]:
    """What the lead was told, once that is so much."""

    async def enough() -> list[str]:
        found = await heard(app, LEAD_SESSION)
        return found if len(found) >= count else []

    found: list[str] = await wait_for(enough)
    return found


async def hears(app: App, text: str) -> None:
    """Wait until the lead was told this, among others."""

    async def found() -> bool:
        return any(text in each for each in await heard(app, LEAD_SESSION))

    await wait_for(found)


async def status_is(app: App, **wanted: str) -> None:
    """Wait until the teammates are so."""

    async def found() -> bool:
        now = {mate.name: mate.status for mate in teammates_of(app.store, LEAD_SESSION)}
        return all(now.get(name) == status for name, status in wanted.items())

    await wait_for(found)


async def board(app: App) -> dict[int, Task]:
    return await load_tasks(app.store, LEAD_SESSION)


async def task_is(app: App, id_: int, status: str) -> Task:
    """The task of the list, once it is so."""

    async def found() -> Task | None:
        task = (await board(app)).get(id_)
        return task if task is not None and task.status == status else None

    task: Task = await wait_for(found)
    return task


def session_of(app: App, name: str) -> str:
    (mate,) = (each for each in teammates_of(app.store, LEAD_SESSION) if each.name == name)
    return f"default/subagent:{mate.id}"


async def results_of(app: App, name: str) -> list[str]:
    return await results(app, session_of(app, name))
