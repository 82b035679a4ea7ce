"""The accessibility bus of a desktop: calls to programs, few at once and none for ever.

https://gitlab.gnome.org/GNOME/at-spi2-core/-/tree/main/xml
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from ...types.errors import ToolError
from .base import REGISTRY, NoAnswer, NodeKey

CALL_S = 3.0
MAX_AT_ONCE = 32
"""More calls in flight than a socket takes at once end the connection (dbus-fast 5.2)."""


class AccessibilityBus:
    """A connection to it."""

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self._slots = anyio.Semaphore(MAX_AT_ONCE)

    @property
    def is_connected(self) -> bool:
        return bool(self._bus.connected)

    async def call(
        self, node: NodeKey, interface: str, member: str, signature: str = "", *body: Any
    ) -> list[Any]:
        """What it answers. Raises NoAnswer."""
        message = Message(
            destination=node[0],
            path=node[1],
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
        )
        reply = None
        async with self._slots:
            try:
                with anyio.move_on_after(CALL_S):
                    reply = await self._bus.call(message)
            except (OSError, EOFError) as error:
                raise NoAnswer(f"the accessibility bus has ended: {error}") from error
        if reply is None:
            raise NoAnswer(f"the program does not answer ({member})")
        if reply.message_type is MessageType.ERROR:
            raise NoAnswer(f"{member} was refused: {str(reply.error_name)[:80]}")
        return list(reply.body)

    async def get(self, node: NodeKey, interface: str, name: str) -> Any:
        """A property. Never all of them at once: Qt 5 does not survive that. Raises NoAnswer."""
        asked = "org.freedesktop.DBus.Properties"
        found = (await self.call(node, asked, "Get", "ss", interface, name))[0]
        return found.value if isinstance(found, Variant) else found

    def disconnect(self) -> None:
        self._bus.disconnect()


@asynccontextmanager
async def open_bus(session_address: str) -> AsyncIterator[AccessibilityBus]:
    """The accessibility bus beside this session bus, with programs told that somebody listens.
    Raises ToolError."""
    try:
        with anyio.fail_after(CALL_S * 2):
            session = await MessageBus(session_address, BusType.SESSION).connect()
            try:
                address = await _find_address(session)
            finally:
                session.disconnect()
            bus = AccessibilityBus(await MessageBus(address).connect())
    except (OSError, EOFError, TimeoutError, ValueError) as error:
        raise ToolError(
            f"the desktop cannot be read: {error or 'its bus does not answer'}"
        ) from None
    try:
        registry = (REGISTRY, "/org/a11y/atspi/registry")
        # GTK 3 answers some questions only once somebody has asked for events.
        for event in ("object:state-changed", "object:children-changed", "window"):
            await bus.call(registry, REGISTRY, "RegisterEvent", "sass", event, [], "")
        yield bus
    finally:
        bus.disconnect()


async def _find_address(session: MessageBus) -> str:
    """Raises ToolError."""
    a11y = ("org.a11y.Bus", "/org/a11y/bus")
    # Not that a screen reader is there: desktops would begin to speak.
    await session.call(
        Message(
            destination=a11y[0],
            path=a11y[1],
            interface="org.freedesktop.DBus.Properties",
            member="Set",
            signature="ssv",
            body=["org.a11y.Status", "IsEnabled", Variant("b", True)],
        )
    )
    reply = await session.call(
        Message(destination=a11y[0], path=a11y[1], interface="org.a11y.Bus", member="GetAddress")
    )
    if reply is None or reply.message_type is MessageType.ERROR:
        raise ToolError("programs do not say what they show: sudo apt-get install at-spi2-core")
    return str(reply.body[0])
