"""Reads the home of another system: never outside it, never without a bound, and nothing of it is changed."""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...tools.paths import Entry, Workspace
from ...types.errors import ConfigError, ToolError
from ...types.messages import clean
from .found import Folder, Left

TEXT_BYTES, FILE_BYTES, LINE_BYTES = 1_000_000, 100_000_000, 4_000_000
MOST_NAMES, MOST_FILES, FOLDER_BYTES, DEEPEST = 20_000, 200, 5_000_000, 6
MOST_LEFT = 50


class Unread(ConfigError):
    """Something in the home cannot be read; the message says what and why. The rest is taken."""


class Tree:
    """The files beneath one folder. What cannot be read is noted in `left`, in words."""

    def __init__(self, root: Path) -> None:
        """Raises Unread."""
        self.root = root
        self.left: list[Left] = []
        self._more = 0
        try:
            self._files = Workspace(str(root))
        except ToolError as error:
            raise Unread(f"{str(root)!r} cannot be opened: {error}") from error

    def close(self) -> None:
        self._files.close()

    def leave(self, what: str, why: str) -> None:
        """Note what is not taken; after many of them only how many."""
        if len(self.left) < MOST_LEFT:
            self.left.append(Left(shown(what), shown(why)))
        else:
            self._more += 1

    def all_left(self) -> tuple[Left, ...]:
        """What was noted."""
        more = [Left(f"{self._more} more", "for reasons like these")] if self._more else []
        return (*self.left, *more)

    def has(self, inner: str) -> bool:
        """Whether there is a file or a folder of this name."""
        try:
            return self._files.stat(inner).kind in ("file", "folder")
        except ToolError:
            return False

    def data(self, inner: str, most: int = TEXT_BYTES) -> bytes:
        """A whole file. Raises Unread where it is no file, leads elsewhere or is larger than `most`."""
        try:
            found = self._files.read(inner, most + 1)
        except ToolError as error:
            raise Unread(f"{inner}: {_plain(error)}") from error
        if len(found) > most:
            raise Unread(f"{inner}: it is larger than {most // 1_000_000 or 1} MB")
        return found

    def text(self, inner: str, most: int = TEXT_BYTES) -> str:
        """A text, with what is no UTF-8 replaced. Raises Unread."""
        return clean(utf8(self.data(inner, most)).decode("utf-8-sig", "replace"))

    def json(self, inner: str) -> Any:
        """What a JSON file holds. Raises Unread."""
        try:
            return parsed(utf8(self.data(inner, FILE_BYTES)))
        except (ValueError, RecursionError) as error:
            raise Unread(f"{inner}: it is no JSON: {error}") from error

    def lines(self, inner: str) -> Iterator[dict[str, Any]]:
        """The objects of a file of JSON lines. A line that is none is noted and passed over. Raises Unread."""
        broken = 0
        for raw in utf8(self.data(inner, FILE_BYTES)).split(b"\n"):
            if not raw.strip():
                continue
            found: Any = None
            if len(raw) <= LINE_BYTES:
                try:
                    found = parsed(raw)
                except (ValueError, RecursionError):
                    found = None
            if isinstance(found, dict):
                yield found
            else:
                broken += 1
        if broken:
            many = f"{broken} lines" if broken > 1 else "one line"
            self.leave(f"{many} of {inner}", "no JSON object, or longer than 4 MB; the rest is taken")

    def entries(self, inner: str = ".") -> list[Entry]:
        """What lies in a folder; nothing where there is none. Links are left out."""
        try:
            found = self._files.list(inner, MOST_NAMES)
        except ToolError:
            return []
        return [entry for entry in found if entry.kind in ("file", "folder")]

    def folder(self, inner: str) -> Folder | None:
        """A small folder with all of its files; None, and noted, where it is too large."""
        files: dict[str, bytes] = {}
        try:
            for path in self._walk(inner):
                if path.rpartition("/")[2].startswith(".env"):
                    self.leave(path, "keys do not come along in a folder: put them into Deskhand's own .env")
                    continue
                files[path.removeprefix(f"{inner}/")] = self.data(path, FOLDER_BYTES)
                if len(files) > MOST_FILES or sum(map(len, files.values())) > FOLDER_BYTES:
                    raise Unread(f"it has more than {MOST_FILES} files or {FOLDER_BYTES // 1_000_000} MB")
        except Unread as error:
            self.leave(inner, str(error))
            return None
        return Folder(inner.rpartition("/")[2], files)

    def _walk(self, inner: str, depth: int = 0) -> Iterator[str]:
        for entry in self.entries(inner):
            path = f"{inner}/{entry.name}"
            if entry.kind == "file":
                yield path
            elif depth < DEEPEST and entry.name not in ("__pycache__", ".git", "node_modules"):
                yield from self._walk(path, depth + 1)

    def texts(self, folder: str, names: tuple[str, ...]) -> dict[str, str]:
        """Those of these files that there are and that say something."""
        found: dict[str, str] = {}
        for name in names:
            if self.has(f"{folder}/{name}"):
                try:
                    text = self.text(f"{folder}/{name}")
                except Unread as error:
                    self.leave(f"{folder}/{name}", str(error))
                    continue
                if text.strip():
                    found[name] = text
        return found

    def private(self, *inner: str) -> bool:
        """Whether these, and the home, are this account's own and nobody else may write them."""
        for each in (".", *inner):
            try:
                descriptor = self._files.open_beneath(each, os.O_PATH)
            except ToolError:
                return False
            try:
                status = os.fstat(descriptor)
            finally:
                os.close(descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return False
        return True

    def descriptor(self, inner: str) -> int:
        """A file held open to be read; it cannot lie outside. Raises Unread."""
        try:
            return self._files.open_beneath(inner)
        except ToolError as error:
            raise Unread(f"{inner}: {_plain(error)}") from error


def parsed(raw: bytes | str) -> Any:
    """What this JSON says, whatever it is encoded in, without text that nobody can write and without numbers that are
    none. Raises ValueError, RecursionError."""
    text = raw.decode("utf-8-sig", "replace") if isinstance(raw, bytes) else raw
    found = json.loads(text, parse_constant=lambda name: None)
    return _whole(found) if "\\ud" in text or "\\uD" in text else found


def _whole(value: Any) -> Any:
    """The same, without halves of letters."""
    match value:
        case str():
            return clean(value)
        case list():
            return [_whole(each) for each in value]
        case dict():
            return {clean(name): _whole(each) for name, each in value.items()}
        case _:
            return value


def utf8(data: bytes) -> bytes:
    """As Windows writes a file, and as others do."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


def shown(text: str) -> str:
    """Words of a stranger's file as they may stand in a report: one line, not too long."""
    line = " ".join(clean(text).split())
    return line if len(line) <= 300 else f"{line[:299]}…"


def _plain(error: ToolError) -> str:
    return str(error).replace("the workspace", "this home")
