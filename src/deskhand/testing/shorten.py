"""Shortens a conversation as a driver does where there is nobody to sum up what goes."""

from __future__ import annotations

from ..agent.compacted_event import make_compaction
from ..agent.state import State
from ..models.window import fit_messages
from ..types.events import Compacted
from ..types.steps import Condensed


def compact(state: State, budget: int) -> Compacted:
    """To about so many tokens; 0: to half."""
    return make_compaction(
        state, fit_messages([shown.message for shown in state.messages], budget), Condensed()
    )
