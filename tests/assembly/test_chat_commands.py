"""Which messages are commands, and what they say."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deskhand.agent.state import State
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.identity import Address, Command, Inbound, Principal, Said, Waiting
from deskhand.types.messages import Image, Message, Text

from ..runtime.test_app import running, said, until

COMMANDS = {
    "!foo": "I do not know !foo. !help lists what I know.",
    "!halp": "I do not know !halp. Did you mean !help?",
    "!STAUTS now": "I do not know !stauts. Did you mean !status?",
    "!important": (
        "The model did not see your message. If you did not mean a command, write a space after "
        "the !: ! important …"
    ),
    "!foo and more words": "I do not know !foo.",
    "!important: read this": "I do not know !important:.",
    "!deploy, please": "I do not know !deploy,.",
    "!foo-bar baz": "I do not know !foo-bar.",
    "!" + "x" * 65: f"I do not know !{'x' * 64}.",
    "  !foo  ": "I do not know !foo.",
    "/fooo": "I do not know /fooo. /help lists what I know.",
    "!help": "/stop  stop what is running",
    "!memories": "I remember nothing here yet.",
    "!jobs": "You have no jobs yet.",
    "!agents": "You may talk to:",
}
WORDS = [
    "!!!",
    "!",
    "! wow",
    "! important: read this",
    "!= is not equal",
    "![a picture](x.png)",
    "wow!",
    "/etc/hosts is a file",
    "/foo bar",
    "!{} is empty",
]


@pytest.mark.parametrize("text", COMMANDS)
async def test_what_begins_with_a_command_mark_never_reaches_the_model(
    tmp_path: Path, text: str
) -> None:
    channel, model = MemoryChannel(), ScriptedModel(lambda request: say("the model"))
    async with running(tmp_path, model, channel, tools=None):
        channel.write(text)
        await until(lambda: bool(said(channel)))
    assert COMMANDS[text] in said(channel)[0][1]
    assert not model.requests


@pytest.mark.parametrize("text", WORDS)
async def test_ordinary_words_with_these_marks_are_read_by_the_model(
    tmp_path: Path, text: str
) -> None:
    channel, model = MemoryChannel(), ScriptedModel(lambda request: say("the model"))
    async with running(tmp_path, model, channel):
        channel.write(text)
        await until(lambda: said(channel) == [("1", "the model")])
    assert model.requests[0].messages[-1].message.text.endswith(text)


@pytest.mark.parametrize("text", ["/yes", "!once", "/no"])
async def test_an_answer_with_a_command_mark_is_no_unknown_command(
    tmp_path: Path, text: str
) -> None:
    channel, model = MemoryChannel(), ScriptedModel(lambda request: say("the model"))
    async with running(tmp_path, model, channel):
        channel.write(text)
        await until(lambda: said(channel) == [("1", "the model")])


async def test_a_picture_with_such_words_is_seen(tmp_path: Path) -> None:
    """Nobody is told that their picture was not seen."""
    channel, model = MemoryChannel(), ScriptedModel(lambda request: say("the model"))
    async with running(tmp_path, model, channel):
        said_of_it = Message("user", (Text("!wow"), Image("a" * 64, "image/png")))
        channel.waiting.append(
            Inbound("1", Address("memory", chat="1"), "ann", 1.0, Said(said_of_it))
        )
        await until(lambda: said(channel) == [("1", "the model")])


def answered(channel: MemoryChannel, count: int) -> bool:
    return len(said(channel)) == count


async def test_jobs_of_a_person(tmp_path: Path) -> None:
    for name, front in {
        "brief": "schedule: daily 09:00\ndescription: what is on\nperson: ann",
        "theirs": "schedule: daily 10:00\nperson: bob",
        "broken": "schedule: whenever",
    }.items():
        folder = tmp_path / "jobs" / name
        folder.mkdir(parents=True)
        (folder / "JOB.md").write_text(f"---\n{front}\n---\n\nSay it.\n")
    channel = MemoryChannel()
    model = ScriptedModel(lambda request: say("the model"))
    async with running(tmp_path, model, channel, {"agents": {"main": {}, "other": {}}}, tools=None):
        for number, text in enumerate(("!jobs", "/jobs brief", "!jobs brieff", "!agents"), 1):
            channel.write(text)
            await until(partial(answered, channel, number))
    listed, one, missing, agents = (text for _, text in said(channel))
    assert "brief (on): at 09:00 every day (UTC); next: " in listed
    assert one.splitlines()[2:] == ["what is on", "Say it."]
    assert missing == "You have no job 'brieff'. Did you mean 'brief'?"
    assert agents == "You may talk to:\nmain (this one)\nother"
    assert not model.requests


async def test_nobody_sees_jobs_that_are_not_theirs(tmp_path: Path) -> None:
    for name, person in {"brief": "ann", "theirs": "bob"}.items():
        folder = tmp_path / "jobs" / name
        folder.mkdir(parents=True)
        (folder / "JOB.md").write_text(
            f"---\nschedule: daily 09:00\nperson: {person}\n---\n\nSay it.\n"
        )
    async with running(tmp_path, ScriptedModel(), MemoryChannel(), tools=None) as app:
        answer = app.features.command_handlers()["jobs"]
        bob = Principal("bob", ("member",))

        def asked(address: Address, args: str = "") -> Any:
            return answer(
                State("main/memory:1"),
                Waiting(1, bob, Inbound("1", address, "bob", 1.0, Command("jobs"))),
                args,
            )

        alone = asked(Address("memory", chat="1"))
        assert "theirs (on)" in alone
        assert "brief" not in alone
        assert asked(Address("memory", chat="1"), "brief") == "You have no job 'brief'."
        assert "with me alone" in asked(Address("memory", chat="1", group=True))
