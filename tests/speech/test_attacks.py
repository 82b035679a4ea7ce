"""What must not go wrong between people, engines and time."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from deskhand.assembly.speech import SpeechEngines
from deskhand.channels.spoken_text import render_spoken
from deskhand.config.config import Config, Home, Settings
from deskhand.net.client import Net
from deskhand.sandbox.base import Sandbox, SandboxCommand
from deskhand.sandbox.choose import open_sandbox
from deskhand.speech import espeak, recordings, whisper
from deskhand.speech.base import Recording, Voice
from deskhand.speech.held_process import HeldProcess
from deskhand.speech.recordings import RecordingTask, read_piece
from deskhand.speech.settings import SpeechConfig
from deskhand.speech.voice_files import VoiceFiles
from deskhand.store.blobs import Blobs
from deskhand.tools.convert import find_python
from deskhand.types.errors import SpeechError

SLOW_TO_LEAVE = """
import sys, time
for line in sys.stdin:
    print(line.strip(), flush=True)
time.sleep(1)
"""


async def sandbox() -> Sandbox:
    return (await open_sandbox()).sandbox


def command() -> SandboxCommand:
    python = find_python(())
    return SandboxCommand(
        argv=(python.program, "-I", "-S", "-c", SLOW_TO_LEAVE), cwd="/", mounts=python.mounts
    )


async def test_who_asks_while_its_memory_is_given_back_is_answered() -> None:
    process = HeldProcess("echoing", command, sandbox, 1.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.run)
        assert await process.ask(b"one", bytes.decode, 20) == "one"
        await anyio.sleep(1.3)  # it has been told to leave, and is not gone
        assert await process.ask(b"two", bytes.decode, 5) == "two"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("voice", ["/gone/voice.onnx", "Kore"])
async def test_a_voice_that_is_not_here_is_told_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, voice: str
) -> None:
    """`doctor` says that answers are spoken, and each of them fails."""
    files = VoiceFiles(tmp_path / "cache" / "speech")
    for name in ("piper", "joe"):
        files.path(name).mkdir(parents=True)
    (files.path("joe") / "joe.onnx").touch()
    monkeypatch.setattr(whisper, "is_installed", lambda: True)
    monkeypatch.setattr(espeak, "is_installed", lambda: False)
    monkeypatch.setattr(Settings, "cache_folder", property(lambda self: tmp_path / "cache"))
    config = Config(speech=SpeechConfig(voice=voice))
    settings = Settings(Home(tmp_path), config, environment={"HOME": str(tmp_path)})

    engines = SpeechEngines(lambda: settings, sandbox, Net(), Blobs(tmp_path / "blobs"))
    with pytest.raises(SpeechError) as caught:
        await engines.say("hello", Voice())
    assert str(caught.value) != str(SpeechError("")), "the reason is empty"
    assert engines.find_problem("say")


@pytest.mark.skipif(not recordings.is_installed(), reason="needs the extra [voice]")
async def test_few_recordings_are_decoded_at_once() -> None:
    """Each takes up to 1 GB in the sandbox, and two copies of itself here."""
    running = most = 0

    class Counting:
        async def run(self, command, on_output):  # type: ignore[no-untyped-def]
            nonlocal running, most
            running += 1
            most = max(most, running)
            await anyio.sleep(0.2)
            running -= 1
            on_output(b'{"problem": "no"}\n', False)
            return await (await sandbox()).run(command, lambda piece, is_error: None)

    async def counting() -> Sandbox:
        return Counting()  # type: ignore[return-value]

    async def read() -> None:
        with pytest.raises(SpeechError):
            await read_piece(Recording(b"RIFF"), RecordingTask("samples"), counting)

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(read)
    assert most <= 4


@pytest.mark.parametrize("markdown", ["```\nprint(1)\n```", "…", "...", "| a |\n|---|\n| 1 |"])
def test_what_has_no_words_is_not_spoken(markdown: str) -> None:
    """Piper ends with code 1 at it, and has to be begun anew for whoever is next."""
    assert render_spoken(markdown) == ""
