"""An agent's workspace over HTTP: listed, shown, fetched and added to. The kernel keeps every path inside it."""

from __future__ import annotations

import mimetypes
import posixpath
import re
from collections.abc import AsyncGenerator
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote

import anyio.to_thread
import msgspec
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response

from ..tools.paths import Entry, Workspace
from ..types.errors import OutsideWorkspace, ProtectedPath, ToolError
from .errors import Fault, HttpProblem, bad, not_found, sentence
from .routing import Call, Endpoint, limited

PREVIEW_BYTES = 100_000
FILE_BYTES, FILES, UPLOAD_BYTES, UPLOAD_S = 10_000_000, 20, 50_000_000, 300.0
RAW_BYTES = 200_000_000
HIDDEN = frozenset({".agent", ".transcripts", ".tasks", ".team"})
"""Another system's own folders: its listing leaves them out, and so does ours."""
PRIVATE = frozenset({"user.md", "memory"})
STEERING = frozenset({"rules.md", "soul.md", "code.md", "agents.md", "heartbeat.md", "knowledge", "skills", "tools"})
SANDBOXED = {"content-security-policy": "default-src 'none'; sandbox", "x-content-type-options": "nosniff"}
_LANGUAGES = {
    **{".py": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "typescript", ".jsx": "jsx", ".tsx": "tsx"},
    **{".html": "html", ".htm": "html", ".css": "css", ".md": "markdown", ".json": "json", ".jsonl": "json"},
    **{".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".ini": "ini", ".sh": "bash", ".bash": "bash", ".sql": "sql"},
    **{".c": "c", ".h": "c", ".cpp": "cpp", ".hpp": "cpp", ".rs": "rust", ".go": "go", ".java": "java", ".rb": "ruby"},
    **{".php": "php", ".kt": "kotlin", ".swift": "swift", ".lua": "lua", ".r": "r", ".xml": "xml", ".svg": "xml"},
    **{".csv": "csv", ".txt": "text", ".log": "text", ".dockerfile": "dockerfile"},
}


class FileView(msgspec.Struct, frozen=True):
    """A name in a folder. `path` leads to it from the workspace; `modified_at` is seconds since the epoch."""

    name: str
    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified_at: float


class PreviewView(msgspec.Struct, frozen=True):
    """A file to look at. `content` is None where it is no text (`binary`); `truncated`: there is more of it."""

    path: str
    name: str
    size: int
    content: str | None
    binary: bool
    language: str
    truncated: bool


class Where(msgspec.Struct, frozen=True):
    """`agent` is one by name, '' for the first; `path` lies in its workspace."""

    agent: str = ""
    path: str = "."


class Into(msgspec.Struct, frozen=True):
    """`subdir` is a folder of the workspace, made where it is missing."""

    agent: str = ""
    subdir: str = ""


class Uploaded(msgspec.Struct, frozen=True):
    """Where the files lie now, from the workspace."""

    uploaded: list[str]


async def workspace(call: Call, agent: str) -> Workspace:
    """The files of an agent to whom this person may talk. Raises HttpProblem."""
    name = agent or call.web.house.agents[0]
    if name not in call.web.house.agents or not call.web.people.may_talk(call.principal, name):
        await call.web.people.note(call.principal, "files refused", name)
        raise not_found("such agent")
    return (await call.web.house.reach(name)).files


def check_place(call: Call, path: str, *, write: bool = False) -> None:
    """Raises HttpProblem for what of a workspace is the owner's own: what is known of them, and to write, whatever the
    agent is told in everybody's conversations."""
    if "owner" in call.principal.roles:
        return
    parts = posixpath.normpath(path).lower().split("/")
    if set(parts if path.startswith("/") else parts[:1]) & (STEERING | PRIVATE if write else PRIVATE):
        what = "tells the agent what to do" if write else "is known of the owner"
        raise HttpProblem(403, "forbidden", f"{path[:200]!r} is for owners alone: it holds what {what}.")


def plainly(error: ToolError) -> HttpProblem:
    """What is told about a path that cannot be had."""
    if isinstance(error, OutsideWorkspace | ProtectedPath):
        return HttpProblem(403, "forbidden", sentence(str(error)))
    if isinstance(error.__cause__, FileNotFoundError):
        return not_found("such file")
    return bad(sentence(str(error)))


async def listed(call: Call) -> list[FileView]:
    files = await workspace(call, call.query.agent)
    check_place(call, call.query.path)
    return await anyio.to_thread.run_sync(_listed, files, call.query.path or ".")


def _listed(files: Workspace, path: str) -> list[FileView]:
    try:
        entries = files.list(path)
    except ToolError as error:
        raise plainly(error) from error
    top = PurePosixPath(path)
    return [_view(top, entry) for entry in entries if str(top / entry.name) not in HIDDEN]


def _view(folder: PurePosixPath, entry: Entry) -> FileView:
    return FileView(entry.name, str(folder / entry.name), entry.kind, entry.size_bytes, entry.modified_s)


async def preview(call: Call) -> PreviewView:
    files = await workspace(call, call.query.agent)
    check_place(call, call.query.path)
    return await anyio.to_thread.run_sync(previewed, files, call.query.path)


def previewed(files: Workspace, path: str) -> PreviewView:
    """Raises HttpProblem."""
    try:
        size, data = files.stat(path).size_bytes, files.read(path, PREVIEW_BYTES + 4)
    except ToolError as error:
        raise plainly(error) from error
    name = PurePosixPath(path).name
    text = None if b"\0" in data else _text(data[:PREVIEW_BYTES], cut=len(data) > PREVIEW_BYTES)
    language = _LANGUAGES.get(PurePosixPath(name.lower()).suffix, "") if text is not None else ""
    return PreviewView(path, name, size, text, text is None, language or "text", len(data) > PREVIEW_BYTES)


def _text(data: bytes, cut: bool) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if cut and error.start >= len(data) - 3:  # a character that was cut through
            return data[: error.start].decode()
        return None


async def raw(call: Call) -> Response:
    files = await workspace(call, call.query.agent)
    check_place(call, call.query.path)
    return await anyio.to_thread.run_sync(download, files, call.query.path)


def download(files: Workspace, path: str) -> Response:
    """The file as it is, to be kept and not shown. Raises HttpProblem."""
    try:
        if files.stat(path).size_bytes > RAW_BYTES:
            raise HttpProblem(413, "too_large", f"That file is too large to send: at most {RAW_BYTES:,} bytes.")
        data = files.read(path, RAW_BYTES)
    except ToolError as error:
        raise plainly(error) from error
    return attachment(data, PurePosixPath(path).name)


def attachment(data: bytes, name: str, mime: str = "", inline: bool = False) -> Response:
    """Bytes that somebody else chose: no browser runs them, whatever they are."""
    kind = mime or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if not re.fullmatch(r"[\w.+-]+/[\w.+-]+", kind):
        kind = "application/octet-stream"
    shown = "inline" if inline else "attachment"
    disposition = f"{shown}; filename*=utf-8''{quote(name or 'file', safe='')}"
    response = Response(data, media_type=None, headers={**SANDBOXED, "content-disposition": disposition})
    response.headers["content-type"] = kind  # as it is: no charset is claimed
    return response


async def upload(call: Call) -> Uploaded:
    files = await workspace(call, call.query.agent)
    return Uploaded(await keep_uploads(call, files, call.query.subdir))


async def keep_uploads(call: Call, files: Workspace, subdir: str) -> list[str]:
    """Write each part named `files` of a multipart body. Raises HttpProblem, and then nothing was written."""
    given = [(name, data) async for name, data in _parts(call)]
    if not given:
        said = "There is no file in it: send multipart/form-data with one or more parts named `files`."
        raise bad(said, Fault("missing", ("body", "files"), said))
    for name, _ in given:
        check_place(call, str(PurePosixPath(subdir or ".") / name), write=True)
    return await anyio.to_thread.run_sync(_write, files, subdir, given)


async def _parts(call: Call) -> AsyncGenerator[tuple[str, bytes]]:
    kind = call.request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "multipart/form-data":
        said = "Send the files as multipart/form-data, in parts named `files`."
        raise HttpProblem(415, "not_multipart", said, faults=(Fault("missing", ("body", "files"), said),))
    stream = limited(call.request, UPLOAD_BYTES, UPLOAD_S)
    try:
        form = await MultiPartParser(call.request.headers, stream, max_files=FILES, max_fields=FILES).parse()
    except MultiPartException as error:
        raise bad(sentence(error.message)) from error
    try:
        for name, part in form.multi_items():
            if name in ("files", "file") and isinstance(part, UploadFile):
                if (part.size or 0) > FILE_BYTES:
                    most = f"{FILE_BYTES // 1_000_000} MB"
                    raise HttpProblem(413, "too_large", f"{part.filename!r} is too large: a file has at most {most}.")
                yield PurePosixPath((part.filename or "").replace("\\", "/")).name, await part.read()
    finally:
        await form.close()


def _write(files: Workspace, subdir: str, given: list[tuple[str, bytes]]) -> list[str]:
    folder, written = PurePosixPath(subdir or "."), []
    for name, _ in given:
        if name in ("", ".", "..") or name.startswith("."):
            raise bad("Each file needs a name, which does not begin with a dot.")
    for name, data in given:
        path = str(folder / name)
        try:
            files.write(path, data)
        except ToolError as error:
            raise plainly(error) from error
        written.append(path)
    return written


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/files",
        "read",
        listed,
        "A folder of the workspace",
        query=Where,
        returns=list[FileView],
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/files/preview",
        "read",
        preview,
        "The beginning of a file, where it is text",
        query=Where,
        returns=PreviewView,
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/files/raw",
        "read",
        raw,
        "A file, to be kept",
        query=Where,
        media="application/octet-stream",
        tag="files",
    ),
    Endpoint(
        "POST",
        "/api/files",
        "chat",
        upload,
        "Put files into the workspace: multipart/form-data, parts named `files`, 10 MB each",
        query=Into,
        returns=Uploaded,
        raw=True,
        takes="multipart/form-data",
        tag="files",
    ),
)
