"""Files that go with a message: sent before it, and fetched back by whoever sees the conversation
that names them."""

from __future__ import annotations

import re
from typing import Annotated

import anyio.to_thread
import msgspec
from starlette.responses import Response

from ..store.queries import forget_uploads, is_blob_in_session, record_upload
from ..tools.pdf_pages import MAX_PAGES
from ..types.errors import BlobMissing
from ..types.marked_texts import mark_text
from .errors import HttpProblem, bad_request, not_found
from .media import file_response
from .names import parse_session_name
from .previews import (
    PreviewView,
    complete_preview,
    is_incomplete,
    make_preview,
    read_as_pdf,
    render_page,
)
from .routing import Call, Endpoint, read_limited
from .visible_sessions import require_session

BLOB_BYTES = 20_000_000
UPLOAD_S = 120.0
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NAME_CHARS = 255
SENDER_TTL_S = 7 * 24 * 3600.0
"""So long it is known who sent a file: longer than it is kept without a conversation that names
it."""


class Named(msgspec.Struct, frozen=True):
    name: str = ""


class InSession(msgspec.Struct, frozen=True):
    """`session` is the conversation that names the file; `name` what it is saved as."""

    session: str
    name: str = ""


class PageIn(msgspec.Struct, frozen=True):
    """`page` of a PDF that the conversation names; the first is 1."""

    session: str
    page: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGES)] = 1


class BlobView(msgspec.Struct, frozen=True):
    """What to attach to a message."""

    blob: str
    name: str
    mime: str
    size_bytes: int


async def put_blob(call: Call) -> BlobView:
    mime = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not _MIME.fullmatch(mime):
        raise HttpProblem(
            415, "no_type", "Say what it is in the header `Content-Type`, such as image/png."
        )
    data = await read_limited(call.request, BLOB_BYTES, UPLOAD_S)
    if not data:
        raise bad_request("The file is empty.")
    name = call.query.name.replace("\\", "/").rpartition("/")[2][:NAME_CHARS]
    name = "".join(each for each in name if each.isprintable()) or "file"
    digest = await call.web.blobs.put(data)
    now = call.web.clock.now()
    await call.web.store.change(
        (forget_uploads(now - SENDER_TTL_S), record_upload(digest, call.principal.id, now))
    )
    return BlobView(digest, name, mime, len(data))


async def get_blob(call: Call) -> Response:
    return file_response((await require_blob(call))[1], call.query.name or "file")


async def require_blob(call: Call) -> tuple[str, bytes]:
    """The session and the bytes of what it names: a digest alone opens nothing. Raises
    HttpProblem."""
    digest = call.path("blob")
    web = call.web
    session = await require_session(
        call, parse_session_name(call.query.session, call.principal, web.admin.agents[0])
    )
    if not _DIGEST.fullmatch(digest) or not await is_blob_in_session(web.store, digest, session):
        raise not_found(mark_text("such file"))
    try:
        return session, await web.blobs.get(digest)
    except BlobMissing as error:
        raise not_found(mark_text("such file")) from error


async def preview(call: Call) -> PreviewView:
    session, data = await require_blob(call)
    found = await anyio.to_thread.run_sync(make_preview, data, len(data), call.query.name or "file")
    if not is_incomplete(found, data):
        return found
    scope = await call.web.admin.tool_scope(session.partition("/")[0])
    async with call.web.pdf_limiter:
        return await complete_preview(
            found, data, scope.host.open_sandbox, has_office=call.web.office.is_available
        )


async def get_blob_page(call: Call) -> Response:
    session, data = await require_blob(call)
    scope = await call.web.admin.tool_scope(session.partition("/")[0])
    data = await read_as_pdf(call.web, data, scope.host.open_sandbox)
    async with call.web.pdf_limiter:
        drawn = await render_page(data, call.query.page, scope.host.open_sandbox)
    return file_response(drawn, f"{call.query.page}.png")


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/blobs",
        "chat",
        put_blob,
        "Upload a file to attach to a message; Content-Type says its type",
        query=Named,
        returns=BlobView,
        status=201,
        raw=True,
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/blobs/{blob}",
        "read",
        get_blob,
        "Get a file that a conversation names",
        query=InSession,
        media="application/octet-stream",
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/blobs/{blob}/preview",
        "read",
        preview,
        "Preview a file that a conversation names",
        query=InSession,
        returns=PreviewView,
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/blobs/{blob}/page",
        "read",
        get_blob_page,
        "Get a page of a PDF that a conversation names, as an image",
        query=PageIn,
        media="image/png",
        tag="files",
    ),
)
