"""How a program without a token gets one (RFC 8628, as operator-use's agent server has it): it
waits like a stranger who wrote to a bot, until an owner lets it in."""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Annotated

import msgspec
from starlette.responses import RedirectResponse, Response

from ..types.errors import Refused
from ..types.identity import Address, Inbound, Said
from ..types.messages import Message, Text
from ..types.people import DEVICE_CHANNEL, DEVICE_TTL_S, Identity, Scope, User
from .errors import HttpProblem
from .guard import Guesses, client_of
from .people import Admit, approve_pairing
from .routing import Call, Endpoint

INTERVAL_S = 5
TOKEN_SCOPES: tuple[Scope, ...] = ("read", "chat")


class DeviceCode(msgspec.Struct, frozen=True):
    """A person enters `user_code` at `verification_uri`, or says `deskhand pair approve CODE`;
    meanwhile the program asks every `interval` seconds with the `device_code`."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: int = DEVICE_TTL_S
    interval: int = INTERVAL_S


class DeviceTokenRequest(msgspec.Struct, frozen=True):
    device_code: Annotated[str, msgspec.Meta(max_length=200)]


class DeviceToken(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str = "bearer"


def _require_devices(call: Call) -> None:
    if not call.web.agent_server.settings.device_sign_in:
        raise HttpProblem(
            404,
            "not_found",
            "No program can ask for a token here. An owner allows it with: deskhand config set "
            "agent_server.device_sign_in true",
        )


async def begin_device(call: Call) -> DeviceCode:
    """The program waits like a stranger who wrote to a bot: see `deskhand pair`."""
    _require_devices(call)
    _count_guess(call)
    device_code = f"{secrets.token_hex(24)}-{int(call.web.clock.now())}"
    id_ = _device_id(device_code)
    asked = Inbound(
        external_id=id_,
        address=Address(DEVICE_CHANNEL, chat=id_),
        sender=id_,
        at=call.web.clock.now(),
        body=Said(Message("user", (Text(""),))),
    )
    code = await call.web.people.request_pairing(asked)
    if not code:
        raise HttpProblem(
            429,
            "too_many_devices",
            "Too many programs wait to be let in. Try again later.",
            {"retry-after": str(DEVICE_TTL_S)},
        )
    return DeviceCode(device_code, f"{code[:4]}-{code[4:]}", f"{call.public_origin}/auth/approve")


def _device_id(device_code: str) -> str:
    return sha256(device_code.encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def poll_device(call: Call) -> Response:
    """202 while nobody has decided; the token once, when an owner has let it in."""
    _require_devices(call)
    people = call.web.people
    device: DeviceTokenRequest = call.body
    identity = Identity(DEVICE_CHANNEL, _device_id(device.device_code))
    user = people.find_user(identity)
    if user is not None and not _is_fresh(device.device_code, call.web.clock.now()):
        await people.unlink(identity)
        user = None
    if user is None:
        waiting = {each.external_id for each in await people.pairings()}
        if identity.external_id in waiting:
            return Response(status_code=202)
        _count_guess(call)
        return _device_error("expired_token")
    try:
        await people.unlink(identity)  # first: whoever unlinks it gets the one token
    except Refused:
        return _device_error("expired_token")
    return await _hand_out(call, user, identity)


def _is_fresh(device_code: str, now: float) -> bool:
    """Whether it still holds. The time in it is part of what was hashed."""
    said_at = device_code.rpartition("-")[2]
    return said_at.isdecimal() and abs(now - int(said_at[:12])) <= DEVICE_TTL_S


async def _hand_out(call: Call, user: User, identity: Identity) -> Response:
    name = f"device {identity.external_id}"
    _, secret = await call.web.people.make_token(user.name, name, TOKEN_SCOPES)
    body = msgspec.json.encode(DeviceToken(secret))
    return Response(body, media_type="application/json")


def _count_guess(call: Call) -> None:
    guesses: Guesses = call.request.state.guesses
    client = client_of(call.request.client.host if call.request.client else "")
    guesses.check_rate(client)
    guesses.record_failure(client)


def _device_error(code: str) -> Response:
    return Response(msgspec.json.encode({"error": code}), 400, media_type="application/json")


async def show_devices(call: Call) -> Response:
    """The page where owners see who waits."""
    return RedirectResponse("/#/settings/people", 303)


_T = "operator-use"
ENDPOINTS = (
    Endpoint(
        "POST",
        "/auth/device",
        "public",
        begin_device,
        "Ask for a code with which an owner lets this program in",
        returns=DeviceCode,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/auth/token",
        "public",
        poll_device,
        "Get the token once an owner has let this program in",
        body=DeviceTokenRequest,
        returns=DeviceToken,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/auth/approve",
        "public",
        show_devices,
        "Open the page where owners let programs in",
        media="text/html",
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/auth/approve/{code}",
        "admin",
        approve_pairing,
        "Let a program in",
        body=Admit,
        returns=User,
        optional=True,
        tag=_T,
    ),
)
