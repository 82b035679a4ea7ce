"""Memory in the running house: what is recalled and always told, the tools, and what goes on beside."""

from __future__ import annotations

import logging

import anyio
import msgspec

from ..agent.state import State
from ..memory.facts import Viewer
from ..memory.recall import Memory
from ..memory.settings import MemoryConfig
from ..memory.telling import known, recalled
from ..memory.tools import Remembered, memory_tools
from ..tools.base import Context, Tool
from ..types.commit import Change
from ..types.errors import DeskhandError
from ..types.events import Recalled
from ..types.identity import EVERYBODY
from .hands import Ground

log = logging.getLogger(__name__)

TIDY_S = 60.0
CHANGES_KEPT = 100_000
ASKED_CHARS = 4_000
PEOPLE_KNOWN = 500


class Remembering:
    """One for each App. `memory` answers whoever has a Viewer."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.memory = Memory(ground.store, ground.clock)
        self._used: list[int] = []
        self._known: dict[tuple[str, str], tuple[int, str]] = {}
        self._tools = memory_tools(Remembered(self.memory, lambda: self._config.keeping, ground.redact, _alone))

    @property
    def _config(self) -> MemoryConfig:
        return self._ground.settings().config.memory

    def tools(self) -> tuple[Tool, ...]:
        return self._tools if self._config.enabled else ()

    async def recall(self, agent: str, state: State) -> Recalled | None:
        """What is known about what was just said. What fails is no reason not to answer."""
        config, turn = self._config, state.turn
        if turn is None or not config.enabled or not config.inject_top_k:
            return None
        viewer = viewer_of(agent, state)
        if not self.memory.count(viewer):
            return None
        said = "\n".join(turn.said[turn.recalled :])[:ASKED_CHARS]
        try:
            found = await self.memory.search(said, viewer, config.inject_top_k)
        except DeskhandError as error:
            log.warning("nothing is recalled: %s", error)
            return None
        told = recalled([each.fact for each in found if each.relevance >= config.inject_min_relevance])
        if told is not None:
            self._used += told.facts
        return told

    def pinned(self, agent: str, person: str) -> str:
        """What is always told here. The same text for as long as nothing changes."""
        if not self._config.enabled:
            return ""
        seq, key = self.memory.seq, (agent, person)
        cached = self._known.get(key)
        if cached is None or cached[0] != seq:
            if len(self._known) > PEOPLE_KNOWN:
                self._known.clear()
            viewer = Viewer(person, agent, bool(person), (person,) if person else ())
            cached = self._known[key] = (seq, known(self.memory.pinned(viewer)))
        return cached[1]

    async def tidy(self) -> None:
        """For ever: note what was used, drop candidates that nobody took up."""
        while True:
            await self.sweep()
            await anyio.sleep(TIDY_S)

    async def sweep(self) -> None:
        used, self._used = self._used, []
        now = self._ground.clock.now()
        changes = [Change("fact_expire", (now,)), Change("fact_changes_forget", (CHANGES_KEPT,))]
        if used:
            changes.append(Change("fact_used", (msgspec.json.encode(sorted({*used})).decode(), now)))
        await self._ground.store.change(changes)


def viewer_of(agent: str, state: State) -> Viewer:
    """Who reads this conversation."""
    person = "" if state.person in ("", EVERYBODY) else state.person
    return Viewer(person, agent, bool(person), state.audience)


def _alone(context: Context) -> str:
    return "" if context.person == EVERYBODY else context.person
