"""Files of the home that only their owner reads."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ConfigError
from .folders import make_private_folder


def read_private_file(path: Path, limit: int = -1) -> bytes:
    """What is in it, `limit` bytes at most. Raises FileNotFoundError, and ConfigError for a file
    that cannot be read, that others may read, or that is not ours."""
    try:
        with path.open("rb") as file:
            status, data = os.fstat(file.fileno()), file.read(limit)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if status.st_mode & 0o077 or status.st_uid != os.getuid():
        raise ConfigError(
            f"others can read {str(path)!r}, so it is not used; run: chmod 600 {path}"
        )
    return data


def write_private_file(path: Path, text: str) -> None:
    """Replace the file in one step, readable by its owner alone, so that no moment shows half of
    it.

    Raises OSError, which names the file.
    """
    try:
        _write_private_file(path, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_private_file(path: Path, text: str) -> None:
    make_private_folder(path.parent)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(
        os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
