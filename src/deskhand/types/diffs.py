"""What a call changed, or would change, file by file: for people, who see only what they may."""

from __future__ import annotations

from typing import Literal

import msgspec


class FileDiff(msgspec.Struct, frozen=True):
    """One file or key-value. `diff` is a unified diff, cut where it is long; where there is none,
    `why` says why, and else what to look out for."""

    place: str
    did: Literal["made", "changed", "removed"]
    diff: str = ""
    why: str = ""


class CallDiff(msgspec.Struct, frozen=True):
    """What a call changed, or, where it is not `done`, what it would change as the files are now.
    `files` are the first of them, and there are `more`."""

    done: bool
    files: tuple[FileDiff, ...] = ()
    more: int = 0
