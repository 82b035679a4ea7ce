"""What is kept of a sign-in at an MCP server: secrets, so that they are hidden wherever they are
shown."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from ..secrets.secrets import Secrets
from ..types.errors import ConfigError

NAMES = ("access_token", "refresh_token", "client", "about", "metadata")


class ServerLogin:
    """That of one server at this address. Implements `sign_in.LoginPlace`."""

    def __init__(self, secrets: Secrets, server: str, url: str) -> None:
        self._secrets = secrets
        # What was given for one address is never sent to another one of the same name.
        self._start = f"mcp.{server}.{sha256(url.encode()).hexdigest()[:8]}"

    def _name(self, name: str) -> str:
        return f"{self._start}.{name}"

    def get(self, name: str) -> str:
        """The value of this name; '' for none."""
        wanted = self._name(name)
        held = (each.value for each in self._secrets.list_secrets() if each.name == wanted)
        return next(held, "")

    def set(self, name: str, value: str) -> None:
        """Raises ConfigError."""
        self._secrets.set(self._name(name), value, "file")

    def forget(self) -> None:
        """Sign out."""
        for name in NAMES:
            with suppress(ConfigError):
                self._secrets.remove(self._name(name))
