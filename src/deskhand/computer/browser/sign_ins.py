"""Sign-ins that a person has given to agents: for one site each, what a browser keeps of it.

A file is a storage state as Playwright writes it (https://playwright.dev/docs/auth), with the site
and the time beside it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ...net.url import parse_url
from ...types.errors import ConfigError, NetError
from ...types.folders import make_private_folder
from ...types.private_files import read_private_file, write_private_file
from .hosts import find_host, is_beneath

MAX_COOKIES = 500
MAX_FILE_BYTES = 4 << 20
MAX_HIDDEN = 200
MAX_STORED_CHARS = 1 << 20
"""Of what the pages of one origin keep."""
MIN_KEY_CHARS = 20
_KEY = re.compile(rf"(?=[^ ]*[0-9])(?=[^ ]*[A-Za-z])(?!https?:|[{{\[])[!-~]{{{MIN_KEY_CHARS},500}}")
"""What looks like a key: a shorter or plainer value is a setting, and may be any word of a page."""
_SAME_SITE = ("Strict", "Lax", "None")
_COOKIE_LINE_FIELDS = 7
T = TypeVar("T")


class Cookie(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A cookie. `domain` begins with a dot where it holds for the hosts beneath too; `expires` is
    in seconds since the epoch, -1 for one that ends with the browser."""

    name: str
    value: str
    domain: str
    path: str = "/"
    expires: float = -1
    http_only: bool = False
    secure: bool = False
    same_site: str = ""

    def __repr__(self) -> str:
        return f"Cookie({self.name!r}, {self.domain!r})"

    def to_chromium(self) -> dict[str, Any]:
        """It as Storage.setCookies takes it."""
        host = self.domain.removeprefix(".")
        given: dict[str, Any] = {
            "name": self.name,
            "value": self.value,
            "path": self.path,
            "secure": self.secure,
            "httpOnly": self.http_only,
            # With a domain it would hold for the hosts beneath as well, which is wrong for names
            # that begin so (RFC 6265bis, 4.1.3.2).
            **(
                {"domain": self.domain}
                if self.domain.startswith(".") and not self.name.startswith("__Host-")
                else {}
            ),
            "url": f"{'https' if self.secure else 'http'}://{host}{self.path}",
        }
        if self.expires >= 0:
            given["expires"] = self.expires
        if self.same_site in _SAME_SITE:
            given["sameSite"] = self.same_site
        return given


class StoredItem(msgspec.Struct, frozen=True):
    """Something that a page keeps in its local storage."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"StoredItem({self.name!r})"


class StoredOrigin(msgspec.Struct, frozen=True, rename="camel"):
    """What the pages of one origin keep."""

    origin: str
    local_storage: tuple[StoredItem, ...] = ()


class SiteSignIn(msgspec.Struct, frozen=True, rename="camel"):
    """What makes a browser signed in at a site: the host, and those beneath it. `taken_at` is when
    a person gave it, in seconds since the epoch."""

    cookies: tuple[Cookie, ...] = ()
    origins: tuple[StoredOrigin, ...] = ()
    site: str = ""
    taken_at: float = 0.0

    @property
    def is_encrypted(self) -> bool:
        """Whether it must go over encrypted connections alone."""
        return any(each.secure for each in self.cookies)

    def holds_at(self, url: str) -> bool:
        """Whether a browser that has it may open this address."""
        schemes = ("https:",) if self.is_encrypted else ("https:", "http:")
        return url.startswith(schemes) and is_beneath(find_host(url), self.site)

    def list_keys(self) -> list[str]:
        """The values in it that look like keys."""
        values = [each.value for each in self.cookies]
        for origin in self.origins:
            values += [each.value for each in origin.local_storage]
        return [value for value in values if _KEY.fullmatch(value)][:MAX_HIDDEN]


def parse_site(text: str) -> str:
    """The host that a person means. Raises ConfigError."""
    try:
        host = parse_url(text if "://" in text else f"https://{text}").host
    except NetError as error:
        raise ConfigError(str(error)) from error
    if "." not in host or host.rpartition(".")[2].isdigit() or ":" in host:
        raise ConfigError(f"{host!r} is not the name of a site: give one such as example.org")
    return host.removeprefix("www.")


def make_sign_in(
    site: str, cookies: Iterable[Cookie], origins: Iterable[StoredOrigin], now: float
) -> SiteSignIn:
    """What of this belongs to the site. Raises ConfigError where nothing does."""
    own = tuple(each for each in cookies if _belongs(each.domain, site))[:MAX_COOKIES]
    kept = tuple(each for each in origins if is_beneath(find_host(each.origin), site))
    if not own and not any(each.local_storage for each in kept):
        raise ConfigError(f"nothing of {site} is in it: sign in there first")
    return SiteSignIn(own, kept, site, now)


def _belongs(domain: str, site: str) -> bool:
    """Whether a cookie of this domain is sent to the site, or to what lies beneath it."""
    host = domain.removeprefix(".").lower()
    return is_beneath(host, site) or (domain.startswith(".") and is_beneath(site, host))


def read_exported(data: bytes, site: str, now: float) -> SiteSignIn:
    """The sign-in in a file of others: a storage state of Playwright, or a `cookies.txt` as curl
    and browsers' extensions write it (https://curl.se/docs/http-cookies.html). Raises
    ConfigError."""
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"it is larger than {MAX_FILE_BYTES >> 20} MB")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError("it is no text") from error
    if text.lstrip().startswith("{"):
        state = _decode_state(data)
        return make_sign_in(site, state.cookies, state.origins, now)
    return make_sign_in(site, _read_cookie_lines(text), (), now)


def _decode_state(data: bytes) -> SiteSignIn:
    try:
        return msgspec.json.decode(data, type=SiteSignIn)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigError(f"it is no storage state: {str(error).partition(' - at')[0]}") from None


def _read_cookie_lines(text: str) -> list[Cookie]:
    """Raises ConfigError."""
    found = []
    for line in text.splitlines():
        is_http_only = line.startswith("#HttpOnly_")
        fields = line.removeprefix("#HttpOnly_").rstrip("\r").split("\t")
        if not line.strip() or (line.startswith("#") and not is_http_only):
            continue
        if len(fields) != _COOKIE_LINE_FIELDS or not fields[4].lstrip("-").isdigit():
            raise ConfigError("it is neither a storage state of Playwright nor a cookies.txt")
        domain, beneath, path, secure, expires, name, value = fields
        host = domain.removeprefix(".")
        found.append(
            Cookie(
                name,
                value,
                f".{host}" if beneath.upper() == "TRUE" else host,
                path,
                float(expires[:15]) or -1,  # 0: it ends with the browser
                is_http_only,
                secure.upper() == "TRUE",
            )
        )
    return found


def cookies_of_chromium(said: Iterable[Mapping[str, Any]]) -> tuple[Cookie, ...]:
    """Those of an answer to Storage.getCookies, but for those that hold only within pages of one
    other site."""
    return tuple(
        Cookie(
            str(each["name"]),
            str(each["value"]),
            str(each["domain"]),
            str(each.get("path", "/")),
            -1 if each.get("session") else float(each.get("expires", -1)),
            bool(each.get("httpOnly")),
            bool(each.get("secure")),
            str(each.get("sameSite", "")),
        )
        for each in said
        if "partitionKey" not in each
    )


def make_stored_origin(origin: str, items: Mapping[str, str]) -> StoredOrigin | None:
    """What the pages of an origin keep; None where it is too much to be kept for them."""
    if sum(len(name) + len(value) for name, value in items.items()) > MAX_STORED_CHARS:
        return None
    return StoredOrigin(origin, tuple(StoredItem(name, value) for name, value in items.items()))


def merge_sign_ins(stored: SiteSignIn, before: SiteSignIn, now: SiteSignIn) -> SiteSignIn:
    """What is stored, with what has changed between the other two: several browsers may renew
    different parts."""
    cookies = _merge(stored.cookies, before.cookies, now.cookies, _name_cookie)
    origins = _merge(stored.origins, before.origins, now.origins, lambda each: each.origin)
    return replace(stored, cookies=cookies, origins=origins)


def _name_cookie(cookie: Cookie) -> Hashable:
    return cookie.domain, cookie.path, cookie.name


def _merge(
    stored: Iterable[T], before: Iterable[T], now: Iterable[T], name: Callable[[T], Hashable]
) -> tuple[T, ...]:
    found, old, new = ({name(each): each for each in group} for group in (stored, before, now))
    for key in old.keys() - new.keys():
        found.pop(key, None)
    changed = {key: each for key, each in new.items() if old.get(key) != each}
    return tuple((found | changed).values())


def render_storage_script(sign_in: SiteSignIn) -> str:
    """A script for new documents: those of an origin that keeps nothing yet have what is in the
    sign-in from the start."""
    kept = {
        each.origin: [(item.name, item.value) for item in each.local_storage]
        for each in sign_in.origins
    }
    items = msgspec.json.encode(kept).decode()
    return (
        "try { if (!localStorage.length) for (const [name, value] of "
        f"new Map(Object.entries({items})).get(location.origin) ?? []) "
        "localStorage.setItem(name, value) } catch { }"
    )


class SignIns:
    """Those of one home: a file each, for its owner alone. Its methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_sites(self) -> list[str]:
        """The sites for which there is one."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def find_site(self, url: str) -> str:
        """The site to which this address belongs, and for which there is one; '' for none."""
        host = find_host(url)
        found = [each for each in self.list_sites() if is_beneath(host, each)]
        return max(found, key=len, default="")

    def load(self, site: str) -> SiteSignIn:
        """Raises ConfigError where there is none, or it cannot be used."""
        path = self._path(site)
        try:
            data = read_private_file(path, 2 * MAX_FILE_BYTES)
        except FileNotFoundError:
            raise self._explain_missing(site) from None
        try:
            return replace(_decode_state(data), site=site)
        except ConfigError as error:
            raise ConfigError(f"{str(path)!r} is damaged: sign in again") from error

    def save(self, sign_in: SiteSignIn) -> None:
        """Keep it in the place of the one before. Raises OSError, ConfigError."""
        with self._lock():
            self._write(sign_in)

    def renew(self, before: SiteSignIn, now: SiteSignIn) -> None:
        """Keep what a site has changed, unless the sign-in was taken back or replaced meanwhile.
        Raises OSError, ConfigError."""
        with self._lock():
            if not self._path(now.site).exists():
                return
            stored = self.load(now.site)
            if stored.taken_at == now.taken_at:
                self._write(merge_sign_ins(stored, before, now))

    def remove(self, site: str) -> None:
        """Raises ConfigError where there is none."""
        with self._lock():
            try:
                self._path(site).unlink()
            except FileNotFoundError:
                raise self._explain_missing(site) from None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One process writes at a time."""
        make_private_folder(self._folder)
        path = self._folder / ".lock"
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def _write(self, sign_in: SiteSignIn) -> None:
        data = msgspec.json.format(msgspec.json.encode(sign_in))
        if len(data) > MAX_FILE_BYTES:
            raise ConfigError(
                f"what {sign_in.site} keeps in a browser is larger than {MAX_FILE_BYTES >> 20} MB"
            )
        write_private_file(self._path(sign_in.site), data.decode() + "\n")

    def _explain_missing(self, site: str) -> ConfigError:
        sites = self.list_sites()
        there = f"there are sign-ins for {', '.join(sites)}" if sites else "there are none"
        return ConfigError(
            f"there is no sign-in for {site!r}, {there}; its person gives one with: "
            f"deskhand browser sign-in {site}"
        )

    def _path(self, site: str) -> Path:
        return self._folder / f"{parse_site(site)}.json"
