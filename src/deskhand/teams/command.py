"""`/teams`: who is in the team of a conversation, and whether it may have one."""

from __future__ import annotations

from ..agent.state import State
from ..store.base import Store
from ..store.queries import teammates_of
from ..types.identity import Waiting
from ..types.marked_texts import mark_text
from ..types.options import SessionOptions
from .mail import render_team


class TeamsCommand:
    """Answers `/teams`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, state: State, row: Waiting, args: str) -> str | tuple[SessionOptions, str]:
        if args == "on":
            told = mark_text("From now on I may work with a team here.")
            return SessionOptions(teams=True), told
        if args == "off":
            return SessionOptions(teams=False), mark_text("I take no more teammates in here.")
        team = teammates_of(self._store, state.session)
        if team:
            return render_team(team, [""] * len(team))
        if state.options.teams:
            return mark_text("I may work with a team here. Nobody is in it yet.")
        return mark_text(
            "I work alone here. Write /teams on, and I may take other agents into a team."
        )
