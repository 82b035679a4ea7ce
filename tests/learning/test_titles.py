"""A conversation is named by a cheap model after its first turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from deskhand.learning.titles import INSTRUCTION, clean_title
from deskhand.models.base import Item, Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ModelError
from deskhand.types.messages import Message

from ..web.served import Served, serving


class Script:
    """Names conversations with `title`, and answers all else."""

    def __init__(self, title: str | ModelError = "A holiday in the Alps") -> None:
        self.title = title
        self.asked: list[Request] = []

    def __call__(self, request: Request) -> Message:
        if not self.is_title(request):
            return say("Very well.")
        self.asked.append(request)
        if isinstance(self.title, ModelError):
            raise self.title
        return say(self.title)

    def is_title(self, request: Request) -> bool:
        return any(INSTRUCTION in str(part) for part in request.system)


def opened(home: Path, script: Script, **defaults: Any) -> Any:
    known = {"models": ["fake/large"], "cheap_model": "fake/cheap", **defaults}
    return serving(home, ScriptedModel(script), defaults=known)


async def talk(served: Served, name: str, text: str) -> None:
    status, _ = await served.owner.ask("POST", f"/api/chat/{name}", {"message": text})
    assert status == 200


async def title_of(served: Served, name: str) -> str:
    rows = await served.owner.get(f"/api/sessions?name={name}")
    return str(rows["sessions"][0]["title"])


async def until_title(served: Served, name: str, wanted: str) -> None:
    with anyio.fail_after(20):
        while await title_of(served, name) != wanted:
            await anyio.sleep(0.05)


async def test_a_new_conversation_gets_a_title(tmp_path: Path) -> None:
    script = Script()
    async with opened(tmp_path, script) as served:
        await talk(served, "trip", "where could we go in July? we like mountains")
        await until_title(served, "trip", "A holiday in the Alps")
        await talk(served, "trip", "and in August?")
        (asked,) = script.asked
        assert "mountains" in asked.messages[-1].message.text
        detail = await served.owner.get("/api/sessions/trip")
        assert detail["session"]["title"] == "A holiday in the Alps"


async def test_what_a_person_has_named_keeps_its_name(tmp_path: Path) -> None:
    script = Script()
    async with opened(tmp_path, script) as served:
        await served.owner.ask("PATCH", "/api/sessions/mine", {"title": "My own"})
        await talk(served, "mine", "hello there")
        await talk(served, "other", "and hello here")
        await until_title(served, "other", "A holiday in the Alps")
        assert await title_of(served, "mine") == "My own" and len(script.asked) == 1


class Renaming(ScriptedModel):
    """A person names the conversation while it is asked for a name."""

    rename: Callable[[], Awaitable[None]]

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        if any(INSTRUCTION in str(part) for part in request.system):
            await self.rename()
        async for item in super().reply(request):
            yield item


async def test_what_is_named_meanwhile_keeps_its_name(tmp_path: Path) -> None:
    model = Renaming(Script())
    known = {"models": ["fake/large"], "cheap_model": "fake/cheap"}
    async with serving(tmp_path, model, defaults=known) as served:
        renamed = anyio.Event()

        async def rename() -> None:
            await served.owner.ask("PATCH", "/api/sessions/talk", {"title": "My own"})
            await until_title(served, "talk", "My own")
            renamed.set()

        model.rename = rename
        await talk(served, "talk", "hello there")
        with anyio.fail_after(20):
            await renamed.wait()
        await talk(served, "talk", "and more")
        assert await title_of(served, "talk") == "My own"


@pytest.mark.parametrize(
    "defaults",
    [
        {"titles": False},
        {"models": ["scripted/x"], "cheap_model": ""},
        {"cheap_model": "embedded/x"},
    ],
    ids=["switched off", "a script", "a small model"],
)
async def test_who_is_not_asked(tmp_path: Path, defaults: dict[str, Any]) -> None:
    script = Script()
    async with opened(tmp_path, script, **defaults) as served:
        await talk(served, "talk", "hello there")
        await anyio.sleep(6)
        assert await title_of(served, "talk") == "hello there" and script.asked == []


class Ending(BaseException):
    """The process ends while a title is asked for."""


async def test_a_process_that_ended_over_a_title_does_not_ask_again(tmp_path: Path) -> None:
    script = Script()

    def end(request: Request) -> Message:
        if script.is_title(request):
            raise Ending
        return script(request)

    known = {"models": ["fake/large"], "cheap_model": "fake/cheap"}
    with pytest.raises(BaseExceptionGroup) as ended:
        async with serving(tmp_path, ScriptedModel(end), defaults=known) as served:
            await talk(served, "bad", "what ends a process")
            await anyio.sleep(20)
    assert ended.group_contains(Ending)
    async with opened(tmp_path, script) as served:
        await talk(served, "good", "hello there")
        await until_title(served, "good", "A holiday in the Alps")
        assert len(script.asked) == 1 and await title_of(served, "bad") == "what ends a process"


async def test_what_failed_keeps_its_first_words(tmp_path: Path) -> None:
    script = Script()

    def fail(request: Request) -> Message:
        if "fails" in request.messages[-1].message.text and not script.is_title(request):
            raise ModelError("it is away")
        return script(request)

    known = {"models": ["fake/large"], "cheap_model": "fake/cheap"}
    async with serving(tmp_path, ScriptedModel(fail), defaults=known) as served:
        await served.owner.ask("POST", "/api/chat/bad", {"message": "this fails"})
        await talk(served, "good", "hello there")
        await until_title(served, "good", "A holiday in the Alps")
        assert len(script.asked) == 1 and await title_of(served, "bad") == "this fails"


async def test_without_an_answer_the_first_words_stay(tmp_path: Path) -> None:
    script = Script(ModelError("it is away"))
    async with opened(tmp_path, script) as served:
        await talk(served, "talk", "hello there")
        with anyio.fail_after(20):
            while not script.asked:
                await anyio.sleep(0.05)
        await talk(served, "talk", "still there?")
        assert await title_of(served, "talk") == "hello there"


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("“A roof that leaks.”", "A roof that leaks"),
        ("Title: Der Garten\n", "Der Garten"),
        ("**Taxes**", "Taxes"),
        ("Sure!\nHere is a title: Taxes", ""),
        ("x" * 61, ""),
        ("  ", ""),
    ],
)
def test_a_title_is_one_line(given: str, title: str) -> None:
    assert clean_title(given) == title
