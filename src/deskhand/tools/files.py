"""Files of the workspace: read, write, edit, list and search."""

from __future__ import annotations

from difflib import get_close_matches
from hashlib import sha256

import anyio.to_thread
import msgspec

from ..types.commit import Change
from ..types.errors import ToolError
from .base import Context, Done, done
from .define import tool
from .output import shown
from .patch import apply_patch
from .paths import Entry

READ_BYTES = 10 << 20
BINARY_LOOK_BYTES = 1024
SEARCH_FILE_BYTES = 512 * 1024
SEARCH_HITS = 200
SEARCH_FILES = 20_000
HIDDEN = {"node_modules", "__pycache__"}
FOLDER_ENTRIES = 500


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exact replacement: `old` must stand in the file exactly once."""

    old: str
    new: str


@tool(effect="none")
async def read_file(path: str, context: Context, start_line: int = 0, end_line: int = 0) -> Done:
    """Read a text file; each line comes with its number.

    path: relative to the workspace, or absolute in a folder that is allowed
    start_line: first line to show, from 1
    end_line: last line to show; 0 for the end
    """
    data = await _text_bytes(path, context)
    context.reach.seen[context.session, path] = sha256(data).hexdigest()
    lines = data.decode(errors="replace").splitlines()
    first = max(start_line, 1)
    last = min(end_line or len(lines), len(lines))
    if start_line > len(lines):
        raise ToolError(f"{path!r} has only {len(lines)} lines")
    numbered = "\n".join(f"{n} | {lines[n - 1]}" for n in range(first, last + 1))
    note = f"\n[lines {first}-{last} of {len(lines)}]" if (first, last) != (1, len(lines)) else ""
    return await shown(numbered or "[the file is empty]", context, note=note)


@tool(effect="local_write", replay="never")
async def write_file(path: str, content: str, context: Context, mode: str = "overwrite", empty: bool = False) -> Done:
    """Write a file, making its folders. What was there is kept for undo.

    path: where to write
    content: the whole text, or what is added
    mode: overwrite or append
    empty: allow empty content
    """
    if mode not in ("overwrite", "append"):
        raise ToolError(f"mode {mode!r} is not known: overwrite or append")
    if not content and not empty:
        raise ToolError("the content is empty; say empty=true if that is meant")
    before = await _bytes(path, context)
    data = content.encode()
    if mode == "append" and before:
        data = before + (b"" if before.endswith(b"\n") else b"\n") + data
    await _replace(path, data, context)
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    verb = "created" if before is None else "added to" if mode == "append" else "replaced"
    result = done(f"ok, {verb} {path}: {lines} lines, {len(data)} bytes")
    return msgspec.structs.replace(result, changes=await undo_of(path, before, context))


@tool(effect="local_write", replay="never")
async def edit_file(path: str, context: Context, edits: list[Replacement] | str = "", patch: str = "") -> Done:
    """Change parts of a file: exact replacements, or a unified diff. All of it happens, or nothing.

    path: the file
    edits: a list of {"old": text that stands there exactly once, "new": text instead}
    patch: a unified diff instead of edits
    """
    before = await _text_bytes(path, context)
    known = context.reach.seen.get((context.session, path))
    if known is not None and known != sha256(before).hexdigest():
        raise ToolError(f"{path!r} has changed since you read it; read it again first")
    if isinstance(edits, str):
        edits = _edits_of(edits)
    if bool(edits) == bool(patch):
        raise ToolError("give either edits or a patch")
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path!r} is not UTF-8, so it is not edited as text: {error.reason}") from error
    text = apply_patch(text, patch) if patch else _replaced(path, text, edits)
    await _replace(path, text.encode(), context)
    result = done(f"ok, {path} changed" + (f" in {len(edits)} places" if len(edits) > 1 else ""))
    return msgspec.structs.replace(result, changes=await undo_of(path, before, context))


@tool(effect="none")
async def list_files(context: Context, path: str = ".", depth: int = 2) -> Done:
    """List a folder: folders first, then files with their sizes. Hidden names are left out; links are not followed.

    path: the folder
    depth: how many levels
    """
    lines: list[str] = []
    await anyio.to_thread.run_sync(_walk, context, path, max(1, min(depth, 8)), "", lines)
    return await shown("\n".join(lines) or "[the folder is empty]", context)


@tool(effect="none")
async def search_files(text: str, context: Context, path: str = ".") -> Done:
    """Find lines that contain a text, without regard to case, and files whose name does.

    text: what to look for, as it stands
    path: a folder or a file to look in
    """
    if not text.strip():
        raise ToolError("say what to look for")
    hits = await anyio.to_thread.run_sync(_search, context, path, text.casefold())
    return await shown("\n".join(hits) or f"nothing contains {text!r}", context)


async def _text_bytes(path: str, context: Context) -> bytes:
    """The bytes of a text file. Raises ToolError where there is none, or it is no text, or too much."""
    data = await _bytes(path, context)
    if data is None:
        raise ToolError(f"there is no file {path!r}{await anyio.to_thread.run_sync(_similar, path, context)}")
    if b"\0" in data[:BINARY_LOOK_BYTES]:
        raise ToolError(f"{path!r} is not a text file ({len(data)} bytes)")
    if len(data) > READ_BYTES:
        raise ToolError(f"{path!r} is larger than {READ_BYTES >> 20} MB; read it with shell, in pieces")
    return data


async def _bytes(path: str, context: Context) -> bytes | None:
    """The file's bytes (one more than READ_BYTES at most), or None where there is none."""
    try:
        return await anyio.to_thread.run_sync(context.reach.files.read, path, READ_BYTES + 1)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _similar(path: str, context: Context) -> str:
    folder, _, name = path.rpartition("/")
    try:
        names = [entry.name for entry in context.reach.files.list(folder or ".")]
    except ToolError:
        return ""
    near = get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


async def _replace(path: str, data: bytes, context: Context) -> None:
    await anyio.to_thread.run_sync(context.reach.files.write, path, data)
    context.reach.seen[context.session, path] = sha256(data).hexdigest()


async def undo_of(path: str, before: bytes | None, context: Context) -> tuple[Change, ...]:
    """The row that lets the file be put back as it was; its bytes are on disk when this returns."""
    digest = None if before is None else await context.reach.keep(before)
    return (Change("undo_add", (context.agent, context.session, context.key, path, digest, context.clock.now())),)


def _edits_of(text: str) -> list[Replacement]:
    """Edits that a model wrote as a JSON string."""
    if not text.strip():
        return []
    try:
        return msgspec.json.decode(text, type=list[Replacement])
    except msgspec.ValidationError as error:
        raise ToolError(f"edits must be a list of {{old, new}}: {error}") from error
    except msgspec.DecodeError as error:
        raise ToolError(f"edits is not valid JSON: {error}") from error


def _replaced(path: str, text: str, edits: list[Replacement]) -> str:
    for number, edit in enumerate(edits, 1):
        count = text.count(edit.old) if edit.old else 0
        if count != 1:
            what = "is empty" if not edit.old else "stands nowhere" if count == 0 else f"stands {count} times"
            raise ToolError(f"edit {number} of {path!r}: the old text {what}; copy exactly one passage from the file")
        text = text.replace(edit.old, edit.new)
    return text


def _walk(context: Context, path: str, depth: int, indent: str, lines: list[str]) -> None:
    entries = [entry for entry in context.reach.files.list(path, FOLDER_ENTRIES) if not _hidden(entry)]
    for entry in sorted(entries, key=lambda entry: (entry.kind != "folder", entry.name.casefold())):
        if entry.kind == "folder":
            lines.append(f"{indent}{entry.name}/")
            if depth > 1:
                _walk(context, f"{path}/{entry.name}", depth - 1, indent + "  ", lines)
        else:
            lines.append(
                f"{indent}{entry.name}  {entry.size_bytes} bytes" + (" (link)" if entry.kind == "link" else "")
            )


def _hidden(entry: Entry) -> bool:
    return entry.name.startswith(".") or entry.name in HIDDEN


def _search(context: Context, path: str, wanted: str) -> list[str]:
    hits: list[str] = []
    files = context.reach.files
    todo = [path]
    looked = 0
    while todo and len(hits) < SEARCH_HITS and looked < SEARCH_FILES:
        place = todo.pop(0)
        if files.stat(place).kind == "folder":
            seen = [e for e in files.list(place, FOLDER_ENTRIES) if not _hidden(e) and e.kind in ("folder", "file")]
            todo += [entry.name if place == "." else f"{place}/{entry.name}" for entry in seen]
            continue
        looked += 1
        if wanted in place.rpartition("/")[2].casefold():
            hits.append(place)
        if files.stat(place).size_bytes <= SEARCH_FILE_BYTES:
            hits += _lines_with(files.read(place, SEARCH_FILE_BYTES), place, wanted)
    return hits[:SEARCH_HITS] + ([f"[the first {SEARCH_HITS} hits]"] if len(hits) > SEARCH_HITS else [])


def _lines_with(data: bytes, place: str, wanted: str) -> list[str]:
    if b"\0" in data[:BINARY_LOOK_BYTES]:
        return []
    lines = data.decode(errors="replace").splitlines()
    return [f"{place}:{n}: {line[:300]}" for n, line in enumerate(lines, 1) if wanted in line.casefold()]


TOOLS = (read_file, write_file, edit_file, list_files, search_files)
