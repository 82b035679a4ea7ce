"""What hears and speaks in other systems does so here, or the report says what to do instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from deskhand.config.config import read_settings
from deskhand.importers.notes import ImportNotes
from deskhand.importers.speech import ForeignEngine, SpeechImport
from tests.importers.moving import home_of, move, read, settings_in

SPEECH: dict[str, dict[str, Any]] = {
    "operator-use": {
        "hear": "groq/whisper-large-v3",
        "say": "sarvam/bulbul:v3",
        "voice": "kavya",
    },
    "nanobot": {"hear": "openai/gpt-4o-mini-transcribe", "language": "de"},
    "hermes": {
        "hear": "local",
        "say": "elevenlabs/eleven_multilingual_v2",
        "voice": "pNInz6obpgDQGcFmaJgB",
        "language": "en",
        "answer_aloud": False,
    },
    "openclaw": {
        "hear": "deepgram/nova-3",
        "say": "openai/gpt-4o-mini-tts",
        "voice": "nova",
        "language": "de",
        "show_heard": False,
        "answer_aloud": True,
    },
}
KEYS = {
    "operator-use": "GROQ_API_KEY",
    "nanobot": "OPENAI_API_KEY",
    "hermes": "ELEVENLABS_API_KEY",
    "openclaw": "OPENAI_API_KEY",
}


LEFT_OUT: dict[str, list[str]] = {
    "operator-use": [],
    "nanobot": ["transcription: maxDurationSec"],
    "hermes": ["tts.edge: voice"],
    "openclaw": ["tools.media.audio (the command parakeet, de)"],
}


@pytest.mark.parametrize("name", SPEECH)
async def test_what_hears_and_speaks(name: str, tmp_path: Path) -> None:
    found = read(home_of(f"platforms/{name}", tmp_path))
    assert found.config["speech"] == SPEECH[name]
    assert found.secrets[KEYS[name]] == "none"
    spoken = ("stt", "tts", "transcription", "messages.tts", "tools.media.audio")
    left = [each.what for each in found.left_out if each.what.startswith(spoken)]
    assert left == LEFT_OUT[name]
    settings = settings_in(tmp_path)
    await move(tmp_path / f"platforms/{name}", settings)
    now = read_settings(settings.file, settings.started_with)
    assert not now.warnings
    written = yaml.safe_load(settings.file.read_text())["speech"]
    assert written == SPEECH[name]
    speech = now.config.speech
    assert {key: getattr(speech, key) for key in written} == written


def test_what_deskhand_has_not_is_named(tmp_path: Path) -> None:
    left = {each.what: each for each in read(home_of("platforms/openclaw", tmp_path)).left_out}
    command = left["tools.media.audio (the command parakeet, de)"]
    assert "speech.hear: local" in command.todo and "deskhand voice pull" in command.todo
    assert command.why == "Deskhand cannot use the command parakeet for speech"
    hermes = read(home_of("platforms/hermes", tmp_path))
    assert "tts.edge: voice" in {each.what for each in hermes.left_out}
    assert "stt: model" in {each.what for each in hermes.changed}
    assert hermes.secrets["OPENAI_API_KEY"] == "none", "its key for speech alone"
    assert "VOICE_TOOLS_OPENAI_KEY" not in hermes.secrets, "nothing reads it under that name"


def with_config(home: Path, **change: Any) -> Path:
    config = json.loads((home / "config.json").read_text())
    (home / "config.json").write_text(json.dumps(config | change))
    return home


async def test_off_stays_off(tmp_path: Path) -> None:
    home = with_config(
        home_of("platforms/operator-use", tmp_path),
        stt={"enabled": False, "provider": "groq", "model": "whisper-large-v3"},
        ttsConfig={"enabled": False},
        tts={},
    )
    assert read(home).config["speech"] == {"hear": "off", "say": "off"}
    nanobot = with_config(
        home_of("platforms/nanobot", tmp_path), transcription={"enabled": False, "provider": "groq"}
    )
    found = read(nanobot)
    assert found.config["speech"] == {"hear": "off"}
    assert "transcription (groq)" in {each.what for each in found.changed}
    settings = settings_in(tmp_path)
    await move(nanobot, settings)
    now = read_settings(settings.file, settings.started_with)
    assert now.config.speech.hear == "off"


async def test_what_is_set_here_is_kept(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "speech:\n  hear: elevenlabs\n")
    settings = read_settings(settings.file, settings.started_with)
    await move(home_of("platforms/nanobot", tmp_path), settings)
    now = read_settings(settings.file, settings.started_with)
    assert (now.config.speech.hear, now.config.speech.language) == ("elevenlabs", "")


def test_nanobots_usual_provider_counts_with_a_key(tmp_path: Path) -> None:
    """It writes down groq whether anybody chose it or not."""
    home = home_of("platforms/nanobot", tmp_path)
    assert "speech" not in read(with_config(home, transcription={"enabled": True})).config
    found = read(with_config(home, providers={"groq": {"apiKey": "none"}}))
    assert found.config["speech"] == {"hear": "groq"}


@pytest.mark.parametrize(
    ("tts", "speech"),
    [
        ({"auto": "off", "provider": "openai"}, {"say": "off"}),
        ({"enabled": False}, {"say": "off"}),
        ({"auto": "always", "provider": "google"}, {"say": "google", "answer_aloud": True}),
        ({"auto": "tagged", "provider": "openai"}, {"say": "openai", "answer_aloud": False}),
        ({"auto": "inbound", "provider": "edge"}, {"answer_aloud": True}),
        (
            {
                "provider": "elevenlabs",
                "providers": {
                    "elevenlabs": {"speakerVoiceId": "EXAVITQu4vr4xnSDxMaL", "model": "m1"}
                },
            },
            {"say": "elevenlabs/m1", "voice": "EXAVITQu4vr4xnSDxMaL"},
        ),
    ],
)
def test_how_openclaw_speaks(tts: dict[str, Any], speech: dict[str, Any], tmp_path: Path) -> None:
    home = home_of("platforms/openclaw", tmp_path)
    (home / "openclaw.json").write_text(json.dumps({"tts": tts}))
    found = read(home)
    assert found.config["speech"] == speech
    edge = {each.what: each.todo for each in found.left_out}.get("tts (edge)", "")
    assert ("speech.say: local" in edge) == (tts.get("provider") == "edge")


@pytest.mark.parametrize(
    ("engine", "config"),
    [
        (ForeignEngine(where="x", provider="gemini", model="tts-1"), {"say": "google/tts-1"}),
        (ForeignEngine(where="x", provider="own", model="kokoro"), {"say": "own/kokoro"}),
        (ForeignEngine(where="x", provider="other", model="kokoro"), {}),
        (ForeignEngine(where="x", provider="openai", model="../x"), {"say": "openai"}),
        (
            ForeignEngine(where="x", provider="openai", voice="/tmp/evil.onnx", language="de-DE"),
            {"say": "openai", "language": "de"},
        ),
        (ForeignEngine(where="x", provider="piper", voice="en_US-amy"), {"say": "local"}),
        (
            ForeignEngine(where="x", provider="deepgram", model="aura-2", voice="asteria-en"),
            {"say": "deepgram/aura-2-asteria-en"},
        ),
        (ForeignEngine(where="x", provider="elevenlabs", voice="Rachel"), {"say": "elevenlabs"}),
        (ForeignEngine(where="x"), {}),
    ],
)
def test_what_a_file_may_choose(engine: ForeignEngine, config: dict[str, Any]) -> None:
    """Providers that are known, or come with an address; no path of a file."""
    notes = ImportNotes()
    speech = SpeechImport(notes, ["own"])
    speech.take("say", engine)
    assert speech.config == config
    assert bool(notes.left_out) == (
        engine.voice not in ("", "asteria-en")
        or engine.model == "../x"
        or engine.provider == "other"
    )
