"""What the proxy needs to put secrets into requests: the secrets, and certificates that only
commands believe."""

from __future__ import annotations

import ssl
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from ..config.home import Home
from ..config.yaml_edit import write_private_file
from ..net.client import Net
from ..types.clock import Clock
from .egress_rules import ProxyKeys
from .secrets import Secrets

HAS_CRYPTOGRAPHY = find_spec("cryptography") is not None
"""Whether TLS can end here: it needs the extra `secrets`."""


class ProxyAuthority(Protocol):
    """See `net.egress_ca`."""

    pem: str

    def server_context(self, host: str) -> ssl.SSLContext: ...


class Authorities:
    """Made when they are first needed, with a key that is never written down."""

    def __init__(self, home: Home, clock: Clock, net: Net) -> None:
        self._path = home.state / "commands-trust.pem"
        self._clock = clock
        self._net = net

    @cached_property
    def _authority(self) -> ProxyAuthority:
        from ..net.egress_ca import Authority as Made  # noqa: PLC0415 -- a tenth of a second, and seldom needed

        return Made(self._clock.now())

    def server_context(self, host: str) -> ssl.SSLContext | None:
        """What poses as this host."""
        return self._authority.server_context(host) if HAS_CRYPTOGRAPHY else None

    @cached_property
    def trust_file(self) -> Path | None:
        """The file with the certificates that commands are to trust."""
        if not HAS_CRYPTOGRAPHY:
            return None
        known = [
            ssl.DER_cert_to_PEM_cert(each)
            for each in self._net.tls_context.get_ca_certs(binary_form=True)
        ]
        write_private_file(self._path, "".join([*known, self._authority.pem]))
        return self._path


def make_proxy_keys(secrets: Secrets, home: Home, clock: Clock, net: Net) -> ProxyKeys:
    """The keys of one process."""
    made = Authorities(home, clock, net)
    return ProxyKeys(
        secrets.list_secrets, made.server_context, lambda: made.trust_file, lambda: net.tls_context
    )
