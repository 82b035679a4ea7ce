"""Files of the home that only their owner reads."""

from __future__ import annotations

import os
from pathlib import Path

from .folders import make_private_folder


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
