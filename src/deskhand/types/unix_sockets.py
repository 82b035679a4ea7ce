"""Paths of Unix sockets, which the kernel limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATH_BYTES = 100
"""The longest path of a socket that every kernel accepts (108 on Linux, 104 on macOS)."""


@contextmanager
def short_socket_path(path: Path) -> Iterator[str]:
    """A path to this socket that is short enough for the kernel, however deep its folder is. Raises
    OSError."""
    if len(os.fsencode(path)) <= PATH_BYTES or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{path.name}"
    finally:
        os.close(fd)
