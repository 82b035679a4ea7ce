"""A question away from the conversation: one call of a model that has no tools and is told nothing
else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from ..types.budget import Budgets, Charge, no_budget, settle_failed_call
from ..types.commit import Change
from ..types.errors import BudgetSpent, MalformedReply, ModelError
from ..types.labels import LOCAL
from ..types.messages import Message, Text, Usage
from .base import ContextMessage, Item, Model, Reply, Request
from .window import estimate_max_tokens

RESERVE_FACTOR = 1.5
"""Our count of tokens is a guess, and what is held is to be enough."""


class Aside(msgspec.Struct, frozen=True):
    """What is asked. `schema` is the JSON schema that the answer is to follow: it stands in the
    instructions, since not every wire can force it, so check what comes back."""

    system: str
    text: str
    schema: dict[str, Any] | None = None
    output_tokens: int = 2000


class Aired(msgspec.Struct, frozen=True):
    """What came back, and what it cost."""

    text: str
    model: str
    usage: Usage


class Paying(msgspec.Struct, frozen=True):
    """Who pays for it: each call is held in `budgets` under a key that `keys` makes; `keep` takes
    the rows to be written."""

    budgets: Budgets
    charge: Charge
    new_key: Callable[[], str]
    record_changes: Callable[[tuple[Change, ...]], object]


NO_BILLING = Paying(no_budget, Charge("", "", ""), str, lambda rows: None)


def cheapest_first(cheap: str, models: Sequence[str]) -> tuple[str, ...]:
    """Who is asked aside: the cheap model, where there is one, and then the others."""
    return (*filter(None, (cheap,)), *models)


async def ask_aside(
    aside: Aside, models: Sequence[str], open_: Callable[[str], Model], paying: Paying = NO_BILLING
) -> Aired:
    """Ask the first of these models (`provider/name`) that answers. Raises BudgetSpent, and
    ModelError: that of the last."""
    system = aside.system
    if aside.schema is not None:
        wanted = msgspec.json.encode(aside.schema).decode()
        system += (
            "\n\nAnswer with one JSON value and nothing else. It must follow this JSON "
            f"schema:\n{wanted}"
        )
    shown = (ContextMessage(0, Message("user", (Text(aside.text, LOCAL),))),)
    failed: ModelError = MalformedReply("there is no model to ask")
    for model in dict.fromkeys(models):
        request = Request(
            model.partition("/")[2], (system,), shown, (), aside.output_tokens, form=aside.schema
        )
        try:
            reply = await call_billed(model, request, paying, open_)
        except BudgetSpent:
            raise
        except ModelError as error:
            failed = error
        else:
            return Aired(reply.message.text.strip(), model, reply.usage)
    raise failed


async def call_billed(
    model: str, request: Request, paying: Paying, open_: Callable[[str], Model]
) -> Reply:
    """One call of `provider/name`, held and settled. One that is cut off has used what was held.
    Raises BudgetSpent, ModelError."""
    budgets = paying.budgets
    key = paying.new_key()
    if why := await budgets.reserve(
        replace(paying.charge, model=model), estimate_max_tokens(request, 0, RESERVE_FACTOR), key
    ):
        raise BudgetSpent(why)
    begun = list[Item]()
    try:
        reply = await _read_reply(open_(model), request, begun.append)
        paying.record_changes(budgets.settle(key, reply.usage))
    except ModelError:
        paying.record_changes(settle_failed_call(budgets, key, begun=bool(begun)))
        raise
    finally:
        paying.record_changes(budgets.settle(key, Usage()))
    return reply


async def _read_reply(model: Model, request: Request, see: Callable[[Item], None]) -> Reply:
    try:
        async with aclosing(model.reply(request)) as items:  # type: ignore[type-var]
            async for item in items:
                if isinstance(item, Reply):
                    return item
                see(item)
    except ModelError:
        raise
    except Exception as error:  # a model from outside may raise anything, and what asks goes on
        raise MalformedReply(f"the model broke: {type(error).__name__}: {error}") from error
    raise MalformedReply("the model ended without a reply")
