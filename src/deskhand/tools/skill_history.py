"""Earlier versions of a skill, beside it: `.history/TIME.md`, each with what it changed as
`.history/TIME.diff`, as operator-use keeps them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path

from ..types.errors import ToolError
from .base import Context

FOLDER = ".history"
MAX_KEPT_BYTES = 256 * 1024
_SKILL_FILE = re.compile(r"skills/[^/]+/SKILL\.md")
_VERSION = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.md")


def find_skill_file(path: str, context: Context) -> str:
    """The path in the workspace of a skill's SKILL.md, however it is written; '' for every other
    file."""
    if not path.endswith("SKILL.md"):
        return ""
    folder = os.path.realpath(context.reach.folder)
    inner = os.path.relpath(os.path.realpath(Path(folder) / path), folder)
    return inner if _SKILL_FILE.fullmatch(inner) else ""


def make_history_files(
    path: str, before: bytes | None, after: bytes, context: Context
) -> Sequence[tuple[str, bytes]]:
    """The files that keep this change of a skill, (path, content): its new version, the difference
    from the one before, and that one too where it was not kept yet."""
    if before == after or max(len(before or b""), len(after)) > MAX_KEPT_BYTES:
        return ()
    folder = f"{path.rpartition('/')[0]}/{FOLDER}"
    versions = _list_versions(folder, context)
    now = context.clock.now()
    found: list[tuple[str, bytes]] = []
    if before is not None and before != _read_latest(folder, versions, context):
        name = _free_name(now - 1, versions)
        versions.append(name)
        found.append((f"{folder}/{name}", before))
    name = _free_name(now, versions)
    found.append((f"{folder}/{name}", after))
    if before is not None:
        difference = _render_difference(before, after, versions[-1], name)
        found.append((f"{folder}/{name.removesuffix('.md')}.diff", difference))
    return found


def _list_versions(folder: str, context: Context) -> list[str]:
    """Their names, the oldest first."""
    try:
        entries = context.reach.files.list(folder)
    except ToolError:
        return []
    return sorted(each.name for each in entries if _VERSION.fullmatch(each.name))


def _read_latest(folder: str, versions: Sequence[str], context: Context) -> bytes | None:
    if not versions:
        return None
    return context.reach.files.read(f"{folder}/{versions[-1]}", MAX_KEPT_BYTES)


def _free_name(at: float, taken: Sequence[str]) -> str:
    """That of this time, or of the next second that has none: so names sort by age."""
    while (name := f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H-%M-%S}.md") in taken:
        at += 1
    return name


def _render_difference(before: bytes, after: bytes, old: str, new: str) -> bytes:
    old_lines = before.decode(errors="replace").splitlines(keepends=True)
    new_lines = after.decode(errors="replace").splitlines(keepends=True)
    return "".join(unified_diff(old_lines, new_lines, old, new)).encode()
