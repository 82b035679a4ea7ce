"""Conversations by their names here: to complete one, and to take along what was said in it."""

from __future__ import annotations

from collections.abc import Iterable

from ..config.config import Settings
from ..runtime.app import App
from ..store.base import SessionRow
from ..types.errors import DeskhandError
from ..types.events import HistoryMessage, MessageReceived, ModelReplied, Recorded, TurnEnded
from .asks import session_name
from .run import ME

KEPT = 200
"""So many of the latest conversations are completed."""
OFFERED = 20


class KnownConversations:
    """The latest conversations of this home, but for the one that is open."""

    def __init__(self, app: App, settings: Settings, session: str) -> None:
        self._app = app
        self._settings = settings
        self._session = session
        self._rows: dict[str, SessionRow] = {}

    async def refresh(self) -> None:
        """Look which there are now; those from before stay where that cannot be read."""
        try:
            rows = await self._app.store.sessions(ME, KEPT)
        except DeskhandError:
            return
        self._rows = {
            session_name(row.session, self._settings): row
            for row in rows
            if row.session != self._session
        }

    def match(self, beginning: str) -> list[str]:
        """The names that begin so, then those whose titles contain it; the latest first."""
        wanted = beginning.lower()
        named = [name for name in self._rows if name.lower().startswith(wanted)]
        titled = [
            name
            for name, row in self._rows.items()
            if name not in named and wanted in row.title.lower()
        ]
        return [name for name in named + titled if _is_writable(name)][:OFFERED]

    def title(self, name: str) -> str:
        row = self._rows.get(name)
        return row.title if row is not None else ""

    async def read(self, name: str) -> str | None:
        """What was said in it, as Markdown; None where there is no such conversation."""
        row = self._rows.get(name)
        if row is None:
            return None
        try:
            return render_transcript(await self._app.store.events(row.session))
        except DeskhandError:
            return None


def _is_writable(name: str) -> bool:
    """Whether it can stand behind an @."""
    return name.isprintable() and '"' not in name


def render_transcript(events: Iterable[Recorded]) -> str:
    """What people and the agent said, without the calls between."""
    blocks = []
    for recorded in events:
        match recorded.event:
            case MessageReceived(message=message, principal=principal):
                blocks.append((principal.id, message.text))
            case HistoryMessage(message=message):
                blocks.append((message.role, message.text))
            case ModelReplied(message=message):
                blocks.append(("agent", message.text))
            case TurnEnded(said=said):
                blocks.append(("agent", said))
            case _:
                pass
    return "\n\n".join(f"**{who}:** {text.strip()}" for who, text in blocks if text.strip())
