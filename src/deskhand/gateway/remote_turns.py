"""The turns that other processes drive, as far as this one hears of them."""

from __future__ import annotations

from msgspec.structs import replace

from ..types.door import Progress
from ..types.events import MessageReceived, Recorded, TurnEnded
from ..types.identity import Principal
from ..types.turn import ReplyTarget

MOST_SESSIONS = 1_000


class RemoteTurns:
    """What is being said in them, and where the answers go."""

    def __init__(self) -> None:
        self.partials: dict[str, Progress] = {}
        """All the text so far of the reply that is being written in a session, as a `snapshot`. One
        whose beginning was missed is left out."""
        self._targets: dict[str, ReplyTarget] = {}

    def target(self, session: str) -> ReplyTarget | None:
        """The place of whoever opened the turn there, and the message that is answered."""
        return self._targets.get(session)

    def on_progress(self, session: str, item: Progress) -> None:
        if item.kind == "reset":
            self.partials.pop(session, None)
        if item.kind != "text":
            return
        known = self.partials.get(session)
        goes_on = (
            known is not None
            and (known.n, known.attempt) == (item.n, item.attempt)
            and len(known.text) == item.offset
        )
        if known is not None and goes_on:
            self.partials[session] = replace(known, text=known.text + item.text)
        elif item.offset == 0:
            self.partials[session] = Progress("snapshot", item.n, item.attempt, 0, item.text)
            _limit(self.partials)
        else:
            self.partials.pop(session, None)

    def on_event(self, recorded: Recorded) -> None:
        self.partials.pop(recorded.session, None)
        match recorded.event:
            case MessageReceived(principal=Principal(kind="clock")):
                pass  # nobody waits for what a job writes
            case MessageReceived(address=address, external_id=external_id, inbox_id=turn):
                reply_to = external_id if address.group else ""  # as the fold of a turn has it
                target = ReplyTarget(address, reply_to, turn)
                self._targets.setdefault(recorded.session, target)
                _limit(self._targets)
            case TurnEnded():
                self._targets.pop(recorded.session, None)
            case _:
                pass


def _limit(known: dict[str, Progress] | dict[str, ReplyTarget]) -> None:
    if len(known) > MOST_SESSIONS:
        del known[next(iter(known))]
