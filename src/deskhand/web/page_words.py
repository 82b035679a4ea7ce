"""Endpoints for the words on the pages of a PDF: what the page lays over their pictures, so that
they can be selected and searched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..sandbox.base import Sandbox
from ..tools.convert import MAX_DOCUMENT_BYTES
from ..tools.pdf_pages import PageWords, read_words
from ..types.errors import ToolError
from .blobs import InSession, require_blob
from .errors import bad_request, to_sentence
from .files import Where, find_sandbox, read_file
from .routing import Call, Endpoint


async def get_words(call: Call) -> PageWords:
    agent = call.query.agent
    data = (await read_file(call, agent, call.query.path, MAX_DOCUMENT_BYTES + 1)).data
    return await _read(call, data, await find_sandbox(call, agent))


async def get_blob_words(call: Call) -> PageWords:
    session, data = await require_blob(call)
    return await _read(call, data, await find_sandbox(call, session.partition("/")[0]))


async def _read(call: Call, data: bytes, sandbox: Callable[[], Awaitable[Sandbox]]) -> PageWords:
    """Raises HttpProblem."""
    try:
        async with call.web.pdf_limiter:
            return await read_words(data, sandbox)
    except ToolError as error:
        raise bad_request(to_sentence(str(error))) from error


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/files/words",
        "read",
        get_words,
        "Get the words on the pages of a PDF, and where they stand",
        query=Where,
        returns=PageWords,
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/blobs/{blob}/words",
        "read",
        get_blob_words,
        "Get the words on the pages of a PDF that a conversation names, and where they stand",
        query=InSession,
        returns=PageWords,
        tag="files",
    ),
)
