"""What was said in a thread before somebody first speaks to an agent there."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence

import anyio

from ..channels.base import Channel, PastMessage, Reading
from ..types.errors import ChannelError
from ..types.identity import Address, Inbound
from ..types.labels import Label
from ..types.marked_texts import mark_text
from ..types.messages import Text, clean_text

log = logging.getLogger(__name__)

MAX_MESSAGES = 50
MAX_CHARS = 8_000
"""Of a whole snapshot, its marks included."""
MAX_NAME_CHARS = 80
PATIENCE_S = 5.0
"""So long a message waits for what was said before it."""
YOU = "you"
"""How the agent's own messages begin. Nobody else is called that."""
_FAULTS = (ChannelError, AttributeError, KeyError, TypeError, ValueError)
"""A platform is away, or tells something that cannot be read."""
_TAG = "context_snapshot"
_BEGINNING = f'<{_TAG} source="thread_history">\n'
_END = f"\n</{_TAG}>\n"
_MARK = re.compile(rf"<(?=\s{{0,9}}/?\s{{0,9}}{_TAG})", re.IGNORECASE)
"""Begins what a model could take for the beginning or the end of a snapshot."""


class ThreadHistory:
    """Reads threads of the channels that can do that; a message waits for `patience_s` at most."""

    def __init__(self, channels: Iterable[Channel], patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._channels = {each.name: each for each in channels if isinstance(each, Reading)}

    def find_thread(self, inbound: Inbound) -> Address | None:
        """The thread in which this was said, where something stood in it before; None elsewhere.
        Asks nobody."""
        channel = self._channels.get(inbound.address.channel)
        return channel.find_thread(inbound) if channel is not None else None

    async def read(self, thread: Address, inbound: Inbound) -> Text | None:
        """The last messages of the thread before this one, as content from outside; None where
        there are none, or where they cannot be had in time. Never raises."""
        channel = self._channels[thread.channel]
        found: Sequence[PastMessage] = ()
        with anyio.move_on_after(self._patience_s) as waiting:
            try:
                found = await channel.read_history(thread, MAX_MESSAGES + 1)
            except _FAULTS as error:
                log.warning("%s: could not read the thread so far: %s", channel.name, error)
        if waiting.cancelled_caught:
            log.warning("%s: reading the thread so far took too long", channel.name)
        earlier = _list_earlier(found, inbound)
        if not earlier:
            return None
        label = Label(
            "untrusted",
            source=mark_text("earlier messages of a thread on {channel}").format(
                channel=thread.channel
            ),
        )
        return Text(render_snapshot(earlier), label)


def _list_earlier(found: Sequence[PastMessage], inbound: Inbound) -> Sequence[PastMessage]:
    """Those before this message. By their order where it is among them, as clocks differ."""
    for number, each in enumerate(found):
        if each.id == inbound.external_id:
            return found[:number]
    return [each for each in found if each.at <= inbound.at]


def render_snapshot(messages: Sequence[PastMessage]) -> str:
    """The messages, of which there is at least one and the newest is last, one below the other: at
    most MAX_MESSAGES, in at most MAX_CHARS. The oldest are left out first; the newest is there in
    every case, but it may be cut."""
    room = MAX_CHARS - len(_BEGINNING) - len(_END)
    lines: list[str] = []
    for each in reversed(messages[-MAX_MESSAGES:]):
        line = _render_line(each)
        if len(line) > room:
            break
        lines.append(line)
        room -= len(line) + 1
    if not lines:
        lines.append(_render_line(messages[-1])[: room - 1] + "…")
    return _BEGINNING + "\n".join(reversed(lines)) + _END


def _render_line(message: PastMessage) -> str:
    """`name: text`. Further lines of the text are indented, so that none of them reads like the
    message of somebody else, and nothing in it ends the snapshot."""
    name = YOU if message.ours else _render_name(message)
    line = _MARK.sub("&lt;", clean_text(f"{name}: {message.text}"))
    return "\n  ".join(line.splitlines())


def _render_name(message: PastMessage) -> str:
    """How the sender is shown, in one line; by their id where that could be taken for the agent."""
    name = " ".join(message.name.replace(":", " ").split())[:MAX_NAME_CHARS]
    if name.casefold() in ("", YOU):
        name = f"{name} ({message.sender[:MAX_NAME_CHARS]})".strip()
    return name
