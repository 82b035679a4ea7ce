"""What people expect of a memory, said in words: the model does it with the tools, and it holds in
what comes after."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from deskhand.models.base import Request
from deskhand.runtime.app import App
from deskhand.testing.scripted import say
from deskhand.types.events import ModelReplied
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

from .gathered import Study, facts, texts


def call(name: str, number: int, **arguments: object) -> Message:
    return say("", ToolCall(f"c{number}", name, msgspec.Raw(msgspec.json.encode(arguments))))


def model(request: Request) -> Message:
    """As a model would: `remember that`, `forget that` and `what do you know` become calls of
    tools, and what is beside the message is what it answers with."""
    said = [each.message for each in request.messages if each.message.role == "user"][-1]
    text = "".join(
        part.text
        for part in said.parts
        if isinstance(part, Text) and part.label.integrity == "owner"
    )
    told = "".join(each.text for each in said.parts if isinstance(each, Text))
    last = request.messages[-1].message
    number = len(request.messages)
    result = "".join(part.text for part in last.parts if isinstance(part, ToolResult))
    if text.startswith("Remember that "):
        return (
            say(result)
            if result
            else call("save_memory", number, content=text.removeprefix("Remember that "))
        )
    if text.startswith("Forget that "):
        if result.startswith(("ok", "nothing")):
            return say(result)
        if found := re.match(r"#(\d+)", result):
            return call("forget_memory", number, memory_id=int(found[1]))
        return call("search_memories", number, query=text.removeprefix("Forget that "))
    if text.startswith("What do you know about me"):
        return say(result) if result else call("list_memories", number)
    snapshot = re.search(r"\(\d{4}-\d\d-\d\d\) (.*)", told)
    return say(snapshot[1] if snapshot else "I do not know.")


async def answer(study: Study, app: App, text: str, chat: str) -> str:
    session = await study.chat(app, text, chat=chat)
    return [
        each.event.message.text
        for each in await app.store.events(session)
        if isinstance(each.event, ModelReplied)
    ][-1]


async def test_remember_forget_and_what_do_you_know(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.talk = model
    async with study.running() as app:
        assert (
            await answer(study, app, "Remember that my sister Ann likes green tea", "1")
            == "ok, remembered"
        )
        assert (
            await answer(study, app, "Which tea does Ann like?", "2")
            == "my sister Ann likes green tea"
        )
        assert (
            await answer(study, app, "Remember that my garage code is 7719", "3")
            == "ok, remembered"
        )
        known = await answer(study, app, "What do you know about me?", "4")
        assert known.splitlines() == [
            "#2 (user, 2025-11-22) my garage code is 7719",
            "#1 (user, 2025-11-22) my sister Ann likes green tea",
        ]
        assert (await answer(study, app, "Forget that my garage code is 7719", "5")).startswith(
            "ok, forgotten"
        )
        assert await answer(study, app, "What is my garage code?", "6") == "I do not know."
        assert "7719" not in await answer(study, app, "What do you know about me?", "7")
        study.answers["harvest"] = lambda text: {
            "facts": [
                {"text": "The garage code is 7719", "n": int(n)}
                for n in re.findall(r"\[(\d+)\] owner", text)[-1:]
            ]
        }
        await app.features.learning.gatherer.harvest()
        assert texts(await facts(app)) == ["my sister Ann likes green tea"], (
            "nor is it gathered again"
        )
        assert (await answer(study, app, "Forget that nobody ever said this", "8")).startswith(
            "nothing is known"
        )


async def test_a_correction_in_words_leaves_one_fact(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.talk = model
    async with study.running() as app:
        await answer(study, app, "Remember that my flight leaves at nine", "1")
        await answer(study, app, "Forget that my flight leaves at nine", "2")
        assert (
            await answer(study, app, "Remember that my flight leaves at ten", "3")
            == "ok, remembered"
        )
        assert (
            await answer(study, app, "When does my flight leave?", "4") == "my flight leaves at ten"
        )
        assert (
            await answer(study, app, "Remember that my flight leaves at ten", "5")
            == "that is known already: #2"
        )
