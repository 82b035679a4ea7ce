"""Caches text files that people edit: they are read again only when they have changed."""

from __future__ import annotations

import os
import re
import stat
from hashlib import sha256
from pathlib import Path

from ..skills.skill import split_front_matter
from ..tools.approved import MAX_BYTES, NO_APPROVALS
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.paths import Workspace
from ..types.errors import ToolError
from ..types.messages import clean_text
from ..workspace.quarantine import NOTHING_HELD, HeldBack, is_held_back

FILE_CHARS = 20_000
READ_BYTES = 10 * FILE_CHARS
"""More than the characters, as comments are not counted."""
TRUNCATED_NOTE = f"[the rest is left out: {FILE_CHARS:,} characters fit]"
_COMMENT = re.compile(
    r"(^(?:```.*?(?:^```|\Z)|~~~.*?(?:^~~~|\Z)))|<!--.*?(?:-->|\Z)", re.DOTALL | re.MULTILINE
)
_HEADING = re.compile(r"#{1,6}(\s|$)")
_PINNED = re.compile(
    r"^<!-- deskhand:pinned\b.*?^<!-- deskhand:end -->[ \t\r]*$", re.DOTALL | re.MULTILINE
)


class Texts:
    """The text files of one folder. With `links` a link to a file elsewhere is followed: only the
    owner writes in such a folder. Without it nothing outside of the folder is read. With `bare`
    they are given without their front matter."""

    def __init__(self, folder: Path, links: bool = False, *, bare: bool = False) -> None:
        self._folder = folder
        self._bare = bare
        self._links = links
        self._stat = os.stat if links else os.lstat
        self._known: dict[str, tuple[tuple[int, ...], bytes, str]] = {}

    def __call__(self, name: str, held: HeldBack = NOTHING_HELD) -> str:
        """The text of the file. '' when it says nothing, is missing, or is `held` back."""
        try:
            status = self._stat(
                f"{self._folder}/{name}"
            )  # before every model call, and a third of the cost
        except OSError:
            return ""
        version = (
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_size,
            status.st_ino,
            status.st_mode,
        )
        known = self._known.get(name)
        if known is None or known[0] != version:
            if not stat.S_ISREG(status.st_mode):
                return ""
            try:
                data = self._read(name, held)
            except (OSError, ToolError):
                return ""
            if self._is_replaced(name, status.st_ino):  # whose words were these?
                return ""
            text = decode_prompt_text(data, bare=self._bare)
            known = self._known[name] = (version, sha256(data).digest(), text)
        if (
            known[2] and held is not NOTHING_HELD
        ):  # asked after it was read: somebody may be writing it
            path = f"{self._folder}/{name}"
            inode = status.st_ino
            if (
                is_held_back(held, path, inode)
                or not held.allows(path, known[1])
                or self._is_replaced(name, inode)
            ):
                return ""
        return known[2]

    def _is_replaced(self, name: str, inode: int) -> bool:
        """Whether the file was replaced since it was read."""
        try:
            return self._stat(f"{self._folder}/{name}").st_ino != inode
        except OSError:
            return True

    def clear(self) -> None:
        """Forget all files."""
        self._known.clear()

    def _read(self, name: str, held: HeldBack) -> bytes:
        """Of what is approved all, which has a digest."""
        limit = READ_BYTES if held.bound is NO_APPROVALS else MAX_BYTES
        if not self._links:
            with Workspace(str(self._folder)) as files:
                return files.read(name, limit)
        with (self._folder / name).open("rb") as file:
            return file.read(limit)


def decode_prompt_text(data: bytes, *, bare: bool = False) -> str:
    """The text without comments (`bare`: and front matter), with invisible characters written out,
    cut at FILE_CHARS. '' when only headings are left, so that an unused template costs nothing."""
    text = strip_comments(data.decode("utf-8-sig", "replace"))
    if bare:
        text = split_front_matter(text)[1].lstrip("\n")
    if all(not line.strip() or _HEADING.match(line) for line in text.split("\n")):
        return ""
    text = escape_invisible(text)
    return text if len(text) <= FILE_CHARS else f"{text[:FILE_CHARS].rstrip()}\n{TRUNCATED_NOTE}"


def strip_comments(text: str) -> str:
    """The cleaned text without HTML comments, except those in fenced code. The part between our own
    marks is left out: its facts come from memory."""
    text = _PINNED.sub("", clean_text(text.replace("\r\n", "\n")))
    text = _COMMENT.sub(lambda match: match[1] or "", text)
    return re.sub(r"\n\s*\n\s*\n", "\n\n", text).strip()
