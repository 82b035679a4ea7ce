"""Side completions: one call of a model outside the conversation, without tools or history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from ..types.budget import Budgets, Charge, settle_failed_call
from ..types.clock import Ids
from ..types.commit import Change
from ..types.errors import BudgetSpent, MalformedReply, ModelError
from ..types.labels import LOCAL
from ..types.messages import Message, Text, Usage
from .base import ContextMessage, Item, Model, Reply, Request
from .window import estimate_max_tokens

RESERVE_FACTOR = 1.5
"""Our count of tokens is an estimate, and the reservation must be enough."""


class Aside(msgspec.Struct, frozen=True):
    """One question. `schema` is the JSON schema that the answer should follow. Not every provider
    can force it, so it is also written into the instructions, and the caller checks the answer."""

    system: str
    text: str
    schema: dict[str, Any] | None = None
    output_tokens: int = 2000
    temperature: float | None = None


class Aired(msgspec.Struct, frozen=True):
    """The answer, the model that gave it (`provider/name`), and what it used."""

    text: str
    model: str
    usage: Usage


class Billing(msgspec.Struct, frozen=True):
    """Who pays for a call: it is reserved and settled in `budgets` for `charge`, under a fresh id
    of `ids` that begins with `kind`. `record` takes the rows to write; the caller commits them."""

    budgets: Budgets
    charge: Charge
    ids: Ids
    kind: str
    record: Callable[[tuple[Change, ...]], object]


def cheapest_first(cheap: str, models: Sequence[str]) -> tuple[str, ...]:
    """The models to ask, in this order: the cheap one, if there is one, then the others."""
    return (*filter(None, (cheap,)), *models)


async def ask_aside(
    aside: Aside, models: Sequence[str], open_: Callable[[str], Model], billing: Billing
) -> Aired:
    """Ask the first of these models (`provider/name`) that answers. Raises BudgetSpent, and
    the ModelError of the last model if none answers."""
    system = aside.system
    if aside.schema is not None:
        wanted = msgspec.json.encode(aside.schema).decode()
        system += (
            "\n\nAnswer with one JSON value and nothing else. It must follow this JSON "
            f"schema:\n{wanted}"
        )
    messages = (ContextMessage(0, Message("user", (Text(aside.text, LOCAL),))),)
    failed: ModelError = MalformedReply("no model is configured")
    for model in dict.fromkeys(models):
        request = Request(
            model=model.partition("/")[2],
            system=(system,),
            messages=messages,
            tools=(),
            max_output_tokens=aside.output_tokens,
            temperature=aside.temperature,
            form=aside.schema,
        )
        try:
            reply = await call_billed(model, request, billing, open_)
        except BudgetSpent:
            raise
        except ModelError as error:
            failed = error
        else:
            return Aired(reply.message.text.strip(), model, reply.usage)
    raise failed


async def call_billed(
    model: str, request: Request, billing: Billing, open_: Callable[[str], Model]
) -> Reply:
    """One call of `provider/name`, reserved and settled. A call that is cut off counts as what was
    reserved. Raises BudgetSpent, ModelError."""
    budgets = billing.budgets
    key = billing.ids.new(billing.kind)
    charge = replace(billing.charge, model=model)
    tokens = estimate_max_tokens(request, 0, RESERVE_FACTOR)
    if why := await budgets.reserve(charge, tokens, key):
        raise BudgetSpent(why)

    pieces = list[Item]()
    try:
        reply = await _read_reply(open_(model), request, pieces.append)
        billing.record(budgets.settle(key, reply.usage))
    except ModelError:
        billing.record(settle_failed_call(budgets, key, begun=bool(pieces)))
        raise
    finally:
        billing.record(budgets.settle(key, Usage()))  # a settled call is not settled again
    return reply


async def _read_reply(model: Model, request: Request, on_item: Callable[[Item], None]) -> Reply:
    try:
        async with aclosing(model.reply(request)) as items:  # type: ignore[type-var]
            async for item in items:
                if isinstance(item, Reply):
                    return item
                on_item(item)
    except ModelError:
        raise
    except Exception as error:  # a model of a plugin may raise anything
        raise MalformedReply(f"the model failed: {type(error).__name__}: {error}") from error
    raise MalformedReply("the model ended without a reply")
