"""The pages and the screen that an agent sees, to look at while it works."""

from __future__ import annotations

from starlette.responses import Response

from ..types.errors import ToolError
from .errors import HttpProblem, not_found, to_sentence
from .media import file_response
from .routing import Call, Endpoint
from .screen_views import Screen
from .visible_sessions import find_session, require_session


async def list_views(call: Call) -> Screen:
    session = await find_session(call)
    if session is None:
        return Screen([])
    return call.web.screen.list_views(call.principal, session)


async def get_picture(call: Call) -> Response:
    session = await require_session(call)
    try:
        found = await call.web.screen.take_picture(call.principal, session, call.path("id"))
    except ToolError as error:
        said = to_sentence(str(error))
        raise HttpProblem(503, "no_picture", said, {"retry-after": "1"}) from error
    if found is None:
        raise not_found("such view")
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
