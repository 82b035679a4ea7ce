"""An authority that exists as long as this process, is trusted by its commands alone, and is
written nowhere.

It needs the extra `secrets`.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

_LASTS = timedelta(days=365)
_EARLIER = timedelta(days=180)
"""A clock that is set back does not make it one of the future."""
MAX_CERTIFICATES = 64
"""Certificates that are kept ready."""


class Authority:
    """Makes certificates for the hosts whose TLS ends at the proxy. `now` is in seconds since the
    epoch."""

    def __init__(self, now: float) -> None:
        self._from = datetime.fromtimestamp(now, UTC) - _EARLIER
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name(
            [x509.NameAttribute(x509.NameOID.COMMON_NAME, "Deskhand, for commands alone")]
        )
        usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
        self._certificate = (
            self._start_certificate(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, SHA256())
        )
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()
        self._ready: dict[str, ssl.SSLContext] = {}

    def server_context(self, host: str) -> ssl.SSLContext:
        """What to speak TLS with as `host`."""
        if host not in self._ready:
            if len(self._ready) >= MAX_CERTIFICATES:
                self._ready.clear()
            self._ready[host] = self._make_context(host)
        return self._ready[host]

    def _make_context(self, host: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host[:64])])
        usage = dict.fromkeys(_USAGES, False) | {"digital_signature": True}
        made = (
            self._start_certificate(name, key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _load_cert_chain(context, made.public_bytes(Encoding.PEM) + private)
        return context

    def _start_certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        started = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        )
        dated = started.not_valid_before(self._from).not_valid_after(self._from + _LASTS)
        return dated.serial_number(x509.random_serial_number())


_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _load_cert_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """The ssl module takes a key only from a file: this one is memory."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
