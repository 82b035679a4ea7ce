"""What hears and speaks in Hermes Agent: `stt`, `tts` and `voice`, which are documented in
`website/docs/user-guide/features/tts.md` of NousResearch/hermes-agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .safe_files import Tree
from .settings import ImportedKeys, section_at, snake_fields
from .speech import ForeignEngine, SpeechImport

_VOICE_KEY = "VOICE_TOOLS_OPENAI_KEY"
"""Its key of OpenAI for speech alone."""
_SPEECH_KEYS: Mapping[str, tuple[str, ...]] = {
    "stt": ("model", "model_id", "language"),
    "tts": ("model", "model_id", "voice", "voice_id"),
}
"""Keys of the provider that is chosen."""


def list_speech_keys(raw: Mapping[str, Any]) -> Iterator[str]:
    """The keys of the configuration that are read here."""
    for where, keys in _SPEECH_KEYS.items():
        provider = str(section_at(raw, where).get("provider") or "")
        yield from (f"{where}.{key}" for key in ("enabled", "provider"))
        yield from (f"{where}.{provider}.{key}" for key in keys)
    yield from ("stt.language", "voice.auto_tts")


def convert_speech(tree: Tree, raw: Mapping[str, Any], keys: ImportedKeys) -> None:
    """What hears and speaks. OpenAI's key for speech is OpenAI's key here, where there is no
    other."""
    speech = SpeechImport(tree.notes, keys.config.get("providers", {}))
    hears = section_at(raw, "stt")
    speaks = section_at(raw, "tts")
    if hears:
        speech.take("hear", _make_engine("stt", hears))
    if speaks.get("provider"):
        speech.take("say", _make_engine("tts", speaks))
    aloud = section_at(raw, "voice").get("auto_tts")
    if isinstance(aloud, bool) and (hears or speaks):
        speech.config["answer_aloud"] = aloud
    if speech.config:
        keys.config["speech"] = speech.config
    if key := keys.secrets.pop(_VOICE_KEY, ""):
        # Nothing here reads it under that name.
        keys.secrets.setdefault("OPENAI_API_KEY", key)


def _make_engine(where: str, section: Mapping[str, Any]) -> ForeignEngine:
    provider = str(section.get("provider") or "")
    own = snake_fields(section.get(provider))
    language = ""
    if where == "stt":
        language = str(own.get("language") or section.get("language") or "")
    return ForeignEngine(
        where=where,
        off=section.get("enabled") is False,
        provider=provider,
        model=str(own.get("model") or own.get("model_id") or ""),
        voice=str(own.get("voice") or own.get("voice_id") or ""),
        language=language,
    )
