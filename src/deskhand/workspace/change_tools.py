"""Tools with which an agent lists and undoes its changes in a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from ..tools.base import Context, Done, Tool, make_result
from ..tools.define import tool
from ..types.errors import Refused, ToolError
from ..types.labels import LOCAL, join_labels
from .undo_journal import UndoJournal, format_names

MAX_CHANGES = 20


def change_tools(effects: UndoJournal, zone: Callable[[], str]) -> Sequence[Tool]:
    """Make both tools. `zone` gives the time zone of the person."""

    @tool
    async def list_changes(context: Context) -> Done:
        """List what was changed in this conversation, the latest first: files, key-values."""
        found = await effects.list_undoable(context.principal, MAX_CHANGES, context.session)
        lines = list[str]()
        labels = [LOCAL]
        for effect in found:
            at = datetime.fromtimestamp(effect.at, ZoneInfo(zone()))
            items = await effects.items(effect, MAX_CHANGES)
            labels.append(await effects.label(effect, items))
            places = format_names([item.display_name for item in items]) or effect.what
            lines.append(f"{at:%H:%M} {places} (by {effect.tool}, change {effect.n})")
        return make_result(
            "\n".join(lines) or "nothing was changed in this conversation", join_labels(labels)
        )

    @tool(effect="local_write", replay="never")
    async def undo_change(context: Context, change: int = 0) -> Done:
        """Take back a change of this conversation: files and key-values are put back as they were
        before it.

        change: its number in list_changes; 0 for the latest
        """
        who = context.principal
        found = await effects.list_undoable(who, 1000, context.session)
        effect = next((each for each in found if change in (0, each.n)), None)
        if effect is None:
            raise ToolError(
                f"there is no change {change} here" if change else "there is nothing to undo here"
            )
        try:
            outcome = await effects.undo(who, effect)
        except Refused as error:
            raise ToolError(str(error), await effects.label(effect, ())) from error
        if outcome.undo is None:
            raise ToolError(outcome.words, outcome.label)
        return make_result(
            f"{outcome.words} (`deskhand undo --redo` takes that back.)", outcome.label
        )

    return (list_changes, undo_change)
