"""Who may come in: users, their roles and identities, tokens, links to log in, and strangers who
ask."""

from __future__ import annotations

import io
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from ..types.marked_texts import mark_text
from ..types.people import (
    OWNER_NAME,
    SCOPES,
    AuditEntry,
    Identity,
    Pairing,
    People,
    Scope,
    TokenRow,
    User,
)
from .errors import HttpProblem, bad_request, not_found
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


class ListedToken(TokenRow, frozen=True):
    """`current`: the one with which the list is asked for, such as the browser that shows it."""

    current: bool = False


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


def people_for(call: Call) -> People:
    return call.web.people.acting_as(call.principal)


async def require_user(call: Call) -> str:
    """The user of the address. Raises HttpProblem 404."""
    name = call.path("user")
    if name not in {user.name for user in await people_for(call).users()}:
        raise not_found(mark_text("such user"))
    return name


async def list_users(call: Call) -> list[User]:
    return await people_for(call).users()


async def add_user(call: Call) -> User:
    new: NewUser = call.body
    if bool(new.channel) != bool(new.external_id):
        raise HttpProblem(
            400,
            "bad_request",
            "An identity has a channel and an external_id: send both, or neither.",
        )
    identity = Identity(new.channel, new.external_id, new.account) if new.channel else None
    return await people_for(call).add_user(new.name, new.role, identity)


async def remove_user(call: Call) -> None:
    await people_for(call).remove_user(await require_user(call))


async def add_role(call: Call) -> User:
    return await people_for(call).add_role(await require_user(call), call.path("role"))


async def remove_role(call: Call) -> User:
    return await people_for(call).remove_role(await require_user(call), call.path("role"))


async def link_identity(call: Call) -> User:
    new: IdentityBody = call.body
    return await people_for(call).link(
        await require_user(call), Identity(new.channel, new.external_id, new.account)
    )


async def unlink_identity(call: Call) -> None:
    await require_user(call)
    old: IdentityBody = call.body
    await people_for(call).unlink(Identity(old.channel, old.external_id, old.account))


async def list_tokens(call: Call) -> list[ListedToken]:
    """Everybody's for an owner, else one's own."""
    mine = call.principal.id if "owner" not in call.principal.roles else ""
    own_id = call.grant.token_id if call.grant else ""
    return [
        ListedToken(**msgspec.structs.asdict(row), current=row.id == own_id)
        for row in await people_for(call).tokens(call.query.user or mine)
    ]


async def make_token(call: Call) -> TokenMade:
    new: NewToken = call.body
    lasts_s = None if new.days is None else new.days * DAY_S
    return TokenMade(
        *await people_for(call).make_token(
            new.user or call.principal.id, new.name, new.scopes, lasts_s
        )
    )


async def rotate_token(call: Call) -> TokenMade:
    await _require_token(call)
    return TokenMade(*await people_for(call).rotate(call.path("id")))


async def revoke_token(call: Call) -> None:
    """Itself, with any credential; any other of one's own from a browser, since that is the
    person."""
    await _require_token(call)
    id_ = call.path("id")
    grant = call.grant
    if grant is None or not (grant.token_id == id_ or grant.browser or "admin" in grant.scopes):
        await call.web.people.add_audit_note(call.principal, "token refused", id_)
        raise HttpProblem(
            403,
            "forbidden",
            (
                mark_text(
                    "A token may end itself alone. End others on the page, or with: deskhand "
                    "tokens revoke."
                )
            ),
        )
    await people_for(call).revoke(id_)


async def _require_token(call: Call) -> None:
    """Raises HttpProblem 404 where it is none, or another's and not to be known."""
    owner = "owner" in call.principal.roles
    rows = await people_for(call).tokens("" if owner else call.principal.id)
    if call.path("id") not in {row.id for row in rows}:
        await call.web.people.add_audit_note(call.principal, "token refused", call.path("id"))
        raise not_found(mark_text("such token"))


async def make_login(call: Call) -> LoginView:
    code = await people_for(call).make_login(call.body.user or call.principal.id)
    url = f"{call.origin}/#login={code}"
    return LoginView(
        url, "" if is_loopback(urlsplit(call.origin).hostname or "") else render_qr(url)
    )


def render_qr(text: str) -> str:
    import segno  # noqa: PLC0415 -- a tenth of the start, and seldom needed

    out = io.BytesIO()
    segno.make(text, micro=False).save(
        out, kind="svg", xmldecl=False, svgclass=None, lineclass=None, omitsize=True, border=2
    )
    return out.getvalue().decode()


async def list_pairings(call: Call) -> list[Pairing]:
    return await people_for(call).pairings()


async def approve_pairing(call: Call) -> User:
    new: Admit = call.body
    if new.owner == bool(new.user or new.role):
        raise bad_request(
            "Say who it is: `owner: true` where it is you, else `user`, or `role` for somebody new."
        )
    user = OWNER_NAME if new.owner else new.user
    return await people_for(call).approve(call.path("code"), user, new.role)


async def refuse_pairing(call: Call) -> None:
    if call.path("code") not in {each.code for each in await people_for(call).pairings()}:
        raise not_found(mark_text("such code"))
    await people_for(call).refuse(call.path("code"))


async def list_notes(call: Call) -> list[AuditEntry]:
    return await people_for(call).list_audit_notes(min(max(call.query.limit, 1), 1000))


_U = "/api/users"
_A: Scope = "admin"
ENDPOINTS = (
    Endpoint("GET", _U, _A, list_users, "List users", returns=list[User], tag="people"),
    Endpoint(
        "POST",
        _U,
        _A,
        add_user,
        "Add a user",
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
        "Remove a user and all of their tokens",
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
        "Take a role away",
        returns=User,
        tag="people",
    ),
    Endpoint(
        "POST",
        f"{_U}/{{user}}/identities",
        _A,
        link_identity,
        "Link a user to an account on a channel",
        body=IdentityBody,
        returns=User,
        tag="people",
    ),
    Endpoint(
        "DELETE",
        f"{_U}/{{user}}/identities",
        _A,
        unlink_identity,
        "Unlink a user from an account on a channel",
        body=IdentityBody,
        status=204,
        tag="people",
    ),
    Endpoint(
        "GET",
        "/api/tokens",
        "read",
        list_tokens,
        "List tokens, without their secrets",
        query=OfUser,
        returns=list[ListedToken],
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/tokens",
        _A,
        make_token,
        "Create a token",
        body=NewToken,
        returns=TokenMade,
        status=201,
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/tokens/{id}/rotate",
        _A,
        rotate_token,
        "Replace the secret of a token",
        returns=TokenMade,
        tag="people",
    ),
    Endpoint(
        "DELETE",
        "/api/tokens/{id}",
        "read",
        revoke_token,
        "Revoke a token at once",
        status=204,
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/logins",
        _A,
        make_login,
        "Create a link that signs one browser in",
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
        list_pairings,
        "List people who messaged your bot and wait for approval",
        returns=list[Pairing],
        tag="people",
    ),
    Endpoint(
        "POST",
        "/api/pairings/{code}",
        _A,
        approve_pairing,
        "Approve a person",
        body=Admit,
        returns=User,
        optional=True,
        tag="people",
    ),
    Endpoint(
        "DELETE",
        "/api/pairings/{code}",
        _A,
        refuse_pairing,
        "Reject a person",
        status=204,
        tag="people",
    ),
    Endpoint(
        "GET",
        "/api/audit",
        _A,
        list_notes,
        "Get the audit trail",
        query=Last,
        returns=list[AuditEntry],
        tag="people",
    ),
)
