"""A shared conversation that somebody else continues: with the words of others, as such."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.messages import Text
from deskhand.web.continued import MAX_SHARED_CHARS, make_earlier
from deskhand.web.conversation_text import NamedFile, Utterance

from .served import Client, Served, serving


@pytest.fixture
async def model() -> ScriptedModel:
    return ScriptedModel(lambda request: say("thanks"))


@pytest.fixture
async def served(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Served]:
    async with serving(tmp_path, model) as found:
        yield found


async def ended(client: Client, session: str) -> list[Any]:
    """The events of a conversation when its turn has ended."""
    while True:
        status, log = await client.ask("GET", f"/api/sessions/{session}/log")
        if status == 200 and log and log[-1]["event"]["type"] == "turn_ended":
            return [each["event"] for each in log]
        await anyio.sleep(0.01)


async def share(served: Served) -> Any:
    await served.owner.ask("POST", "/api/chat/talk", {"message": "the first words"})
    _, made = await served.owner.ask("POST", "/api/sessions/talk/shares", {"days": 7})
    await served.owner.ask("POST", "/api/chat/talk", {"message": "the later words"})
    return made


async def test_what_was_shared_is_the_untrusted_word_of_others(
    served: Served, model: ScriptedModel
) -> None:
    made = await share(served)
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    for client in (eve, served.owner):
        body = {"link": made["path"].removeprefix("/share/"), "text": "and now?"}
        status, got = await client.ask("POST", "/api/sessions/mine/continue", body)
        assert status == 202, got
        log = await ended(client, "mine")
        history = [each for each in log if each["type"] == "history_message"]
        parts = [part for each in history for part in each["message"]["parts"]]
        assert [part["text"] for part in parts] == ["the first words", "thanks"]
        assert [each["message"]["role"] for each in history] == ["user", "assistant"]
        assert all("later" not in str(each) for each in log)
        given = [part for each in model.requests[-1].messages for part in each.message.parts]
        texts = [part for part in given if isinstance(part, Text)]
        labels = [part.label for part in texts if part.text == "the first words"]
        assert [label.integrity for label in labels] == ["untrusted"]
        status, got = await client.ask("POST", "/api/sessions/mine/continue", body)
        assert status == 409, got


async def test_only_a_link_that_holds_is_continued(served: Served) -> None:
    made = await share(served)
    link = made["path"].removeprefix("/share/")
    for wrong in ("x" * 43, "", made["id"]):
        body = {"link": wrong, "text": "and now?"}
        assert (await served.owner.ask("POST", "/api/sessions/a/continue", body))[0] == 404
    body = {"link": link, "text": " "}
    assert (await served.owner.ask("POST", "/api/sessions/a/continue", body))[0] == 400
    await served.owner.ask("DELETE", f"/api/shares/{made['id']}")
    body = {"link": link, "text": "and now?"}
    assert (await served.owner.ask("POST", "/api/sessions/a/continue", body))[0] == 404
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    body = {"link": (await share(served))["path"].removeprefix("/share/"), "text": "and now?"}
    before = await served.owner.get("/api/sessions/talk/log")
    status, _ = await eve.ask("POST", "/api/sessions/default~web:owner:talk/continue", body)
    assert status in (403, 404)
    assert await served.owner.get("/api/sessions/talk/log") == before
    assert (await served.client().ask("POST", "/api/sessions/a/continue", body))[0] in (401, 403)


def test_the_end_is_taken_over_and_files_are_named() -> None:
    long = Utterance(1, 0.0, "Ann", "x" * MAX_SHARED_CHARS)
    file = NamedFile("a.txt", "sha256:1", "text/plain")
    found = make_earlier([long, Utterance(2, 0.0, "", "see", (file,))])
    assert [message.text for message in found] == ["see\n[file: a.txt]"]
