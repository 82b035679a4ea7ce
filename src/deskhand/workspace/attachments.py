"""Opens files that people send: a short text is shown to the model, everything else is put into the
workspace."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import anyio.from_thread
import anyio.to_thread
from msgspec.structs import replace

from ..tools.documents.kinds import detect_kind
from ..tools.files import DOCUMENT_KINDS
from ..tools.paths import Workspace
from ..types.errors import BlobMissing, ToolError
from ..types.labels import Label, join_labels
from ..types.messages import File, Message, Part, clean_text

RECEIVED_FOLDER = "received"
TEXT_CHARS = 8_000
_TEXT_EXTENSIONS = """
txt md rst log csv tsv json jsonl ndjson xml yaml yml toml ini cfg conf properties html htm css js mjs cjs jsx ts tsx
vue svelte py pyi ipynb java kt scala c h cc cpp hpp cs go rs rb php pl lua r jl swift sh bash zsh fish ps1 bat sql
tex graphql proto diff patch tf dockerfile makefile gitignore srt vtt ics vcf eml
"""  # noqa: E501
TEXT_EXTENSIONS = frozenset(_TEXT_EXTENSIONS.split())
"""Extensions of what people can read, which is still only believed when it is valid UTF-8."""
_STEM_CHARS = 50
_MAX_SAME_NAME = 20
_UNSAFE_CHARS = re.compile(r"[^\w.+()-]+")
_EXTENSION = re.compile(r"[A-Za-z0-9]{1,5}")


Mark = Callable[[str, Label], Coroutine[Any, Any, None]]
"""Stores the label of the file at a real path."""


async def unpack_files(
    message: Message, bytes_of: Callable[[str], Awaitable[bytes]], files: Workspace, mark: Mark
) -> Message:
    """The message with what the model is shown of each file in it. The sender need not have written
    a file, so its text is untrusted, here and in the workspace.

    Doing it again gives the same message and the same files, so a redelivery after a crash
    continues.
    """
    parts: list[Part] = [
        await _unpack_file(part, bytes_of, files, mark) if isinstance(part, File) else part
        for part in message.parts
    ]
    return Message(message.role, tuple(parts))


async def _unpack_file(
    part: File, bytes_of: Callable[[str], Awaitable[bytes]], files: Workspace, mark: Mark
) -> File:
    try:
        data = await bytes_of(part.blob)
    except BlobMissing:
        return part
    name = part.display_name
    label = join_labels((part.label, Label("untrusted", source=f"file {name}")))
    if (text := decode_short_text(part, data)) is not None:
        return replace(part, shown=f"[File: {name}]\n{text}", label=label)
    suffix = PurePosixPath(name).suffix[1:]
    about = (
        f"{suffix.upper() if _EXTENSION.fullmatch(suffix) else 'File'}: {name} "
        f"({max(1, round(len(data) / 1024))} KB)"
    )
    try:
        path, there = await anyio.to_thread.run_sync(choose_path, files, part, data)
        if there:
            await mark(there, label)
        else:
            await anyio.to_thread.run_sync(
                partial(files.write, path, data, judge=partial(_mark_file, mark, label))
            )
    except ToolError as error:
        return replace(part, shown=f"[{about} could not be saved: {clean_text(str(error))}]")
    readable = detect_kind(data, name=part.name) in DOCUMENT_KINDS
    how = (
        "read_file gives its text."
        if readable
        else "Look into it with the file tools or a command."
    )
    return replace(part, shown=f"[{about} saved at: {path}] {how}")


def _mark_file(mark: Mark, label: Label, real: str) -> None:
    """Store its label before the file is there, as others may read it at once. It blocks."""
    anyio.from_thread.run(mark, real, label)


def decode_short_text(part: File, data: bytes) -> str | None:
    """The text of a short text file, or None for any other file."""
    name = part.name.lower()
    if (
        not (part.mime.startswith("text/") or name.rpartition(".")[2] in TEXT_EXTENSIONS)
        or len(data) > 4 * TEXT_CHARS + 3
    ):
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text if len(text) <= TEXT_CHARS and "\0" not in text else None


def choose_path(files: Workspace, part: File, data: bytes) -> tuple[str, str]:
    """Where to put the bytes in the workspace, and the real path of a file that has them already
    ('' for none). Raises ToolError.

    The name ends with the first digits of the digest, so files with the same name never meet, and
    the same file always gets the same path.
    """
    inner = part.name.replace("\\", "/").rpartition("/")[2]
    plain = PurePosixPath(_UNSAFE_CHARS.sub("_", inner).strip("._") or "file")
    suffix = plain.suffix[:12]
    stem = (
        f"{plain.name.removesuffix(plain.suffix)[:_STEM_CHARS]}-{part.blob.rpartition(':')[2][:8]}"
    )
    for number in range(1, _MAX_SAME_NAME):
        path = f"{RECEIVED_FOLDER}/{stem}{f'-{number}' if number > 1 else ''}{suffix}"
        try:
            found = files.read_opened(path, len(data) + 1)
            if found.data == data:
                return path, found.place.real
        except ToolError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            return path, ""
    raise ToolError(f"there are {_MAX_SAME_NAME} other files of that name in {RECEIVED_FOLDER}/")
