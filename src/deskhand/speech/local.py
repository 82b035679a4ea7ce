"""The engine on this machine: Whisper hears; Piper speaks where it has a voice for the language,
and espeak-ng where not. No key, and nothing leaves the machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from ..types.errors import ConfigError, SpeechError
from ..types.marked_texts import mark_text
from . import espeak, recordings, whisper
from .base import MAX_SAY_CHARS, Heard, OnShare, Recording, Sound, Speech, Voice, ignore_share
from .espeak import say_with_espeak
from .held_process import IDLE_S, OpenSandbox
from .piper import PiperProcess
from .recordings import encode_as_opus
from .settings import PROVIDER
from .voice_files import PIPER, VoiceFiles
from .whisper import Whisper

PULL = "deskhand voice pull"


class LocalSpeech:
    """It. `run` keeps its processes. `model` names the weights that hear, '' is the best that are
    here."""

    def __init__(
        self,
        files: VoiceFiles,
        open_sandbox: OpenSandbox,
        model: str = "",
        idle_s: float = IDLE_S,
    ) -> None:
        self._files = files
        self._open_sandbox = open_sandbox
        self._model = model
        self._idle_s = idle_s
        self._whisper = Whisper(files.folder, open_sandbox, idle_s)
        self._voices: dict[Path, PiperProcess] = {}
        self._new_voice = anyio.Event()
        self.name = f"{PROVIDER}/{model}" if model else PROVIDER

    async def run(self) -> None:
        """Hold what is used, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._whisper.run)
            held = 0
            while True:
                self._new_voice = anyio.Event()
                for voice in list(self._voices.values())[held:]:
                    tasks.start_soon(voice.run)
                held = len(self._voices)
                await self._new_voice.wait()

    @property
    def is_holding(self) -> bool:
        """Whether one of its processes is in memory."""
        held = [self._whisper.held, *(each.held for each in self._voices.values())]
        return any(each.is_running for each in held)

    async def hear(
        self, recording: Recording, language: str = "", on_share: OnShare = ignore_share
    ) -> Heard:
        """See Speech.hear."""
        if problem := self.find_hearing_problem(language):
            raise SpeechError(problem)
        model = self._model or self._files.list_present("hear", language)[0]
        return await self._whisper.hear(recording, self._files.path(model), language, on_share)

    def find_hearing_problem(self, language: str = "") -> str:
        """Why it cannot hear, with what to do; '' where it can."""
        if not whisper.is_installed():
            return f"nothing that hears is installed here: {recordings.INSTALL}"
        try:
            here = self._files.has(self._model) if self._model else True
        except ConfigError as error:
            return str(error)
        if not here:
            return mark_text("the weights {weights} are not here: {command} {model}").format(
                weights=repr(self._model), command=PULL, model=self._model
            )
        if not self._model and not self._files.list_present("hear", language):
            if language:
                return f"there are no weights here that hear{_in(language)}: {PULL}"
            return mark_text("there are no weights here that hear: {command}").format(command=PULL)
        return ""

    async def say(self, text: str, voice: Voice = Voice()) -> Sound:  # noqa: B008 -- it is frozen
        """See Speech.say."""
        if len(text) > MAX_SAY_CHARS:
            raise SpeechError(f"at most {MAX_SAY_CHARS:,} characters are spoken at once")
        if not text.strip():
            raise SpeechError("there is nothing to say")
        voice = self._without_other_language(voice)
        if problem := self.find_speaking_problem(voice):
            raise SpeechError(problem)
        if file := self._find_voice(voice):
            sound = await self._hold_voice(file).say(text)
        else:
            sound = await say_with_espeak(text, voice, self._open_sandbox)
        if not recordings.is_installed():
            return sound
        return await encode_as_opus(sound, self._open_sandbox)

    def _without_other_language(self, voice: Voice) -> Voice:
        """A voice that is made for another language than is spoken is not meant."""
        known = self._files.known.get("say", {}).get(voice.name)
        if known is None or known.knows(voice.language):
            return voice
        return Voice(language=voice.language)

    def find_speaking_problem(self, voice: Voice = Voice()) -> str:  # noqa: B008 -- it is frozen
        """Why it cannot speak so, with what to do; '' where it can."""
        if self._find_voice(voice):
            return ""
        if voice.name.endswith(".onnx"):
            why = "cannot be read here" if self._files.has(PIPER) else f"needs {PULL} {PIPER}"
            return f"the voice {voice.name!r} {why}"
        if espeak.is_installed() and espeak.may_be_voice(voice.name):
            return ""
        if voice.name and espeak.is_installed():
            return f"there is no voice {voice.name[:60]!r} here: deskhand voice list"
        return f"nothing that speaks{_in(voice.language)} is here: {PULL}, or {espeak.INSTALL}"

    def _find_voice(self, voice: Voice) -> Path | None:
        """The file of Piper's voice that is to be used, or None. A voice of the user's own is named
        by its path."""
        if not self._files.has(PIPER) or not whisper.is_installed():
            return None
        own = Path(voice.name)
        if own.suffix == ".onnx" and own.is_absolute():
            with suppress(OSError):  # a folder that is closed to us
                return own if own.is_file() else None
            return None
        present: Sequence[str] = self._files.list_present("say", voice.language)
        if voice.name:
            present = [name for name in present if name == voice.name]
        for name in present:
            return next(iter(sorted(self._files.path(name).glob("*.onnx"))), None)
        return None

    def _hold_voice(self, file: Path) -> PiperProcess:
        if file not in self._voices:
            program = self._files.path(PIPER)
            self._voices[file] = PiperProcess(program, file, self._open_sandbox, self._idle_s)
            self._new_voice.set()
        return self._voices[file]


def _in(language: str) -> str:
    return f" {language!r}" if language else ""


_: type[Speech] = LocalSpeech
