"""Asks a model outside of any conversation: to gather facts, to judge, to summarise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from ..agent.agent import Agent
from ..config.clock import RandomIds
from ..models.base import Model
from ..models.side_completion import Aired, Aside, Billing, ask_aside, cheapest_first
from ..types.budget import Budgets, Charge, no_budget
from ..types.clock import Ids
from ..types.commit import Change


async def ignore_changes(changes: Sequence[Change]) -> list[int]:
    """For a budget that counts nothing, and so has no rows to store."""
    return []


class SideQueries:
    """Asks the models of agents. `agent` gives an agent by its name, `model` opens `provider/name`.
    Every call is reserved and settled in `budgets`, and `change` stores the rows of that."""

    def __init__(
        self,
        agent: Callable[[str], Agent],
        model: Callable[[str], Model],
        budgets: Budgets = no_budget,
        change: Callable[[Sequence[Change]], Awaitable[list[int]]] = ignore_changes,
        ids: Ids | None = None,
    ) -> None:
        self.agent = agent
        self._model = model
        self._budgets = budgets
        self._change = change
        self._ids = ids or RandomIds()

    async def ask(
        self, name: str, aside: Aside, models: Sequence[str] = (), charge: Charge | None = None
    ) -> Aired:
        """Ask these models, or the cheapest model of this agent and then its others. `charge` says
        who pays; without it the agent does.

        Raises ConfigError for an unknown agent, BudgetSpent, and ModelError when no model answers.
        """
        agent = self.agent(name)
        models = models or cheapest_first(agent.cheap_model, agent.models)
        rows: list[Change] = []
        billing = Billing(
            self._budgets,
            charge or Charge("", "", name),
            ids=self._ids,
            kind="aside",
            record=rows.extend,
        )
        try:
            return await ask_aside(aside, models, self._model, billing)
        finally:
            if rows:
                with anyio.CancelScope(shield=True):
                    await self._change(rows)
