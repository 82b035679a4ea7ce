"""What people said for good, `always` or `never`, to exactly one call: remembered, and found
again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from ..types.commit import Change
from ..types.events import ApprovalAnswered
from ..types.identity import Principal
from ..types.messages import ToolCall
from .approval import CallSetting, hash_standing_call, render_arguments
from .rules import Decision

Query = Callable[
    [str, tuple[str | int | float | bytes | None, ...]], Awaitable[list[tuple[Any, ...]]]
]


async def find_grant(
    rows: Query, call: ToolCall, setting: CallSetting, principal: Principal
) -> Decision | None:
    """What was said for good to exactly this. `never` holds also after something untrusted was
    read."""
    for each in (setting, replace(setting, untrusted=False)):
        known = await rows("call_grant_get", (hash_standing_call(call, each, principal),))
        if known and (known[0][0] == "never" or each == setting):
            no = known[0][0] == "never"
            return Decision(
                "deny" if no else "allow", f"{known[0][1]} said {known[0][0]} to exactly this"
            )
    return None


def make_grant_change(
    answered: ApprovalAnswered,
    call: ToolCall,
    setting: CallSetting,
    principal: Principal,
    now: float,
) -> Change:
    """The row that remembers `always` or `never` for exactly this call."""
    row = (
        hash_standing_call(call, setting, principal),
        answered.choice,
        setting.agent,
        call.name,
        render_arguments(call),
        now,
    )
    return Change("call_grant_set", (*row, answered.principal.id))
