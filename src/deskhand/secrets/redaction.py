"""What takes secrets out of everything that is written or said: it knows them as they are now."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..config.config import Settings
from ..config.sections import parse_headers
from ..types.errors import ConfigError
from ..types.secret_search import SecretSearch, SecretStream
from ..types.secrets import MIN_SECRET_CHARS, format_handle
from .keyring import Keyring
from .secrets import Secrets, collect_values

_NAMED = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


def find_environment_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """value -> name of everything in the environment that looks like a secret by its name."""
    return {
        v: name
        for name, v in environment.items()
        if _NAMED.search(name) and len(v) >= MIN_SECRET_CHARS
    }


def find_configured_secrets(settings: Settings) -> dict[str, str]:
    """The same, and what the configuration says of where keys of providers are."""
    config = settings.config
    named = [provider.key_env for provider in config.providers.values()]
    named.append(config.web.sign_in.secret_env)
    named += [agent.token_env for agent in config.remote_agents.values()]
    values = {
        value: name
        for name in named
        if len(value := settings.environment.get(name, "")) >= MIN_SECRET_CHARS
    }
    return {**find_environment_secrets(settings.environment), **values, **_header_secrets(settings)}


def _header_secrets(settings: Settings) -> dict[str, str]:
    """The keys in headers for the collector of traces, also behind a word such as `Bearer`."""
    name = settings.config.traces.headers_env
    try:
        headers = parse_headers(settings.environment.get(name, ""), name)
    except ConfigError:
        return {}
    parts = [part for value in headers.values() for part in (value, value.rpartition(" ")[2])]
    return {part: name for part in parts if len(part) >= MIN_SECRET_CHARS}


def open_secrets(settings: Settings) -> Secrets:
    """The secrets of the home of these settings."""
    return Secrets(
        settings.home,
        lambda: settings.environment,
        lambda: Keyring(str(settings.home.root.resolve())),
    )


class Redactor:
    """Puts a handle where a secret was. A secret that is added while we run is hidden from the next
    call on, and one that was removed or replaced stays hidden as long as we run: it may be in what
    comes late."""

    def __init__(self, settings: Settings, secrets: Secrets | None = None) -> None:
        self._secrets = secrets or open_secrets(settings)
        self._values: dict[str, str] = {}
        self.update_settings(settings)

    def update_settings(self, settings: Settings) -> None:
        """Hide by these settings from now on."""
        self._named = find_configured_secrets(settings)
        self._stamp: tuple[int, ...] = (-1,)
        self._search = SecretSearch({})
        self._hide: Callable[[str], str] = str

    def redact_bytes(self, data: bytes) -> bytes:
        """The same for what is mostly text."""
        return self(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def __call__(self, text: str) -> str:
        if self._stamp != (now := self._secrets.stamp()):
            self._reload(now)
        return self._hide(text)

    def stream(self) -> SecretStream | None:
        """For a text that comes in pieces, with the secrets that were known at the last call; None
        where there were none."""
        return SecretStream(self._search) if self._values else None

    def _reload(self, stamp: tuple[int, ...]) -> None:
        """Learn which secrets there are now."""
        self._stamp = stamp
        self._values |= collect_values(self._secrets.list_secrets(), self._named)
        self._search = SecretSearch(
            {value: format_handle(name) for value, name in self._values.items()}
        )
        self._hide = self._search.redact if self._values else str
