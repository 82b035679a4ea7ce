"""Recordings that the page sends, and answers that it reads aloud."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.speech import ScriptedSpeech, make_wav, read_text
from deskhand.types.events import MessageReceived, ModelReplied, Recorded, Transcribed, TurnEnded
from deskhand.types.messages import Audio, File, Message
from deskhand.web.app import HEADERS
from deskhand.web.speech_queue import MAX_AT_ONCE, SpeechQueue

from .served import Client, Served, serving, until

SESSION = "default/web:owner:talk"


def script(request: Request) -> Message:
    parts = request.messages[-1].message.parts
    heard = "".join(part.transcript or "" for part in parts if isinstance(part, Audio))
    text = heard or request.messages[-1].message.text
    return say("word " * 1000 if "at length" in text else f"**Heard**: {text}")


@pytest.fixture
def speech() -> ScriptedSpeech:
    return ScriptedSpeech()


@pytest.fixture
async def served(tmp_path: Path, speech: ScriptedSpeech) -> AsyncIterator[Served]:
    async with serving(tmp_path, ScriptedModel(script), engine=speech) as found:
        yield found


async def upload(client: Client, data: bytes, mime: str = "audio/wav") -> dict[str, Any]:
    url = f"{client.url}/api/blobs?name=recording.wav"
    headers = {**client.headers, "content-type": mime}
    async with client.http.post(url, data=data, headers=headers) as answer:
        found: dict[str, Any] = await answer.json()
        assert answer.status == 201, found
        return found


async def talk(served: Served, body: dict[str, Any]) -> list[Recorded]:
    """Send this, and return the log once it is answered."""
    before = await served.app.store.events(SESSION)
    assert (await served.owner.ask("POST", "/api/sessions/talk/messages", body))[0] == 202
    log: list[Recorded] = []
    with anyio.fail_after(20):
        while not any(isinstance(each.event, TurnEnded) for each in log[len(before) :]):
            log = await served.app.store.events(SESSION)
            await anyio.sleep(0.005)
    return log


async def speak(served: Served, text: str) -> list[Recorded]:
    return await talk(
        served, {"files": [{**await upload(served.owner, make_wav(text)), "spoken": True}]}
    )


def answer_number(log: list[Recorded]) -> int:
    return next(each.n for each in reversed(log) if isinstance(each.event, ModelReplied))


def address(number: object, session: str = "talk") -> str:
    return f"/api/sessions/{session}/messages/{number}/speech"


async def test_a_recording_is_what_the_person_says(served: Served) -> None:
    log = await speak(served, "buy milk")
    (received,) = [each.event for each in log if isinstance(each.event, MessageReceived)]
    (part,) = received.message.parts
    assert isinstance(part, Audio)
    assert (part.mime, part.label.integrity) == ("audio/wav", "untrusted")
    (heard,) = [each.event for each in log if isinstance(each.event, Transcribed)]
    assert (heard.blob, heard.text, heard.problem) == (part.blob, "buy milk", "")


async def test_a_sound_file_that_is_attached_stays_a_file(served: Served) -> None:
    sound = await upload(served.owner, make_wav("a song"))
    letter = {**await upload(served.owner, b"Dear", "text/plain"), "spoken": True}
    log = await talk(served, {"text": "look", "files": [sound, letter]})
    (received,) = [each.event for each in log if isinstance(each.event, MessageReceived)]
    assert [type(part) for part in received.message.parts[1:]] == [File, File]
    assert not [each for each in log if isinstance(each.event, Transcribed)]


async def test_what_was_heard_stands_in_every_history(served: Served) -> None:
    await speak(served, "buy milk")
    state = await served.owner.get("/api/sessions/talk/state")
    assert "buy milk" in state["context"][0]["text"]
    history = await served.owner.get("/api/sessions/talk/history")
    assert history["messages"][0]["content"] == "buy milk"
    blocks = await served.owner.get("/api/conversations/talk")
    assert blocks["messages"][0]["content"] == [{"type": "text", "text": "buy milk"}]


async def test_an_answer_is_read_as_it_sounds(served: Served, speech: ScriptedSpeech) -> None:
    number = answer_number(await speak(served, "buy milk"))
    async with served.http.get(
        served.url + address(number), headers=served.owner.headers
    ) as answer:
        assert answer.status == 200
        assert answer.headers["content-type"] == "audio/wav"
        assert answer.headers["cache-control"] == "private"
        assert read_text(await answer.read()).startswith("Heard: buy milk")
    assert len(speech.said) == 1


async def test_the_voice_has_the_language_of_the_question(
    served: Served, speech: ScriptedSpeech
) -> None:
    sound = make_wav("") + b"."
    speech.knows(sound, "Milch kaufen", "de")
    log = await talk(served, {"files": [{**await upload(served.owner, sound), "spoken": True}]})
    await served.owner.ask("GET", address(answer_number(log)))
    written = answer_number(await talk(served, {"text": "and bread"}))
    await served.owner.ask("GET", address(written))
    assert [voice.language for _, voice in speech.said] == ["de", ""]


async def test_a_sentence_is_read_before_the_answer_is_there(
    served: Served, speech: ScriptedSpeech
) -> None:
    sound = make_wav("") + b"."
    speech.knows(sound, "Milch kaufen", "de")
    await talk(served, {"files": [{**await upload(served.owner, sound), "spoken": True}]})
    url = f"{served.url}/api/sessions/talk/speech"
    body = {"text": "**Gut**, `ls` und [das](https://a.example/x)."}
    async with served.http.post(url, json=body, headers=served.owner.headers) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "audio/wav")
        spoken = read_text(await answer.read())
    assert spoken.startswith("Gut, ") and "*" not in spoken and "https" not in spoken
    assert [voice.language for _, voice in speech.said] == ["de"]


async def test_what_is_no_sentence_is_not_spoken(served: Served, speech: ScriptedSpeech) -> None:
    await talk(served, {"text": "hello"})
    path = "/api/sessions/talk/speech"
    for text, status in (("", 400), ("a" * 4_001, 400), ("```\nx = 1\n```", 404), (7, 400)):
        assert (await served.owner.ask("POST", path, {"text": text}))[0] == status, text
    _, reader = await served.token("owner", ("read",))
    assert (await reader.ask("POST", path, {"text": "Hello."}))[0] == 403
    await served.people.add_user("bob", "member")
    _, bob = await served.token("bob", ("read", "chat"))
    other = "/api/sessions/default~web:owner:talk/speech"
    assert (await bob.ask("POST", other, {"text": "Hello."}))[0] == 404
    assert speech.said == []


async def test_only_who_may_read_it_may_hear_it(served: Served, speech: ScriptedSpeech) -> None:
    number = answer_number(await talk(served, {"text": "a secret"}))
    await served.people.add_user("bob", "member")
    _, bob = await served.token("bob", ("read", "chat"))
    for path in (address(number, "default~web:owner:talk"), address(number)):
        assert (await bob.ask("GET", path))[0] == 404
    _, chat_only = await served.token("owner", ("chat",))
    assert (await chat_only.ask("GET", address(number)))[0] == 403
    assert (await served.client().ask("GET", address(number)))[0] == 401
    assert speech.said == []


async def test_where_there_is_no_answer(served: Served, speech: ScriptedSpeech) -> None:
    log = await talk(served, {"text": "hello"})
    answers = {each.n for each in log if isinstance(each.event, ModelReplied)}
    others = [
        each.n for each in log if each.n not in answers and not isinstance(each.event, TurnEnded)
    ]
    for number in (*others, 0, -1, 10**6, 10**40, "x", "٣"):
        assert (await served.owner.ask("GET", address(number)))[0] == 404, number
    assert speech.said == []


async def test_failures_are_said(served: Served, speech: ScriptedSpeech) -> None:
    number = answer_number(await talk(served, {"text": "hello"}))
    speech.fails = "the voice is hoarse: drink tea"
    status, found = await served.owner.ask("GET", address(number))
    assert (status, found["error"]["code"]) == (503, "not_spoken")
    assert found["error"]["message"] == "The answer was not spoken: the voice is hoarse: drink tea."

    long = answer_number(await talk(served, {"text": "at length"}))
    status, found = await served.owner.ask("GET", address(long))
    assert (status, found["error"]["code"]) == (409, "too_long")
    assert "at most 4,000" in found["error"]["message"]


async def test_where_nothing_speaks(tmp_path: Path) -> None:
    off = {"hear": "off", "say": "off"}
    async with serving(tmp_path, ScriptedModel(script), speech=off) as served:
        me = await served.owner.get("/api/auth/me")
        assert "speech.hear is off" in me["speech"]["hear_problem"].lower()
        number = answer_number(await talk(served, {"text": "hello"}))
        status, found = await served.owner.ask("GET", address(number))
        assert (status, found["error"]["code"]) == (409, "not_set_up")
        assert "deskhand config set speech.say" in found["error"]["message"]


async def test_a_page_is_told_what_works(served: Served) -> None:
    me = await served.owner.get("/api/auth/me")
    assert me["speech"] == {"hear_problem": "", "say_problem": ""}


async def test_the_microphone_is_for_this_page_alone() -> None:
    allowed = HEADERS["permissions-policy"].split(", ")
    assert [each for each in allowed if not each.endswith("=()")] == ["microphone=(self)"]


async def test_who_goes_away_ends_the_speaking(served: Served, speech: ScriptedSpeech) -> None:
    number = answer_number(await talk(served, {"text": "hello"}))
    speech.hangs = True
    for _ in range(3):
        with anyio.move_on_after(0.2):
            await served.owner.ask("GET", address(number))
    await until(lambda: len(speech.said) == 3)
    speech.hangs = False
    assert (await served.owner.ask("GET", address(number)))[0] == 200


async def test_a_person_has_one_at_a_time(served: Served, speech: ScriptedSpeech) -> None:
    number = answer_number(await talk(served, {"text": "hello"}))
    speech.hangs = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.owner.ask, "GET", address(number))
        await until(lambda: len(speech.said) == 1)
        tasks.start_soon(served.owner.ask, "GET", address(number))
        await anyio.sleep(0.1)
        status, found = await served.owner.ask("GET", address(number))
        assert (status, found["error"]["code"]) == (429, "busy")
        assert len(speech.said) == 1
        tasks.cancel_scope.cancel()


async def test_no_more_than_two_are_made_at_once() -> None:
    queue = SpeechQueue()
    running = most = 0
    go = anyio.Event()

    async def work() -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1

    async with anyio.create_task_group() as tasks:
        for person in "abcde":
            tasks.start_soon(queue.run, person, work)
        await anyio.wait_all_tasks_blocked()
        assert running == MAX_AT_ONCE
        go.set()
    assert most == MAX_AT_ONCE


async def test_who_only_asks_whether_it_can_be_heard_makes_no_sound(
    served: Served, speech: ScriptedSpeech
) -> None:
    number = answer_number(await talk(served, {"text": "hello"}))
    status, said = await served.owner.ask("HEAD", address(number))
    assert (status, said, len(speech.said)) == (200, "", 0)
