"""`@path` in what is typed: files of the workspace, completed while one writes, and attached when
it is sent."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath

from ..tools.paths import Workspace
from ..types.errors import ToolError
from ..types.messages import File, Image, Message, Part, Text
from ..workspace.attachments import TEXT_CHARS, decode_short_text

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
MAX_IMAGE_BYTES = 20 * 2**20
MAX_FILES = 20
"""So many files go with one message."""
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))')
_OPEN_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]*)|([^\s"]*))$')
_PUNCTUATION = ".,;:!?)]}'"

PutBlob = Callable[[bytes], Awaitable[str]]
"""Keeps bytes and returns their name."""


def find_open_mention(text: str) -> str | None:
    """The path that is being written at the end of this text; None where none is."""
    match = _OPEN_MENTION.search(text)
    return None if match is None else match[1] or match[2] or ""


def find_paths(files: Workspace, beginning: str) -> list[str]:
    """The files and folders whose paths begin so; a folder ends with a slash. Hidden ones are named
    where their dot was written."""
    folder, _, name = beginning.rpartition("/")
    try:
        entries = files.list(folder or ".")
    except ToolError:
        return []
    hidden = name.startswith(".")
    found = []
    for entry in entries:
        if entry.name.lower().startswith(name.lower()) and (
            hidden or not entry.name.startswith(".")
        ):
            path = f"{folder}/{entry.name}" if folder else entry.name
            found.append(f"{path}/" if entry.kind == "folder" else path)
    return [path for path in found if path.isprintable() and '"' not in path]


def complete_path(text: str, found: list[str]) -> str:
    """The text with as much of the path added that is being written as is certain. A whole file
    ends with a blank."""
    beginning = find_open_mention(text)
    if beginning is None or not found:
        return text
    sure = found[0]
    while not all(path.lower().startswith(sure.lower()) for path in found):
        sure = sure[:-1]
    if len(sure) < len(beginning):
        return text
    head = text[: len(text) - len(beginning)].removesuffix('"').removesuffix("@")
    whole = len(found) == 1 and not sure.endswith("/")
    if " " in sure:
        return f'{head}@"{sure}{chr(34) + " " if whole else ""}'
    return f"{head}@{sure}{' ' if whole else ''}"


def find_mentions(text: str) -> list[str]:
    """The paths that the text mentions, each once."""
    return list(dict.fromkeys(match[1] or match[2] for match in _MENTION.finditer(text)))[
        :MAX_FILES
    ]


async def attach_mentions(text: str, files: Workspace, keep: PutBlob) -> Message:
    """The message with the files that it mentions: pictures and short texts as they are; of others
    it says that they are there. What is no file of the workspace is left as it was written."""
    parts: list[Part] = []
    notes: list[str] = []
    for written in find_mentions(text):
        for path in dict.fromkeys((written, written.rstrip(_PUNCTUATION))):
            part = await _read_attachment(path, files, keep)
            if part is None:
                continue
            if isinstance(part, str):
                notes.append(part)
            else:
                parts.append(part)
            break
    said = "\n".join([text, *notes])
    return Message("user", (*parts, Text(said)))


async def _read_attachment(path: str, files: Workspace, keep: PutBlob) -> Part | str | None:
    """The file as a part, or a note of it; None where there is no such file."""
    try:
        entry = files.stat(path)
        if entry.kind == "folder":
            return f"[{path} is a folder of the workspace]"
        mime = mimetypes.guess_type(path)[0] or "application/octet-stream"
        picture = mime in IMAGE_TYPES and entry.size_bytes <= MAX_IMAGE_BYTES
        data = files.read(path, MAX_IMAGE_BYTES if picture else 4 * TEXT_CHARS + 4)
    except ToolError:
        return None
    name = PurePosixPath(path).name
    if picture:
        return Image(await keep(data), mime, name)
    part = File("", path, mime, len(data))
    if decode_short_text(part, data) is None:
        return f"[{path} is a file of the workspace, {entry.size_bytes:,} bytes]"
    return File(await keep(data), path, mime, len(data))
