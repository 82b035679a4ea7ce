"""The secrets of this home: a file for its owner alone says which there are, who may use them
where, and for most of them the value. The keyring and the environment are the other two places for
it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from ..config.home import Home
from ..net.egress_secrets import HeldSecret, SecretRule, normalize_secret_rule
from ..types.errors import ConfigError
from ..types.private_files import read_private_file, write_private_file
from ..types.secrets import MIN_SECRET_CHARS, SECRET_NAME_PATTERN

Place = Literal["file", "keyring", "env"]
MAX_SECRET_CHARS = 16_384
LOOK_S = 0.01
"""How often the file is looked at for texts that leave: the pieces of answers are many."""


class SecretEntry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One secret. `value` is empty where it lies elsewhere: in the keyring under its name, or in
    the environment as `variable`."""

    place: Place = "file"
    value: str = ""
    variable: str = ""
    rules: tuple[SecretRule, ...] = ()

    def __repr__(self) -> str:
        return f"Entry({self.place!r})"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    secrets: dict[str, SecretEntry] = {}


class Ring(Protocol):
    """A keyring. Its methods block, and raise ConfigError with what to do where it cannot be
    used."""

    def get(self, name: str) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...

    def delete(self, name: str) -> None: ...


class Secrets:
    """What is known now: a change by another process counts from the next look on. `ring` opens the
    keyring."""

    def __init__(
        self, home: Home, environment: Callable[[], Mapping[str, str]], ring: Callable[[], Ring]
    ) -> None:
        self._path = home.secrets
        self._home = home
        self._environment = environment
        self._ring = ring
        self._file = str(home.secrets)
        self._stamp: tuple[int, ...] | None = None
        self._seen: tuple[int, ...] = ()
        self._looked_at = -LOOK_S
        self._entries: dict[str, SecretEntry] = {}
        self._held: tuple[HeldSecret, ...] = ()
        self.problem = ""

    def list_secrets(self) -> tuple[HeldSecret, ...]:
        """Those whose value is here, with it. `problem` says what is wrong with others."""
        now = self._look()
        if self._stamp != now:
            self._stamp = now
            self._reload()
        return self._held

    def read_entries(self) -> dict[str, SecretEntry]:
        """All of them by name. Raises ConfigError where the file cannot be used."""
        return _read_file(self._path)

    def stamp(self) -> tuple[int, ...]:
        """Differs when anything has changed. It may be LOOK_S old, but knows of every value that
        was read or written here."""
        if time.monotonic() - self._looked_at >= LOOK_S:
            self._look()
        return self._seen

    def _look(self) -> tuple[int, ...]:
        self._looked_at = time.monotonic()
        try:
            status = os.stat(self._file)  # noqa: PTH116 -- a third of the cost
        except OSError:
            self._seen = (id(self._environment()),)
        else:
            self._seen = (
                status.st_mtime_ns,
                status.st_size,
                status.st_ino,
                status.st_mode,
                id(self._environment()),
            )
        return self._seen

    def _reload(self) -> None:
        """A file that cannot be read keeps what was known: what had to be hidden stays hidden."""
        problems = []
        try:
            self._entries = _read_file(self._path)
        except ConfigError as error:
            problems.append(str(error))
        found = []
        for name, entry in self._entries.items():
            try:
                value = self._read_value(name, entry)
            except ConfigError as error:
                value = None
                problems.append(f"the secret {name!r}: {error}")
            if value:
                found.append(HeldSecret(name, value, entry.rules))
        self._held, self.problem = tuple(found), "; ".join(problems)

    def _read_value(self, name: str, entry: SecretEntry) -> str | None:
        match entry.place:
            case "file":
                return entry.value
            case "env":
                if not (value := self._environment().get(entry.variable)):
                    raise ConfigError(f"{entry.variable} is not set in the environment")
                return value
            case "keyring":
                if (value := self._ring().get(name)) is None:
                    raise ConfigError("it is no longer in the keyring; set it again")
                return value

    def set(self, name: str, value: str, place: Place, variable: str = "") -> None:
        """Keep a value, or name the variable that has it; its rules stay. Raises ConfigError."""
        if not SECRET_NAME_PATTERN.fullmatch(name):
            raise ConfigError(
                f"{name!r} is not a valid name for a secret: use letters, digits, `.`, `-` and "
                "`_`, at most 63"
            )
        if place != "env" and not MIN_SECRET_CHARS <= len(value) <= MAX_SECRET_CHARS:
            raise ConfigError(
                f"a secret has {MIN_SECRET_CHARS} to {MAX_SECRET_CHARS:,} characters: a shorter "
                "one could match ordinary words"
            )
        if "{{" in value or "\0" in value:
            raise ConfigError(
                "this value cannot be stored: it contains '{{' or a NUL character in it"
            )
        with self._edit_entries() as entries:
            before = entries.get(name, SecretEntry())
            if place == "keyring":
                self._ring().set(name, value)
            elif before.place == "keyring":
                self._ring().delete(name)
            entries[name] = SecretEntry(
                place, value if place == "file" else "", variable, before.rules
            )

    def remove(self, name: str) -> None:
        """Raises ConfigError."""
        with self._edit_entries() as entries:
            if _get_entry(entries, name).place == "keyring":
                self._ring().delete(name)
            del entries[name]

    def add_rule(self, name: str, rule: SecretRule) -> SecretRule:
        """Let it go to a host. Returns the rule in its one spelling. Raises ConfigError."""
        rule = normalize_secret_rule(rule)
        with self._edit_entries() as entries:
            entry = _get_entry(entries, name)
            if rule not in entry.rules:
                entries[name] = replace(entry, rules=(*entry.rules, rule))
        return rule

    def remove_rules(self, name: str, host: str) -> int:
        """Take back all rules of a secret for a host; how many there were. Raises ConfigError."""
        with self._edit_entries() as entries:
            entry = _get_entry(entries, name)
            kept = tuple(rule for rule in entry.rules if rule.host != host)
            entries[name] = replace(entry, rules=kept)
        return len(entry.rules) - len(kept)

    @contextmanager
    def _edit_entries(self) -> Iterator[dict[str, SecretEntry]]:
        """The entries, written when the block ends well; one process at a time."""
        self._home.make_folder(self._path.parent)
        lock = self._path.with_name(f".{self._path.name}.lock")
        with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            entries = _read_file(self._path)
            yield entries
            data = msgspec.json.format(msgspec.json.encode(_File(entries)))
            write_private_file(self._path, data.decode() + "\n")
        self._look()


def _get_entry(entries: Mapping[str, SecretEntry], name: str) -> SecretEntry:
    if name not in entries:
        there = (
            f"there are: {', '.join(entries)}"
            if entries
            else "there are no secrets yet; add one with: deskhand secrets set NAME"
        )
        raise ConfigError(f"there is no secret {name!r}; {there}")
    return entries[name]


def _read_file(path: Path) -> dict[str, SecretEntry]:
    """Raises ConfigError for a file that others may read, or that is not ours."""
    try:
        data = read_private_file(path)
    except FileNotFoundError:
        return {}
    try:
        return {**msgspec.json.decode(data, type=_File).secrets}
    except (msgspec.MsgspecError, RecursionError) as error:
        why = str(error).partition(" - at")[0]
        raise ConfigError(
            f"{str(path)!r} is damaged ({why}): repair it, or remove it and set the secrets again"
        ) from None


def collect_values(held: Sequence[HeldSecret], named: Mapping[str, str]) -> dict[str, str]:
    """value -> name of all that is to be hidden: the secrets, and before them those `named` so
    already."""
    return {
        **named,
        **{each.value: each.name for each in held if len(each.value) >= MIN_SECRET_CHARS},
    }
