"""Memory in a running Deskhand: what is recalled for a message, what is pinned, the tools, and the
upkeep."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from zoneinfo import ZoneInfo

import anyio

from ..agent.state import State
from ..assembly.host import Host
from ..assembly.prompt import MEMORY_FILE, day_files, is_private
from ..memory import queries
from ..memory.facts import Fact, Viewer, make_unrestricted_viewer
from ..memory.recall import Meaning, Memory
from ..memory.rendering import make_recalled, render_pinned
from ..memory.settings import MemoryConfig
from ..memory.tools import memory_tools
from ..memory.words import extract_words
from ..store.base import Store
from ..supervision.restart_with_backoff import Child
from ..tools.base import Tool
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
"""So many more are searched for, since some are in the prompt already."""
MeaningFactory = Callable[[MemoryConfig, Store], Meaning | None]
"""Opens the search by meaning, as the settings say; None when facts are to be found by words only.
Raises ConfigError."""


def open_no_meaning(config: MemoryConfig, store: Store) -> Meaning | None:
    """No search by meaning."""
    return None


class Remembering:
    """The memory of one App."""

    def __init__(self, ground: Host, meaning: MeaningFactory) -> None:
        self._ground = ground
        self._open_meaning = meaning
        self.memory = Memory(ground.store, ground.clock)
        self._opened: object = None
        self._looked_at = -1
        self._used: list[int] = []
        self._pinned_texts: dict[tuple[str, str], tuple[int, str]] = {}
        self._tools = memory_tools(
            self.memory, keeping=lambda: self._config.keeping, redact=ground.redact
        )

    @property
    def _config(self) -> MemoryConfig:
        return self._ground.settings().config.memory

    def tools(self) -> tuple[Tool, ...]:
        return self._tools if self._config.enabled else ()

    async def recall(self, agent: str, state: State) -> Recalled | None:
        """The facts that fit what was just said, or None. A failed search is logged, and the turn
        goes on without it."""
        config = self._config
        turn = state.turn
        if turn is None or not config.enabled or not config.inject_top_k:
            return None
        viewer = make_viewer(agent, state)
        if not self.memory.count(viewer):
            return None
        said = "\n".join([*turn.said[turn.recalled :], *turn.transcripts])[:ASKED_CHARS]
        if not extract_words(said):  # "thank you": no need to ask a model what that means
            return None
        try:
            found = await self.memory.search(said, viewer, config.inject_top_k + EXTRA_HITS)
        except DeskhandError as error:
            log.warning("Nothing is recalled: %s", error)
            return None

        zone = ZoneInfo(self._ground.settings().config.timezone)
        in_prompt = make_prompt_filter(state, self._ground.clock.now(), zone)
        near = [
            hit.fact
            for hit in found
            if hit.relevance >= config.inject_min_relevance and not in_prompt(hit.fact)
        ]
        recalled = make_recalled(near[: config.inject_top_k])
        if recalled is not None:
            self._used += recalled.facts
        return recalled

    def pinned_text(self, agent: str, person: str) -> str:
        """The pinned facts for conversations of this person with this agent. The same text as long
        as no fact changes."""
        if not self._config.enabled:
            return ""
        seq = self.memory.seq
        key = (agent, person)
        cached = self._pinned_texts.get(key)
        if cached is None or cached[0] != seq:
            if len(self._pinned_texts) > PEOPLE_KNOWN:
                self._pinned_texts.clear()
            viewer = Viewer(person, agent, bool(person), (person,) if person else ())
            cached = self._pinned_texts[key] = (seq, render_pinned(self.memory.pinned(viewer)))
        return cached[1]

    def children(self) -> Iterator[Child]:
        """The background tasks of memory, for the process that drives sessions."""
        yield Child("memory", self.run_sweeps)
        yield Child("embedding", self.run_embedding)

    async def run_embedding(self) -> None:
        """Keep the vectors up to date with the model that the settings name. Never returns. The
        model (15 MB) is not loaded as long as there are no facts."""
        while True:
            if self.memory.count(make_unrestricted_viewer()):
                self.open_meaning()
            try:
                await self._embed_missing()
                await anyio.sleep(POLL_S)
            except ModelError as error:
                log.warning("New memories are found by words only for now: %s", error)
                await anyio.sleep(PAUSE_S)

    def open_meaning(self) -> None:
        """Open the search by meaning again when its settings have changed. If that fails, the
        reason is logged and facts are found by words only."""
        settings = self._ground.settings()
        wanted = (settings.config.memory, settings.config.providers, settings.environment)
        if wanted == self._opened:
            return
        self._opened = wanted
        self._looked_at = -1
        try:
            self.memory.meaning = self._open_meaning(settings.config.memory, self._ground.store)
        except ConfigError as error:
            self.memory.meaning = None
            log.warning("Memory is searched by words only: %s", error)

    async def _embed_missing(self) -> None:
        """Compute missing vectors if a fact has changed since the last time."""
        meaning = self.memory.meaning
        seq = self.memory.seq
        if meaning is None or not self.memory.count(make_unrestricted_viewer()):
            return
        if seq == self._looked_at and not meaning.needs_reindex:
            return
        while await meaning.embed_missing():
            pass
        self._looked_at = seq

    async def run_sweeps(self) -> None:
        """Count which facts were recalled, and close expired candidates. Never returns."""
        while True:
            await self.sweep()
            await anyio.sleep(SWEEP_S)

    async def sweep(self) -> None:
        used = self._used
        self._used = []
        now = self._ground.clock.now()
        changes = [queries.expire_facts(now), queries.trim_changes(CHANGES_KEPT)]
        if used:
            changes.append(queries.mark_used(used, now))
        await self._ground.store.change(changes)


def make_prompt_filter(state: State, now: float, zone: ZoneInfo) -> Callable[[Fact], bool]:
    """Tells whether a fact is in the prompt of this conversation already: a pinned one, and in a
    private conversation of an owner one that was read from a file of notes in the prompt."""
    turn = state.turn
    files = frozenset[str]()
    if turn is not None and not state.shared and is_private(turn.address, turn.principal):
        files = frozenset(f"file {name}" for name in (MEMORY_FILE, *day_files(now, zone)))
    return lambda fact: fact.pinned or (fact.writer == "file" and fact.label.source in files)


def make_viewer(agent: str, state: State) -> Viewer:
    """Who reads this conversation."""
    person = "" if state.person in ("", EVERYBODY) else state.person
    return Viewer(person, agent, bool(person), state.audience)
