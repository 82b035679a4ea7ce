"""States of paths, as text: what undo compares, stores, and makes true again."""

from __future__ import annotations

import os
import stat

import msgspec


class ChangedPath(msgspec.Struct, frozen=True, gc=False):
    """What a path was and is, as states; None: nothing is there."""

    path: str
    before: str | None
    after: str | None


def encode_state(status: os.stat_result, what: str = "") -> str:
    """A state as text: the kind, the mode, and `what` is in it. Equal texts are equal files.

    f0644 SHA-256 a file that is kept; u0644 … one that is not; l HEX a link and where it leads;
    d0755 a folder; h0755 a folder into which we do not look; o… anything else.
    """
    mode = stat.S_IMODE(status.st_mode)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        if what:
            return f"f{mode:04o} {what}"
        return f"u{mode:04o} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
    if kind == stat.S_IFLNK:
        return f"l {what}"
    if kind == stat.S_IFDIR:
        return f"{what or 'd'}{mode:04o}"
    return f"o{kind:o} {mode:04o} {status.st_rdev}"


def parse_digest(state: str | None) -> str:
    """The digest of a file's bytes, with which it can be put back; '' where there is none."""
    return state[6:] if state is not None and state[0] == "f" else ""
