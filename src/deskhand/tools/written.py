"""Folders of the owner beside the workspace: which calls may write there, and what was written
there.

The owner's own programs obey what lies in such a folder: build files, configuration, hooks,
editors' settings. No list of them is complete, so none is kept: whatever an agent changes there is
noted until the owner has reviewed it. Where words from outside may be the reason for a change, the
folder can only be read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec.structs import replace

from ..policy.information_flow import format_sources
from ..sandbox.base import Mount
from ..store.blobs import DIGEST_PREFIX
from ..types.commit import Change
from .base import Context
from .notes import By
from .path_states import ChangedPath, parse_digest
from .paths import Allowed
from .review import WrittenFile, add_written


def list_read_only(context: Context) -> tuple[Allowed, ...]:
    """The owner's folders that this call may only read: its conversation has read something from
    outside, no person has seen exactly this call, and the owner has not allowed that for good."""
    if context.label.integrity != "untrusted" or context.approved:
        return ()
    return tuple(each for each in context.reach.owned if not each.outside)


def list_writable(context: Context) -> tuple[Allowed, ...]:
    """The owner's folders in which this call may write, without those that lie in another one of
    them."""
    shut = list_read_only(context)
    free = [each for each in context.reach.owned if each not in shut]
    return tuple(
        each for each in free if not any(each.path.startswith(f"{other.path}/") for other in free)
    )


def command_mounts(context: Context) -> tuple[Mount, ...]:
    """What a command sees of the host: the workspace, and the folders beside it as far as this call
    may write there."""
    shut = {each.path for each in list_read_only(context)}
    beside = (
        replace(mount, write=False) if mount.path in shut else mount
        for mount in context.reach.mounts
    )
    return Mount(str(context.reach.folder), write=True), *beside


def explain_read_only(context: Context) -> str:
    """A sentence on the folders that this call may only read, and what allows more; '' where there
    are none."""
    shut = list_read_only(context)
    if not shut:
        return ""
    names = ", ".join(each.path for each in shut)
    allows = f"deskhand allow path {shlex.quote(shut[0].path)} --write --outside"
    return (
        f"read-only: {names}, because this conversation has read "
        f"{format_sources(context.label)}. The owner can trust that source with /trust here, or "
        f"allow it permanently: {allows}"
    )


def make_review_rows(
    by: By,
    folder: str,
    changes: Iterable[ChangedPath],
    *,
    outside: bool,
    has: Callable[[str], bool],
) -> tuple[Change, ...]:
    """The rows that note for review what was changed in a folder of the owner; `outside`: words
    from outside may have gone into it. `has` tells whether the bytes of a digest are a blob."""
    rows = list[Change]()
    for each in changes:
        place = os.fsencode(f"{folder}/{each.path}")
        digest = parse_digest(each.before)
        blob = DIGEST_PREFIX + digest if digest and has(digest) else None
        rows += add_written(
            WrittenFile(
                place=place,
                folder=folder,
                before=each.before,
                after=each.after,
                blob=blob,
                agent=by.agent,
                session=by.session,
                at=by.at,
                outside=outside,
            )
        )
    return tuple(rows)


def newest_change_ns(folder: str, since_ns: int) -> int:
    """When something in the folder, or the folder itself, was last changed; 0 where that was before
    `since_ns`."""
    newest = 0
    with suppress(OSError):
        newest = os.lstat(folder).st_ctime_ns
    for at, folders, names in os.walk(folder):
        for name in (*folders, *names):
            with suppress(OSError):
                newest = max(newest, os.lstat(f"{at}/{name}").st_ctime_ns)
    return newest if newest >= since_ns else 0
