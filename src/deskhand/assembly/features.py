"""What agents get from features that are built above them: memory, jobs, long work."""

from __future__ import annotations

from typing import Protocol

from ..agent.state import State
from ..tools.base import Tool
from ..types.events import Recalled
from .chat_commands import CommandHandlers
from .summarise import Summarizer
from .workspace_tools import OwnTools


class Features(Protocol):
    """Implemented by `runtime.feature_wiring.FeatureWiring`."""

    @property
    def own_tools(self) -> OwnTools: ...

    @property
    def summarizer(self) -> Summarizer: ...

    def tools(self, agent: str, /) -> tuple[Tool, ...]:
        """The tools of the features for this agent."""

    def command_handlers(self) -> CommandHandlers:
        """The chat commands of the features."""

    def render_pinned_facts(self, agent: str, person: str, /) -> str:
        """The facts that are always in the prompt of this agent. Reads memory only, as it is called
        before every call of a model."""

    def describe_progress(self, session: str, /) -> str:
        """The progress of long work in this session, for people; '' for none."""

    async def recall(self, agent: str, state: State, /) -> Recalled | None:
        """What the model is told with what was just said; None for nothing."""
