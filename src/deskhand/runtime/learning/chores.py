"""Memory that looks after itself: chores of our own that gather, tidy and look back, and the files that show it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from ...memory.recall import Memory
from ...types.jobs import Job
from ..hands import Ground
from ..jobs.jobs import Jobs
from ..thinking import Thinking
from .gathering import Gatherer
from .notebook import Notebook
from .reflecting import Reflecting

HARVEST_AT, CLEAN_AT, PROMOTE_AT = "*/30 * * * *", "0 3 * * *", "30 3 * * *"
"""When nobody says otherwise. What has nothing new to look at asks no model."""


class Learning:
    """One for each App."""

    def __init__(self, ground: Ground, thinking: Thinking, memory: Memory) -> None:
        self._ground = ground
        self.gatherer = Gatherer(ground, thinking, memory)
        self.reflecting = Reflecting(self.gatherer)
        self.notebook = Notebook(ground, thinking.agent)

    def register(self, jobs: Jobs) -> None:
        """Make them chores that are done when they are due."""
        work: dict[str, Callable[[], Awaitable[str]]] = {
            "harvest": self.gatherer.harvest,
            "clean": self.gatherer.clean,
            "reflect": self.reflecting.reflect,
            "promote": self.reflecting.promote,
        }
        jobs.chores |= {name: _chore(do) for name, do in work.items()}
        jobs.builtins.append(self.builtin)

    def builtin(self) -> Iterator[Job]:
        """The jobs without a file, as the configuration has them now."""
        config = self._ground.settings().config
        memory, reflection = config.memory, config.reflection
        gather = (
            ("harvest", memory.harvester, HARVEST_AT, "gather facts from what was said"),
            ("clean", memory.cleaner, CLEAN_AT, "tidy what is known"),
        )
        for name, one, usual, about in gather:
            on = memory.enabled and one.enabled is not False
            yield _job(name, one.schedule or usual, about, on)
        on = memory.enabled and reflection.enabled
        yield _job("reflect", reflection.schedule, "look back at conversations that are over", on)
        yield _job("promote", PROMOTE_AT, "put what lasts of the notes of past days into MEMORY.md", on)


def _job(name: str, schedule: str, about: str, enabled: bool) -> Job:
    return Job(name, description=about, schedule=schedule, kind="chore", chore=name, enabled=enabled)


def _chore(do: Callable[[], Awaitable[str]]) -> Callable[[Job], Awaitable[str]]:
    async def run(job: Job) -> str:
        return await do()

    return run
