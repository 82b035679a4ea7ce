"""Whether a file was read since it was armed, which is to say given a last access long ago."""

from __future__ import annotations

import os
import stat

LONG_AGO_NS = 1_000_000_000


def was_accessed(path: str, *, gone: bool = True) -> bool:
    """Whether somebody has read it since it was armed; what is `gone` may have been read. Of a link
    nobody knows."""
    try:
        status = os.lstat(path)
    except OSError:
        return gone
    return has_content(status) and status.st_atime_ns != LONG_AGO_NS


def has_content(status: os.stat_result) -> bool:
    """Whether there is more to read than its name and where it leads: who looks at those reads the
    folder around it."""
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
