"""Standing answers: what people said to exactly one call for good, `always` or `never`."""

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
    query: Query, call: ToolCall, setting: CallSetting, principal: Principal
) -> Decision | None:
    """The standing answer to exactly this call. `never` also counts after something untrusted was
    read."""
    for each in (setting, replace(setting, untrusted=False)):
        rows = await query("call_grant_get", (hash_standing_call(call, each, principal),))
        for choice, by, _ in rows:
            reason = f"{by} answered {choice} to this exact call"
            if choice == "never":
                return Decision("deny", reason)
            if each == setting:
                return Decision("allow", reason)
    return None


def save_grant(
    answered: ApprovalAnswered,
    call: ToolCall,
    setting: CallSetting,
    principal: Principal,
    now: float,
) -> Change:
    """Remember `always` or `never` for exactly this call."""
    return Change(
        "call_grant_set",
        (
            hash_standing_call(call, setting, principal),
            answered.choice,
            setting.agent,
            call.name,
            render_arguments(call),
            now,
            answered.principal.id,
        ),
    )
