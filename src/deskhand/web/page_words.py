"""Endpoints for the pages of a PDF or an Office document: how large they are, and the words that
are laid over their pictures, so that they can be selected and searched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..tools.convert import MAX_DOCUMENT_BYTES
from ..tools.pdf_pages import OpenSandbox, PageWords, Sizes, read_page_sizes, read_words
from ..types.errors import ToolError
from .blobs import InSession, require_blob
from .errors import bad_request, to_sentence
from .files import Where, find_sandbox, read_file
from .previews import read_as_pdf
from .routing import Call, Endpoint

Read = TypeVar("Read")


async def get_words(call: Call) -> PageWords:
    return await _read(call, *await _read_file(call), read_words)


async def get_blob_words(call: Call) -> PageWords:
    return await _read(call, *await _read_blob(call), read_words)


async def get_sizes(call: Call) -> Sizes:
    return await _read(call, *await _read_file(call), read_page_sizes)


async def get_blob_sizes(call: Call) -> Sizes:
    return await _read(call, *await _read_blob(call), read_page_sizes)


async def _read_file(call: Call) -> tuple[bytes, OpenSandbox]:
    agent = call.query.agent
    found = await read_file(call, agent, call.query.path, MAX_DOCUMENT_BYTES + 1)
    return found.data, await find_sandbox(call, agent)


async def _read_blob(call: Call) -> tuple[bytes, OpenSandbox]:
    session, data = await require_blob(call)
    return data, await find_sandbox(call, session.partition("/")[0])


async def _read(
    call: Call,
    data: bytes,
    sandbox: OpenSandbox,
    read: Callable[[bytes, OpenSandbox], Awaitable[Read]],
) -> Read:
    """What `read` finds in the document as PDF. Raises HttpProblem."""
    pdf = await read_as_pdf(call.web, data, sandbox)
    try:
        async with call.web.pdf_limiter:
            return await read(pdf, sandbox)
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
    Endpoint(
        "GET",
        "/api/files/pages",
        "read",
        get_sizes,
        "Get the sizes of the pages of a PDF or an Office document",
        query=Where,
        returns=Sizes,
        tag="files",
    ),
    Endpoint(
        "GET",
        "/api/blobs/{blob}/pages",
        "read",
        get_blob_sizes,
        "Get the sizes of the pages of a PDF or an Office document that a conversation names",
        query=InSession,
        returns=Sizes,
        tag="files",
    ),
)
