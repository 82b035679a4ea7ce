"""Memory in the running house: what is recalled and always told, the tools, and what goes on
beside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from zoneinfo import ZoneInfo

import anyio
import msgspec

from ..agent.state import State
from ..assembly.host import Host
from ..assembly.prompt import MEMORY_FILE, day_files, is_private
from ..memory.facts import Fact, Viewer, make_unrestricted_viewer
from ..memory.recall import Meaning, Memory
from ..memory.rendering import make_recalled, render_pinned
from ..memory.settings import MemoryConfig
from ..memory.tools import Remembered, memory_tools
from ..memory.words import extract_words
from ..store.base import Store
from ..supervision.restart_with_backoff import Child
from ..tools.base import Context, Tool
from ..types.commit import Change
from ..types.errors import ConfigError, DeskhandError, ModelError
from ..types.events import Recalled
from ..types.identity import EVERYBODY

log = logging.getLogger(__name__)

POLL_S = 1.0
PAUSE_S = 60.0
SWEEP_S = 60.0
CHANGES_KEPT = 100_000
ASKED_CHARS = 4_000
PEOPLE_KNOWN = 500
EXTRA_HITS = 10
"""So many more are looked up, since some stand in the prompt anyway."""
MeaningFactory = Callable[[MemoryConfig, Store], Meaning | None]
"""Opens what compares meanings, by the settings; None: words alone are compared. Raises
ConfigError."""


def open_no_meaning(config: MemoryConfig, store: Store) -> Meaning | None:
    """Where nothing compares meanings."""
    return None


class Remembering:
    """One for each App. `memory` answers whoever has a Viewer."""

    def __init__(self, ground: Host, meaning: MeaningFactory) -> None:
        self._ground = ground
        self._meaning_of = meaning
        self.memory = Memory(ground.store, ground.clock)
        self._opened: object = None
        self._looked_at = -1
        self._used: list[int] = []
        self._known: dict[tuple[str, str], tuple[int, str]] = {}
        self._tools = memory_tools(
            Remembered(self.memory, lambda: self._config.keeping, ground.redact, sole_person)
        )

    @property
    def _config(self) -> MemoryConfig:
        return self._ground.settings().config.memory

    def tools(self) -> tuple[Tool, ...]:
        return self._tools if self._config.enabled else ()

    async def recall(self, agent: str, state: State) -> Recalled | None:
        """What is known about what was just said. What fails is no reason not to answer."""
        config = self._config
        turn = state.turn
        if turn is None or not config.enabled or not config.inject_top_k:
            return None
        viewer = make_viewer(agent, state)
        if not self.memory.count(viewer):
            return None
        said = "\n".join(turn.said[turn.recalled :])[:ASKED_CHARS]
        if not extract_words(said):  # "thank you": no model has to be asked what that means
            return None
        try:
            found = await self.memory.search(said, viewer, config.inject_top_k + EXTRA_HITS)
        except DeskhandError as error:
            log.warning("nothing is recalled: %s", error)
            return None
        shown = make_prompt_filter(
            state, self._ground.clock.now(), ZoneInfo(self._ground.settings().config.timezone)
        )
        near = [
            each.fact
            for each in found
            if each.relevance >= config.inject_min_relevance and not shown(each.fact)
        ]
        told = make_recalled(near[: config.inject_top_k])
        if told is not None:
            self._used += told.facts
        return told

    def pinned_text(self, agent: str, person: str) -> str:
        """What is always told here. The same text for as long as nothing changes."""
        if not self._config.enabled:
            return ""
        seq = self.memory.seq
        key = (agent, person)
        cached = self._known.get(key)
        if cached is None or cached[0] != seq:
            if len(self._known) > PEOPLE_KNOWN:
                self._known.clear()
            viewer = Viewer(person, agent, bool(person), (person,) if person else ())
            cached = self._known[key] = (seq, render_pinned(self.memory.pinned(viewer)))
        return cached[1]

    def children(self) -> Iterator[Child]:
        """What goes on for ever, in the process that drives."""
        yield Child("memory", self.run_sweeps)
        yield Child("embedding", self.run_embedding)

    async def run_embedding(self) -> None:
        """For ever: compare meanings by the model that the settings name, and make the vectors that
        it lacks. Where nothing is known there is nothing to compare, and what it takes (15 MB)
        stays out of memory."""
        while True:
            if self.memory.count(make_unrestricted_viewer()):
                self.open_meaning()
            try:
                await self._embed_missing()
                await anyio.sleep(POLL_S)
            except ModelError as error:
                log.warning("new memories are found by words alone for now: %s", error)
                await anyio.sleep(PAUSE_S)

    def open_meaning(self) -> None:
        """Open what compares meanings, where the settings name another than before. What cannot be
        opened is told, and words alone are compared."""
        settings = self._ground.settings()
        wanted = (settings.config.memory, settings.config.providers, settings.environment)
        if wanted == self._opened:
            return
        self._opened = wanted
        self._looked_at = -1
        try:
            self.memory.meaning = self._meaning_of(settings.config.memory, self._ground.store)
        except ConfigError as error:
            self.memory.meaning = None
            log.warning("memory is searched by words alone: %s", error)

    async def _embed_missing(self) -> None:
        """Make what is missing, where anything has changed."""
        meaning = self.memory.meaning
        seq = self.memory.seq
        if (
            meaning is None
            or not self.memory.count(make_unrestricted_viewer())
            or (seq == self._looked_at and not meaning.needs_reindex)
        ):
            return
        while await meaning.embed_missing():
            pass
        self._looked_at = seq

    async def run_sweeps(self) -> None:
        """For ever: note what was used, drop candidates that nobody took up."""
        while True:
            await self.sweep()
            await anyio.sleep(SWEEP_S)

    async def sweep(self) -> None:
        used = self._used
        self._used = []
        now = self._ground.clock.now()
        changes = [Change("fact_expire", (now,)), Change("fact_changes_forget", (CHANGES_KEPT,))]
        if used:
            changes.append(
                Change("fact_used", (msgspec.json.encode(sorted({*used})).decode(), now))
            )
        await self._ground.store.change(changes)


def make_prompt_filter(state: State, now: float, zone: ZoneInfo) -> Callable[[Fact], bool]:
    """Whether the prompt of this conversation holds a fact already: what is pinned, and for an
    owner alone what was read from the files that stand in it."""
    turn = state.turn
    files = frozenset[str]()
    if turn is not None and not state.shared and is_private(turn.address, turn.principal):
        files = frozenset(f"file {name}" for name in (MEMORY_FILE, *day_files(now, zone)))
    return lambda fact: fact.pinned or (fact.writer == "file" and fact.label.source in files)


def make_viewer(agent: str, state: State) -> Viewer:
    """Who reads this conversation."""
    person = "" if state.person in ("", EVERYBODY) else state.person
    return Viewer(person, agent, bool(person), state.audience)


def sole_person(context: Context) -> str:
    """The person who is alone with the agent in the conversation of a call; '' where there are
    more."""
    return "" if context.person == EVERYBODY else context.person
