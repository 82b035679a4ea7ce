"""Every reader is written to in their own language; what a model says, and what is asked about,
stays as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from deskhand.gateway.reader_language import say_outgoing
from deskhand.policy.approval import parse_choice
from deskhand.runtime.app import App
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import Script, say
from deskhand.testing.temporary_home import wait_for
from deskhand.types.commit import Actions, Choices, Outgoing
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text
from deskhand.types.people import Identity

from ..jobs.seen import texts, truth

HERE = Address("memory", chat="7")
NUMBERS = count()


class Chat:
    """A chat of the owner with a Deskhand."""

    def __init__(self, app: App, channel: MemoryChannel) -> None:
        self.app = app
        self.channel = channel

    def write(self, text: str, language: str = "") -> None:
        said = Said(Message("user", (Text(text),)))
        name = f"m{next(NUMBERS)}"
        self.channel.waiting.append(Inbound(name, HERE, "7", 0.0, said, language=language))

    async def hears(self, words: str) -> str:
        """The message with these words, once it is sent."""
        await wait_for(lambda: truth(any(words in text for _, text in texts(self.channel))))
        return next(text for _, text in reversed(texts(self.channel)) if words in text)


@asynccontextmanager
async def chat_at(home: Path, script: Script | None = None, **config: Any) -> AsyncIterator[Chat]:
    desk = JobDesk(home, script, **config)
    channel = MemoryChannel()
    async with desk.running([channel]) as app:
        if not any(user.identities for user in await app.people.users()):
            await app.people.link("owner", Identity("memory", "7"))
        yield Chat(app, channel)


async def test_the_language_of_their_chat_program(tmp_path: Path) -> None:
    async with chat_at(tmp_path) as chat:
        chat.write("/title Rex")
        await chat.hears("This conversation is called “Rex”.")
        chat.write("/title Max", "de-AT")
        await chat.hears("Dieses Gespräch heißt „Max“.")
        chat.write("/title Moritz")
        await chat.hears("Dieses Gespräch heißt „Moritz“.")
    async with chat_at(tmp_path) as chat:
        chat.write("/plan on")
        await chat.hears("Ab jetzt lese ich nur")
        chat.write("/plan off", "fr")
        await chat.hears("I continue without a plan.")


async def test_the_language_that_they_choose(tmp_path: Path) -> None:
    async with chat_at(tmp_path, language="de") as chat:
        chat.write("/language")
        told = await chat.hears("/language auto")
        assert told == (
            "Ich schreibe dir auf Deutsch. Wähle mit /language en | de oder /language auto."
        )
        chat.write("/language English", "de")
        await chat.hears("I write to you in English.")
        chat.write("/language klingon", "de")
        await chat.hears("I have no language 'klingon'; there are: en | de.")
        chat.write("/language auto", "de")
        await chat.hears("deines Chatprogramms oder deiner Seite: Deutsch")


async def test_what_a_model_says_is_not_touched(tmp_path: Path) -> None:
    async with chat_at(tmp_path, lambda request: say("Stopped."), language="de") as chat:
        chat.write("What do they say?")
        await chat.hears("Stopped.")
        chat.write("/stop")
        await chat.hears("Es lief nichts")


async def test_the_log_stays_english(tmp_path: Path) -> None:
    async with chat_at(tmp_path, language="de") as chat:
        chat.write("/title Rex")
        await chat.hears("heißt „Rex“")
        events = await chat.app.store.events("default/memory:7")
        assert "This conversation is called “Rex”." in str(events)


def test_what_is_asked_about_stays() -> None:
    asked = "shell: echo 'Stopped.'\nStopped."
    note = "Asked because rule 1: ask shell (*).\nFor ann on memory. It only reads."
    outgoing = Outgoing(
        "k",
        HERE,
        (Text(asked),),
        ask=Choices("ask_1", asked, ("once", "no"), approval=True, note=note),
        actions=Actions(1, ("stop",)),
    )
    said = say_outgoing(outgoing, "de")
    assert said.parts == outgoing.parts and said.ask is not None
    assert said.ask.question == asked
    assert said.ask.note == (
        "Grund der Frage: Regel 1: ask shell (*).\nFür ann, auf memory. Es liest nur."
    )
    assert say_outgoing(outgoing, "en") == Outgoing(
        **{name: getattr(outgoing, name) for name in outgoing.__struct_fields__}
        | {"language": "en"}
    )


@pytest.mark.parametrize("words", ["ja", "Nein", "immer", "nie", "einzeln", "einmal"])
def test_german_answers_are_understood(words: str) -> None:
    assert parse_choice(words) is not None
