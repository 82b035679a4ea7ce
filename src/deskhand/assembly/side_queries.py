"""Questions to a model that belong to no conversation: to gather facts, to judge, to sum up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import msgspec

from ..agent.profile import Agent
from ..config.clock import RandomIds
from ..models.base import Model
from ..models.side_completion import Aired, Aside, Billing, ask_aside, cheapest_first
from ..types.budget import Budgets, Charge, no_budget
from ..types.clock import Ids
from ..types.commit import Change


async def ignore_changes(changes: Sequence[Change]) -> list[int]:
    """Where nothing is written down."""
    return []


class SideQueries(msgspec.Struct, frozen=True):
    """`agent` gives an agent by its name, `model` opens `provider/name`. Every call is held and
    settled in `budgets`, whose rows `change` writes."""

    agent: Callable[[str], Agent]
    model: Callable[[str], Model]
    budgets: Budgets = no_budget
    change: Callable[[Sequence[Change]], Awaitable[list[int]]] = ignore_changes
    ids: Ids = RandomIds()

    async def ask(
        self, name: str, aside: Aside, models: Sequence[str] = (), charge: Charge | None = None
    ) -> Aired:
        """Ask these models, or the cheapest of this agent, then its others. `charge` says who pays;
        without it, it is the agent's own doing. Raises ConfigError for an unknown agent,
        BudgetSpent, and ModelError where none answered."""
        agent = self.agent(name)
        rows = list[Change]()
        models = models or cheapest_first(agent.cheap_model, agent.models)
        billing = Billing(
            self.budgets,
            charge or Charge("", "", name),
            ids=self.ids,
            kind="aside",
            record=rows.extend,
        )
        try:
            return await ask_aside(aside, models, self.model, billing)
        finally:
            if rows:
                with anyio.CancelScope(shield=True):
                    await self.change(rows)
