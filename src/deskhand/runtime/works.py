"""What goes on when nobody writes: memory, jobs, long work. Wired once, as `hands` are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..agent.profile import Agent
from ..agent.state import State
from ..models.base import Model
from ..tools.base import Tool
from ..types.events import Recalled, Recorded
from .children import Child
from .condense import Condense
from .hands import Ground
from .proposals import propose_skill
from .remembering import Remembering
from .replaying import Replaying
from .reviewing import Reviewing
from .thinking import Thinking
from .tried import Tried
from .waking import Waker


class Works:
    """All of it. `ground` is what it stands on, `model` opens `provider/name`, `trying` gives an agent for replays."""

    def __init__(
        self,
        ground: Ground,
        agent: Callable[[str], Agent],
        model: Callable[[str], Model],
        trying: Callable[[str, Tried], Agent],
    ) -> None:
        self.ground = ground
        self.waker = Waker(ground.store, ground.dispatch)
        self.thinking = Thinking(agent, model)
        self.remembering = Remembering(ground)
        self.condense = Condense(ground.store, self.thinking)
        self.replaying = Replaying(ground, trying, model)
        self.reviewing = Reviewing(ground, self.waker, self.replaying)

    def children(self) -> Iterator[Child]:
        """What only the process that drives may do."""
        yield Child("memory", self.remembering.tidy)
        yield Child("skills", self.reviewing.run)

    def tools(self, agent: str) -> tuple[Tool, ...]:
        """What this agent can do with it."""
        return (*self.remembering.tools(), propose_skill)

    async def recall(self, agent: str, state: State) -> Recalled | None:
        """What memory holds of what was just said to this agent; None for nothing."""
        return await self.remembering.recall(agent, state)

    def pinned(self, agent: str, person: str) -> str:
        """What this agent always knows, for the prompt: of everybody, and of this person where they are alone with it
        ('' where they are not). From memory alone, since it is asked before every call."""
        return self.remembering.pinned(agent, person)

    def see(self, recorded: Recorded) -> None:
        """An event passes. Never waits."""
        self.reviewing.see(recorded)
