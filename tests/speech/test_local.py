"""The engine on this machine: the real Whisper, Piper and espeak-ng, in the real sandbox. The
weights come by our own command, once, into the cache of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from deskhand.sandbox.base import Sandbox
from deskhand.sandbox.choose import open_sandbox
from deskhand.speech.base import OGG, Recording, Speech, Use, Voice
from deskhand.speech.local import LocalSpeech
from deskhand.speech.recordings import RATE, encode_as_opus, read_samples
from deskhand.speech.voice_files import PIPER, VoiceFiles
from deskhand.speech.wav import wrap_samples
from deskhand.testing import speech_suite
from deskhand.testing.speech_suite import Case, Stage
from deskhand.types.errors import SpeechError

CACHE = Path.home() / ".cache" / "deskhand-tests" / "speech"
SENTENCE = "Please remind me to call the dentist tomorrow in the afternoon."


async def sandbox() -> Sandbox:
    return (await open_sandbox()).sandbox


def words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.lower()).split()


@pytest.fixture(scope="session")
def files() -> VoiceFiles:
    shelf = VoiceFiles(CACHE)

    async def pull() -> None:
        for name in ("tiny-en", "base", PIPER, "joe"):
            await shelf.pull(name)

    anyio.run(pull)
    return shelf


@asynccontextmanager
async def running(speech: LocalSpeech) -> AsyncGenerator[LocalSpeech]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(speech.run)
        yield speech
        tasks.cancel_scope.cancel()


class LocalStage:
    """This machine."""

    uses: frozenset[Use] = frozenset(("hear", "say"))
    hears_itself = True

    def __init__(self, files: VoiceFiles) -> None:
        self._files = files

    @asynccontextmanager
    async def open(self, use: Use) -> AsyncGenerator[Speech]:
        async with running(LocalSpeech(self._files, sandbox, "tiny-en")) as speech:
            yield speech

    async def recording(self, text: str) -> Recording:
        async with running(LocalSpeech(self._files, sandbox)) as speech:
            return Recording((await speech.say(text)).data)

    async def go_away(self) -> bool:
        self._files = VoiceFiles(CACHE / "nowhere")
        return False  # espeak-ng still speaks

    async def stall(self, stalled: bool) -> bool:
        return False


@pytest.mark.parametrize("case", speech_suite.CASES)
async def test_conformance(case: Case, files: VoiceFiles) -> None:
    stage: Stage = LocalStage(files)
    await case(stage)


@pytest.mark.parametrize("model", ["tiny-en", "base"])
async def test_a_sentence_there_and_back(files: VoiceFiles, model: str) -> None:
    """Offline, without an error, and quicker than it is spoken."""
    async with running(LocalSpeech(files, sandbox, model)) as speech:
        sound = await speech.say(SENTENCE)
        heard = await speech.hear(Recording(sound.data))
        assert sound.mime == OGG and words(heard.text) == words(SENTENCE)
        assert heard.language == "en" and heard.seconds > 2


async def test_it_finds_the_language(files: VoiceFiles) -> None:
    async with running(LocalSpeech(files, sandbox, "base")) as speech:
        sound = await speech.say("Guten Tag, es ist zehn Uhr.", Voice(language="de"))
        heard = await speech.hear(Recording(sound.data))
    assert heard.language == "de" and "Guten Tag" in heard.text


async def test_memory_is_given_back(files: VoiceFiles) -> None:
    async with running(LocalSpeech(files, sandbox, "tiny-en", idle_s=0.5)) as speech:
        sound = await speech.say(SENTENCE)
        await speech.hear(Recording(sound.data))
        assert speech.is_holding
        with anyio.fail_after(20):
            while speech.is_holding:
                await anyio.sleep(0.05)


LONG_TEXT = (
    "On Monday the plumber comes at nine, so somebody has to be at home. "
    "The red bicycle stands in the garage and needs a new chain. "
    "Please water the flowers on the balcony twice a week. "
    "My sister arrives by train on Thursday evening. "
    "There is fresh bread in the kitchen and some cheese in the fridge. "
    "The dentist has moved to the other side of the river. "
    "Do not forget to pay the bill for the electricity. "
    "We will paint the bedroom blue during the winter holidays. "
)
"""Nothing in it comes twice: what repeats itself is taken for a fault of its own by Whisper."""


async def test_a_long_recording_is_heard_piece_by_piece(files: VoiceFiles) -> None:
    async with running(LocalSpeech(files, sandbox, "tiny-en")) as speech:
        samples = await read_samples(await speech.say(LONG_TEXT), sandbox)
        long = await encode_as_opus(wrap_samples(samples * 6, RATE), sandbox)
        shares: list[float] = []
        heard = await speech.hear(Recording(long.data), on_share=shares.append)
    assert heard.seconds > 120 and shares == sorted(shares) and shares[-1] == 1.0
    assert len(set(shares)) > 5
    for word in ("plumber", "bicycle", "sister", "dentist", "bedroom"):
        assert 5 <= heard.text.lower().count(word) <= 6, (word, heard.text)


@pytest.mark.parametrize(
    ("model", "language", "why"),
    [
        ("", "", "there are no weights here that hear: deskhand voice pull"),
        ("base", "", "the weights 'base' are not here: deskhand voice pull base"),
        ("other", "", "There is no voice file 'other'"),
    ],
)
async def test_what_is_missing_is_told(tmp_path: Path, model: str, language: str, why: str) -> None:
    speech = LocalSpeech(VoiceFiles(tmp_path), sandbox, model)
    assert why in speech.find_hearing_problem(language)
    with pytest.raises(SpeechError, match=r"here|no voice"):
        await speech.hear(Recording(b"OggS"), language)


async def test_espeak_speaks_where_nothing_else_is(tmp_path: Path) -> None:
    speech = LocalSpeech(VoiceFiles(tmp_path), sandbox)
    assert speech.find_speaking_problem() == ""
    assert (await speech.say("Bonjour.", Voice(language="fr"))).mime == OGG
    with pytest.raises(SpeechError, match="there is no voice"):
        await speech.say("Hello.", Voice("--path=/etc"))
    with pytest.raises(SpeechError, match="could not say it"):
        await speech.say("Hello.", Voice("qq"))
