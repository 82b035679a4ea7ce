"""The pages and the screen that an agent sees, to look at while it works."""

from __future__ import annotations

from msgspec.structs import replace
from starlette.responses import Response

from ..types.errors import ToolError
from ..types.marked_texts import mark_text
from .errors import HttpProblem, not_found, to_sentence
from .media import file_response
from .routing import Call, Endpoint
from .screen_views import Screen, ScreenView
from .visible_sessions import find_session, require_session

MAX_TITLE_CHARS = 120
MAX_URL_CHARS = 500


async def list_views(call: Call) -> Screen:
    session = await find_session(call)
    if session is None:
        return Screen([])
    found = call.web.screen.list_views(call.principal, session)
    return replace(found, views=[_shorten(call, view) for view in found.views])


def _shorten(call: Call, view: ScreenView) -> ScreenView:
    """What is cut is redacted before: half a secret is not recognised."""
    redact = call.web.redact
    return replace(
        view,
        title=redact(view.title)[:MAX_TITLE_CHARS],
        url=redact(view.url)[:MAX_URL_CHARS],
        program=redact(view.program)[:MAX_TITLE_CHARS],
    )


async def get_picture(call: Call) -> Response:
    session = await require_session(call)
    try:
        found = await call.web.screen.take_picture(call.principal, session, call.path("id"))
    except ToolError as error:
        said = to_sentence(str(error))
        raise HttpProblem(503, "no_picture", said, {"retry-after": "1"}) from error
    if found is None:
        raise not_found(mark_text("such view"))
    response = file_response(found, "screen.jpg")
    response.headers["cache-control"] = "no-store"
    return response


_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/sessions/{name}/screen",
        "read",
        list_views,
        "List the pages and the screen that the agent has open",
        returns=Screen,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/sessions/{name}/screen/{id}",
        "read",
        get_picture,
        "Get a picture of a page or the screen, as the agent sees it now",
        media="image/jpeg",
        tag=_T,
    ),
)
