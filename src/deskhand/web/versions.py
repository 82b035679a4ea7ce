"""What a file was before, and which files a conversation made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated

import anyio.to_thread
import msgspec

from ..tools.journal import MadeFile
from ..tools.paths import Place, Workspace
from ..types.errors import Refused, ToolError
from ..types.marked_texts import mark_text
from .changes import MAX_NUMBER
from .errors import HttpProblem, not_found
from .files import PRIVATE, Where, read_file, require_workspace, which_visible
from .names import format_session_name
from .previews import PreviewView, make_preview
from .routing import Call, Endpoint
from .views import VersionView
from .visible_sessions import require_session


class OfVersion(msgspec.Struct, frozen=True):
    """The file at `path` as change `n` left it."""

    agent: str = ""
    path: str = "."
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)] = 1


class MadeView(msgspec.Struct, frozen=True):
    """A file that a conversation made or changed, and when it did so last (seconds since the
    epoch)."""

    name: str
    path: str
    size: int
    at: float


async def list_versions(call: Call) -> list[VersionView]:
    agent, path = await _find_file(call)
    found = await call.web.admin.list_versions(call.principal, agent, path)
    return [_with_session_name(call, each) for each in found]


async def preview_version(call: Call) -> PreviewView:
    agent, path = await _find_file(call)
    try:
        data = await call.web.admin.read_version(call.principal, agent, path, call.query.n)
    except Refused as error:
        raise not_found(mark_text("such version")) from error
    return await anyio.to_thread.run_sync(make_preview, data, len(data), path)


async def _find_file(call: Call) -> tuple[str, str]:
    """The agent, and the path of the file that it has there now: whoever may not read that has
    nothing to do with its versions. Raises HttpProblem."""
    agent = call.query.agent or call.web.admin.agents[0]
    found = await read_file(call, agent, call.query.path, 0)
    files = await require_workspace(call, agent)
    return agent, files.relative_path(found.place.real)


def _with_session_name(call: Call, found: VersionView) -> VersionView:
    if not found.session:
        return found
    name = format_session_name(found.session, call.principal, call.web.admin.agents[0])
    return msgspec.structs.replace(found, session=name)


async def list_made(call: Call) -> list[MadeView]:
    session = await require_session(call)
    agent = session.partition("/")[0]
    try:
        files = await require_workspace(call, agent)
    except HttpProblem:
        return []
    made = await call.web.admin.list_made(session)
    if "owner" not in call.principal.roles:
        made = [each for each in made if PurePosixPath(each.path).parts[0].lower() not in PRIVATE]
    found = await anyio.to_thread.run_sync(_find_files, files, made)
    places = [place for place, _ in found]
    seen = await which_visible(call.web, call.principal, agent, places)
    return [view for (_, view), may in zip(found, seen, strict=True) if may]


def _find_files(files: Workspace, made: Sequence[MadeFile]) -> list[tuple[Place, MadeView]]:
    """Those that are still there, and files."""
    found = []
    for each in made:
        try:
            place = files.find_place(each.path)
            entry = files.stat(each.path)
        except ToolError:
            continue
        if entry.kind == "file":
            view = MadeView(PurePosixPath(each.path).name, each.path, entry.size_bytes, each.at)
            found.append((place, view))
    return found


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/files/versions",
        "read",
        list_versions,
        "List the changes of a file that are kept",
        query=Where,
        returns=list[VersionView],
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/files/version",
        "read",
        preview_version,
        "Preview a file as a change left it",
        query=OfVersion,
        returns=PreviewView,
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/sessions/{name}/files",
        "read",
        list_made,
        "List the files that a conversation made or changed",
        returns=list[MadeView],
        tag="files",
    ),
)
