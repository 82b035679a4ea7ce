"""What every Speech keeps, as checks that need no test framework. Each case gets a stage and raises
AssertionError where the engine is wrong. Run all of `CASES`.

    @pytest.mark.parametrize("case", speech_suite.CASES)
    async def test_conformance(case): await case(my_stage)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import anyio

from ..speech.base import MAX_SAY_CHARS, OGG, WAV, Heard, Recording, Speech, Use, Voice
from ..types.errors import SpeechError
from .speech import make_wav

WAIT_S = 60.0
"""So long a call may take on a slow machine."""
SENTENCE = "The quick brown fox jumps over the lazy dog."


class Stage(Protocol):
    """Where an engine is tried."""

    @property
    def uses(self) -> frozenset[Use]:
        """What it can do: what is not in here is not tried."""
        ...

    @property
    def hears_itself(self) -> bool:
        """Whether it understands what it says, word for word."""
        ...

    def open(self, use: Use) -> AbstractAsyncContextManager[Speech]:
        """An engine for this use, ready to be asked."""
        ...

    async def recording(self, text: str) -> Recording:
        """A recording in which the engine hears this text, give or take case and punctuation."""
        ...

    async def go_away(self) -> bool:
        """From now on the engine cannot be reached, or its program is gone. False where that cannot
        be."""
        ...

    async def stall(self, stalled: bool) -> bool:
        """Whether the engine keeps everybody waiting from now on. False where that cannot be."""
        ...


Case = Callable[[Stage], Awaitable[None]]


def letters(text: str) -> str:
    """The text without what engines differ in."""
    return "".join(char for char in text.lower() if char.isalnum())


async def it_has_a_name(stage: Stage) -> None:
    for use in stage.uses:
        async with stage.open(use) as speech:
            assert speech.name.strip() and speech.name.isprintable()


async def it_hears_what_was_said(stage: Stage) -> None:
    if "hear" not in stage.uses:
        return
    recording = await stage.recording(SENTENCE)
    async with stage.open("hear") as speech:
        with anyio.fail_after(WAIT_S):
            first = await speech.hear(recording)
            told = await speech.hear(recording, "en")
    for heard in (first, told):
        _check_heard(heard)
        assert letters(heard.text) == letters(SENTENCE), heard.text


async def silence_is_no_text(stage: Stage) -> None:
    if "hear" not in stage.uses:
        return
    async with stage.open("hear") as speech:
        with anyio.fail_after(WAIT_S):
            heard = await speech.hear(Recording(make_wav(""), WAV))
    _check_heard(heard)
    assert heard.text == ""


async def what_it_says_is_a_sound_file(stage: Stage) -> None:
    if "say" not in stage.uses:
        return
    async with stage.open("say") as speech:
        with anyio.fail_after(WAIT_S):
            plain = await speech.say(SENTENCE)
            told = await speech.say(SENTENCE, Voice(language="en"))
    for sound in (plain, told):
        assert sound.mime in (OGG, WAV)
        assert sound.data.startswith(b"OggS" if sound.mime == OGG else b"RIFF")
        assert len(sound.data) > 60, "there is something in it"


async def it_hears_what_it_says(stage: Stage) -> None:
    if stage.uses != {"hear", "say"} or not stage.hears_itself:
        return
    with anyio.fail_after(2 * WAIT_S):
        async with stage.open("say") as speech:
            sound = await speech.say(SENTENCE)
        async with stage.open("hear") as speech:
            heard = await speech.hear(Recording(sound.data, sound.mime))
    assert letters(heard.text) == letters(SENTENCE), heard.text


async def any_text_is_spoken_or_refused(stage: Stage) -> None:
    """Never a crash."""
    if "say" not in stage.uses:
        return
    async with stage.open("say") as speech:
        for text in (
            "",
            " \n",
            "\0",
            "\ud800 half",
            "🎉",
            "日本語",
            "a\0b",
            "--help",
            "<b>&amp;</b>",
        ):
            with anyio.fail_after(WAIT_S):
                try:
                    sound = await speech.say(text)
                except SpeechError as error:
                    _check_sentence(error)
                else:
                    assert sound.data.startswith((b"OggS", b"RIFF"))


async def too_long_a_text_is_refused(stage: Stage) -> None:
    if "say" not in stage.uses:
        return
    async with stage.open("say") as speech:
        await _expect_refusal(speech.say("a" * (MAX_SAY_CHARS + 1)))


async def rubbish_is_refused(stage: Stage) -> None:
    if "hear" not in stage.uses:
        return
    async with stage.open("hear") as speech:
        for data in (b"", b"\0", b"no sound at all" * 100, b"<html></html>"):
            await _expect_refusal(speech.hear(Recording(data)))
        recording = await stage.recording(SENTENCE)
        with anyio.fail_after(WAIT_S):
            heard = await speech.hear(recording)
    assert letters(heard.text) == letters(SENTENCE), "it goes on after that"


async def odd_names_are_no_crash(stage: Stage) -> None:
    """Of voices and languages; whoever takes them may do so."""
    names = ("no such voice", "x" * 5_000, "a\r\nb: c", "../../etc/passwd", "日本", "\0", "-v")
    for use in stage.uses:
        recording = await stage.recording(SENTENCE) if use == "hear" else Recording(b"")
        async with stage.open(use) as speech:
            for name in names:
                with anyio.fail_after(WAIT_S):
                    try:
                        if use == "hear":
                            await speech.hear(recording, name)
                        else:
                            await speech.say("Hello.", Voice(name, name))
                    except SpeechError as error:
                        _check_sentence(error)


async def the_share_only_grows(stage: Stage) -> None:
    if "hear" not in stage.uses:
        return
    shares = list[float]()
    recording = await stage.recording(SENTENCE)
    async with stage.open("hear") as speech:
        with anyio.fail_after(WAIT_S):
            await speech.hear(recording, on_share=shares.append)
    assert shares and shares[-1] == 1.0
    assert shares == sorted(shares) and shares[0] >= 0.0


async def who_cancels_does_not_wait(stage: Stage) -> None:
    for use in stage.uses:
        recording = await stage.recording(SENTENCE) if use == "hear" else Recording(b"")
        async with stage.open(use) as speech:
            stalled = await stage.stall(True)
            begin = anyio.current_time()
            with anyio.move_on_after(0.2) as scope:
                await (speech.hear(recording) if use == "hear" else speech.say(SENTENCE))
            assert anyio.current_time() - begin < 5.0, "it held up who had cancelled it"
            assert scope.cancelled_caught or not stalled
            await stage.stall(False)
            with anyio.fail_after(WAIT_S):
                if use == "hear":
                    assert letters((await speech.hear(recording)).text) == letters(SENTENCE)
                else:
                    assert (await speech.say(SENTENCE)).data


async def many_ask_at_once(stage: Stage) -> None:
    if "hear" not in stage.uses:
        return
    heard = list[str]()
    recording = await stage.recording(SENTENCE)

    async with stage.open("hear") as speech:

        async def ask() -> None:
            heard.append(letters((await speech.hear(recording)).text))

        with anyio.fail_after(4 * WAIT_S):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(ask)
    assert heard == [letters(SENTENCE)] * 4


async def an_engine_that_is_away_is_an_error(stage: Stage) -> None:
    for use in stage.uses:
        recording = await stage.recording(SENTENCE) if use == "hear" else Recording(b"")
        async with stage.open(use) as speech:
            if not await stage.go_away():
                return
            asked = speech.hear(recording) if use == "hear" else speech.say(SENTENCE)
            await _expect_refusal(asked)


async def _expect_refusal(asked: Awaitable[object]) -> None:
    with anyio.fail_after(WAIT_S):
        try:
            await asked
        except SpeechError as error:
            _check_sentence(error)
            return
    raise AssertionError("it was not refused")


def _check_heard(heard: Heard) -> None:
    assert heard.text == heard.text.strip() and "\0" not in heard.text
    assert heard.language == "" or (len(heard.language) == 2 and heard.language.islower())
    assert 0.0 <= heard.seconds < 1e6


def _check_sentence(error: SpeechError) -> None:
    said = str(error)
    assert len(said) > 10 and " " in said, f"{said!r} does not tell a person anything"
    assert len(said) < 1_000


CASES: tuple[Case, ...] = (
    it_has_a_name,
    it_hears_what_was_said,
    silence_is_no_text,
    what_it_says_is_a_sound_file,
    it_hears_what_it_says,
    any_text_is_spoken_or_refused,
    too_long_a_text_is_refused,
    rubbish_is_refused,
    odd_names_are_no_crash,
    the_share_only_grows,
    who_cancels_does_not_wait,
    many_ask_at_once,
    an_engine_that_is_away_is_an_error,
)
