"""Whisper, in a process of its own: `main` answers lines of JSON. Run by `whisper.py` in the
sandbox; needs the extra [voice]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from .recordings import RATE
from .whisper import TranscribeAnswer, TranscribeTask

THREADS = 2


class Listener:
    """The weights that were used last."""

    def __init__(self) -> None:
        self._folder = ""
        self._model: Any = None

    def transcribe(self, task: TranscribeTask, tell: Callable[[float], None]) -> TranscribeAnswer:
        """What is said in the samples; `tell` hears how far it is."""
        samples = np.frombuffer(task.samples, np.int16).astype(np.float32) / 32768.0
        if not len(samples):
            return TranscribeAnswer(done=True)
        found, info = self._load(task.model).transcribe(
            samples,
            language=task.language or None,
            beam_size=1,
            vad_filter=True,
            condition_on_previous_text=False,
        )
        texts = []
        for segment in found:
            texts.append(segment.text)
            tell(min(segment.end * RATE / len(samples), 1.0))
        text = " ".join("".join(texts).split())
        return TranscribeAnswer(done=True, text=text, language=info.language if text else "")

    def _load(self, folder: str) -> Any:
        if self._folder != folder:
            open_model = import_module("faster_whisper").WhisperModel
            self._model = open_model(
                folder,
                device="cpu",
                compute_type="int8",
                cpu_threads=THREADS,
                local_files_only=True,
            )
            self._folder = folder
        return self._model


def main() -> None:
    """Answer the lines of stdin until they end."""
    listener = Listener()

    def write(said: TranscribeAnswer) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()

    for line in sys.stdin.buffer:
        task = msgspec.json.decode(line, type=TranscribeTask)
        try:
            said = listener.transcribe(task, lambda share: write(TranscribeAnswer(share=share)))
        except (OSError, RuntimeError, ValueError) as error:
            said = TranscribeAnswer(problem=f"{type(error).__name__}: {error}"[:500])
        write(said)
