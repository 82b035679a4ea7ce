"""Typed queries on the browsers that get notifications."""

from __future__ import annotations

from ..store.base import Store
from ..types.commit import Change
from ..types.push import PushDevice, PushSubscription


def put_device(device: PushDevice) -> Change:
    """Keep this browser, in place of what is known under its endpoint."""
    to = device.subscription
    return Change(
        "push_put",
        (
            to.endpoint,
            device.id,
            device.person,
            device.token,
            to.key,
            to.auth,
            device.label,
            device.contact,
            device.at,
            device.asked_at,
            device.ended_seq,
        ),
    )


async def list_devices(store: Store, person: str = "") -> list[PushDevice]:
    """Those of this person, or of everybody; the latest first."""
    found = []
    for id_, owner, token, endpoint, key, auth, *rest in await store.query("push_list", (person,)):
        subscription = PushSubscription(endpoint, bytes(key), bytes(auth))
        found.append(PushDevice(id_, owner, token, subscription, *rest))
    return found


def mark_told(device: str, asked_at: float, ended_seq: int) -> Change:
    """It was told of questions up to `asked_at` and of turns up to `ended_seq`."""
    return Change("push_told", (asked_at, ended_seq, device))


def drop_device(device: str) -> Change:
    """Forget it."""
    return Change("push_drop", (device,))
