"""Questions to a model that belong to no conversation: to gather facts, to judge, to sum up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import msgspec
from msgspec.structs import replace

from ..agent.profile import Agent
from ..models.aside import Aired, Aside, ask_aside
from ..models.base import Model
from ..models.tokens import CHARS_PER_TOKEN
from ..types.budget import Budgets, Charge, no_budget
from ..types.clock import Ids
from ..types.commit import Change
from ..types.errors import BudgetSpent, MalformedReply, ModelError
from ..types.messages import Usage
from .clock import RandomIds


async def nowhere(changes: Sequence[Change]) -> list[int]:
    """Where nothing is written down."""
    return []


class Thinking(msgspec.Struct, frozen=True):
    """`agent` gives an agent by its name, `model` opens `provider/name`. Every call is held and settled in `budgets`,
    whose rows `change` writes."""

    agent: Callable[[str], Agent]
    model: Callable[[str], Model]
    budgets: Budgets = no_budget
    change: Callable[[Sequence[Change]], Awaitable[list[int]]] = nowhere
    ids: Ids = RandomIds()

    async def ask(self, name: str, aside: Aside, charge: Charge | None = None) -> Aired:
        """Ask the cheapest model of this agent, then its others. `charge` says who pays; without it, it is the agent's
        own doing. Raises ConfigError for an unknown agent, BudgetSpent, and ModelError where none answered."""
        agent = self.agent(name)
        paid = charge or Charge("", "", name)
        failed: ModelError = MalformedReply("there is no model to ask")
        for model in dict.fromkeys((*filter(None, (agent.cheap_model,)), *agent.models)):
            try:
                return await self._ask(aside, replace(paid, model=model))
            except BudgetSpent:
                raise
            except ModelError as error:
                failed = error
        raise failed

    async def _ask(self, aside: Aside, charge: Charge) -> Aired:
        """One call of one model."""
        key = self.ids.new("aside")
        if why := await self.budgets.reserve(charge, _most(aside), key):
            raise BudgetSpent(why)
        rows: tuple[Change, ...] = ()
        try:
            aired = await ask_aside(aside, (charge.model,), self.model)
            rows = self.budgets.settle(key, aired.usage)
        except ModelError:
            rows = self.budgets.release(key)
            raise
        finally:  # who was cut off has used what was held
            with anyio.CancelScope(shield=True):
                if changes := rows or self.budgets.settle(key, Usage()):
                    await self.change(changes)
        return aired


def _most(aside: Aside) -> int:
    """About the most tokens that this can take."""
    schema = len(msgspec.json.encode(aside.schema)) if aside.schema else 0
    return int((len(aside.system) + len(aside.text) + schema) / CHARS_PER_TOKEN) + 100 + aside.output_tokens
