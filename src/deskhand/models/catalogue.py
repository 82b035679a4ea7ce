"""Which providers there are, how each is reached and what its models can do: `catalogue.toml`, read
once at start."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

from ..types.errors import ConfigError
from .anthropic import AnthropicModel
from .base import Model
from .logins import find_login
from .openai import OpenAIModel
from .responses import ResponsesModel
from .settings import Catalogued, Facts, ModelSpec, WireName
from .transport import Transport

ENTRY_POINTS = "deskhand.models"
EXTRAS = {"pydantic-ai": "providers"}
"""Our own entry points that need an extra."""

# A model that nobody described: most have more room than this, and too small a guess only shortens
# sooner. A local server gives what memory allows; 8192 is what the common ones start with on a
# desktop machine.
DEFAULT_FACTS = Facts(window=32768)
DEFAULT_LOCAL_FACTS = Facts(window=8192)

ModelFactory = Callable[[str, str, str], Model]
"""What an entry point names: from (model name, key, base_url), the last two may be empty, to a
model."""


class Catalogue(msgspec.Struct, frozen=True):
    """The providers by name."""

    providers: dict[str, Catalogued]

    def provider(self, name: str) -> Catalogued:
        """Raises ConfigError for a provider that is not listed."""
        try:
            return self.providers[name]
        except KeyError:
            if (wanted := find_login(name)) is not None:
                key = self.providers[wanted.instead].keys[0]
                raise ConfigError(
                    f"{wanted.why} Use a key instead: set {key}, and write "
                    f"{wanted.instead}/MODEL ({wanted.source})."
                ) from None
            known = ", ".join(sorted(self.providers))
            raise ConfigError(
                f"There is no model provider {name!r}. Known providers: {known}, and installed "
                f"ones. For a provider of pydantic-ai, write pydantic-ai/{name}/MODEL."
            ) from None

    def facts(self, provider: str, name: str) -> Facts:
        """What is known of a model: its own entry, else the longest `family*` that fits, else a
        careful guess."""
        found = self.provider(provider)
        if name in found.models:
            return found.models[name]
        families = [key for key in found.models if key.endswith("*") and name.startswith(key[:-1])]
        if families:
            return found.models[max(families, key=len)]
        return DEFAULT_LOCAL_FACTS if found.local else DEFAULT_FACTS

    def wire(self, provider: str, name: str, base_url: str = "") -> WireName:
        """What is spoken with a model. At an address of the person's own it is the provider's usual
        wire: a proxy or a local server there need not know the newer one."""
        found = self.provider(provider)
        own = base_url.rstrip("/") not in ("", found.base_url.rstrip("/"))
        return found.wire if own else self.facts(provider, name).wire or found.wire

    def spec(self, provider: str, name: str, key: str = "", base_url: str = "") -> ModelSpec:
        """Everything that a wire needs. Raises ConfigError where the address or the key is
        missing."""
        found = self.provider(provider)
        url = base_url or found.base_url
        if not url:
            raise ConfigError(
                f"The provider {provider!r} has no default address: set its base_url."
            )
        if not url.startswith(("http://", "https://")):
            raise ConfigError(
                f"The base_url {url!r} of {provider!r} is not an address: write http://… or "
                "https://…."
            )
        if not key and found.keys and not found.local and not base_url:
            raise ConfigError(
                f"There is no key for {provider!r}: set {found.keys[0]} in the environment or in "
                "the .env file of the home folder."
            )
        return ModelSpec(provider, name, url, self.facts(provider, name), found.quirks, key)


def read_catalogue(path: Path | None = None) -> Catalogue:
    """The catalogue that we ship, or the one at `path`. Raises ConfigError for a file that cannot
    be used."""
    return _read_shipped() if path is None else _read_file(path)


@cache
def _read_shipped() -> Catalogue:
    # Several parts ask for it while starting, it never changes, and reading TOML takes
    # milliseconds.
    return _read_file(Path(__file__).with_name("catalogue.toml"))


def _read_file(path: Path) -> Catalogue:
    try:
        found: Any = tomllib.loads(path.read_text("utf-8"))
        return Catalogue(msgspec.convert(found, dict[str, Catalogued]))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The model catalogue {str(path)!r} cannot be used: {error}") from error


def parse_model_name(model: str) -> tuple[str, str]:
    """(provider, name) of `provider/name`; the name may itself have slashes. Raises ConfigError."""
    provider, slash, name = model.partition("/")
    if not (provider and slash and name):
        raise ConfigError(
            f"{model!r} is not a model name: write provider/name, such as openai/gpt-5."
        )
    return provider, name


def open_model(
    catalogue: Catalogue, transport: Transport, model: str, key: str = "", base_url: str = ""
) -> Model:
    """The model named `provider/name`. `base_url` overrides the catalogue's address.

    A provider that the catalogue does not have is looked for among the entry points
    `deskhand.models`, of which only the one that is named is loaded. Raises ConfigError.
    """
    provider, name = parse_model_name(model)
    if provider not in catalogue.providers and (factory := _find_factory(provider)) is not None:
        return factory(name, key, base_url)
    spec = catalogue.spec(provider, name, key, base_url)
    match catalogue.wire(provider, name, base_url):
        case "anthropic":
            return AnthropicModel(transport, spec)
        case "responses":
            return ResponsesModel(transport, spec)
        case "openai":
            return OpenAIModel(transport, spec)


def _find_factory(provider: str) -> ModelFactory | None:
    for entry in entry_points(group=ENTRY_POINTS, name=provider):
        try:
            factory: ModelFactory = entry.load()
        except (ImportError, AttributeError) as error:
            if provider in EXTRAS:
                extra = f"pip install 'deskhand[{EXTRAS[provider]}]'"
                raise ConfigError(f"Support for {provider!r} is not installed: {extra}.") from error
            raise ConfigError(
                f"The model provider {provider!r} is installed but does not load: {error}"
            ) from error
        return factory
    return None
