"""Reads the home of another system: never outside it, never without a bound, and nothing of it is
changed."""

from __future__ import annotations

import errno
import json
import os
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from ..tools.paths import Entry, Workspace
from ..types.errors import ConfigError, OutsideWorkspace, ToolError
from ..types.messages import clean_text
from .model import ImportedFolder
from .notes import ImportNotes, clean_line

TEXT_BYTES = 1_000_000
FILE_BYTES = 100_000_000
LINE_BYTES = 4_000_000
MAX_NAMES = 20_000
MAX_FILES = 200
FOLDER_BYTES = 5_000_000
MAX_DEPTH = 6
IGNORED_FOLDERS = ("__pycache__", ".git", "node_modules", ".venv")
"""Folders that programs make again."""
WHY_LINK_OUTSIDE = "it is a link that leads out of this home, and import follows none"
COPY_IT = "copy it into the home and import again"
WHY_UNKNOWN = "the import does not use it"
KEEP = "copy what you want to keep"
MCP_SERVERS = ("its MCP servers are not added unseen", "deskhand mcp import FILE tries each")


class Unread(ConfigError):
    """Something in the home cannot be read; the message says what and why."""


class NotTaken(Unread):
    """Something in the home is sound, but is not read: it is too large, or lies elsewhere."""


class Tree:
    """The files beneath one folder. `notes` says what is not taken; what is read at all is
    remembered, so that `leave_rest` can name everything else."""

    def __init__(self, root: Path) -> None:
        """Raises Unread."""
        self.root = root.absolute()
        self.notes = ImportNotes()
        self._real = Path(os.path.realpath(root))
        self._mentioned: set[str] = set()
        self._listed: dict[str, dict[str, Entry]] = {}
        try:
            self._files = Workspace(str(root))
        except ToolError as error:
            raise Unread(f"{str(root)!r} cannot be opened: {error}") from error

    def close(self) -> None:
        self._files.close()

    # ------------------------------------------------------------------ notes

    def leave_out(self, what: str, why: str, todo: str = "") -> None:
        """Note what is left out; a path counts as mentioned then."""
        self._mentioned.add(_plain_path(what))
        self.notes.leave_out(what, why, todo)

    def mark_mentioned(self, inner: str) -> None:
        """Count a path as mentioned: it belongs to something else that is."""
        self._mentioned.add(_plain_path(inner))

    def note_unread(self, inner: str, error: Exception) -> None:
        """Note what could not be read: as left out where the file is sound, else as broken."""
        self.mark_mentioned(inner)
        why = str(error).removeprefix(f"{inner}: ")
        if isinstance(error, NotTaken):
            self.notes.leave_out(inner, why, KEEP)
        else:
            self.notes.fail(inner, why)

    def leave_out_rest(self, reasons: Mapping[str, tuple[str, str]]) -> None:
        """Note every file that was neither read nor mentioned; a folder of which nothing was read
        as a whole. `reasons` are (why, what to do) by patterns of paths."""
        for path in self._unmentioned("."):
            plain = _plain_path(path)
            why, todo = next(
                (said for pattern, said in reasons.items() if fnmatchcase(plain, pattern)), ("", "")
            )
            if PurePosixPath(plain).name in IGNORED_FOLDERS:
                why = "programs recreate it"
                todo = ""
            elif not why:
                why, todo = (
                    self._explain_link(plain) if self.kind(plain) == "link" else (WHY_UNKNOWN, KEEP)
                )
            self.notes.leave_out(path, why, todo)

    def _explain_link(self, inner: str) -> tuple[str, str]:
        """Why a link is left out, and what to do."""
        try:
            self._files.stat(inner)
        except OutsideWorkspace:
            return WHY_LINK_OUTSIDE, COPY_IT
        except ToolError:
            return "it is a link that leads nowhere", ""
        return "it is a link; its target is handled separately", ""

    def _unmentioned(self, folder: str) -> Iterator[str]:
        above = {str(parent) for path in self._mentioned for parent in PurePosixPath(path).parents}
        waiting = [folder]
        while waiting:
            at = waiting.pop()
            for entry in self.all_entries(at):
                path = entry.name if at == "." else f"{at}/{entry.name}"
                if path in self._mentioned:
                    continue
                if entry.kind == "folder" and path in above:
                    waiting.append(path)
                elif entry.kind == "folder":
                    if not self._is_empty(path):
                        yield f"{path}/"
                elif entry.size_bytes or entry.kind != "file":
                    yield path

    def _is_empty(self, inner: str) -> bool:
        try:
            return not self._files.list(inner, 1)
        except ToolError:
            return False

    # ------------------------------------------------------------------ what there is

    def resolve_inside(self, named: str) -> str | None:
        """A path that a configuration names, from the home; None where it lies elsewhere. The home
        may be named by a relative path or by a link, and the path as well."""
        path = Path(named).expanduser()
        if path.is_absolute():
            roots = [root for root in (self.root, self._real) if path.is_relative_to(root)]
            real = Path(os.path.realpath(path))
            if roots:
                path = path.relative_to(roots[0])
            elif real.is_relative_to(self._real):
                path = real.relative_to(self._real)
            else:
                return None
        plain = os.path.normpath(path)
        return None if plain == ".." or plain.startswith("../") else plain

    def kind(self, inner: str) -> str:
        """`file`, `folder`, `link` or `other`; '' for nothing. A link is not followed."""
        folder, _, name = inner.rpartition("/")
        entry = self._list(folder or ".").get(name)
        return entry.kind if entry is not None else ""

    def has(self, inner: str) -> bool:
        """Whether there is a file or a folder of this name."""
        try:
            return self._files.stat(inner).kind in ("file", "folder")
        except ToolError:
            return False

    def has_file(self, inner: str) -> bool:
        """Whether there is such a file. Anything else of that name is noted as broken, a link out
        of here as left."""
        return self._is_kind(inner, "file")

    def has_folder(self, inner: str) -> bool:
        """Whether there is such a folder. Anything else of that name is noted as broken, a link out
        of here as left."""
        return self._is_kind(inner, "folder")

    def _is_kind(self, inner: str, wanted: str) -> bool:
        kind = "folder" if inner == "." else self.kind(inner)
        if kind in ("", wanted):
            return kind == wanted
        if kind == "link":
            try:
                kind = self._files.stat(inner).kind
            except ToolError as error:
                self.note_unread(inner, _make_unread(inner, error))
                return False
        if kind != wanted:
            self.note_unread(
                inner,
                Unread(f"it is a {kind if kind != 'other' else 'device or pipe'}, not a {wanted}"),
            )
        return kind == wanted

    def all_entries(self, inner: str = ".") -> list[Entry]:
        """All names in a folder, also of links and of what can be no part of a home; nothing where
        there is none. Where there are too many, that is noted."""
        found = list(self._list(inner).values())
        if len(found) > MAX_NAMES:
            self.notes.leave_out(
                f"all names in {inner} after the first {MAX_NAMES:,}", "there are too many", KEEP
            )
        return found[:MAX_NAMES]

    def _list(self, inner: str) -> dict[str, Entry]:
        """A folder as it was when it was first looked at."""
        if inner not in self._listed:
            try:
                found = self._files.list(inner, MAX_NAMES + 1)
            except ToolError as error:
                found = []
                if isinstance(error.__cause__, PermissionError):
                    self.note_unread(inner, _make_unread(inner, error))
            self._listed[inner] = {entry.name: entry for entry in found}
        return self._listed[inner]

    def entries(self, inner: str = ".") -> list[Entry]:
        """What lies in a folder; nothing where there is none. Links are left out."""
        if not self.has_folder(inner):
            return []
        found = self.all_entries(inner)
        for entry in found:
            if entry.kind == "link":
                self._fail_if_circular(entry.name if inner == "." else f"{inner}/{entry.name}")
        return [entry for entry in found if entry.kind in ("file", "folder")]

    def _fail_if_circular(self, inner: str) -> None:
        try:
            self._files.stat(inner)
        except ToolError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ELOOP:
                self.note_unread(inner, _make_unread(inner, error))

    # ------------------------------------------------------------------ what it says

    def read_bytes(self, inner: str, most: int = TEXT_BYTES) -> bytes:
        """A whole file. Raises Unread where it is no file; NotTaken where it leads elsewhere or is
        larger than `most`."""
        self.mark_mentioned(inner)
        try:
            found = self._files.read(inner, most + 1)
        except ToolError as error:
            raise _make_unread(inner, error) from error
        if len(found) > most:
            raise NotTaken(f"{inner}: it is larger than {most // 1_000_000 or 1} MB")
        return found

    def read_text(self, inner: str, most: int = TEXT_BYTES) -> str:
        """A text, with what is no UTF-8 replaced. Raises Unread."""
        return clean_text(to_utf8(self.read_bytes(inner, most)).decode("utf-8-sig", "replace"))

    def read_json(self, inner: str) -> Any:
        """What a JSON file holds. Raises Unread."""
        try:
            return parse_json(to_utf8(self.read_bytes(inner, FILE_BYTES)))
        except (ValueError, RecursionError) as error:
            raise Unread(f"{inner}: it is not valid JSON: {error}") from error

    def read_json_lines(self, inner: str) -> Iterator[dict[str, Any]]:
        """The objects of a file of JSON lines. A line that is none is noted and passed over. Raises
        Unread."""
        broken = 0
        for raw in to_utf8(self.read_bytes(inner, FILE_BYTES)).split(b"\n"):
            if not raw.strip():
                continue
            found: Any = None
            if len(raw) <= LINE_BYTES:
                try:
                    found = parse_json(raw)
                except (ValueError, RecursionError):
                    found = None
            if isinstance(found, dict):
                yield found
            else:
                broken += 1
        if broken:
            many = f"{broken} lines" if broken > 1 else "one line"
            self.notes.leave_out(
                f"{many} of {inner}", "not a JSON object, or longer than 4 MB; the rest is imported"
            )

    def read_folder(self, inner: str) -> ImportedFolder | None:
        """A small folder with all of its files; None, and noted, where it is too large."""
        files: dict[str, bytes] = {}
        try:
            for path in self._walk(inner):
                if path.rpartition("/")[2].startswith(".env"):
                    self.leave_out(
                        path,
                        "keys in a folder are not imported",
                        "put them into Deskhand's own .env",
                    )
                    continue
                files[path.removeprefix(f"{inner}/")] = self.read_bytes(path, FOLDER_BYTES)
                if len(files) > MAX_FILES or sum(map(len, files.values())) > FOLDER_BYTES:
                    raise NotTaken(
                        f"it has more than {MAX_FILES} files or {FOLDER_BYTES // 1_000_000} MB"
                    )
        except Unread as error:
            self.note_unread(inner, error)
            return None
        return ImportedFolder(inner.rpartition("/")[2], files)

    def _walk(self, inner: str, depth: int = 0) -> Iterator[str]:
        for entry in self.entries(inner):
            path = f"{inner}/{entry.name}"
            if entry.kind == "file":
                yield path
            elif depth < MAX_DEPTH and entry.name not in IGNORED_FOLDERS:
                yield from self._walk(path, depth + 1)

    def read_texts(self, folder: str, names: tuple[str, ...]) -> dict[str, str]:
        """Those of these files that there are and that say something."""
        found: dict[str, str] = {}
        for name in names:
            if self.has_file(f"{folder}/{name}"):
                try:
                    text = self.read_text(f"{folder}/{name}")
                except Unread as error:
                    self.note_unread(f"{folder}/{name}", error)
                    continue
                if text.strip():
                    found[name] = text
        return found

    def is_private(self, *inner: str) -> bool:
        """Whether these with all that lies in them, and the home, are this account's own and nobody
        else may write them."""
        home = self._status(".")
        if home is None or not _is_own(home):
            return False
        waiting = list(inner)
        seen = 0
        while waiting:
            each = waiting.pop()
            status = self._status(each)
            seen += 1
            if status is None or not _is_own(status) or seen > MAX_NAMES:
                return False
            if stat.S_ISDIR(status.st_mode):
                waiting += [f"{each}/{entry.name}" for entry in self.entries(each)]
        return True

    def _status(self, inner: str) -> os.stat_result | None:
        try:
            descriptor = self._files.open_beneath(inner, os.O_PATH)
        except ToolError:
            return None
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def open_descriptor(self, inner: str) -> int:
        """A file held open to be read; it cannot lie outside. Raises Unread."""
        self.mark_mentioned(inner)
        try:
            return self._files.open_beneath(inner)
        except ToolError as error:
            raise _make_unread(inner, error) from error


def parse_json(raw: bytes | str) -> Any:
    """What this JSON says, whatever it is encoded in, without text that nobody can write and
    without numbers that are none. Raises ValueError, RecursionError."""
    text = raw.decode("utf-8-sig", "replace") if isinstance(raw, bytes) else raw
    found = json.loads(text, parse_constant=lambda name: None)
    return _clean_strings(found) if "\\ud" in text or "\\uD" in text else found


def _clean_strings(value: Any) -> Any:
    """The same, without halves of letters."""
    match value:
        case str():
            return clean_text(value)
        case list():
            return [_clean_strings(each) for each in value]
        case dict():
            return {clean_text(name): _clean_strings(each) for name, each in value.items()}
        case _:
            return value


def to_utf8(data: bytes) -> bytes:
    """As Windows writes a file, and as others do."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


def _is_own(status: os.stat_result) -> bool:
    """Whether it is this account's own, and nobody else may write it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _plain_path(path: str) -> str:
    return path.removeprefix("./").rstrip("/")


def _make_unread(inner: str, error: ToolError) -> Unread:
    """Why a file cannot be read, in words about the home."""
    cause = error.__cause__
    if isinstance(error, OutsideWorkspace):
        return NotTaken(f"{inner}: {WHY_LINK_OUTSIDE}")
    if isinstance(cause, OSError) and cause.errno == errno.ELOOP:
        return Unread(f"{inner}: it is a link that leads back to itself")
    return Unread(f"{inner}: {str(error).replace('the workspace', 'this home')}")


__all__ = ["NotTaken", "Tree", "Unread", "clean_line", "parse_json", "to_utf8"]
