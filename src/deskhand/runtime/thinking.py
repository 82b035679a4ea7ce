"""Questions to a model that belong to no conversation: to gather facts, to judge, to sum up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..agent.profile import Agent
from ..models.aside import Aired, Aside, ask_aside
from ..models.base import Model


class Thinking(msgspec.Struct, frozen=True):
    """`agent` gives an agent by its name, `model` opens `provider/name`."""

    agent: Callable[[str], Agent]
    model: Callable[[str], Model]

    async def ask(self, name: str, aside: Aside, models: Sequence[str] = ()) -> Aired:
        """Ask these models, or the cheapest of this agent, then its others. Raises ConfigError for an unknown agent,
        ModelError where none answered."""
        agent = self.agent(name)
        return await ask_aside(aside, models or (*filter(None, (agent.cheap_model,)), *agent.models), self.model)
