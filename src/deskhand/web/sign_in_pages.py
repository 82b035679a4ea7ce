"""The way to the provider at which people sign in, such as Google, and back: who comes back gets a
one-time login link, as `deskhand login` prints it.

What belongs to one sign-in lies in a cookie of the browser that began it.
"""

from __future__ import annotations

import html
import secrets

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..languages.catalogue import list_languages
from ..types.errors import DeskhandError
from ..types.marked_texts import mark_text
from .errors import HttpProblem
from .guard import Guesses, client_of
from .routing import Call, Endpoint
from .sign_in import SignIn

COOKIE = "deskhand-sign-in"
PATH = "/auth"
CALLBACK = f"{PATH}/callback"
LASTS_S = 600
TITLE = mark_text("Not signed in")
REFUSED_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="languages" content="{languages}">
<title>{title} · Deskhand</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/css/tokens.css">
<link rel="stylesheet" href="/css/shell.css">
<script src="/js/boot.js"></script>
<script src="/js/notice.js" type="module"></script>
</head>
<body>
<main class="gate">
<div class="card">
<img src="/icon.svg" alt="" width="48" height="48">
<h1 data-said>{title}</h1>
<p role="alert" data-said>{reason}</p>
<a class="btn" href="/" data-said>{back}</a>
</div>
</main>
</body>
</html>
"""


class Returned(msgspec.Struct, frozen=True):
    """With what the provider sends people back."""

    code: str = ""
    state: str = ""
    iss: str = ""
    error: str = ""


def _require(call: Call) -> SignIn:
    """Raises HttpProblem where there is no provider."""
    if call.web.sign_in is None:
        raise HttpProblem(
            404,
            "not_found",
            mark_text(
                "Nobody signs in here by a provider: set `web.sign_in.issuer` and "
                "`web.sign_in.client_id`, or open the link that `deskhand login` prints."
            ),
        )
    return call.web.sign_in


async def begin(call: Call) -> Response:
    """Send the browser to the provider."""
    sign_in = _require(call)
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    try:
        url = await sign_in.provider.sign_in_url(_callback(call), state, nonce, verifier)
    except DeskhandError as error:
        return _refuse(call, str(error), 502)
    response = RedirectResponse(url, 303)
    # Lax: the way back from the provider comes from another site.
    response.set_cookie(
        COOKIE,
        f"{state}.{nonce}.{verifier}",
        LASTS_S,
        path=PATH,
        secure=call.public_origin.startswith("https:"),
        httponly=True,
        samesite="lax",
    )
    return response


async def come_back(call: Call) -> Response:
    """Who comes back from the provider is sent to the page with a one-time link."""
    sign_in = _require(call)
    returned: Returned = call.query
    state, _, rest = call.request.cookies.get(COOKIE, "").partition(".")
    nonce, _, verifier = rest.partition(".")
    if not (state and nonce and verifier) or not secrets.compare_digest(
        state.encode(), returned.state.encode()
    ):
        return _refuse(
            call, mark_text("This sign-in was begun elsewhere, or too long ago: begin again."), 400
        )
    if returned.error:
        return _refuse(call, mark_text("The provider did not sign you in."), 403)
    if returned.iss and returned.iss != sign_in.provider.issuer:
        return _refuse(call, mark_text("Another provider has answered."), 400)

    guesses: Guesses = call.request.state.guesses
    host = call.request.client.host if call.request.client else ""
    client = client_of(host)
    guesses.check_rate(client)
    try:
        claims = await sign_in.provider.redeem(returned.code, _callback(call), nonce, verifier)
        user = await sign_in.admit(claims)
        code = await call.web.people.make_login(user)
    except DeskhandError as error:
        guesses.record_failure(client)
        return _refuse(call, str(error), 403)
    response = RedirectResponse(f"/#login={code}", 303)
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="lax")
    return response


def _callback(call: Call) -> str:
    return call.public_origin + CALLBACK


def _refuse(call: Call, reason: str, status: int) -> Response:
    """A page that says why. What began this sign-in is forgotten."""
    text = html.escape(call.web.redact(reason))
    sentence = text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
    page = REFUSED_PAGE.format(
        title=TITLE, reason=sentence, back=mark_text("Back"), languages=list_languages()
    )
    response = HTMLResponse(page, status)
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="lax")
    return response


ENDPOINTS = (
    Endpoint(
        "GET",
        f"{PATH}/sign-in",
        "public",
        begin,
        "Sign in at the provider",
        media="text/html",
        tag="people",
    ),
    Endpoint(
        "GET",
        CALLBACK,
        "public",
        come_back,
        "Come back from the provider",
        query=Returned,
        media="text/html",
        tag="people",
    ),
)
