"""The platforms and the speech of OpenClaw, in the words that all systems share here.

Where each key is documented in openclaw/openclaw:

- `channels.*`: `src/config/types.discord.ts`, `types.slack.ts` and `types.telegram.ts`, and the
  pages `docs/channels/matrix.md` and `twitch.md`
- `tts` and `messages.tts`: `docs/tools/tts.md` and `src/config/types.tts.ts`
- `tools.media.audio`: `docs/nodes/audio.md` and `src/config/types.tools.ts`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from .safe_files import Tree
from .settings import as_list, as_map, snake_fields
from .speech import ForeignEngine, SpeechImport

PLATFORMS = ("telegram", "discord", "slack", "matrix", "twitch")
"""Platforms that both have."""
SECRETS: Mapping[str, Mapping[str, str]] = {
    "telegram": {"bot_token": "TELEGRAM_BOT_TOKEN"},
    "discord": {"token": "DISCORD_BOT_TOKEN"},
    "slack": {"bot_token": "SLACK_BOT_TOKEN", "app_token": "SLACK_APP_TOKEN"},
    "matrix": {"access_token": "MATRIX_ACCESS_TOKEN", "password": "MATRIX_PASSWORD"},
    "twitch": {"access_token": "OPENCLAW_TWITCH_ACCESS_TOKEN"},
}
"""The secrets of an account, and the variables in which those of the account `default` may be."""
VARIABLES: Mapping[str, Mapping[str, str]] = {
    "matrix": {"homeserver": "MATRIX_HOMESERVER", "user_id": "MATRIX_USER_ID"},
}
"""Variables for what is no secret, in the same way."""
PLAIN_VARIABLES = frozenset(name for names in VARIABLES.values() for name in names.values())
_WORDS = {"username": "nick", "channel": "channel_name"}
"""Keys of Twitch, and the words that all systems share for them."""
_GROUPS = ("groups", "guilds", "channels", "rooms")
"""What is set for single groups; `*` stands for all."""
_PERSON = re.compile(r"(?:telegram|tg|discord|slack|matrix|twitch|user):", re.IGNORECASE)
_WITHOUT_MEANING = frozenset({"name", "default_account"})
_MODEL_KEYS = ("model", "model_id")
_VOICE_KEYS = ("speaker_voice_id", "speaker_voice", "voice_id", "voice", "voice_name")
_LANGUAGE_KEYS = ("language_code", "language", "lang")
_WHISPER = frozenset({"whisper", "whisper-cli", "sherpa-onnx-offline"})
_HEARING_KEYS = frozenset({"type", "provider", "model", "command", "args", "language"})


def convert_account(platform: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """An account in the words that all systems share; its secrets are there already."""
    found = {
        _WORDS.get(name, name) if platform == "twitch" else name: value
        for name, value in settings.items()
        if name not in _WITHOUT_MEANING
    }
    found.setdefault("enabled", True)
    within = snake_fields(found.pop("dm", None))
    people = [*as_list(found.get("allow_from")), *as_list(within.pop("allow_from", None))]
    if within:
        found["dm"] = within
    listed = (_PERSON.sub("", str(each).strip(), count=1) for each in people)
    found["allow_from"] = list(dict.fromkeys(listed))
    _convert_mentions(found)
    _convert_streaming(found)
    return found


def _convert_mentions(settings: dict[str, Any]) -> None:
    """Whether it has to be named, where that is said for all groups."""
    for name in _GROUPS:
        every = snake_fields(as_map(settings.get(name)).get("*"))
        if isinstance(every.get("require_mention"), bool):
            settings.setdefault("require_mention", every["require_mention"])
            if len(every) == len(as_map(settings[name])) == 1:
                del settings[name]


def _convert_streaming(settings: dict[str, Any]) -> None:
    given = settings.get("streaming")
    mode = given.get("mode") if isinstance(given, Mapping) and set(given) == {"mode"} else given
    if isinstance(mode, str):
        settings["streaming"] = mode != "off"


# ---------------------------------------------------------------------- speech


def list_used_settings(raw: Mapping[str, Any]) -> Iterator[str]:
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
    hears = snake_fields(snake_fields(snake_fields(raw.get("tools")).get("media")).get("audio"))
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
    for where, within in (("tts", raw), ("messages.tts", snake_fields(raw.get("messages")))):
        if section := snake_fields(within.get("tts")):
            yield where, section
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
