"""What other systems say about hearing and speaking, as our section `speech`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from ..config.foreign_keys import FOREIGN_PROVIDER_NAMES, to_snake_case
from ..speech.base import Use
from ..speech.providers import read_providers
from ..speech.settings import OFF, PROVIDER
from .notes import ImportNotes

_LOCAL_NAMES = frozenset({"local", "piper", "faster_whisper", "whisper_local"})
"""How other systems call an engine on this machine that Deskhand has, too."""
_ALIASES = {"silicon": "siliconflow", "xiaomi": "xiaomi_mimo", "mimo": "xiaomi_mimo"}
"""Second names of providers: nanobot/audio/transcription_registry.py."""
_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_].*)?", re.IGNORECASE)
_NAME = re.compile(r"[\w.:@-][\w .:@/-]{0,199}")
"""A model or a voice. A path is none: a file from elsewhere must not choose what is loaded."""
_AURA = re.compile(r"deepgram/aura(-2)?")
"""The family of Deepgram's voices, which operator-use has in place of a model. With the voice
behind it, it is a model: https://developers.deepgram.com/docs/tts-models"""
_ELEVENLABS_VOICE = re.compile(r"[A-Za-z0-9]{16,40}")


class ForeignEngine(msgspec.Struct, frozen=True, kw_only=True):
    """What hears or speaks in another system. `where` is its section there, for the report; `off`
    says that it is switched off."""

    where: str
    off: bool = False
    provider: str = ""
    model: str = ""
    voice: str = ""
    language: str = ""


class SpeechImport:
    """Makes our section of what another system says. `addresses` are the providers whose address
    comes with the home: those are spoken to as OpenAI is."""

    def __init__(self, notes: ImportNotes, addresses: Collection[str] = ()) -> None:
        self._notes = notes
        self._addresses = addresses
        self.config: dict[str, Any] = {}

    def take(self, use: Use, engine: ForeignEngine) -> bool:
        """Take over an engine. Returns whether Deskhand has it; what it has not is noted."""
        if engine.off:
            self.config[use] = OFF
            if engine.provider or engine.model:
                self._notes.change(_describe(engine), f"it stays switched off: speech.{use}")
            return True
        name = self._find_engine(use, engine)
        if not name:
            return False
        if _AURA.fullmatch(name) and _is_name(engine.voice):
            name = f"{name}-{engine.voice}"
        elif engine.voice:
            self._take_voice(engine, name.partition("/")[0])
        self.config[use] = name
        if engine.language:
            self._take_language(engine)
        return True

    def take_first(self, use: Use, engines: Iterable[ForeignEngine]) -> None:
        """Take over the first of these engines that Deskhand has; the others are noted."""
        found = False
        for engine in engines:
            if found:
                why = "Deskhand uses one engine, and an earlier one is imported"
                self._notes.leave_out(_describe(engine), why, f"see speech.{use} in docs/voice.md")
            else:
                found = self.take(use, engine)

    def _find_engine(self, use: Use, engine: ForeignEngine) -> str:
        """Its name here; '' where Deskhand has no such engine, which is noted."""
        plain = to_snake_case(engine.provider.strip())
        provider = FOREIGN_PROVIDER_NAMES.get(plain, _ALIASES.get(plain, plain))
        if provider in _LOCAL_NAMES:
            self._note_local_model(use, engine)
            return PROVIDER
        if provider in read_providers() or (provider in self._addresses and engine.model):
            if not engine.model:
                return provider
            if _is_name(engine.model):
                return f"{provider}/{engine.model.removeprefix(f'{provider}/')}"
            why = "that cannot be the name of a model; the usual one of the provider is used"
            self._notes.leave_out(f"{engine.where}: the model", why, f"set speech.{use}")
            return provider
        if engine.provider or engine.model:
            provider = engine.provider
            self._notes.leave_out(
                _describe(engine),
                f"Deskhand cannot use {provider} for speech" if provider else "it has no provider",
                f"{_explain_local(use)}, or set speech.{use} to a provider of docs/voice.md",
            )
        return ""

    def _note_local_model(self, use: Use, engine: ForeignEngine) -> None:
        if engine.model:
            why = f"the best model on this machine is used in place of {engine.model}"
            self._notes.change(f"{engine.where}: model", why)
        self._notes.change(
            engine.where, "it runs on this machine; to download what it needs: deskhand voice pull"
        )

    def _take_voice(self, engine: ForeignEngine, provider: str) -> None:
        if provider == "elevenlabs" and not _ELEVENLABS_VOICE.fullmatch(engine.voice):
            self._notes.leave_out(
                f"{engine.where}: voice {engine.voice}",
                "that is the name of a voice, and ElevenLabs wants its id",
                "deskhand config set speech.voice ID",
            )
        elif provider == PROVIDER or not _is_name(engine.voice):
            self._notes.leave_out(
                f"{engine.where}: voice {engine.voice}",
                "an import must not choose which files are loaded",
                "deskhand voice pull, and deskhand config set speech.voice NAME",
            )
        else:
            self.config["voice"] = engine.voice

    def _take_language(self, engine: ForeignEngine) -> None:
        found = _LANGUAGE.fullmatch(engine.language)
        if found is None:
            self._notes.leave_out(
                f"{engine.where}: language {engine.language}",
                "that is no code of a language",
                "deskhand config set speech.language de",
            )
            return
        code = found[1].lower()
        if self.config.setdefault("language", code) != code:
            self._notes.leave_out(
                f"{engine.where}: language {engine.language}",
                f"Deskhand has one language for both, and {self.config['language']} came first",
                f"deskhand config set speech.language {code}",
            )


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text)) and ".." not in text and not text.endswith(".onnx")


def _describe(engine: ForeignEngine) -> str:
    said = [engine.provider, engine.model, engine.voice, engine.language]
    return f"{engine.where} ({', '.join(each for each in said if each)})"


def _explain_local(use: Use) -> str:
    return f"use this machine: deskhand voice pull, with speech.{use}: local"
