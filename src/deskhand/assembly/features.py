"""What an agent has from the features that are wired above it: memory, jobs, long work."""

from __future__ import annotations

from typing import Protocol

from ..agent.state import State
from ..tools.base import Tool
from ..types.events import Recalled
from .chat_commands import CommandHandlers
from .summarise import Condense
from .workspace_tools import OwnTools


class Features(Protocol):
    """Implemented by `FeatureWiring`, above."""

    @property
    def own_tools(self) -> OwnTools: ...

    @property
    def summarize(self) -> Condense: ...

    def tools(self, agent: str, /) -> tuple[Tool, ...]:
        """What this agent can do with them."""

    def command_handlers(self) -> CommandHandlers:
        """The chat commands that they answer."""

    def render_pinned_facts(self, agent: str, person: str, /) -> str:
        """What this agent always knows, for the prompt. From memory alone, since it is asked before
        every call."""

    def describe_progress(self, session: str, /) -> str:
        """How what goes on by itself in this conversation stands, for people; '' for nothing."""

    async def recall(self, agent: str, state: State, /) -> Recalled | None:
        """What is told to the model of what was just said; None for nothing."""
