"""What the egress proxy needs to put secrets into requests: the secrets, and certificates that only
commands trust."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from ..config.home import Home
from ..net.client import Net
from ..net.egress_secrets import HeldSecret
from ..types.clock import Clock
from ..types.private_files import write_private_file
from .secrets import Secrets

HAS_CRYPTOGRAPHY = find_spec("cryptography") is not None
"""Whether the proxy can terminate TLS, which needs the extra `secrets`."""


class ProxyAuthority(Protocol):
    """A certificate authority. See `net.egress_ca`."""

    pem: str

    def server_context(self, host: str) -> ssl.SSLContext: ...


class ProxyKeys:
    """The secrets and certificates of the proxy. The authority is made when it is first needed, and
    its key is never written to disk."""

    def __init__(self, secrets: Secrets, home: Home, clock: Clock, net: Net) -> None:
        self._secrets = secrets
        self._path = home.state / "commands-trust.pem"
        self._clock = clock
        self._net = net

    def list_secrets(self) -> Sequence[HeldSecret]:
        """All secrets, with the rules that say where each may go."""
        return self._secrets.list_secrets()

    def client_context(self) -> ssl.SSLContext:
        """Checks the certificates of servers."""
        return self._net.tls_context

    def server_context(self, host: str) -> ssl.SSLContext | None:
        """Speaks TLS to a command in the name of `host`. None without the extra `secrets`."""
        return self._authority.server_context(host) if HAS_CRYPTOGRAPHY else None

    def trust_file(self) -> Path | None:
        """The file with the certificates that commands are to trust. None without the extra
        `secrets`."""
        return self._trust_file if HAS_CRYPTOGRAPHY else None

    @cached_property
    def _authority(self) -> ProxyAuthority:
        # Importing it takes a tenth of a second, and few processes need it.
        from ..net.egress_ca import Authority  # noqa: PLC0415

        return Authority(self._clock.now())

    @cached_property
    def _trust_file(self) -> Path:
        known = [
            ssl.DER_cert_to_PEM_cert(each)
            for each in self._net.tls_context.get_ca_certs(binary_form=True)
        ]
        write_private_file(self._path, "".join([*known, self._authority.pem]))
        return self._path
