"""Listens to an MQTT broker, for jobs that messages start."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from importlib.metadata import entry_points
from typing import Protocol

import anyio

from ...net.message_broker import MessageBroker
from ...supervision.restart_with_backoff import restart_backoff_s
from ...types.clock import Clock
from ...types.errors import NetError
from ...types.labels import Label
from ...types.messages import Text, clean_text

log = logging.getLogger(__name__)

ENTRY_POINTS = "deskhand.triggers"
NAME = "mqtt"
POLL_S = 2.0
PAYLOAD_CHARS = 32_000
NO_BROKER = (
    "no broker is named: set jobs.mqtt.host, as in `deskhand config set jobs.mqtt.host localhost`"
)
NO_EXTRA = "listening to a broker needs the extra `mqtt`: pip install 'deskhand[mqtt]'"


class Subscriber(Protocol):
    """Whoever wants the messages of a broker."""

    def topics(self) -> frozenset[str]:
        """The topics that are wanted now."""
        ...

    async def on_message(self, topic: str, payload: bytes, slot: str) -> None:
        """A message came; `slot` is its name, the same when it comes again. The message is
        acknowledged when this returns, so that none is lost."""
        ...

    def report_broker_problem(self, problem: str) -> None:
        """Why no messages come, or '' when the broker is connected."""
        ...


Listen = Callable[[MessageBroker, Collection[str], Subscriber, Clock], Awaitable[None]]
"""Hands in messages on these topics until the connection breaks. Raises NetError."""


def load_listener() -> Listen | None:
    """The function that listens, None when the extra `mqtt` is not installed."""
    for point in entry_points(group=ENTRY_POINTS, name=NAME):
        try:
            loaded: Listen = point.load()
        except ImportError:
            return None
        return loaded
    return None


async def keep_listening(
    subscriber: Subscriber,
    find_broker: Callable[[], Awaitable[MessageBroker | None]],
    clock: Clock,
) -> None:
    """Listen for ever, and connect again when the connection breaks or other topics are wanted.
    While no topics are wanted, nothing is connected."""
    failures = 0
    while True:
        topics = subscriber.topics()
        if not topics:
            failures = 0
            await anyio.sleep(POLL_S)
            continue
        broker = await find_broker()
        listen = load_listener()
        if broker is None or listen is None:
            subscriber.report_broker_problem(NO_BROKER if broker is None else NO_EXTRA)
            await anyio.sleep(POLL_S)
            continue
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_on_new_topics, subscriber, topics, tasks.cancel_scope)
                await listen(broker, topics, subscriber, clock)
            failures = 0
        except* NetError as group:
            failures += 1
            subscriber.report_broker_problem(str(group.exceptions[0]))
            log.warning("%s", group.exceptions[0])
        await anyio.sleep(restart_backoff_s(failures))


async def _cancel_on_new_topics(
    subscriber: Subscriber, topics: frozenset[str], scope: anyio.CancelScope
) -> None:
    while subscriber.topics() == topics:  # noqa: ASYNC110 -- topics follow the files of jobs
        await anyio.sleep(POLL_S)
    scope.cancel()


def render_message(topic: str, payload: bytes) -> Text:
    """A message as the agent sees it."""
    text = clean_text(payload[: 4 * PAYLOAD_CHARS].decode(errors="replace"))
    shown = text[:PAYLOAD_CHARS]
    if len(text) > PAYLOAD_CHARS:
        shown += "\n[cut off]"
    return Text(
        f"A message came on {clean_text(topic)}:\n\n{shown}",
        Label(source=f"mqtt {clean_text(topic)[:200]}"),
    )
