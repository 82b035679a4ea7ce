"""Which calls of one reply a person is asked about in one question, and what that question says.
Pure.

A question about several calls shows every byte of each, as it would be shown alone, and its yes
binds each by itself. It grants nothing that several questions would not: what is run, how often a
turn may ask and what voids a yes stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..types.effects import Effect
from ..types.events import BoundCall
from . import ask_text as wording
from .rules import Case

SHAREABLE_EFFECTS: frozenset[Effect] = frozenset({"fetch", "send_other", "network"})
"""Effects that may share a question. What cannot be undone, what reaches this machine and what
changes files has one of its own, with all that is shown beside it."""
MAX_QUESTION_CHARS = 3_000
"""More is not taken in at one look, and does not stand in one message of a chat."""


class JointAsk(msgspec.Struct, frozen=True):
    """A call that a person has to allow: `question` is a line that shows all of it, `reason` why it
    is asked. `alone`: the person wants to be asked about it by itself."""

    call: BoundCall
    question: str
    reason: str
    case: Case
    alone: bool = False

    @property
    def can_share(self) -> bool:
        """Whether it may stand in a question with others. Where a person is to be asked before
        every tool, none may."""
        lines = len(self.question.splitlines())
        return (
            self.case.effect in SHAREABLE_EFFECTS
            and not (self.alone or self.case.strict)
            and lines == 1
        )


def select_joint_asks(wanted: Sequence[JointAsk], room: int) -> list[JointAsk]:
    """Those from the front that go into one question: the first, and behind it as many of its tool
    as may share it. A turn may still ask about `room` calls.

    Calls of one tool read as a list, in which another's does not get lost: who says yes too quickly
    allows less."""
    taken = list(wanted[:1])
    chars = len(wanted[0].question)
    for each in wanted[1:]:
        chars += 1 + len(each.question)
        alike = taken[0].can_share and each.can_share and each.case.tool == taken[0].case.tool
        if not alike or len(taken) >= room or chars > MAX_QUESTION_CHARS:
            break
        taken.append(each)
    return taken


def join_reasons(wanted: Sequence[JointAsk]) -> str:
    """Why they are asked about, each reason once."""
    return "; ".join(dict.fromkeys(each.reason for each in wanted))


def render_joint_context(wanted: Sequence[JointAsk]) -> str:
    """What stands beneath the question."""
    return wording.render_ask_context([each.case for each in wanted], join_reasons(wanted))
