"""A person who talks to a running Deskhand and answers what it asks, by rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import msgspec

from ..policy.approval import Choice
from ..runtime.app import OWNER, App
from ..types.door import Progress
from ..types.events import ApprovalAsked, CallClosed, Event, ModelReplied, ToolFinished, TurnEnded
from ..types.identity import Address, Inbound, Said
from ..types.messages import Message, Text, ToolCall, ToolResult
from .obedient import CONTINUE, Reply, flat

Consent = Callable[[ApprovalAsked], Choice | None]
"""What the person answers, of what may be answered; None: nobody is there."""
PATIENCE_S = 50.0


class PersonTalk(msgspec.Struct):
    """What came of a conversation, turn after turn. `asks` are what was asked and what the person
    said, `calls` what the model wanted, `results` what it got, `said` its last words. `rests`: it
    still waits for an answer. `unfinished`: the last turn ended before the model was done."""

    session: str = ""
    asks: list[tuple[ApprovalAsked, Choice | None]] = []
    calls: dict[str, ToolCall] = {}
    results: dict[str, ToolResult] = {}
    said: str = ""
    rests: bool = False
    unfinished: bool = False

    @property
    def ran(self) -> list[ToolCall]:
        """The calls that were carried out, in the order in which they ended."""
        return [
            self.calls[call_id] for call_id, result in self.results.items() if result.status == "ok"
        ]

    @property
    def allowed(self) -> set[str]:
        """The ids of the calls that the person said yes to."""
        return {
            call.call_id for asked, choice in self.asks if choice == "once" for call in asked.calls
        }


class OnlyThese:
    """Says yes to exactly these calls, to each as often as it stands there, and no to everything
    else. Where one question is about both, it wants to be asked one by one.

    It decides by what it is shown, as a person does.
    """

    def __init__(self, wanted: Sequence[Reply]) -> None:
        self._wanted = [
            _plain(deed.name, msgspec.json.encode(deed.arguments)) for deed in flat(wanted)
        ]

    def __call__(self, asked: ApprovalAsked) -> Choice:
        left = list(self._wanted)
        lines = asked.question.split("\n") if asked.others else [asked.question]
        wanted = 0
        for line in lines:
            name, _, arguments = line.partition(" ")
            shown = _plain(name, arguments.encode())
            if shown is not None and shown in left:
                left.remove(shown)
                wanted += 1
        if 0 < wanted < len(lines):
            return "each"
        self._wanted = left
        return "once" if wanted else "no"


class Hasty(OnlyThese):
    """Says yes to a whole question where any of its calls is wanted: what one question about
    several calls may cost."""

    def __call__(self, asked: ApprovalAsked) -> Choice:
        choice = super().__call__(asked)
        return "once" if choice == "each" else choice


def _plain(name: str, arguments: bytes) -> tuple[str, Any] | None:
    """A call, whatever the space between its arguments; None where they are none."""
    try:
        return name, msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return None


def nobody(asked: ApprovalAsked) -> None:
    """A person who never answers."""


def no(asked: ApprovalAsked) -> Choice:
    """A person who never agrees."""
    return "no"


async def talk(
    app: App, address: Address, text: str, consent: Consent, turns: int = 1
) -> PersonTalk:
    """Say `text` at `address` and follow until it is answered. Where a turn ends unfinished the
    person writes `continue`, up to `turns` in all."""
    told = PersonTalk()
    for turn in range(turns):
        body = Said(Message("user", (Text(text if turn == 0 else "continue"),)))
        inbound = Inbound(f"{address.chat}-{turn}", address, OWNER.id, app.parts.clock.now(), body)
        receipt = await app.door.submit(inbound)
        if receipt.status != "accepted":
            raise AssertionError(f"it was not let in: {receipt.reason}")
        told.session = receipt.session
        with anyio.fail_after(PATIENCE_S):
            await _follow(app, told, receipt.after, consent)
        if told.rests or not told.unfinished:
            break
    return told


async def _follow(app: App, told: PersonTalk, after: int, consent: Consent) -> None:
    async with aclosing(app.door.follow(told.session, OWNER, after)) as items:
        async for item in items:
            if isinstance(item, Progress):
                continue
            if await _took(app, told, item.event, consent):
                return


async def _took(app: App, told: PersonTalk, event: Event, consent: Consent) -> bool:
    """Take in an event. Whether the turn is over, or rests for good."""
    match event:
        case ModelReplied(message=message):
            told.calls.update({call.id: call for call in message.calls})
            told.said = message.text or told.said
        case ToolFinished(result=result):
            told.results[result.call_id] = result
        case CallClosed(call_id=call_id, status=status, reason=reason):
            told.results[call_id] = ToolResult(call_id, (Text(reason),), status)
        case ApprovalAsked():
            answer = consent(event)
            told.asks.append((event, answer))
            if answer is None:
                told.rests = True
                return True
            await app.door.answer(event.ask_id, answer, OWNER)
        case TurnEnded(reason=reason, said=said):
            told.said = said or told.said
            told.unfinished = reason in ("loop", "steps", "tokens") or told.said == CONTINUE
            return True
        case _:
            pass
    return False
