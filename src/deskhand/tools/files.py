"""Files of the workspace: read, write and edit."""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import partial
from hashlib import sha256
from typing import Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join
from .aliases import TOOLS as TOOLS_ELSEWHERE
from .base import Context, Done, done, own
from .convert import LIMIT_BYTES, Wanted, convert
from .define import tool
from .documents.kinds import NAMES, kind_of
from .edits import BOM, Replacement, apply_edits
from .marks import label_of, marks_of
from .output import shown
from .patch import apply_patch
from .paths import Workspace
from .watch import changing

READ_BYTES = 10 << 20
READ_LINES = 200_000
DOCUMENT_BYTES = LIMIT_BYTES
DOCUMENTS = ("pdf", "docx", "xlsx", "pptx", "odf", "epub")
"""What read_file gives the text of. Everything else is as it is: source, or refused."""
BINARY_LOOK_BYTES = 1024
REMEMBERED = 2000
"""Files of which the version that a model has read is remembered, over all sessions of an agent."""


@tool(effect="none")
async def read_file(path: str, context: Context, start_line: int = 0, end_line: int = 0) -> Done:
    """Read a text file, or the text of a document (PDF, docx, xlsx, pptx, odt, ods, epub); each line comes as
    `number | text`.

    path: relative to the workspace, or absolute in a folder that is allowed
    start_line: first line to show, from 1
    end_line: last line to show; 0 for the end
    """
    data, marks = await _bytes(path, context, DOCUMENT_BYTES + 1), await marks_of(context)
    remarks = ""
    if data is not None and (kind := kind_of(data, name=path)) in DOCUMENTS:
        found = await convert(data, context.reach.sandbox, Wanted(name=path))
        data, remarks = found.text.encode(), f"\n[the text of a {NAMES[kind]}]\n{found.remarks}".rstrip()
    else:
        data = await _checked(path, data, context)
        _remember(path, data, context)
    numbered, note = await anyio.to_thread.run_sync(_numbered, path, data, start_line, end_line)
    return await shown(numbered, context, marks.of(path), note + remarks)


@tool(effect="local_write", replay="never")
async def write_file(
    path: str,
    content: str,
    context: Context,
    mode: Literal["overwrite", "append", "create"] = "overwrite",
    empty: bool = False,
) -> Done:
    """Write a file, making its folders. What was there is kept for undo. To change parts of a file, use edit_file.

    path: where to write
    content: the whole text, or what is added
    mode: overwrite, append (on a new line), or create, which refuses where a file is already
    empty: allow empty content
    """
    if not content and not empty:
        raise ToolError("the content is empty; say empty=true if that is meant")
    before = await _bytes(path, context, to_write=True)
    if before is not None and mode == "create":
        raise ToolError(f"{path!r} exists already; use another name, or mode overwrite")
    if before is not None and len(before) > READ_BYTES:
        raise ToolError(f"{path!r} is larger than {READ_BYTES >> 20} MB, too large to be kept for undo; use shell")
    data = _written(before, content, mode)
    label = await _label(path, mode == "append", context)
    rows = await _replace("write_file", path, data, context, label)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    verb = "created" if before is None else "added to" if mode == "append" else "replaced"
    result = done(f"ok, {verb} {path}: {lines} lines, {len(data)} bytes", join((own(context), label)))
    return msgspec.structs.replace(result, changes=rows)


@tool(effect="local_write", replay="never")
async def edit_file(path: str, context: Context, edits: list[Replacement] = [], patch: str = "") -> Done:  # noqa: B006
    """Change parts of a file: exact replacements, or a unified diff. All of it happens, or nothing.

    path: the file
    edits: exact replacements, made one after the other
    patch: a unified diff of this one file, instead of edits
    """
    await _open_to_readers(path, context)
    before = await _checked(path, await _bytes(path, context, to_write=True), context)
    await _open_to_readers(path, context)  # when it was read: somebody may be writing it
    known = context.reach.seen.get(_seen_as(path, context))
    if known is not None and known != sha256(before).hexdigest():
        raise ToolError(f"{path!r} has changed since you read it; read it again first")
    after = await anyio.to_thread.run_sync(_changed, path, before, edits, patch)
    if after == before:
        raise ToolError(f"that would change nothing in {path!r}")
    label = await _label(path, True, context)
    rows = await _replace("edit_file", path, after, context, label)
    places = f" in {len(edits)} places" if len(edits) > 1 else ""
    result = done(f"ok, {path} changed{places}", join((own(context), label)))
    return msgspec.structs.replace(result, changes=rows)


def _numbered(path: str, data: bytes, start_line: int, end_line: int) -> tuple[str, str]:
    """The lines with their numbers, and a note when they are not all. Only LF and CRLF end a line, as in editors."""
    lines = data.decode("utf-8-sig", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    first, last = max(start_line, 1), min(end_line if end_line > 0 else len(lines), len(lines))
    if not lines and first == 1:
        return "[the file is empty]", ""
    if first > len(lines):
        raise ToolError(f"{path!r} has only {len(lines)} lines")
    if last < first:
        raise ToolError(f"end_line {end_line} comes before start_line {start_line}")
    last = min(last, first + READ_LINES - 1)
    numbered = "\n".join(f"{n} | {lines[n - 1].removesuffix(chr(13))}" for n in range(first, last + 1))
    return numbered, "" if (first, last) == (1, len(lines)) else f"\n[lines {first}-{last} of {len(lines)}]"


def _changed(path: str, before: bytes, edits: list[Replacement], patch: str) -> bytes:
    """The file's bytes with the change made; a byte order mark and line endings stay. Raises ToolError."""
    if bool(edits) == bool(patch.strip()):
        raise ToolError("give either edits or a patch")
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path!r} is not UTF-8, so it is not edited as text: {error.reason}") from error
    mark = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    return (mark + (apply_patch(text, patch) if patch.strip() else apply_edits(text, edits))).encode()


def _written(before: bytes | None, content: str, mode: str) -> bytes:
    """The bytes of a file that is written."""
    data = content.encode()
    if mode == "append" and before:
        return before + (b"" if before.endswith(b"\n") else b"\n") + data
    return data


class Rewrite(msgspec.Struct, frozen=True):
    """What a call makes of a file. `before` is None where there is none."""

    path: str
    before: bytes | None
    after: bytes


def rewrite_of(name: str, arguments: msgspec.Raw, files: Workspace) -> Rewrite | None:
    """What a call of write_file or edit_file would make of its file, as the file is now; None for other tools. Nothing
    is written. It blocks. Raises ToolError where the call would fail, or the file is too large to look at."""
    tool = {"write_file": write_file, "edit_file": edit_file}.get(TOOLS_ELSEWHERE.get(name, name))
    if tool is None:
        return None
    given = tool.values(arguments)
    path: str = given["path"]
    before = _read_now(path, files)
    if tool is write_file:
        return Rewrite(path, before, _written(before, given["content"], given["mode"]))
    if before is None:
        raise ToolError(f"there is no file {path!r}")
    return Rewrite(path, before, _changed(path, before, given["edits"], given["patch"]))


def _read_now(path: str, files: Workspace) -> bytes | None:
    try:
        before = files.read(path, READ_BYTES + 1, to_write=True)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    if len(before) > READ_BYTES:
        raise ToolError(f"{path!r} is larger than {READ_BYTES >> 20} MB")
    return before


async def _open_to_readers(path: str, context: Context) -> None:
    """Raises ToolError, in the same words whatever stands there, for a file that is not for all who read this
    conversation: whether a change can be made tells what is in it."""
    marks = await marks_of(context)
    if await anyio.to_thread.run_sync(marks.closed, path, context):
        raise ToolError(f"{path!r} is for its owner alone, and others read this conversation")


async def _checked(path: str, data: bytes | None, context: Context) -> bytes:
    """The bytes of a text file. Raises ToolError where there is none, or it is no text, or too much."""
    if data is None:
        near = await anyio.to_thread.run_sync(_similar, path, context)
        hint = f"; did you mean {near.rpartition('/')[2]!r}?" if near else ""
        raise ToolError(f"there is no file {path!r}{hint}", await label_of((near,) if near else (), context))
    if b"\0" in data[:BINARY_LOOK_BYTES]:
        size = f"over {READ_BYTES >> 20} MB" if len(data) > READ_BYTES else f"{len(data)} bytes"
        raise ToolError(f"{path!r} is not a text file ({size})")
    if len(data) > READ_BYTES:
        raise ToolError(f"{path!r} is larger than {READ_BYTES >> 20} MB; read it with shell, in pieces")
    return data


async def _bytes(path: str, context: Context, most: int = READ_BYTES + 1, *, to_write: bool = False) -> bytes | None:
    """The file's bytes (`most` of them), or None where there is none. Raises ToolError where it may not be read, or not
    written where it is `to_write`."""
    try:
        return await anyio.to_thread.run_sync(partial(context.reach.files.read, path, most, to_write=to_write))
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _similar(path: str, context: Context) -> str:
    """What lies beside it and is called nearly so; '' for nothing."""
    folder, _, name = path.rpartition("/")
    try:
        names = [entry.name for entry in context.reach.files.list(folder or ".")]
    except ToolError:
        return ""
    plain = {each.casefold(): each for each in names if each.isprintable()}
    near = get_close_matches(name[:255].casefold(), plain, 1)
    return f"{folder or '.'}/{plain[near[0]]}" if near else ""


async def _replace(tool: str, path: str, data: bytes, context: Context, label: Label) -> tuple[Change, ...]:
    """Write the file, which has this label then; returns the rows that undo it. What was there is on disk before it is
    touched."""
    _, rows = await changing(context, tool, path, lambda: context.reach.files.write(path, data), label)
    _remember(path, data, context)
    return rows


def _remember(path: str, data: bytes, context: Context) -> None:
    """Note which version of a file the model knows."""
    seen, key = context.reach.seen, _seen_as(path, context)
    seen.pop(key, None)
    seen[key] = sha256(data).hexdigest()
    while len(seen) > REMEMBERED:
        del seen[next(iter(seen))]


def _seen_as(path: str, context: Context) -> tuple[str, str]:
    """One name for a file, however the path to it is written."""
    return context.session, os.path.realpath(context.reach.folder / path)


async def _label(path: str, added: bool, context: Context) -> Label:
    """Whose word the file will be. What a person has seen and allowed as it is, is as good as theirs; what was only
    `added` to is also still what it was."""
    label = context.label
    if context.approved:
        label = LOCAL if "owner" in context.principal.roles else replace(LOCAL, by=label.by)
    if added:
        label = join((label, (await marks_of(context)).marked(path)))
    return label


TOOLS = (read_file, write_file, edit_file)
