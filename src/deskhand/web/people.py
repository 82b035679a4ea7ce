"""Who may come in: users, their roles and identities, tokens, links to log in, and strangers who
ask."""

from __future__ import annotations

import io
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from ..types.people import (
    OWNER_NAME,
    SCOPES,
    Identity,
    Note,
    Pairing,
    People,
    Scope,
    TokenRow,
    User,
)
from .errors import HttpProblem, bad, not_found
from .routing import Call, Endpoint
from .settings import is_loopback

DAY_S = 86_400.0
Name = Annotated[str, msgspec.Meta(max_length=200)]


class NewUser(msgspec.Struct, frozen=True):
    """`channel` and `external_id`: who they are there, from the beginning."""

    name: Name
    role: Name = "member"
    channel: Name = ""
    external_id: Name = ""
    account: Name = ""


class IdentityBody(msgspec.Struct, frozen=True):
    channel: Name
    external_id: Name
    account: Name = ""


class NewToken(msgspec.Struct, frozen=True):
    """`user` '' is oneself; `days` None: until it is revoked."""

    name: Name
    user: Name = ""
    scopes: tuple[Scope, ...] = SCOPES
    days: Annotated[float, msgspec.Meta(gt=0, le=3650)] | None = None


class TokenMade(msgspec.Struct, frozen=True):
    """The secret is shown this once."""

    token: TokenRow
    secret: str


class NewLogin(msgspec.Struct, frozen=True):
    """For whom; '' is oneself."""

    user: Name = ""


class LoginView(msgspec.Struct, frozen=True):
    """Opens the page once, within ten minutes; `qr_svg` is the same for a phone's camera, '' where
    the address leads to this machine alone: a phone would look for Deskhand in itself."""

    url: str
    qr_svg: str


class Admit(msgspec.Struct, frozen=True):
    """Who it is: oneself (`owner`), a user by name (made, where there is none, with this `role`),
    or somebody new with this `role`. One of the three is said: nobody becomes the owner because
    nothing was."""

    user: Name = ""
    role: Name = ""
    owner: bool = False


class OfUser(msgspec.Struct, frozen=True):
    user: str = ""


class Last(msgspec.Struct, frozen=True):
    limit: int = 100


def acting(call: Call) -> People:
    return call.web.people.acting(call.principal)


async def known(call: Call) -> str:
    """The user of the address. Raises HttpProblem 404."""
    name = call.path("user")
    if name not in {user.name for user in await acting(call).users()}:
        raise not_found("such user")
    return name


async def users(call: Call) -> list[User]:
    return await acting(call).users()


async def add_user(call: Call) -> User:
    new: NewUser = call.body
    if bool(new.channel) != bool(new.external_id):
        raise HttpProblem(
            400,
            "bad_request",
            "An identity has a channel and an external_id: send both, or neither.",
        )
    identity = Identity(new.channel, new.external_id, new.account) if new.channel else None
    return await acting(call).add_user(new.name, new.role, identity)


async def remove_user(call: Call) -> None:
    await acting(call).remove_user(await known(call))


async def add_role(call: Call) -> User:
    return await acting(call).add_role(await known(call), call.path("role"))


async def remove_role(call: Call) -> User:
    return await acting(call).remove_role(await known(call), call.path("role"))


async def link(call: Call) -> User:
    new: IdentityBody = call.body
    return await acting(call).link(
        await known(call), Identity(new.channel, new.external_id, new.account)
    )


async def unlink(call: Call) -> None:
    await known(call)
    old: IdentityBody = call.body
    await acting(call).unlink(Identity(old.channel, old.external_id, old.account))


async def tokens(call: Call) -> list[TokenRow]:
    """Everybody's for an owner, else one's own."""
    mine = call.principal.id if "owner" not in call.principal.roles else ""
    return await acting(call).tokens(call.query.user or mine)


async def make_token(call: Call) -> TokenMade:
    new: NewToken = call.body
    lasts_s = None if new.days is None else new.days * DAY_S
    return TokenMade(
        *await acting(call).make_token(new.user or call.principal.id, new.name, new.scopes, lasts_s)
    )


async def rotate(call: Call) -> TokenMade:
    await _token(call)
    return TokenMade(*await acting(call).rotate(call.path("id")))


async def revoke(call: Call) -> None:
    """Itself, with any credential; any other of one's own from a browser, since that is the
    person."""
    await _token(call)
    id_ = call.path("id")
    grant = call.grant
    if grant is None or not (grant.token_id == id_ or grant.browser or "admin" in grant.scopes):
        await call.web.people.note(call.principal, "token refused", id_)
        raise HttpProblem(
            403,
            "forbidden",
            (
                "A token may end itself alone. End others on the page, or with: deskhand tokens "
                "revoke."
            ),
        )
    await acting(call).revoke(id_)


async def _token(call: Call) -> None:
    """Raises HttpProblem 404 where it is none, or another's and not to be known."""
    owner = "owner" in call.principal.roles
    rows = await acting(call).tokens("" if owner else call.principal.id)
    if call.path("id") not in {row.id for row in rows}:
        await call.web.people.note(call.principal, "token refused", call.path("id"))
        raise not_found("such token")


async def make_login(call: Call) -> LoginView:
    code = await acting(call).make_login(call.body.user or call.principal.id)
    url = f"{call.site}/#login={code}"
    return LoginView(url, "" if is_loopback(urlsplit(call.site).hostname or "") else qr_svg(url))


def qr_svg(text: str) -> str:
    import segno  # noqa: PLC0415 -- a tenth of the start, and seldom needed

    out = io.BytesIO()
    segno.make(text, micro=False).save(
        out, kind="svg", xmldecl=False, svgclass=None, lineclass=None, omitsize=True, border=2
    )
    return out.getvalue().decode()


async def pairings(call: Call) -> list[Pairing]:
    return await acting(call).pairings()


async def admit(call: Call) -> User:
    new: Admit = call.body
    if new.owner == bool(new.user or new.role):
        raise bad(
            "Say who it is: `owner: true` where it is you, else `user`, or `role` for somebody new."
        )
    user = OWNER_NAME if new.owner else new.user
    return await acting(call).approve(call.path("code"), user, new.role)


async def turn_away(call: Call) -> None:
    if call.path("code") not in {each.code for each in await acting(call).pairings()}:
        raise not_found("such code")
    await acting(call).refuse(call.path("code"))


async def notes(call: Call) -> list[Note]:
    return await acting(call).notes(min(max(call.query.limit, 1), 1000))


_U = "/api/users"
_A: Scope = "admin"
ENDPOINTS = (
    Endpoint("GET", _U, _A, users, "Who may come in", returns=list[User], tag="people"),
    Endpoint(
        "POST",
        _U,
        _A,
        add_user,
        "Let somebody in",
        body=NewUser,
        returns=User,
        status=201,
        tag="people",
    ),
    Endpoint(
        "DELETE",
        f"{_U}/{{user}}",
        _A,
        remove_user,
        "A user with all of their tokens",
        status=204,
        tag="people",
    ),
    Endpoint(
        "POST",
        f"{_U}/{{user}}/roles/{{role}}",
        _A,
        add_role,
        "Give a role",
        returns=User,
        tag="people",
    ),
    Endpoint(
        "DELETE",
        f"{_U}/{{user}}/roles/{{role}}",
        _A,
        remove_role,
        "Take it away",
        returns=User,
        tag="people",
    ),
    Endpoint(
        "POST",
        f"{_U}/{{user}}/identities",
        _A,
        link,
        "Who they are on a channel",
        body=IdentityBody,
        returns=User,
        tag="people",
    ),
    Endpoint(
        "DELETE",
        f"{_U}/{{user}}/identities",
        _A,
        unlink,
        "They are that no more",
        body=IdentityBody,
        status=204,
        tag="people",
    ),
    Endpoint(
        "GET",
        "/api/tokens",
        "read",
        tokens,
        "Credentials, without secrets",
        query=OfUser,
        returns=list[TokenRow],
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/tokens",
        _A,
        make_token,
        "A new one",
        body=NewToken,
        returns=TokenMade,
        status=201,
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/tokens/{id}/rotate",
        _A,
        rotate,
        "Another secret for it",
        returns=TokenMade,
        tag="people",
    ),
    Endpoint(
        "DELETE",
        "/api/tokens/{id}",
        "read",
        revoke,
        "It holds no more, at once",
        status=204,
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/logins",
        _A,
        make_login,
        "A link that logs one browser in",
        body=NewLogin,
        returns=LoginView,
        status=201,
        optional=True,
        tag="people",
    ),
    Endpoint(
        "GET",
        "/api/pairings",
        _A,
        pairings,
        "Strangers who ask",
        returns=list[Pairing],
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/pairings/{code}",
        _A,
        admit,
        "Let them in",
        body=Admit,
        returns=User,
        optional=True,
        tag="people",
    ),
    Endpoint("DELETE", "/api/pairings/{code}", _A, turn_away, "Do not", status=204, tag="people"),
    Endpoint(
        "GET",
        "/api/audit",
        _A,
        notes,
        "Who changed or tried what",
        query=Last,
        returns=list[Note],
        tag="people",
    ),
)
