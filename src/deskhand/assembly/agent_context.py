"""What an agent is shown beside the conversation: its prompt, what it remembers, summaries of what
no longer fits."""

from __future__ import annotations

from collections.abc import Sequence

from ..agent.state import State
from ..types.events import Recalled
from ..types.messages import Message
from ..types.steps import Condensed
from .features import Features
from .prompt import Prompt


class AgentContext:
    """Implements `agent.protocols.ContextSource` for the agent of this name."""

    def __init__(self, name: str, prompt: Prompt, features: Features) -> None:
        self._name = name
        self._prompt = prompt
        self._features = features

    def blocks(self, state: State) -> tuple[str, ...]:
        return self._prompt.blocks(state)

    async def recall(self, state: State) -> Recalled | None:
        return await self._features.recall(self._name, state)

    async def summarize(self, state: State, messages: Sequence[Message], focus: str) -> Condensed:
        return await self._features.summarizer.summarize(self._name, state, messages, focus)
