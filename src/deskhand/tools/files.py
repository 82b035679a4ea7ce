"""Files of the workspace: read, write and edit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..types.commit import Change
from ..types.errors import ToolError
from ..types.identity import responsible_person
from ..types.labels import LOCAL, Label, join_labels
from .aliases import TOOL_ALIASES as TOOLS_ELSEWHERE
from .base import Context, Done, ToolScope, call_label, make_result
from .convert import MAX_DOCUMENT_BYTES, ConversionRequest, convert_document
from .define import tool
from .documents.kinds import KIND_NAMES, detect_kind
from .editor_files import (
    EditorError,
    add_unsaved,
    find_editor,
    mark_uncertain,
    open_editor_write,
)
from .edits import BOM, Replacement, apply_edits
from .label_marks import listing_label, load_marks
from .output import make_bounded_result
from .patch import apply_patch
from .paths import OpenedFile, Place, Workspace
from .skill_history import find_skill_file, make_history_files
from .watch import change_file

MAX_READ_BYTES = 10 << 20
MAX_LINES = 200_000
DOCUMENT_BYTES = MAX_DOCUMENT_BYTES
DOCUMENT_KINDS = ("pdf", "docx", "xlsx", "pptx", "odf", "epub")
"""What read_file gives the text of. Everything else is as it is: source, or refused."""
BINARY_CHECK_BYTES = 1024
FORMATTED_TEXT = "\n[the editor has formatted it; read it again before you edit it]"
MAX_REMEMBERED = 2000
"""Files of which the version that a model has read is remembered, over all sessions of an agent."""


@tool(effect="none")
async def read_file(path: str, context: Context, start_line: int = 0, end_line: int = 0) -> Done:
    """Read a text file, PDF, office document or EPUB as lines `number | text`."""
    opened = await _read_or_none(path, context, DOCUMENT_BYTES + 1)
    remarks = ""
    if opened is not None and (kind := detect_kind(opened.data, name=path)) in DOCUMENT_KINDS:
        label = await _opened_label(opened, context)
        with _label_errors(label):
            found = await convert_document(
                opened.data, context.reach.host.open_sandbox, ConversionRequest(name=path)
            )
        data = found.text.encode()
        remarks = f"\n[the text of a {KIND_NAMES[kind]}]\n{found.remarks}".rstrip()
    else:
        opened = await _require_text_file(path, opened, context)
        label = await _opened_label(opened, context)
        data = opened.data
        _remember_version(path, data, context)
    numbered, note = await anyio.to_thread.run_sync(_number_lines, path, data, start_line, end_line)
    return await make_bounded_result(numbered, context, label, note + remarks)


@tool(effect="local_write", replay="never")
async def write_file(
    path: str,
    content: str,
    context: Context,
    mode: Literal["overwrite", "append", "create"] = "overwrite",
    empty: bool = False,
) -> Done:
    """Write a whole file; change parts with edit_file."""
    if not content and not empty:
        raise ToolError("the content is empty; set empty=true if that is intended")
    before = await _read_or_none(path, context, to_write=True)
    if before is not None and mode == "create":
        raise ToolError(f"{path!r} exists already; use another name, or mode overwrite")
    if before is not None and len(before.data) > MAX_READ_BYTES:
        raise ToolError(
            f"{path!r} is larger than {MAX_READ_BYTES >> 20} MB, too large to be kept for undo; "
            "use shell"
        )
    data = _new_content(before.data if before is not None else None, content, mode)
    label = await _written_label(before if mode == "append" else None, context)
    written = await write_undoable("write_file", path, data, context, label, before)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    verb = "added to" if mode == "append" else "replaced"
    if before is None:
        verb = "created"
    result = make_result(
        f"ok, {verb} {path}: {lines} lines, {len(data)} bytes{written.remark}",
        join_labels((call_label(context), label)),
    )
    return msgspec.structs.replace(result, changes=written.rows)


@tool(effect="local_write", replay="never")
async def edit_file(
    path: str,
    context: Context,
    edits: list[Replacement] = [],  # noqa: B006 -- becomes a schema
    patch: str = "",
) -> Done:
    """Change parts of a file by `edits` or `patch`.

    patch: a unified diff
    """
    opened = await _read_or_none(path, context, to_write=True)
    await _check_readers(path, opened, context)
    before = await _require_text_file(path, opened, context)
    known = context.reach.seen.get(_version_key(path, context))
    if known is not None and known != sha256(before.data).hexdigest():
        raise ToolError(f"{path!r} has changed since you read it; read it again first")
    with _label_errors(await _opened_label(before, context)):
        after = await anyio.to_thread.run_sync(_apply_change, path, before.data, edits, patch)
    if after == before.data:
        raise ToolError(f"this would not change {path!r}")
    label = await _written_label(before, context)
    written = await write_undoable("edit_file", path, after, context, label, before)
    places = f" in {len(edits)} places" if len(edits) > 1 else ""
    words = f"ok, {path} changed{places}{written.remark}"
    result = make_result(words, join_labels((call_label(context), label)))
    return msgspec.structs.replace(result, changes=written.rows)


def _number_lines(path: str, data: bytes, start_line: int, end_line: int) -> tuple[str, str]:
    """The lines with their numbers, and a note when they are not all. Only LF and CRLF end a line,
    as in editors."""
    lines = data.decode("utf-8-sig", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    first = max(start_line, 1)
    last = min(end_line if end_line > 0 else len(lines), len(lines))
    if not lines and first == 1:
        return "[the file is empty]", ""
    if first > len(lines):
        raise ToolError(f"{path!r} has only {len(lines)} lines")
    if last < first:
        raise ToolError(f"end_line {end_line} comes before start_line {start_line}")
    last = min(last, first + MAX_LINES - 1)
    shown = enumerate(lines[first - 1 : last], first)
    numbered = "\n".join(f"{number} | {line.removesuffix(chr(13))}" for number, line in shown)
    if (first, last) == (1, len(lines)):
        return numbered, ""
    return numbered, f"\n[lines {first}-{last} of {len(lines)}]"


def _apply_change(path: str, before: bytes, edits: list[Replacement], patch: str) -> bytes:
    """The file's bytes with the change made; a byte order mark and line endings stay. Raises
    ToolError."""
    if bool(edits) == bool(patch.strip()):
        raise ToolError("give either edits or a patch")
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{path!r} is not UTF-8, so it is not edited as text: {error.reason}"
        ) from error
    mark = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    return (
        mark + (apply_patch(text, patch) if patch.strip() else apply_edits(text, edits))
    ).encode()


def _new_content(before: bytes | None, content: str, mode: str) -> bytes:
    """The bytes of a file that is written."""
    data = content.encode()
    if mode == "append" and before:
        return before + (b"" if before.endswith(b"\n") else b"\n") + data
    return data


class PlannedEdit(msgspec.Struct, frozen=True):
    """What a call is to make of a file, and the file as it was read, None where there is none."""

    path: str
    given: dict[str, Any]
    before: OpenedFile | None
    edits: bool


class Rewrite(msgspec.Struct, frozen=True):
    """What a call makes of a file. `before` is None where there is none."""

    path: str
    before: bytes | None
    after: bytes


def plan_rewrite(
    name: str, arguments: msgspec.Raw, reach: ToolScope, session: str
) -> PlannedEdit | None:
    """What a call of write_file or edit_file is to make, with its file as it is now, in the editor
    too; None for other tools. It blocks. Raises ToolError where the call would fail, or the file is
    too large to look at."""
    tool = {"write_file": write_file, "edit_file": edit_file}.get(TOOLS_ELSEWHERE.get(name, name))
    if tool is None:
        return None
    given = tool.decode_values(arguments)
    before = _read_current(given["path"], reach.files)
    if before is not None:
        before = add_unsaved(before, find_editor(reach, session), reach)
    return PlannedEdit(given["path"], given, before, tool is edit_file)


def make_rewrite(plan: PlannedEdit) -> Rewrite:
    """What comes of it; nothing is written. It blocks. Raises ToolError where the call would fail,
    with words that may quote the file."""
    path = plan.path
    given = plan.given
    before = plan.before.data if plan.before is not None else None
    if not plan.edits:
        return Rewrite(path, before, _new_content(before, given["content"], given["mode"]))
    if before is None:
        raise ToolError(f"there is no file {path!r}")
    return Rewrite(path, before, _apply_change(path, before, given["edits"], given["patch"]))


def _read_current(path: str, files: Workspace) -> OpenedFile | None:
    try:
        before = files.read_opened(path, MAX_READ_BYTES + 1, to_write=True)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    if len(before.data) > MAX_READ_BYTES:
        raise ToolError(f"{path!r} is larger than {MAX_READ_BYTES >> 20} MB")
    return before


async def _opened_label(opened: OpenedFile, context: Context) -> Label:
    """The label of what was read, asked for when it was."""
    marks = await load_marks(context)
    return await anyio.to_thread.run_sync(marks.file_label, opened.place)


@contextmanager
def _label_errors(label: Label) -> Iterator[None]:
    """What goes wrong with what was read may quote it, so that it has its label."""
    try:
        yield
    except ToolError as error:
        raise ToolError(str(error), join_labels((label, error.label))) from error


async def _check_readers(path: str, opened: OpenedFile | None, context: Context) -> None:
    """Raises ToolError, in the same words whatever stands there, or would, for a file that is not
    for all who read this conversation: whether a change can be made tells what is in it."""
    marks = await load_marks(context)
    if opened is not None:
        place = opened.place
    else:
        place = await anyio.to_thread.run_sync(marks.resolve_place, path)
    if await anyio.to_thread.run_sync(marks.is_hidden_from, place, context):
        raise ToolError(f"{path!r} is only for its owner, and others can read this conversation")


async def _require_text_file(path: str, opened: OpenedFile | None, context: Context) -> OpenedFile:
    """The text file that was read. Raises ToolError where there is none, or it is no text, or too
    much."""
    if opened is None:
        near = await anyio.to_thread.run_sync(_find_similar, path, context)
        name = near.real.rpartition("/")[2] if near is not None else ""
        hint = f"; did you mean {name!r}?" if name else ""
        raise ToolError(
            f"there is no file {path!r}{hint}",
            await listing_label((near,) if near is not None else (), context),
        )
    data = opened.data
    if b"\0" in data[:BINARY_CHECK_BYTES]:
        size = f"{len(data)} bytes"
        if len(data) > MAX_READ_BYTES:
            size = f"over {MAX_READ_BYTES >> 20} MB"
        raise ToolError(
            f"{path!r} is not a text file ({size})", await _opened_label(opened, context)
        )
    if len(data) > MAX_READ_BYTES:
        raise ToolError(
            f"{path!r} is larger than {MAX_READ_BYTES >> 20} MB; read it with shell, in pieces"
        )
    return opened


async def _read_or_none(
    path: str, context: Context, most: int = MAX_READ_BYTES + 1, *, to_write: bool = False
) -> OpenedFile | None:
    """The file with `most` of its bytes, or None where there is none. Raises ToolError where it may
    not be read, or not written where it is `to_write`."""
    try:
        opened = await anyio.to_thread.run_sync(
            partial(context.reach.files.read_opened, path, most, to_write=to_write)
        )
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    editor = find_editor(context.reach, context.session)
    if editor is None:
        return opened
    return await anyio.to_thread.run_sync(
        add_unsaved, opened, editor, context.reach, context.key, abandon_on_cancel=True
    )


def _find_similar(path: str, context: Context) -> Place | None:
    """What lies beside it and is called nearly so; None for nothing."""
    folder, _, name = path.rpartition("/")
    try:
        listed = context.reach.files.list_folder(folder or ".")
    except ToolError:
        return None
    plain = {entry.name.casefold(): entry for entry in listed.entries if entry.name.isprintable()}
    near = get_close_matches(name[:255].casefold(), plain, 1)
    return listed.place_of(plain[near[0]]) if near else None


class WrittenFile(msgspec.Struct, frozen=True):
    """The rows that undo it, and a remark on it for the model, or ''."""

    rows: tuple[Change, ...]
    remark: str = ""


async def write_undoable(
    tool: str,
    path: str,
    data: bytes,
    context: Context,
    label: Label,
    before: OpenedFile | None = None,
) -> WrittenFile:
    """Write the file, which has this label then. What was there is on disk before it is touched. Of
    a skill the earlier versions are kept. `before` is what the new content was made of."""
    write = context.reach.files.write
    further: Sequence[tuple[str, bytes]] = ()
    kept_label = label
    if skill := find_skill_file(path, context):
        former = await _read_or_none(path, context, to_write=True)
        old = former.data if former is not None else None
        further = await anyio.to_thread.run_sync(make_history_files, skill, old, data, context)
        if former is not None:
            kept_label = join_labels((label, await _opened_label(former, context)))
    writing = await open_editor_write(path, data, before, context)
    remark = ""
    if writing is None:
        rows = await change_file(context, tool, path, partial(write, path, data), label)
    else:
        try:
            rows = await change_file(context, tool, path, writing.write, label)
        except EditorError:
            await mark_uncertain(writing, context)
            raise
        if not await anyio.to_thread.run_sync(writing.is_as_given):
            remark = FORMATTED_TEXT
    for kept, content in further:
        with suppress(ToolError):  # the skill itself is written, and that is what was asked for
            act = partial(write, kept, content)
            rows += await change_file(context, tool, kept, act, kept_label)
    _remember_version(path, data, context)
    return WrittenFile(rows, remark)


def _remember_version(path: str, data: bytes, context: Context) -> None:
    """Note which version of a file the model knows."""
    seen = context.reach.seen
    key = _version_key(path, context)
    seen.pop(key, None)
    seen[key] = sha256(data).hexdigest()
    while len(seen) > MAX_REMEMBERED:
        del seen[next(iter(seen))]


def _version_key(path: str, context: Context) -> tuple[str, str]:
    """One name for a file, however the path to it is written."""
    return context.session, os.path.realpath(context.reach.folder / path)


async def _written_label(kept: OpenedFile | None, context: Context) -> Label:
    """Whose word the file will be. What a person has seen and allowed as it is, is as good as
    theirs, and still the word of who asked for it; what is `kept` of what was there is also still
    what it was."""
    label = context.label
    if (approver := context.approver) is not None:
        by = set[str]() if "owner" in context.principal.roles else {*label.by}
        if "owner" not in approver.roles:
            by |= {*label.by, responsible_person(approver)}
        label = replace(LOCAL, by=tuple(sorted(by)))
    if kept is not None:
        label = join_labels((label, (await load_marks(context)).marked_label(kept.place)))
    return label


TOOLS = (read_file, write_file, edit_file)
