"""The log file: rotating, readable by its owner alone, and without any secret."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler

from ..config.config import Settings
from ..secrets.redaction import Redactor
from ..types.task_names import find_driven

FILE_BYTES = 5_000_000
FILES = 3


class Redacting(logging.Formatter):
    """No secret in messages and in tracebacks. A line of a conversation says of which:
    `[agent:place:d0]`, where d1 is a sub-agent."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(driven)s%(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        record.driven = _describe_driven()
        return self._redact(super().format(record))


def _describe_driven() -> str:
    """Which session the task of this line drives; '' for none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # there is no event loop in this thread
        return ""
    driven = find_driven(task.get_name()) if task is not None else ""
    return f"[{driven}] " if driven else ""


class LogFile(RotatingFileHandler):
    """A line that cannot be written is lost, and nobody is told each time: `store` in the health
    says it once."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        with suppress(OSError):  # what is left of the last line does not fit on a full disk either
            super().close()


@contextmanager
def logging_to_file(settings: Settings, console: logging.Handler | None = None) -> Iterator[None]:
    """Log to the home while inside, and to `console`: our own messages from `log_level` on, those
    of others from WARNING on.

    A home that cannot be written has no log; that is no reason not to work.
    """
    root = logging.getLogger()
    own = logging.getLogger("deskhand")
    handler: logging.Handler
    try:
        path = settings.home.log
        settings.home.make_folder(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = LogFile(
            path, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8", errors="replace"
        )
    except OSError:
        handler = logging.NullHandler()
    handlers = (handler,) if console is None else (handler, console)
    before = own.level
    redact = Redactor(settings)
    for each in handlers:
        each.setFormatter(Redacting(redact))
        root.addHandler(each)
    own.setLevel(settings.config.log_level.upper())
    try:
        yield
    finally:
        own.setLevel(before)
        for each in handlers:
            root.removeHandler(each)
            each.close()


def reconfigure_logging(settings: Settings) -> None:
    """Log by these settings from now on, where there is a log: its level, and which secrets are not
    written."""
    handlers = [
        each for each in logging.getLogger().handlers if isinstance(each.formatter, Redacting)
    ]
    redact = Redactor(settings)
    for each in handlers:
        each.setFormatter(Redacting(redact))
    if handlers:
        logging.getLogger("deskhand").setLevel(settings.config.log_level.upper())
