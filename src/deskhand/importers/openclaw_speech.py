"""What hears and speaks in OpenClaw.

Where each key is documented in openclaw/openclaw:

- `tts` and `messages.tts`: `docs/tools/tts.md` and `src/config/types.tts.ts`
- `tools.media.audio`: `docs/nodes/audio.md` and `src/config/types.tools.ts`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from .safe_files import Tree
from .settings import as_list, as_map, section_at, snake_fields
from .speech import ForeignEngine, SpeechImport

_MODEL_KEYS = ("model", "model_id")
_VOICE_KEYS = ("speaker_voice_id", "speaker_voice", "voice_id", "voice", "voice_name")
_LANGUAGE_KEYS = ("language_code", "language", "lang")
_WHISPER = frozenset({"whisper", "whisper-cli", "sherpa-onnx-offline"})
_HEARING_KEYS = frozenset({"type", "provider", "model", "command", "args", "language"})


def list_used_keys(raw: Mapping[str, Any]) -> Iterator[str]:
    """The keys of speech that are read here."""
    for where, section in _find_speaking(raw):
        provider = str(section.get("provider") or "").lower()
        yield from (f"{where}.{name}" for name in ("auto", "enabled", "provider"))
        for name in (*_MODEL_KEYS, *_VOICE_KEYS, *_LANGUAGE_KEYS):
            yield f"{where}.{provider}.{name}"
            yield f"{where}.providers.{provider}.{name}"
        yield from (f"{where}.*.api_key", f"{where}.providers.*.api_key")
    yield from (f"tools.media.audio.{name}" for name in ("enabled", "models", "language"))
    yield "tools.media.audio.echo_transcript"


def convert_speech(
    tree: Tree, raw: Mapping[str, Any], addresses: Mapping[str, Any]
) -> dict[str, Any]:
    """What hears and speaks, as our section."""
    speech = SpeechImport(tree.notes, addresses)
    for where, section in _find_speaking(raw):
        _take_speaking(tree, speech, where, section)
    hears = section_at(raw, "tools", "media", "audio")
    if hears.get("enabled") is False:
        speech.take("hear", ForeignEngine(where="tools.media.audio", off=True))
    else:
        speech.take_first("hear", _list_hearing(tree, hears))
    if isinstance(hears.get("echo_transcript"), bool):
        speech.config["show_heard"] = hears["echo_transcript"]
    return speech.config


def list_speech_keys(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(provider, key) of each provider that speaks and has a key of its own there."""
    for _, section in _find_speaking(raw):
        for provider, each in {**section, **as_map(section.get("providers"))}.items():
            if key := snake_fields(each).get("api_key"):
                yield provider, key


def _find_speaking(raw: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where it stands, the section): it was within `messages` first."""
    for path in (("tts",), ("messages", "tts")):
        section = section_at(raw, *path)
        if section:
            yield ".".join(path), section
            return


def _take_speaking(
    tree: Tree, speech: SpeechImport, where: str, section: Mapping[str, Any]
) -> None:
    provider = str(section.get("provider") or "")
    providers = snake_fields(section.get("providers"))
    own = snake_fields(providers.get(provider)) or snake_fields(section.get(provider))
    auto = section.get("auto")
    is_off = auto == "off" or (auto is None and section.get("enabled") is False)
    engine = ForeignEngine(
        where=where,
        off=is_off,
        provider=provider,
        model=_first(own, _MODEL_KEYS),
        voice=_first(own, _VOICE_KEYS),
        language=_first(own, _LANGUAGE_KEYS),
    )
    speech.take("say", engine)
    if is_off or (auto is None and section.get("enabled") is None):
        return
    speech.config["answer_aloud"] = auto != "tagged"
    if auto not in ("inbound", "tagged"):
        tree.notes.change(f"{where}.auto", "only who speaks is answered by voice")
    if auto == "tagged":
        tree.notes.change(f"{where}.auto", "no answer is spoken unless the agent is asked to speak")


def _list_hearing(tree: Tree, section: Mapping[str, Any]) -> Iterator[ForeignEngine]:
    for each in as_list(section.get("models")):
        one = snake_fields(each)
        tree.notes.count_unused_fields("models of tools.media.audio", one, _HEARING_KEYS)
        command = PurePosixPath(str(one.get("command") or "")).name
        provider = "local" if command in _WHISPER else str(one.get("provider") or "")
        yield ForeignEngine(
            where="tools.media.audio",
            provider=provider or (f"the command {command}" if command else ""),
            model=str(one.get("model") or ""),
            language=str(one.get("language") or section.get("language") or ""),
        )


def _first(section: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(section[name]) for name in names if section.get(name)), "")
