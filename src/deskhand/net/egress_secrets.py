"""Which secret goes to which host: put into a request at the proxy, and taken out of the answer."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from ..types.errors import AddressRefused, ConfigError, NetError
from ..types.secrets import HANDLE_PATTERN, Scrubber, format_handle
from .egress import is_ip_address, parse_egress_host

Header = tuple[bytes, bytes]

BEARER = "Authorization: Bearer {}"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_BASIC = re.compile(r"\{basic:([^{}:]*)\}")
_METHOD = re.compile(r"[A-Z]{1,20}")
_MANAGED_HEADERS = frozenset(
    (
        b"host connection content-length transfer-encoding expect proxy-authorization "
        b"accept-encoding range"
    ).split()
)
_CREDENTIALS = frozenset((b"authorization", b"cookie"))
# What servers read differently from each other: with it a path could lead out of its prefix.
_AMBIGUOUS_PATH = re.compile(
    r"//"
    r"|/\.{1,2}(?=[/?;]|$)"
    r"|%(?:2e|2f|5c|00)"
    r"|[\\;]",
    re.IGNORECASE,
)


class Withheld(NetError):
    """The request is not sent: the message says why."""


class SecretRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A secret is put into requests to `host`, over TLS on `port`, as `header`, where `{}` is its
    value and `{basic:USER}` what a password of USER looks like. `methods` and `paths` (prefixes),
    where there are any, are the only ones. `who` are the principals whose conversations may use it:
    ids or `role:NAME`, with `*` and `?`."""

    host: str
    header: str = BEARER
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    who: tuple[str, ...] = ("role:owner",)
    port: int = 443

    @property
    def header_name(self) -> bytes:
        """The name of the header in lower case."""
        return self.header.partition(":")[0].strip().lower().encode()

    def fill_header(self, value: str) -> Header:
        """The header with the value in it. Raises Withheld where it cannot be in one."""
        name, _, content = self.header.partition(":")
        if not value.isprintable():
            raise Withheld(
                "the secret contains line ends or other characters that are not allowed in a header"
            )
        basic = _BASIC.sub(
            lambda match: b64encode(f"{match[1]}:{value}".encode()).decode(), content
        )
        return name.strip().encode(), basic.replace("{}", value).strip().encode()

    def is_for_request(self, method: str, target: str) -> bool:
        """Whether this request may carry it."""
        if self.methods and method not in self.methods:
            return False
        if not self.paths:
            return True
        path = target.partition("?")[0]
        if _AMBIGUOUS_PATH.search(path):
            return False
        return any(_is_inside(path, prefix) for prefix in self.paths)

    def is_usable_by(self, names: Sequence[str]) -> bool:
        """Whether a principal with these names may use it."""
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.who)


def _is_inside(path: str, prefix: str) -> bool:
    folder = prefix.rstrip("/")
    return path == prefix or path.startswith(f"{folder}/")


def normalize_secret_rule(rule: SecretRule) -> SecretRule:
    """The same rule in its one spelling. Raises ConfigError for one that would never do what it
    says."""
    try:
        entry = parse_egress_host(rule.host)
    except AddressRefused as error:
        raise ConfigError(str(error)) from None
    if entry.below or is_ip_address(entry.host):
        raise ConfigError(
            f"{rule.host!r}: a secret can be sent only to one host, by name: not to a pattern or "
            "an IP address"
        )
    _check_header(rule.header)

    methods = tuple(method.upper() for method in rule.methods)
    for method in methods:
        if not _METHOD.fullmatch(method) or method == "CONNECT":
            raise ConfigError(f"{method!r} is not a method: write GET or POST")
    for path in rule.paths:
        if not path.startswith("/") or "?" in path or _AMBIGUOUS_PATH.search(path):
            raise ConfigError(f"{path!r} is not the beginning of a path: write /repos/")
    if not rule.who:
        raise ConfigError("name who may use it, or leave out `who` to allow only the owner")

    port = entry.ports[0] if entry.ports else rule.port
    return msgspec.structs.replace(rule, host=entry.host, port=port, methods=methods)


def _check_header(header: str) -> None:
    """Raises ConfigError for one that a secret cannot be put in."""
    name, _, content = header.partition(":")
    name = name.strip()
    has_place = "{}" in content or _BASIC.search(content)
    if not has_place or not _TOKEN.fullmatch(name):
        raise ConfigError(
            f"{header!r} is not a header with a placeholder for the secret: write {BEARER!r}"
        )
    if name.lower().encode() in _MANAGED_HEADERS or not content.isprintable():
        raise ConfigError(f"{name!r} is not a header that a secret can be put in")


class HeldSecret(msgspec.Struct, frozen=True):
    """A secret with its value, and the rules by which it is used here."""

    name: str
    value: str
    rules: tuple[SecretRule, ...] = ()

    def __repr__(self) -> str:
        return f"HeldSecret({self.name!r})"


class SecretBroker:
    """The secrets of one host, `mine` with the rules for it. `known` are all values that no answer
    may bring back."""

    def __init__(self, host: str, mine: Sequence[HeldSecret], known: Sequence[HeldSecret]) -> None:
        self.host = host
        self._mine = mine
        self._named = [(each.value, format_handle(each.name)) for each in known]

    def make_scrubber(self) -> Scrubber:
        """Takes the values out of one answer."""
        return Scrubber(self._named)

    def inject_headers(self, method: str, target: str, headers: Sequence[Header]) -> list[Header]:
        """The headers as they are sent: with the secrets that the rules put in, without any that
        the client brought. Raises Withheld."""
        rules = [(each, rule) for each in self._mine for rule in each.rules]
        fit = [(each, rule) for each, rule in rules if rule.is_for_request(method, target)]

        ours = {rule.header_name for _, rule in rules} | _CREDENTIALS
        values = {each.name: each.value for each, _ in fit}
        kept = [
            (name, _resolve_handles(value, values, self.host))
            for name, value in headers
            if name.lower() not in ours
        ]

        put: dict[bytes, Header] = {}
        for each, rule in fit:
            put.setdefault(rule.header_name, rule.fill_header(each.value))
        return [*kept, *put.values()]


def _resolve_handles(value: bytes, values: dict[str, str], host: str) -> bytes:
    if b"{{secret:" not in value:
        return value

    def lookup_value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise Withheld(f"the secret {match[1]!r} is not for this request to {host}")
        return values[match[1]]

    return HANDLE_PATTERN.sub(lookup_value, value.decode("latin-1")).encode("utf-8", "replace")


def reject_handles(headers: Sequence[Header], host: str) -> None:
    """Raises Withheld where a header names a secret, and there is none for this host."""
    if any(b"{{secret:" in value for _, value in headers):
        raise Withheld(
            f"there is no secret for {host}: a person adds one with `deskhand secrets rule "
            f"NAME {host}`"
        )
