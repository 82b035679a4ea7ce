"""Asks people before a call is run, where they can be asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ..policy import approval
from ..policy.approval import describe_approvers, may_approve, render_approver_notice
from ..policy.joint_asks import JointAsk, join_reasons, render_joint_context, select_joint_asks
from ..types.commit import Choices
from ..types.events import ApprovalAsked, Turn
from ..types.identity import Address
from ..types.messages import Text
from ..types.turn import OpenCall, PendingAsk
from .journal import uses_outbox
from .judge_call import judge_call
from .session import Session


async def record_ask(session: Session, first: JointAsk, later: Sequence[OpenCall]) -> None:
    """Record the question about a call, and about those of the `later` ones that may be asked about
    with it."""
    asks = [first]
    for call in later:
        verdict = await judge_call(session, call) if first.can_share else None
        if not isinstance(verdict, JointAsk):
            break
        asks.append(verdict)

    turn = session.turn
    asks = select_joint_asks(asks, approval.ASKS_PER_TURN - turn.asked)
    elsewhere: tuple[str, ...] = ()
    if not may_approve(turn.principal):
        elsewhere = await session.runtime.approvers.outside(session.name)
    note = session.runtime.approvers.place(session.name, turn).note
    about = "\n".join(each for each in (note, render_joint_context(asks)) if each)
    now = session.runtime.clock.now()
    asked = ApprovalAsked(
        ask_id=session.runtime.ids.new("ask"),
        call_id=first.call.call_id,
        binds=first.call.binds,
        question="\n".join(each.question for each in asks),
        reason=join_reasons(asks),
        until=approval.compute_ask_expiry(now),
        source=session.journal.turn_label.source,
        elsewhere=elsewhere,
        about=about,
        others=tuple(each.call for each in asks[1:]),
        behind=session.runtime.store.last_inbox_id(),
    )
    session.journal.record(asked, at=now)


async def send_asks(session: Session, asked_before: Collection[str] = ()) -> None:
    """Put the open questions to whoever may answer them, but for those that were `asked_before`.
    Where that is somebody else than those who read here, these are told so and get no buttons."""
    calls = session.state.calls.values()
    asks = {call.ask.ask_id: call.ask for call in calls if call.ask is not None}
    for ask_id, ask in asks.items():
        if ask_id not in asked_before:
            await _send_ask(session, session.turn, ask)


async def _send_ask(session: Session, turn: Turn, ask: PendingAsk) -> None:
    shown = Choices(ask.ask_id, ask.question, ask.choices, ask.is_approval, ask.about)
    owners: Sequence[Address] = ()
    place = session.runtime.approvers.place(session.name, turn)
    is_for_owners = ask.is_approval and not may_approve(turn.principal)
    if is_for_owners and (ask.elsewhere or place.address.group):
        owners = await _ask_owners(session, place.address, shown)

    here = shown
    if owners or ask.elsewhere:
        if owners:
            note = render_approver_notice(ask.elsewhere)
        else:
            note = describe_approvers(ask.elsewhere)
        notes = [each for each in (ask.about, note) if each]
        here = replace(shown, choices=(), note="\n".join(notes))
    session.journal.enqueue_message(place.address, (Text(here.text),), place.reply_to, here)


async def _ask_owners(session: Session, here: Address, ask: Choices) -> Sequence[Address]:
    """Ask owners where they can be asked alone. Returns where that is."""
    if not uses_outbox(here):
        return ()
    addresses = await session.runtime.approvers.owner_addresses()
    owners = [address for address in addresses if address != here]
    for address in owners:
        session.journal.enqueue_message(address, (Text(ask.text),), "", ask)
    return owners
