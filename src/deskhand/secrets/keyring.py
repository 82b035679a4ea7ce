"""The keyring of the desktop (Secret Service: GNOME Keyring, KWallet, KeePassXC), by the library
`secretstorage`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from ..types.errors import ConfigError

_NEXT = "store it in the home folder instead: deskhand secrets set NAME"


class Keyring:
    """See `secrets.Ring`. `home` keeps the secrets of one home apart from those of another."""

    def __init__(self, home: str) -> None:
        self._home = home

    def get(self, name: str) -> str | None:
        with self._open_collection() as collection:
            for item in collection.search_items(self._attributes(name)):
                return bytes(item.get_secret()).decode(errors="surrogateescape")
        return None

    def set(self, name: str, value: str) -> None:
        with self._open_collection() as collection:
            secret = value.encode(errors="surrogateescape")
            collection.create_item(
                f"Deskhand: {name}", self._attributes(name), secret, replace=True
            )

    def delete(self, name: str) -> None:
        with self._open_collection() as collection:
            for item in collection.search_items(self._attributes(name)):
                item.delete()

    def _attributes(self, name: str) -> dict[str, str]:
        return {"application": "deskhand", "home": self._home, "secret": name}

    @contextmanager
    def _open_collection(self) -> Iterator[Any]:
        try:
            import secretstorage  # noqa: PLC0415 -- a tenth of a second, and seldom needed
            from secretstorage.exceptions import SecretStorageException  # noqa: PLC0415
        except ModuleNotFoundError:
            extra = "the keyring needs the extra `secrets` (pip install 'deskhand[secrets]')"
            raise ConfigError(f"{extra}; or {_NEXT}") from None
        try:
            with closing(secretstorage.dbus_init()) as connection:
                collection = secretstorage.get_default_collection(connection)
                if collection.is_locked():
                    raise ConfigError(
                        f"the keyring is locked: unlock it by logging in to the desktop; or {_NEXT}"
                    )
                yield collection
        except (SecretStorageException, OSError) as error:
            raise ConfigError(
                f"no keyring is available ({type(error).__name__}); {_NEXT}"
            ) from error
