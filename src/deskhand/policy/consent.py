"""Standing answers: what people said to exactly one call for good, `always` or `never`."""

from __future__ import annotations

from msgspec.structs import replace

from ..store.base import StatementReader
from ..store.queries import StandingGrant, grant_verdict, set_standing_grant
from ..types.commit import Change
from ..types.events import ApprovalAnswered
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.messages import ToolCall
from .approval import CallSetting, hash_standing_call, render_arguments
from .rules import Decision


async def find_grant(
    reader: StatementReader, call: ToolCall, setting: CallSetting, principal: Principal
) -> Decision | None:
    """The standing answer to exactly this call. `never` also counts after something untrusted was
    read."""
    for each in (setting, replace(setting, untrusted=False)):
        answer = await grant_verdict(reader, hash_standing_call(call, each, principal))
        if answer is None:
            continue
        reason = mark_text("{who} answered {answer} to this exact call").format(
            who=answer.by, answer=answer.verdict
        )
        if answer.verdict == "never":
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
    return set_standing_grant(
        StandingGrant(
            id=hash_standing_call(call, setting, principal),
            verdict=answered.choice,
            agent=setting.agent,
            tool=call.name,
            arguments=render_arguments(call),
            at=now,
            by=answered.principal.id,
        )
    )
