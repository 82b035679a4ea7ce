"""Keeps listening to a broker, for the jobs that messages set off."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from importlib.metadata import entry_points

import anyio
import msgspec

from ...supervision.restart_with_backoff import restart_backoff_s
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

OnMessage = Callable[[str, bytes, str], Awaitable[None]]
"""A message: its topic, its bytes, and its slot."""


class MessageBroker(msgspec.Struct, frozen=True):
    """Where it is and as whom it is asked. `connected` is called when it listens."""

    host: str
    port: int
    username: str
    password: str
    client_id: str
    tls: bool
    connected: Callable[[], None]
    now: Callable[[], float]


Listen = Callable[[MessageBroker, Collection[str], OnMessage], Awaitable[None]]


class Wants(msgspec.Struct, frozen=True):
    """What listening asks of the rest: the broker as it is configured now (None: no host is set),
    the topics that jobs want now, what is done with a message, and where trouble is told ('' when
    it is over)."""

    broker: Callable[[], Awaitable[MessageBroker | None]]
    topics: Callable[[], frozenset[str]]
    on_message: OnMessage
    report_problem: Callable[[str], None]


def load_listener() -> Listen | None:
    """What listens; None where the extra is not installed."""
    for point in entry_points(group=ENTRY_POINTS, name=NAME):
        try:
            loaded: Listen = point.load()
        except ImportError:
            return None
        return loaded
    return None


async def keep_listening(wants: Wants) -> None:
    """For ever. Where no job wants a topic, nothing is connected."""
    failures = 0
    while True:
        topics = wants.topics()
        if not topics:
            failures = 0
            await anyio.sleep(POLL_S)
            continue
        broker = await wants.broker()
        listen = load_listener()
        if broker is None or listen is None:
            wants.report_problem(NO_BROKER if broker is None else NO_EXTRA)
            await anyio.sleep(POLL_S)
            continue
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_on_new_topics, wants, topics, tasks.cancel_scope)
                await listen(broker, topics, wants.on_message)
            failures = 0
        except* NetError as group:
            failures += 1
            wants.report_problem(str(group.exceptions[0]))
            log.warning("%s", group.exceptions[0])
        await anyio.sleep(restart_backoff_s(failures))


async def _cancel_on_new_topics(
    wants: Wants, topics: frozenset[str], scope: anyio.CancelScope
) -> None:
    """Begin anew where jobs want other topics."""
    while wants.topics() == topics:  # noqa: ASYNC110 -- what jobs want follows their files
        await anyio.sleep(POLL_S)
    scope.cancel()


def render_message(topic: str, payload: bytes) -> Text:
    """A message, as the agent is told it."""
    text = clean_text(payload[: 4 * PAYLOAD_CHARS].decode(errors="replace"))
    shown = text[:PAYLOAD_CHARS] + ("\n[cut off]" if len(text) > PAYLOAD_CHARS else "")
    return Text(
        f"A message came on {clean_text(topic)}:\n\n{shown}",
        Label(source=f"mqtt {clean_text(topic)[:200]}"),
    )
