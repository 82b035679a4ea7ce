"""What a model call may use: reserved before it, settled with its reply."""

from __future__ import annotations

from typing import Protocol

import msgspec

from .commit import Change
from .identity import Principal, responsible_person
from .messages import Usage


class Charge(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who pays for a call. `person` is the one in whose name it is made, `job` its name where it is
    the run of one, `model` what is called (`provider/name`): it says the price."""

    session: str
    person: str
    agent: str
    job: str = ""
    model: str = ""


def make_charge(principal: Principal, session: str, agent: str, model: str) -> Charge:
    """Who pays for what this principal has a model do."""
    job = principal.id.removeprefix("job:") if principal.kind == "clock" else ""
    return Charge(session, responsible_person(principal), agent, job, model)


class Budgets(Protocol):
    """Keeps everything within what was set. `key` names one call for ever, another try being
    another call."""

    async def reserve(self, charge: Charge, tokens: int, key: str) -> str:
        """Hold so many tokens, the most that the call may use. '' where that fits; else nothing is
        held, and this is a sentence for people: which budget is spent, when it resets, and
        how it is lifted. Raises StoreUnavailable."""
        ...

    def settle(self, key: str, usage: Usage) -> tuple[Change, ...]:
        """The rows to be committed with the reply: what was really used, in place of what was held.
        A reply that does not say what it used counts as what was held. What was held and is never
        settled, since the process died in the call, counts in full."""
        ...

    def release(self, key: str) -> tuple[Change, ...]:
        """The rows to be committed with the failure of a call that used nothing."""
        ...


def settle_failed_call(budgets: Budgets, key: str, *, begun: bool) -> tuple[Change, ...]:
    """The rows to be committed with the failure of a call. What had begun to answer has cost
    something, and nobody says what: it counts as what was held."""
    return budgets.settle(key, Usage()) if begun else budgets.release(key)


class NoBudget:
    """Where nothing is counted."""

    async def reserve(self, charge: Charge, tokens: int, key: str) -> str:
        return ""

    def settle(self, key: str, usage: Usage) -> tuple[Change, ...]:
        return ()

    def release(self, key: str) -> tuple[Change, ...]:
        return ()


no_budget: Budgets = NoBudget()
"""Always allows."""
