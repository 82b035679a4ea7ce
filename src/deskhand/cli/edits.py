"""Follows the edits of a conversation: what each changed, or would change."""

from __future__ import annotations

from ..runtime.app import App
from ..tools.aliases import TOOL_ALIASES
from ..types.diffs import CallDiff
from ..types.door import Progress
from ..types.errors import DeskhandError
from ..types.events import ApprovalAsked, ModelReplied, Recorded, ToolFinished
from .run import ME

_EDIT_TOOLS = ("write_file", "edit_file")


class Edits:
    """Follows a conversation, and knows the diff of each edit in it when it has happened or is
    asked about."""

    def __init__(self, app: App, session: str) -> None:
        self._app = app
        self._session = session
        self._edits: dict[str, int] = {}

    async def find_diff(self, item: Recorded | Progress) -> CallDiff | None:
        """What this item brings about, or would; None where it is no edit, or nobody knows any
        more."""
        if isinstance(item, Progress):
            return None
        match item.event:
            case ModelReplied(message=message):
                self._edits = {
                    call.id: item.n
                    for call in message.calls
                    if TOOL_ALIASES.get(call.name, call.name) in _EDIT_TOOLS
                }
                return None
            case ToolFinished(result=result) if (
                result.status == "ok" and result.call_id in self._edits
            ):
                return await self._load_diff(result.call_id)
            case ApprovalAsked(call_id=call_id) if call_id in self._edits:
                return await self._load_diff(call_id)
            case _:
                return None

    async def _load_diff(self, call_id: str) -> CallDiff | None:
        try:
            found = await self._app.diffs.diff_call(
                ME, self._session, self._edits[call_id], call_id
            )
        except DeskhandError:
            return None
        return found if found.files else None
