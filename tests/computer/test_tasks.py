"""Thirty tasks on pages that behave like real ones, solved with the browser tool by whoever knows
the steps: what the model would have to choose is given, all else is done for real."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from .conftest import Surfer
from .task_pages import TASKS, Step, Task, serve_task


class Solver:
    """Does the steps of a task."""

    def __init__(self, surfer: Surfer) -> None:
        self._surfer = surfer

    async def do(self, step: Step) -> None:
        what, *rest = step
        if what in ("scroll", "dialog", "tab", "wait", "press", "drag"):
            await self._do_elsewhere(str(what), rest)
        else:
            await self._do_on_element(str(what), str(rest[0]), str(rest[1]), rest[2:])

    async def _do_on_element(self, what: str, role: str, name: str, more: list[Any]) -> None:
        surfer = self._surfer
        inside = [each for each in more if isinstance(each, tuple)]
        ref = await self.ref(role, name, inside)
        words = [str(each) for each in more if not isinstance(each, tuple)]
        match what:
            case "click" | "check" | "uncheck":
                await surfer("click", ref=ref)
            case "doubleclick":
                await surfer("click", ref=ref, clicks=2)
            case "rightclick":
                await surfer("click", ref=ref, button="right")
            case "download":
                assert "saved as downloads/" in await surfer("click", ref=ref)
            case "hover":
                await surfer("hover", ref=ref)
            case "type":
                await surfer("type", ref=ref, text=words[0])
            case "select":
                await surfer("select", ref=ref, text="\n".join(words))
            case "upload":
                await surfer("upload", ref=ref, path=words[0])
            case _:
                raise AssertionError(what)

    async def _do_elsewhere(self, what: str, rest: list[Any]) -> None:
        surfer = self._surfer
        match what, rest:
            case "press", [key]:
                await surfer("press", keys=key)
            case "drag", [begin, end]:
                await surfer("drag", ref=await self.ref(*begin), to=await self.ref(*end))
            case "scroll", ["down"]:
                await surfer("scroll", pages=50)
            case "scroll", [where, wanted]:
                await self._scroll_to(await self.ref(*where), wanted)
            case "dialog", [answer, text]:
                await surfer("dialog", accept=answer == "accept", text=text)
            case "tab", [which]:
                browser = surfer.browsers.peek(surfer.hands.session)
                assert browser is not None
                await surfer("tab", tab=browser.tabs[-1 if which == "last" else 0].number)
            case "wait", [text]:
                assert "has not come" not in await surfer("wait", text=text, seconds=5)
            case _:
                raise AssertionError((what, rest))

    async def _scroll_to(self, ref: str, wanted: Any) -> None:
        for _ in range(60):
            if await self._find(*wanted):
                return
            await self._surfer("scroll", ref=ref, pages=0.2)
        raise AssertionError(f"{wanted} has not come")

    async def ref(self, role: str, name: str, inside: Any = ()) -> str:
        with anyio.fail_after(10):
            while not (found := await self._find(role, name, inside)):
                await anyio.sleep(0.1)
        return found

    async def _find(self, role: str, name: str, inside: Any = ()) -> str:
        lines = (await self._surfer("find", text=name)).splitlines()[1:]
        for line in lines:
            ref, kind, *_ = line.split(" ")
            where = [f'{each[0]} "{each[1]}' for each in inside]
            fits = kind in ALIKE.get(role, {role}) and all(each in line for each in where)
            if ref.startswith("e") and fits:
                return ref
        return ""


ALIKE: dict[str, set[str]] = {
    "button": {"button", "file", "clickable"},
    "textbox": {"textbox", "password", "date"},
    "date": {"date"},
}
"""What an element may be called here."""


@pytest.mark.parametrize("task", TASKS, ids=[each.name for each in TASKS])
async def test_it_is_solved(surfer: Surfer, task: Task) -> None:
    serve_task(surfer.site, task)
    for name, text in task.uploads.items():
        surfer.hands.write(name, text.encode())
    await surfer("open", url=surfer.site.url(f"/task/{task.name}"))
    assert await surfer.title() != task.solved
    solver = Solver(surfer)
    for step in task.steps:
        await solver.do(step)
    with anyio.move_on_after(5):
        while await surfer.title() != task.solved:
            await anyio.sleep(0.1)
    assert await surfer.title() == task.solved, await surfer("look")
