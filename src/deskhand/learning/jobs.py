"""Memory that looks after itself: chores of our own that gather, tidy and look back, and the files
that show it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping

import anyio

from ..agent.fold import fold
from ..agent.state import State
from ..assembly.host import Host
from ..assembly.side_queries import SideQueries
from ..jobs.builtins import BuiltinJobs, Chore
from ..memory.recall import Memory
from ..types.errors import DeskhandError
from ..types.events import CommandRun, Recorded
from ..types.jobs import Job
from ..types.turn import STOP_TURN_ONLY
from .extraction import Gatherer
from .notebook import Notebook
from .reflection import Reflecting

log = logging.getLogger(__name__)

HARVEST_AT = "*/30 * * * *"
CLEAN_AT = "0 3 * * *"
PROMOTE_AT = "30 3 * * *"
"""When nobody says otherwise. What has nothing new to look at asks no model."""


class Learning:
    """One for each App."""

    def __init__(self, ground: Host, thinking: SideQueries, memory: Memory) -> None:
        self._ground = ground
        self.gatherer = Gatherer(ground, thinking, memory)
        self.reflecting = Reflecting(self.gatherer)
        self.notebook = Notebook(ground, thinking.agent)
        self._ended: set[str] = set()
        self._poke = anyio.Event()

    listens_to = (CommandRun,)

    def on_event(self, recorded: Recorded) -> None:
        """A command passes. Never waits."""
        match recorded.event:
            case CommandRun(name="start" | "stop", args=args, refused=False) if (
                args != STOP_TURN_ONLY
            ):
                self._ended.add(recorded.session)
                self._poke.set()
            case _:
                pass

    async def run(self) -> None:
        """For ever: look back at each conversation that somebody has ended, and bring the files up
        to date. What is missed, since the process ended or no model answered, is done when looking
        back is due."""
        while True:
            self._poke = anyio.Event()
            while self._ended:
                await self.reflect_if_over(self._ended.pop())
            await self._poke.wait()

    async def reflect_if_over(self, session: str) -> None:
        """Look back at this conversation if it is over, and memory is to learn by itself."""
        config = self._ground.settings().config
        if not (config.memory.enabled and config.reflection.enabled):
            return
        try:
            if await self._is_over(session) and await self.reflecting.reflect_session(session):
                await self.notebook.sync()
        except DeskhandError as error:
            log.warning("%s was ended, and is looked back at later: %s", session, error)

    async def _is_over(self, session: str) -> bool:
        """Whether the conversation was ended, and not only what ran in it, and no other has begun
        there."""
        return fold(State(session), await self._ground.store.history(session)).archived

    def chores(self) -> Mapping[str, Chore]:
        """The work of the builtin jobs."""
        return {
            "harvest": _make_chore(self.gatherer.harvest),
            "clean": _make_chore(self.gatherer.clean),
            "reflect": _make_chore(self.reflecting.reflect),
            "promote": _make_chore(self.reflecting.promote),
        }

    def builtin_jobs(self) -> Iterator[Job]:
        """The jobs without a file, as the configuration has them now."""
        config = self._ground.settings().config
        memory = config.memory
        reflection = config.reflection
        gather = (
            ("harvest", memory.harvester, HARVEST_AT, "gather facts from what was said"),
            ("clean", memory.cleaner, CLEAN_AT, "tidy what is known"),
        )
        for name, one, usual, about in gather:
            on = memory.enabled and one.enabled is not False
            yield _make_job(name, one.schedule or usual, about, on)
        on = memory.enabled and reflection.enabled
        yield _make_job(
            "reflect", reflection.schedule, "look back at conversations that are over", on
        )
        yield _make_job(
            "promote", PROMOTE_AT, "put what lasts of the notes of past days into MEMORY.md", on
        )


def _make_job(name: str, schedule: str, about: str, enabled: bool) -> Job:
    return Job(
        name, description=about, schedule=schedule, kind="chore", chore=name, enabled=enabled
    )


def _make_chore(do: Callable[[], Awaitable[str]]) -> Chore:
    async def run(job: Job) -> str:
        return await do()

    return run


_jobs: type[BuiltinJobs] = Learning
