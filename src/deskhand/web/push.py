"""Endpoints of the browsers that get notifications."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ..types.errors import ConfigError
from ..types.marked_texts import mark_text
from ..types.push import MAX_ENDPOINT_CHARS, PushDevice, PushSubscription
from .agent_signatures import from_base64url
from .errors import bad_request, not_found
from .routing import Call, Endpoint


class PushKeys(msgspec.Struct, frozen=True):
    """In base64url, as browsers give them."""

    p256dh: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    auth: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class NewPushDevice(msgspec.Struct, frozen=True):
    """What `PushSubscription.toJSON()` gives in a browser, what people call it, and the language of
    its page, as `de`."""

    endpoint: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ENDPOINT_CHARS)]
    keys: PushKeys
    label: Annotated[str, msgspec.Meta(max_length=200)] = ""
    language: Annotated[str, msgspec.Meta(max_length=40)] = ""


class PushDeviceView(msgspec.Struct, frozen=True):
    """A browser that gets notifications. `endpoint` is its address at its push service, by which it
    knows itself."""

    id: str
    label: str
    at: float
    endpoint: str


class PushView(msgspec.Struct, frozen=True):
    """`public_key` is what a browser subscribes with, in base64url; '' where there are no
    notifications, and `problem` says why."""

    public_key: str
    devices: list[PushDeviceView]
    problem: str = ""


class ForgottenView(msgspec.Struct, frozen=True):
    status: Literal["forgotten"] = "forgotten"


class SentView(msgspec.Struct, frozen=True):
    status: Literal["sent"] = "sent"


async def show_push(call: Call) -> PushView:
    devices = [_make_view(each) for each in await call.web.push.of(call.principal.id)]
    try:
        return PushView(call.web.push.public_key(), devices)
    except ConfigError as error:
        return PushView("", devices, str(error))


async def add_device(call: Call) -> PushDeviceView:
    wanted: NewPushDevice = call.body
    assert call.grant is not None
    try:
        key, auth = from_base64url(wanted.keys.p256dh), from_base64url(wanted.keys.auth)
    except ValueError:
        raise bad_request("The keys of the browser are not in base64url.") from None
    subscription = PushSubscription(wanted.endpoint, key, auth)
    known = {each.id for each in await call.web.push.of(call.principal.id)}
    device = await call.web.push.add(call.grant, subscription, wanted.label, call.origin)
    await call.web.push.use_language(call.principal.id, wanted.language)
    if device.id not in known:
        await call.web.people.add_audit_note(call.principal, "notifications on", device.label)
    return _make_view(device)


async def remove_device(call: Call) -> ForgottenView:
    if not await call.web.push.remove(call.principal.id, call.path("id")):
        raise not_found(mark_text("such browser"))
    return ForgottenView()


async def test_device(call: Call) -> SentView:
    if not await call.web.push.test(call.principal.id, call.path("id")):
        raise not_found(mark_text("such browser"))
    return SentView()


def _make_view(device: PushDevice) -> PushDeviceView:
    return PushDeviceView(device.id, device.label, device.at, device.subscription.endpoint)


_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/push",
        "read",
        show_push,
        "List your browsers that get notifications, and the key to subscribe with",
        returns=PushView,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/push",
        "read",
        add_device,
        "Send notifications to this browser, also with the page closed",
        body=NewPushDevice,
        returns=PushDeviceView,
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/push/{id}",
        "read",
        remove_device,
        "Send a browser no more notifications",
        returns=ForgottenView,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/push/{id}/test",
        "read",
        test_device,
        "Send a test notification to a browser",
        returns=SentView,
        tag=_T,
    ),
)
