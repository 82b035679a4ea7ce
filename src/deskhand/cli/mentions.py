"""`@name` in what is typed: files of the workspace and conversations, completed while one writes,
and attached when it is sent."""

from __future__ import annotations

import mimetypes
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
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

MAX_TRANSCRIPT_CHARS = 1_000_000
MAX_FOLDERS = 200
"""In so many folders a file is looked for that is named without its folder."""
MAX_FOUND = 100

PutBlob = Callable[[bytes], Awaitable[str]]
"""Keeps bytes and returns their name."""
ReadConversation = Callable[[str], Awaitable[str | None]]
"""What was said in the conversation of this name; None where there is none."""


def find_open_mention(text: str) -> str | None:
    """The path that is being written at the end of this text; None where none is."""
    match = _OPEN_MENTION.search(text)
    return None if match is None else match[1] or match[2] or ""


def find_paths(files: Workspace, beginning: str) -> list[str]:
    """The files and folders that may be meant; a folder ends with a slash. First those whose paths
    begin so; where none does and no folder was written, files in any folder whose names begin so,
    then those whose names contain it. Hidden ones are named where their dot was written."""
    folder, _, name = beginning.rpartition("/")
    found = [path for path in _list_paths(files, folder) if _begins(path, name)]
    if not found and name and not folder:
        inside = [path for path in _walk_files(files) if name.lower() in _file_name(path).lower()]
        found = sorted(
            inside, key=lambda path: not _file_name(path).lower().startswith(name.lower())
        )
    return [path for path in found if path.isprintable() and '"' not in path][:MAX_FOUND]


def _list_paths(files: Workspace, folder: str) -> list[str]:
    try:
        entries = files.list(folder or ".")
    except ToolError:
        return []
    named = ((f"{folder}/{entry.name}" if folder else entry.name, entry) for entry in entries)
    return [f"{path}/" if entry.kind == "folder" else path for path, entry in named]


def _file_name(path: str) -> str:
    return path.removesuffix("/").rpartition("/")[2]


def _begins(path: str, name: str) -> bool:
    own = _file_name(path)
    hidden = own.startswith(".") and not name.startswith(".")
    return own.lower().startswith(name.lower()) and not hidden


def _walk_files(files: Workspace) -> Iterator[str]:
    """The files of the workspace, those near the top first, without hidden ones."""
    folders = deque([""])
    for _ in range(MAX_FOLDERS):
        if not folders:
            return
        for path in _list_paths(files, folders.popleft()):
            if _file_name(path).startswith("."):
                continue
            if path.endswith("/"):
                folders.append(path.removesuffix("/"))
            else:
                yield path


def complete_name(text: str, found: Sequence[str]) -> str:
    """The text with as much of the name added that is being written as is certain. A whole one ends
    with a blank."""
    beginning = find_open_mention(text)
    if beginning is None or not found:
        return text
    if len(found) == 1:
        return take_name(text, found[0])
    sure = found[0]
    while not all(path.lower().startswith(sure.lower()) for path in found):
        sure = sure[:-1]
    if len(sure) < len(beginning):
        return text
    return _before_mention(text, beginning) + (f'@"{sure}' if " " in sure else f"@{sure}")


def take_name(text: str, name: str) -> str:
    """The text with this name in the place of the one that is being written. A blank follows it,
    unless it is a folder, in which more can be chosen."""
    head = _before_mention(text, find_open_mention(text) or "")
    if name.endswith("/"):
        return head + (f'@"{name}' if " " in name else f"@{name}")
    return head + (f'@"{name}" ' if " " in name else f"@{name} ")


def _before_mention(text: str, beginning: str) -> str:
    return text[: len(text) - len(beginning)].removesuffix('"').removesuffix("@")


def find_mentions(text: str) -> list[str]:
    """The paths that the text mentions, each once."""
    return list(dict.fromkeys(match[1] or match[2] for match in _MENTION.finditer(text)))[
        :MAX_FILES
    ]


async def attach_mentions(
    text: str, files: Workspace | None, keep: PutBlob, read_conversation: ReadConversation
) -> Message:
    """The message with the files and conversations that it mentions: pictures and short texts as
    they are; of others it says that they are there. What is neither is left as it was written."""
    parts: list[Part] = []
    notes: list[str] = []
    for written in find_mentions(text):
        for name in dict.fromkeys((written, written.rstrip(_PUNCTUATION))):
            part = await _read_attachment(name, files, keep) if files is not None else None
            if part is None:
                part = await _read_transcript(name, keep, read_conversation)
            if part is None:
                continue
            if isinstance(part, str):
                notes.append(part)
            else:
                parts.append(part)
            break
    said = "\n".join([text, *notes])
    return Message("user", (*parts, Text(said)))


async def _read_transcript(name: str, keep: PutBlob, read: ReadConversation) -> File | None:
    """What was said in a conversation, as a file: like every file it counts as untrusted, since
    others may have written in it."""
    said = await read(name)
    if said is None:
        return None
    data = said[-MAX_TRANSCRIPT_CHARS:].encode()
    return File(await keep(data), f"conversation {name}.md", "text/markdown", len(data))


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
