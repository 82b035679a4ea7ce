"""An agent's workspace over HTTP: listed, shown, fetched and added to. The kernel keeps every path
inside it."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import anyio.to_thread
import msgspec
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response

from ..policy.information_flow import may_see
from ..sandbox.base import Sandbox
from ..tools.convert import MAX_DOCUMENT_BYTES
from ..tools.label_marks import load_scope_marks
from ..tools.names import describe_lookalikes, display_name
from ..tools.notes import By
from ..tools.paths import Entry, Listed, OpenedFile, Place, Workspace
from ..tools.pdf_pages import MAX_PAGES
from ..tools.watch import change_file_as
from ..types.errors import OutsideWorkspace, ProtectedPath, ToolError
from ..types.identity import Principal, list_reader_names, responsible_person
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from .errors import FieldError, HttpProblem, bad_request, not_found, to_sentence
from .media import file_response
from .previews import (
    PREVIEW_BYTES,
    TABLE_BYTES,
    PreviewView,
    complete_preview,
    is_incomplete,
    make_preview,
    read_as_pdf,
    render_page,
)
from .protocols import Web
from .routing import Call, Endpoint, stream_limited

FILE_BYTES = 10_000_000
FILES = 20
UPLOAD_BYTES = 50_000_000
UPLOAD_S = 300.0
RAW_BYTES = 200_000_000
HIDDEN = frozenset({".agent", ".transcripts", ".tasks", ".team"})
"""Another system's own folders: its listing leaves them out, and so does ours."""
PRIVATE = frozenset({"user.md", "memory"})
STEERING = frozenset(
    {"rules.md", "soul.md", "code.md", "agents.md", "heartbeat.md", "knowledge", "skills", "tools"}
)


class FileView(msgspec.Struct, frozen=True):
    """A name in a folder. `path` leads to it from the workspace; `modified_at` is seconds since the
    epoch; it and the size of a folder are told to owners, and are 0 for others. `shown` is the name
    with what nobody sees written out, and `note` says so where another name in the folder looks
    like it."""

    name: str
    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified_at: float
    shown: str = ""
    note: str = ""


class Where(msgspec.Struct, frozen=True):
    """`agent` is one by name, '' for the first; `path` lies in its workspace."""

    agent: str = ""
    path: str = "."


class PageOf(msgspec.Struct, frozen=True):
    """`page` of the PDF at `path`; the first is 1."""

    agent: str = ""
    path: str = "."
    page: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGES)] = 1


class Into(msgspec.Struct, frozen=True):
    """`subdir` is a folder of the workspace, made where it is missing."""

    agent: str = ""
    subdir: str = ""


class TextEdit(msgspec.Struct, frozen=True):
    """The new text of a file. `digest` is that of the preview that was edited: nothing is written
    over what was changed since."""

    path: str
    content: str
    digest: str
    agent: str = ""


class WrittenBy(msgspec.Struct, frozen=True):
    """How somebody writes a file of an agent. `check` is told its real path before it is written;
    what it raises ends it. `label` is what the file counts as, but for others than owners."""

    agent: str
    tool: str
    check: Callable[[str], None] = lambda real: None
    label: Label = LOCAL


class Uploaded(msgspec.Struct, frozen=True):
    """Where the files lie now, from the workspace."""

    uploaded: list[str]


async def require_workspace(call: Call, agent: str) -> Workspace:
    """The files of an agent to whom this person may talk. Raises HttpProblem."""
    name = agent or call.web.admin.agents[0]
    if name not in call.web.admin.agents or not call.web.people.may_talk(call.principal, name):
        await call.web.people.add_audit_note(call.principal, "files refused", name)
        raise not_found(mark_text("such agent"))
    return (await call.web.admin.tool_scope(name)).files


def check_place(call: Call, path: str, *, write: bool = False, asked: str = "") -> None:
    """Raises HttpProblem for what of a workspace is the owner's own: what is known of them, and to
    write, whatever the agent is told in everybody's conversations. It is called as they `asked` for
    it, not as where that leads."""
    if "owner" in call.principal.roles:
        return
    parts = posixpath.normpath(path).lower().split("/")
    if set(parts if path.startswith("/") else parts[:1]) & (
        STEERING | PRIVATE if write else PRIVATE
    ):
        what = "tells the agent what to do" if write else "is known of the owner"
        raise HttpProblem(
            403,
            "forbidden",
            f"{(asked or path)[:200]!r} is for owners alone: it holds what {what}.",
        )


def path_problem(error: ToolError) -> HttpProblem:
    """What is told about a path that cannot be had."""
    if isinstance(error, OutsideWorkspace | ProtectedPath):
        return HttpProblem(403, "forbidden", to_sentence(str(error)))
    if isinstance(error.__cause__, FileNotFoundError):
        return not_found(mark_text("such file"))
    return bad_request(to_sentence(str(error)))


async def list_folder(call: Call) -> list[FileView]:
    files = await require_workspace(call, call.query.agent)
    path = call.query.path or "."
    check_place(call, path)
    found = await anyio.to_thread.run_sync(_read_folder, files, path)
    check_place(call, files.relative_path(found.place.real), asked=path)
    places = [found.place_of(entry) for entry in found.entries]
    seen = await which_visible(call.web, call.principal, call.query.agent, places)
    top = PurePosixPath(path)
    shown = [entry for entry, may in zip(found.entries, seen, strict=True) if may]
    twins = describe_lookalikes(entry.name for entry in shown)
    views = [
        _make_view(top, entry, twins.get(entry.name, ""))
        for entry in shown
        if str(top / entry.name) not in HIDDEN
    ]
    return views if "owner" in call.principal.roles else [_strip_details(view) for view in views]


def _read_folder(files: Workspace, path: str) -> Listed:
    try:
        return files.list_folder(path)
    except ToolError as error:
        raise path_problem(error) from error


def _strip_details(view: FileView) -> FileView:
    """What those who may not see all are told: the size of a folder follows what lies in it, and
    any time can be set without a trace."""
    return msgspec.structs.replace(
        view, size=view.size if view.kind == "file" else 0, modified_at=0.0
    )


async def which_visible(
    web: Web, principal: Principal, agent: str, places: Sequence[Place]
) -> list[bool]:
    """Which of these files, and of their names, are for this person. What is known of the owner is
    for owners. It is asked when they were read."""
    marks = await load_scope_marks(await web.admin.tool_scope(agent or web.admin.agents[0]))
    readers = list_reader_names(principal)
    return await anyio.to_thread.run_sync(
        lambda: [may_see(marks.listing_label((place,)), readers) for place in places]
    )


def _make_view(folder: PurePosixPath, entry: Entry, note: str) -> FileView:
    path = str(folder / entry.name)
    return FileView(
        entry.name,
        path,
        entry.kind,
        entry.size_bytes,
        entry.modified_s,
        display_name(entry.name),
        note,
    )


async def read_file(call: Call, agent: str, path: str, most: int) -> OpenedFile:
    """A file of an agent, at most so many bytes of it. It is judged by what the kernel has opened,
    when it was read. Raises HttpProblem for one that is not for this person: the owner's own, or
    one whose label names other readers."""
    files = await require_workspace(call, agent)
    check_place(call, path)
    if "\0" in path:
        raise bad_request("A path has no character 0.")
    try:
        found = await anyio.to_thread.run_sync(files.read_opened, path, most)
    except ToolError as error:
        raise path_problem(error) from error
    check_place(call, files.relative_path(found.place.real), asked=path)
    if not all(await which_visible(call.web, call.principal, agent, (found.place,))):
        await call.web.people.add_audit_note(call.principal, "file refused", path[:200])
        raise HttpProblem(
            403, "forbidden", f"{path[:200]!r} is for others alone: what went into it is."
        )
    return found


async def get_preview(call: Call) -> PreviewView:
    agent = call.query.agent
    path = call.query.path
    found = await read_file(call, agent, path, TABLE_BYTES)
    view = make_preview(found.data, found.size_bytes, path)
    if not is_incomplete(view, found.data):
        return view
    data = (await read_file(call, agent, path, MAX_DOCUMENT_BYTES + 1)).data
    sandbox = await find_sandbox(call, agent)
    async with call.web.pdf_limiter:
        return await complete_preview(view, data, sandbox, has_office=call.web.office.is_available)


async def preview_file(call: Call, agent: str, path: str) -> PreviewView:
    """What there is to see of a file. Raises HttpProblem."""
    found = await read_file(call, agent, path, TABLE_BYTES)
    return make_preview(found.data, found.size_bytes, path)


async def find_sandbox(call: Call, agent: str) -> Callable[[], Awaitable[Sandbox]]:
    """What opens the sandbox of this agent."""
    return (await call.web.admin.tool_scope(agent or call.web.admin.agents[0])).host.open_sandbox


async def get_page(call: Call) -> Response:
    data = (await read_file(call, call.query.agent, call.query.path, MAX_DOCUMENT_BYTES + 1)).data
    sandbox = await find_sandbox(call, call.query.agent)
    data = await read_as_pdf(call.web, data, sandbox)
    async with call.web.pdf_limiter:
        drawn = await render_page(data, call.query.page, sandbox)
    return file_response(drawn, f"{call.query.page}.png")


async def get_raw(call: Call) -> Response:
    return await download(call, call.query.agent, call.query.path)


async def download(call: Call, agent: str, path: str) -> Response:
    """The file as it is: a picture to be shown, all else to be kept. Raises HttpProblem."""
    found = await read_file(call, agent, path, RAW_BYTES + 1)
    if len(found.data) > RAW_BYTES:
        raise HttpProblem(
            413,
            "too_large",
            mark_text("That file is too large to send: at most {most_number} bytes.").format(
                most_number=f"{RAW_BYTES:,}"
            ),
        )
    return file_response(found.data, PurePosixPath(path).name)


async def save_text(call: Call) -> PreviewView:
    """Write a text that somebody edited, if the file is still as they saw it. Raises HttpProblem
    409 where it is not."""
    asked: TextEdit = call.body
    agent = asked.agent or call.web.admin.agents[0]
    found = await read_file(call, agent, asked.path, PREVIEW_BYTES + 1)
    reach = await call.web.admin.tool_scope(agent)
    marks = await load_scope_marks(reach)
    before = marks.file_label(found.place)

    def check_unchanged(real: str) -> None:
        if sha256(Path(real).read_bytes()).hexdigest() != asked.digest:
            raise HttpProblem(
                409,
                "changed",
                mark_text("{file} was changed since you opened it.").format(
                    file=repr(asked.path[:200])
                ),
            )

    text = asked.content.encode()
    await _write_as(call, WrittenBy(agent, "edit", check_unchanged, before), asked.path, text)
    return make_preview(text, len(text), asked.path)


async def upload(call: Call) -> Uploaded:
    return Uploaded(await keep_uploads(call, call.query.agent, call.query.subdir))


async def keep_uploads(call: Call, agent: str, subdir: str) -> list[str]:
    """Write each part named `files` of a multipart body. Who sends a file need not have written it:
    but for owners, who may put there what they want, it is from outside, and on the word of who
    sends it. Raises HttpProblem, and then nothing was written."""
    await require_workspace(call, agent)
    given = [(name, data) async for name, data in _read_parts(call)]
    if not given:
        said = (
            "There is no file in it: send multipart/form-data with one or more parts named `files`."
        )
        raise bad_request(said, FieldError("missing", ("body", "files"), said))
    for name, _ in given:
        check_place(call, str(PurePosixPath(subdir or ".") / name), write=True)
    for name, _ in given:
        if name in ("", ".", "..") or name.startswith("."):
            raise bad_request("Each file needs a name, which does not begin with a dot.")
    by = WrittenBy(agent or call.web.admin.agents[0], "upload")
    return [
        await _write_as(call, by, str(PurePosixPath(subdir or ".") / file), data)
        for file, data in given
    ]


async def _read_parts(call: Call) -> AsyncGenerator[tuple[str, bytes]]:
    kind = call.request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "multipart/form-data":
        said = "Send the files as multipart/form-data, in parts named `files`."
        raise HttpProblem(
            415, "not_multipart", said, faults=(FieldError("missing", ("body", "files"), said),)
        )
    stream = stream_limited(call.request, UPLOAD_BYTES, UPLOAD_S)
    try:
        form = await MultiPartParser(
            call.request.headers, stream, max_files=FILES, max_fields=FILES
        ).parse()
    except MultiPartException as error:
        raise bad_request(to_sentence(error.message)) from error
    try:
        for name, part in form.multi_items():
            if name in ("files", "file") and isinstance(part, UploadFile):
                if (part.size or 0) > FILE_BYTES:
                    most = f"{FILE_BYTES // 1_000_000} MB"
                    raise HttpProblem(
                        413,
                        "too_large",
                        mark_text("{file} is too large: a file has at most {most_size}.").format(
                            file=repr(part.filename), most_size=most
                        ),
                    )
                yield (
                    PurePosixPath((part.filename or "").replace("\\", "/")).name,
                    await part.read(),
                )
    finally:
        await form.close()


async def _write_as(call: Call, by: WrittenBy, path: str, data: bytes) -> str:
    """Write a file for somebody, as a change that can be undone. Returns where it lies. Raises
    HttpProblem."""
    reach = await call.web.admin.tool_scope(by.agent)
    who = call.principal
    name = PurePosixPath(path).name
    label = by.label
    if "owner" not in who.roles:
        own = Label("untrusted", source=f"file {name}", by=(responsible_person(who),))
        label = join_labels((label, own))

    def judge(real: str) -> None:
        check_place(call, reach.files.relative_path(real), write=True, asked=name)
        by.check(real)

    act = partial(reach.files.write, path, data, judge=judge)
    doer = By(
        call.web.ids.new(by.tool),
        by.agent,
        "",
        responsible_person(who),
        by.tool,
        path,
        call.web.clock.now(),
    )
    try:
        rows = await change_file_as(reach, doer, path, act, (label, label))
    except ToolError as error:
        raise path_problem(error) from error
    if rows and reach.shadow is not None:
        await reach.shadow.commit(rows)
    return path


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/files",
        "read",
        list_folder,
        "List a folder of the workspace",
        query=Where,
        returns=list[FileView],
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/files/preview",
        "read",
        get_preview,
        "Preview a file: its text, the rows of a table, or the number of pages of a PDF",
        query=Where,
        returns=PreviewView,
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/files/page",
        "read",
        get_page,
        "Get a page of a PDF as an image",
        query=PageOf,
        media="image/png",
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/files/raw",
        "read",
        get_raw,
        "Get a file; images are shown, other files are downloaded",
        query=Where,
        media="application/octet-stream",
        tag="files",
    ),
    Endpoint(
        "PUT",
        "/api/files/text",
        "chat",
        save_text,
        "Save a text file, if nobody changed it since it was previewed",
        body=TextEdit,
        returns=PreviewView,
        tag="files",
    ),
    Endpoint(
        "POST",
        "/api/files",
        "chat",
        upload,
        "Upload files to the workspace: multipart/form-data, parts named `files`, 10 MB each",
        query=Into,
        returns=Uploaded,
        raw=True,
        takes="multipart/form-data",
        tag="files",
    ),
)
