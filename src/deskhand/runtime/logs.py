"""The log file: rotating, readable by its owner alone, and without any secret."""

from __future__ import annotations

import json
import logging
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from urllib.parse import quote

from .config import Settings

FILE_BYTES, FILES = 5_000_000, 3
SHORTEST = 8
"""A shorter value is no secret worth hiding, and would be found in ordinary words."""
_URL_SAFE = str.maketrans("+/", "-_")
_NAMED = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


def secrets_of(environment: Mapping[str, str]) -> dict[str, str]:
    """value -> name of everything in the environment that looks like a secret by its name."""
    return {v: name for name, v in environment.items() if _NAMED.search(name) and len(v) >= SHORTEST}


def redactor(secrets: Mapping[str, str]) -> Callable[[str], str]:
    """Puts the name of a secret where its value was, also where that stands in JSON, in an address or in base64."""
    named = {form: name for value, name in secrets.items() for form in _forms(value)}
    if not named:
        return str
    pattern = re.compile("|".join(map(re.escape, sorted(named, key=len, reverse=True))))
    return lambda text: pattern.sub(lambda match: f"[{named[match[0]]}]", text)


def _forms(value: str) -> tuple[str, ...]:
    raw = value.encode(errors="surrogateescape")
    encoded = b64encode(raw).decode().rstrip("=")
    return value, json.dumps(value)[1:-1], quote(raw, safe=""), encoded, encoded.translate(_URL_SAFE)


class Redacting(logging.Formatter):
    """No secret in messages and in tracebacks."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redact = redactor(secrets)

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


class LogFile(RotatingFileHandler):
    """A line that cannot be written is lost, and nobody is told each time: `store` in the health says it once."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        with suppress(OSError):  # what is left of the last line does not fit on a full disk either
            super().close()


@contextmanager
def logging_to_file(settings: Settings, console: logging.Handler | None = None) -> Iterator[None]:
    """Log to the home while inside, and to `console`: our own messages from `log_level` on, those of others from
    WARNING on.

    A home that cannot be written has no log; that is no reason not to work.
    """
    root, own = logging.getLogger(), logging.getLogger("deskhand")
    handler: logging.Handler
    try:
        path = settings.home.log
        settings.home.make(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = LogFile(path, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8", errors="replace")
    except OSError:
        handler = logging.NullHandler()
    handlers = (handler,) if console is None else (handler, console)
    before = own.level
    for each in handlers:
        each.setFormatter(Redacting(secrets_of(settings.environment)))
        root.addHandler(each)
    own.setLevel(settings.config.log_level.upper())
    try:
        yield
    finally:
        own.setLevel(before)
        for each in handlers:
            root.removeHandler(each)
            each.close()


def renew_logging(settings: Settings) -> None:
    """Log by these settings from now on, where there is a log: its level, and which secrets are not written."""
    handlers = [each for each in logging.getLogger().handlers if isinstance(each.formatter, Redacting)]
    for each in handlers:
        each.setFormatter(Redacting(secrets_of(settings.environment)))
    if handlers:
        logging.getLogger("deskhand").setLevel(settings.config.log_level.upper())
