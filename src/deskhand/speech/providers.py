"""Which providers hear and speak, and how each is reached: `providers.toml`, and addresses of the
person's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, assert_never

import msgspec

from ..net.client import Net
from ..net.url import parse_url
from ..types.errors import AddressRefused, ConfigError
from .api import ApiSpeech
from .base import MAX_SAY_CHARS, Use
from .deepgram_wire import DeepgramWire
from .elevenlabs_wire import ElevenLabsWire
from .google_wire import GoogleWire
from .openai_wire import OpenAIWire, SoundFormat
from .sarvam_wire import SarvamWire
from .wire import MAX_HEAR_S, SpeechProvider, SpeechWire

WireName = Literal["openai", "deepgram", "elevenlabs", "google", "sarvam"]


class ListedProvider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider of `providers.toml`, where the fields are explained."""

    wire: WireName
    base_url: str
    keys: tuple[str, ...]
    hear: str = ""
    say: str = ""
    sound: SoundFormat = "opus"
    voice: str = ""
    max_say_chars: int = MAX_SAY_CHARS
    max_hear_s: float = MAX_HEAR_S
    source: str
    as_of: str


class ProviderAddress(msgspec.Struct, frozen=True):
    """Where the person has a provider, and which variable has its key; '' for what is listed."""

    base_url: str = ""
    key_env: str = ""


def read_providers() -> dict[str, ListedProvider]:
    """The providers that we know, by name."""
    return dict(_read_file())


@cache
def _read_file() -> dict[str, ListedProvider]:
    found: Any = tomllib.loads(Path(__file__).with_name("providers.toml").read_text("utf-8"))
    return msgspec.convert(found, dict[str, ListedProvider])


def open_api_speech(
    name: str,
    use: Use,
    environment: Mapping[str, str],
    own: ProviderAddress | None,
    net: Net,
) -> ApiSpeech:
    """The engine named `provider/model`, or `provider` for the usual model of this use.

    An unknown provider with an address of the person's own is spoken to as OpenAI is. Raises
    ConfigError with the next step where the provider, its model, its address or its key is missing.
    """
    own = own or ProviderAddress()
    provider_name, _, model = name.partition("/")
    listed = read_providers().get(provider_name) or _list_own(provider_name, own)
    model = model or _find_model(provider_name, listed, use)
    provider = SpeechProvider(
        name=provider_name,
        base=_check_base(provider_name, own.base_url or listed.base_url),
        model=model,
        key=_find_key(provider_name, listed, own, environment),
        max_say_chars=listed.max_say_chars,
        max_hear_s=listed.max_hear_s,
    )
    return ApiSpeech(provider, _make_wire(listed), net)


def _list_own(name: str, own: ProviderAddress) -> ListedProvider:
    """A server that we know nothing of. WAV is what nearly all of them can give."""
    if not name or not own.base_url:
        known = ", ".join(sorted(read_providers()))
        raise ConfigError(
            f"There is no speech provider {name!r}. Known providers: {known}. For another server "
            "with OpenAI's audio interface, set its base_url."
        )
    return ListedProvider(
        wire="openai",
        base_url=own.base_url,
        keys=(),
        sound="wav",
        voice="alloy",
        source="",
        as_of="",
    )


def _find_model(name: str, listed: ListedProvider, use: Use) -> str:
    model = listed.hear if use == "hear" else listed.say
    if not model:
        raise ConfigError(f"Which model of {name!r} is meant? Write {name}/MODEL.")
    return model


def _check_base(name: str, base_url: str) -> str:
    base = base_url.rstrip("/")
    try:
        parse_url(base)
    except AddressRefused as error:
        raise ConfigError(f"The base_url of {name!r} cannot be used: {error}") from error
    if "?" in base or "#" in base:
        raise ConfigError(f"The base_url of {name!r} has a query: {base_url!r}. Leave that out.")
    return base


def _find_key(
    name: str, listed: ListedProvider, own: ProviderAddress, environment: Mapping[str, str]
) -> str:
    """'' where an address of the person's own needs none."""
    variables = (own.key_env,) if own.key_env else listed.keys
    for variable in variables:
        key = environment.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise ConfigError(
                f"{variable} cannot be a key: it has characters that no key has. Store it again: "
                f"deskhand setup --key {variable}"
            )
        if key:
            return key
    if own.key_env or (variables and not own.base_url):
        raise ConfigError(
            f"There is no key for {name!r}: set {variables[0]} in the environment, or store it: "
            f"deskhand setup --key {variables[0]}"
        )
    return ""


def _make_wire(listed: ListedProvider) -> SpeechWire:
    match listed.wire:
        case "openai":
            return OpenAIWire(listed.sound, listed.voice)
        case "deepgram":
            return DeepgramWire()
        case "elevenlabs":
            return ElevenLabsWire(listed.voice)
        case "google":
            return GoogleWire(listed.voice)
        case "sarvam":
            return SarvamWire(listed.voice)
        case _:
            assert_never(listed.wire)
