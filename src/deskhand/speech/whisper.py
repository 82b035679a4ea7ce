"""Whisper on this machine, by faster-whisper in a process of the sandbox: it sees weights and
samples, and no file that anybody has sent."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ..sandbox.base import Mount, SandboxCommand
from ..tools.convert import make_python_command
from ..types.errors import SpeechError
from ..types.folders import make_private_folder
from .base import Heard, OnShare, Recording, ignore_share
from .held_process import IDLE_S, LIFE_S, HeldProcess, OpenSandbox
from .recordings import RecordingTask, read_piece

MODULE = "deskhand.speech.whisper_main"
LIBRARIES = ("av", "faster_whisper")
MEMORY_BYTES = 3 << 30
THREADS = 96
SILENCE_S = 180.0
"""A slow machine needs this long for the first words of a piece."""


class TranscribeTask(msgspec.Struct, frozen=True):
    """`samples` are 16 bits each, 16,000 a second; `model` is the folder with the weights, and
    `language` what to expect, '' to find it out."""

    samples: bytes
    model: str
    language: str = ""


class TranscribeAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """`share` alone says how far it is. The last line has `done`, or why it was not."""

    share: float = 0.0
    done: bool = False
    problem: str = ""
    text: str = ""
    language: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(TranscribeAnswer).decode


def is_installed() -> bool:
    """Whether the extra `[voice]` is here. It is never loaded into this process."""
    return all(find_spec(each) is not None for each in LIBRARIES)


class Whisper:
    """That process. `folder` is where weights lie; `run` keeps it."""

    def __init__(self, folder: Path, sandbox: OpenSandbox, idle_s: float = IDLE_S) -> None:
        self._folder = folder
        self._open_sandbox = sandbox
        self.held = HeldProcess("listening", self._make_command, sandbox, idle_s)
        self.run = self.held.run

    def _make_command(self) -> SandboxCommand:
        command = make_python_command(MODULE, b"", LIBRARIES)
        make_private_folder(self._folder)
        return replace(
            command,
            mounts=(*command.mounts, Mount(str(self._folder))),
            timeout_s=LIFE_S,
            memory_bytes=MEMORY_BYTES,
            processes=THREADS,
        )

    async def hear(
        self, recording: Recording, model: Path, language: str, on_share: OnShare = ignore_share
    ) -> Heard:
        """What is said in it, by the weights in this folder: piece by piece. Raises SpeechError."""
        texts: list[str] = []
        begin = 0
        seconds = before = 0.0
        while True:
            task = RecordingTask("samples", begin)
            piece, samples = await read_piece(recording, task, self._open_sandbox)
            take = _take_until_done(_within(before, piece.share, on_share))
            asked = TranscribeTask(samples, str(model), language)
            said = await self.held.ask(_encode(asked), take, SILENCE_S)
            if said.problem:
                raise SpeechError(f"listening failed: {said.problem[:200]}")
            texts.append(said.text)
            seconds += piece.seconds
            language = language or said.language
            before = max(before, piece.share)
            on_share(before)
            if not piece.more:
                break
            begin = piece.end
        text = " ".join(each for each in texts if each)
        return Heard(text, language if text else "", seconds)


def _within(begin: float, end: float, on_share: OnShare) -> OnShare:
    """Told the share of a piece, tells that of the whole."""
    return lambda share: on_share(begin + max(end - begin, 0.0) * share)


def _take_until_done(on_share: OnShare) -> Callable[[bytes], TranscribeAnswer | None]:
    def take(line: bytes) -> TranscribeAnswer | None:
        try:
            said = _decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise SpeechError("listening gave an answer without sense") from error
        if said.done or said.problem:
            return said
        if 0.0 <= said.share <= 1.0:
            on_share(said.share)
        return None

    return take
