"""The way in for a browser: a one-time link becomes a cookie that no script can read."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from ..types.errors import Refused
from ..types.marked_texts import mark_text
from ..types.people import OWNER_NAME, TokenRow
from .errors import HttpProblem, to_sentence
from .guard import COOKIE, Guesses, client_of
from .routing import Call, Endpoint
from .speech import SpeechView, describe_speech


class Redeem(msgspec.Struct, frozen=True):
    """What stood behind the `#` of the link; a browser sends that part to nobody."""

    code: str


class PlatformLogin(msgspec.Struct, frozen=True):
    """What the platform of a channel hands to a page that it opens, such as Telegram's
    `initData`."""

    channel: Annotated[str, msgspec.Meta(max_length=64)]
    data: Annotated[str, msgspec.Meta(max_length=10_000)]


class Me(msgspec.Struct, frozen=True):
    """Who this credential is, what they are called, and whether Deskhand hears and speaks.
    `authenticated` is for openagent-core's clients."""

    user: str
    name: str
    roles: tuple[str, ...]
    scopes: tuple[str, ...]
    browser: bool
    authenticated: bool = True
    speech: SpeechView = SpeechView()


async def redeem(call: Call) -> Response:
    """Exchange the code of a one-time link for a cookie. Wrong codes count as wrong tokens do: see
    `Guesses`."""
    guesses: Guesses = call.request.state.guesses
    host = call.request.client.host if call.request.client else ""
    guesses.check_rate(client_of(host))
    found = await call.web.people.redeem_login(call.body.code)
    if found is None:
        guesses.record_failure(client_of(host))
        raise HttpProblem(
            401,
            "link_void",
            mark_text(
                "This link was used already or is older than ten minutes. Run `deskhand "
                "login` for a new one."
            ),
        )
    return _begin_session(call, *found)


async def log_in(call: Call) -> Response:
    """Exchange what a platform has signed for a cookie, where it opens the page inside it. What it
    has not signed counts as a wrong token does."""
    guesses: Guesses = call.request.state.guesses
    host = call.request.client.host if call.request.client else ""
    guesses.check_rate(client_of(host))
    try:
        identity = call.web.channel_webhooks.identify(call.body.channel, call.body.data)
        found = await call.web.people.log_in(identity)
    except Refused as error:
        guesses.record_failure(client_of(host))
        raise HttpProblem(401, "refused", to_sentence(str(error))) from error
    return _begin_session(call, *found)


def _begin_session(call: Call, token: TokenRow, secret: str) -> Response:
    lasts_s = int((token.expires_at or 0.0) - call.web.clock.now())
    response = Response(status_code=204)
    secure = call.origin.startswith("https:")
    response.set_cookie(
        COOKIE, secret, lasts_s, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


async def me(call: Call) -> Me:
    grant = call.grant
    if grant is None:
        raise AssertionError("the table says that this needs a credential")
    who = grant.principal
    name = await call.web.admin.owner_name() if who.id == OWNER_NAME else ""
    return Me(
        who.id,
        name or who.id,
        who.roles,
        grant.scopes,
        browser=grant.browser,
        speech=describe_speech(call),
    )


async def log_out(call: Call) -> Response:
    if call.grant is not None:
        await call.web.people.revoke(call.grant.token_id)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/login",
        "public",
        redeem,
        "Exchange a one-time link for a cookie",
        body=Redeem,
        status=204,
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/login/platform",
        "public",
        log_in,
        "Exchange what a platform has signed for a cookie",
        body=PlatformLogin,
        status=204,
        tag="people",
    ),
    Endpoint(
        "POST", "/api/logout", "read", log_out, "Revoke this credential", status=204, tag="people"
    ),
    Endpoint(
        "GET",
        "/api/auth/me",
        "read",
        me,
        "Get your user and what you may do",
        returns=Me,
        tag="people",
    ),
)
