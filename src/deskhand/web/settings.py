"""What can be set about the web page and the API."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated

import msgspec

from ..net.egress import parse_egress_host
from ..net.url import parse_url
from ..types.errors import AddressRefused, ConfigError

GOOGLE = "https://accounts.google.com"
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class SignInConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """An OpenID Connect provider at which people sign in: `issuer` is its address and `client_id`
    what it calls this Deskhand. `secret_env` is the environment variable with the client's secret,
    where it has one; `label` is what the button calls the provider."""

    issuer: str = ""
    client_id: str = ""
    secret_env: str = ""
    label: str = ""


class PushConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """Notifications in browsers. `services` are push services besides those of Chrome, Edge,
    Firefox and Safari, as in `push.example.org`; `contact` is whom push services may write to, a
    `mailto:` or `https:` address. Without one it is the address of the page."""

    services: tuple[str, ...] = ()
    contact: str = ""


class WebConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`host` and `port` are where it listens; if the port is taken, on the next free one. `hosts`
    are further names by which it is reached, such as that of a proxy in front; `origins` pages from
    elsewhere that may use it. `tls_cert` and `tls_key` are PEM files. `plain_http` says that other
    machines may reach it without TLS: in a container, or behind a proxy that has TLS. `enabled:
    false`: no page and no API. `sign_in` is a provider at which people may sign in, and `push` is
    about notifications in browsers."""

    host: str = "127.0.0.1"
    port: Port = 8000
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    plain_http: bool = False
    enabled: bool = True
    sign_in: SignInConfig = SignInConfig()
    push: PushConfig = PushConfig()


class AgentServerConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """What other agents find on this server. `device_sign_in`: a program without a token may ask
    for one, which an owner grants with `deskhand pair`. `verify_signatures`: requests at /agents
    and /runs must be signed by one of the `trusted_agents`, which gives the public key of each.
    `sign`: this server has a key, whose public half it shows, and signs what it asks of others."""

    device_sign_in: bool = False
    verify_signatures: bool = False
    trusted_agents: Mapping[str, str] = {}
    sign: bool = False


def check_sign_in(config: SignInConfig) -> None:
    """Raises ConfigError for a provider that cannot be asked safely."""
    if not (config.issuer or config.client_id):
        return
    if not (config.issuer and config.client_id):
        raise ConfigError("web.sign_in needs both `issuer` and `client_id`, or neither")
    try:
        address = parse_url(config.issuer)
    except AddressRefused as error:
        raise ConfigError(f"web.sign_in.issuer is {config.issuer!r}: {error}") from error
    if address.scheme != "https" and not is_loopback(address.host):
        raise ConfigError(
            f"web.sign_in.issuer is {config.issuer!r}: write its https:// address, such as {GOOGLE}"
        )


def check_push(config: PushConfig) -> None:
    """Raises ConfigError for a service that is no host, and a contact that is no address."""
    for each in config.services:
        try:
            parse_egress_host(each)
        except AddressRefused as error:
            raise ConfigError(f"web.push.services: {error}") from error
    if config.contact and not config.contact.startswith(("mailto:", "https://")):
        raise ConfigError(
            f"web.push.contact is {config.contact!r}: write mailto:you@example.org, or an https:// "
            "address"
        )


def check_exposure(config: WebConfig) -> None:
    """Raises ConfigError where other machines would reach it in the clear."""
    if (
        config.enabled
        and not is_loopback(config.host)
        and not (config.tls_cert or config.plain_http)
    ):
        raise ConfigError(
            f"web.host is {config.host!r}: other machines would reach it without TLS, and "
            "read every word and token. "
            "Set web.tls_cert and web.tls_key; or leave web.host at 127.0.0.1 and put a "
            "proxy with TLS in front; or, "
            "where the network is your own (a container), set web.plain_http: true"
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def allowed_hosts(config: WebConfig, port: int) -> frozenset[str]:
    """The exact `Host` headers that are answered. Any other name points here by somebody else's
    DNS."""
    own = {"localhost", "127.0.0.1", "[::1]"}
    if config.host not in ("0.0.0.0", "::", ""):
        own.add(f"[{config.host}]" if ":" in config.host else config.host)
    named = {f"{name}:{port}" for name in own} | (own if port in (80, 443) else set())
    return frozenset(name.lower() for name in named | set(config.hosts))


def allowed_origins(config: WebConfig, port: int) -> frozenset[str]:
    """The exact `Origin` headers under which something may be changed."""
    scheme = "https" if config.tls_cert else "http"
    hosts = allowed_hosts(config, port)
    ours = {f"{scheme}://{host}" for host in hosts} | {
        f"https://{host.lower()}" for host in config.hosts
    }
    return frozenset(ours | {origin.rstrip("/").lower() for origin in config.origins})
