"""What can be seen of jobs from outside: their messages, their runs, and what a channel was given
to send."""

from __future__ import annotations

from deskhand.jobs.ledger import list_runs
from deskhand.runtime.app import App
from deskhand.testing.channel import MemoryChannel
from deskhand.types.events import MessageReceived
from deskhand.types.messages import Text
from deskhand.users.user_cache import OWNER


async def messages(app: App, session: str) -> list[MessageReceived]:
    return [
        e.event for e in await app.store.events(session) if isinstance(e.event, MessageReceived)
    ]


async def states(app: App, name: str) -> list[str]:
    return [run.state for run in await list_runs(app.store, name, 20)]


async def of_people(app: App) -> list[str]:
    """The jobs that have a file."""
    return [view.name for view in await app.features.jobs.api.list_jobs(OWNER) if not view.builtin]


def texts(channel: MemoryChannel) -> list[tuple[str, str]]:
    return [
        (
            outgoing.address.chat,
            "".join(part.text for part in outgoing.parts if isinstance(part, Text)),
        )
        for outgoing, _ in channel.sent
    ]


async def truth(value: bool) -> bool:
    return value
