"""What takes secrets out of everything that is written or said: it knows them as they are now."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..config.config import Settings
from ..types.secret_search import SecretSearch, SecretStream
from ..types.secrets import SHORTEST, handle
from .keyring import Keyring
from .secrets import Secrets, values_of

_NAMED = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


def secrets_of(environment: Mapping[str, str]) -> dict[str, str]:
    """value -> name of everything in the environment that looks like a secret by its name."""
    return {
        v: name for name, v in environment.items() if _NAMED.search(name) and len(v) >= SHORTEST
    }


def named_in(settings: Settings) -> dict[str, str]:
    """The same, and what the configuration says of where keys of providers are."""
    named = [provider.key_env for provider in settings.config.providers.values()]
    values = {
        value: name
        for name in named
        if len(value := settings.environment.get(name, "")) >= SHORTEST
    }
    return {**secrets_of(settings.environment), **values}


def secrets_in(settings: Settings) -> Secrets:
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
        self._secrets = secrets or secrets_in(settings)
        self._values: dict[str, str] = {}
        self.renew(settings)

    def renew(self, settings: Settings) -> None:
        """Hide by these settings from now on."""
        self._named = named_in(settings)
        self._stamp: tuple[int, ...] = (-1,)
        self._search = SecretSearch({})
        self._hide: Callable[[str], str] = str

    def data(self, data: bytes) -> bytes:
        """The same for what is mostly text."""
        return self(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def __call__(self, text: str) -> str:
        if self._stamp != (now := self._secrets.stamp()):
            self._look(now)
        return self._hide(text)

    def stream(self) -> SecretStream | None:
        """For a text that comes in pieces, with the secrets that were known at the last call; None
        where there were none."""
        return SecretStream(self._search) if self._values else None

    def _look(self, stamp: tuple[int, ...]) -> None:
        """Learn which secrets there are now."""
        self._stamp = stamp
        self._values |= values_of(self._secrets.held(), self._named)
        self._search = SecretSearch({value: handle(name) for value, name in self._values.items()})
        self._hide = self._search.hide if self._values else str
