"""Answers read aloud, and whether Deskhand hears and speaks, for the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..speech.base import MAX_SAY_CHARS, Sound
from ..store.queries import last_event_number
from ..types import events as e
from ..types.errors import SpeechError
from ..types.marked_texts import mark_text
from ..types.messages import Message
from .errors import HttpProblem, bad_request, not_found, to_sentence
from .media import SANDBOXED
from .routing import Call, Endpoint
from .visible_sessions import require_session

LOOK_BACK = 60
"""How many events before an answer are searched for the language of its question."""
SPEAK_S = 180.0
"""Nobody waits longer for sound, the time in the queue included."""
NUMBER_DIGITS = 15


class SpokenText(msgspec.Struct, frozen=True):
    """A part of an answer that is to be read aloud, such as a sentence of one that still grows."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SAY_CHARS)]


class SpeechView(msgspec.Struct, frozen=True):
    """Why recordings are not heard and answers not spoken here, with what to do; '' where that
    works."""

    hear_problem: str = ""
    say_problem: str = ""


def describe_speech(call: Call) -> SpeechView:
    speech = call.web.speech
    return SpeechView(
        _describe_problem(speech.find_problem("hear")),
        _describe_problem(speech.find_problem("say")),
    )


def _describe_problem(problem: str) -> str:
    return to_sentence(problem) if problem else ""


async def speak(call: Call) -> Response:
    session = await require_session(call)
    number = _parse_number(call.path("n"))
    text = await _find_answer(call, session, number)
    return await _answer_with_sound(call, session, text, number)


async def speak_text(call: Call) -> Response:
    session = await require_session(call)
    number = await last_event_number(call.web.store, session) + 1
    return await _answer_with_sound(call, session, call.body.text, number)


async def _answer_with_sound(call: Call, session: str, text: str, number: int) -> Response:
    """`text` as sound, in the language in which was asked before event `number`. Raises
    HttpProblem."""
    if problem := call.web.speech.find_problem("say"):
        raise HttpProblem(
            409,
            "not_set_up",
            mark_text("Answers cannot be read aloud: {problem_text}.").format(problem_text=problem),
        )

    words = await call.web.speech.render(call.web.redact(text))
    if not words:
        raise not_found("answer with words that can be spoken")
    if len(words) > MAX_SAY_CHARS:
        raise HttpProblem(
            409,
            "too_long",
            mark_text(
                "This answer has {count_number} characters; at most {most_number} can be "
                "read aloud."
            ).format(count_number=f"{len(words):,}", most_number=f"{MAX_SAY_CHARS:,}"),
        )
    headers = {**SANDBOXED, "cache-control": "private"}
    if call.request.method == "HEAD":  # nothing is made that nobody hears
        return Response(headers=headers)
    language = await _find_language(call, session, number)

    async def work() -> Sound:
        return await call.web.speech.say(words, language)

    sound = await _while_connected(
        call.request, lambda: call.web.speech_queue.run(call.principal.id, work)
    )
    return Response(sound.data, media_type=sound.mime, headers=headers)


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS) or int(text) < 1:
        raise not_found(mark_text("such answer"))
    return int(text)


async def _find_answer(call: Call, session: str, number: int) -> str:
    """What was answered with this event. Raises HttpProblem 404 where that is nothing."""
    for recorded in await call.web.store.events(session, number - 1, 1):
        match recorded.event:
            case (
                e.ModelReplied(message=message)
                | e.HistoryMessage(message=Message(role="assistant") as message)
            ) if message.text.strip():
                return message.text
            case e.TurnEnded(said=said) if said.strip():
                return said
            case _:
                pass
    raise not_found(mark_text("such answer"))


async def _find_language(call: Call, session: str, number: int) -> str:
    """The language in which somebody asked for this answer aloud; '' where they wrote."""
    begin = max(0, number - LOOK_BACK)
    for recorded in reversed(await call.web.store.events(session, begin, number - begin)):
        match recorded.event:
            case e.Transcribed(problem="", language=language):
                return language
            case e.MessageReceived():
                return ""
            case _:
                pass
    return ""


async def _while_connected(request: Request, work: Callable[[], Awaitable[Sound]]) -> Sound:
    """What `work` makes; it is cancelled when the client has gone, such as a page that was told to
    stop. Raises HttpProblem."""
    made: Sound | HttpProblem = bad_request("The client has gone.")
    async with anyio.create_task_group() as tasks:

        async def cancel_on_disconnect() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel_on_disconnect)
        try:
            with anyio.fail_after(SPEAK_S):
                made = await work()
        except HttpProblem as problem:
            made = problem
        except SpeechError as error:
            said = to_sentence(f"the answer was not spoken: {error}")
            made = HttpProblem(503, "not_spoken", said)
        except TimeoutError:
            said = f"The answer was not spoken: it took longer than {SPEAK_S:.0f} seconds."
            made = HttpProblem(503, "not_spoken", said)
        tasks.cancel_scope.cancel()
    if isinstance(made, HttpProblem):
        raise made
    return made


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/sessions/{name}/messages/{n}/speech",
        "read",
        speak,
        "Get an answer as sound; `n` is the number of its event",
        media="audio/ogg",
        tag="conversations",
    ),
    Endpoint(
        "POST",
        "/api/sessions/{name}/speech",
        "chat",
        speak_text,
        "Get a part of an answer as sound, such as a sentence of one that is still being written",
        body=SpokenText,
        media="audio/ogg",
        tag="conversations",
    ),
)
