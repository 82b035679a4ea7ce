"""What a log says about its long work: deep work and goals. Pure.

The tasks are rows beside it, so a new process knows as much as the last one. The exception is what
the judge of a goal has used: that is in no log.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..tools.task_board import TASK_TOOLS
from ..types import events as e
from ..types.goals import DEEP_WORK_COMPACTED, GOAL_COMMANDS, GOAL_OFF, parse_goal
from ..types.identity import Address, Principal
from ..types.messages import Usage
from ..types.turn import STOP_TURN_ONLY

DEEP = "deep-work"
JUDGE = "goal"
"""Principals that hand in messages which no person wrote."""


class LongRun(msgspec.Struct):
    """What the log of one session says about its long work, up to event `n`."""

    session: str
    n: int = 0

    deep_n: int = 0
    """The event that began deep work, or 0."""
    deep_by: Principal | None = None
    """Who began it. It goes on for this person, whoever else writes there."""
    touched: bool = True
    """False when the tasks are of an earlier conversation and the agent has not used them yet."""
    planning: bool = False
    used: int = 0
    """Tokens since deep work began or was last summarised."""
    used_before: int = 0
    """`used` when the turn began."""
    compactions: int = 0
    """How often deep work was summarised."""

    goal: str = ""
    goal_n: int = 0
    goal_by: Principal | None = None
    goal_used: int = 0
    """Tokens since the goal was set."""
    goal_before: int = 0
    """`goal_used` when the turn began."""
    rounds: int = 0
    """How often the agent was told to go on with the goal."""
    begins: int = 0
    """The inbox id of the command that set the goal."""

    open: bool = False
    """A turn is running."""
    asks: bool = False
    """The turn waits for a person."""
    spoke: bool = False
    """A person wrote in the last turn."""
    pushes: list[str] = []
    """The fingerprints of the tasks each time the agent was told to go on, since a person wrote."""
    end_n: int = 0
    """The event that ended the last turn, when that was, why, and its last words."""
    end_at: float = 0.0
    reason: str = ""
    said: str = ""
    failures: int = 0
    """How many turns failed in a row."""
    halted: bool = False
    """A person stopped or rewound it, and has not written since."""
    address: Address = Address("")
    """Where a person wrote last."""

    @property
    def deep(self) -> bool:
        return self.deep_n > 0


def fold_run(run: LongRun, events: Iterable[e.Recorded]) -> LongRun:
    """Apply events in order, in place."""
    for recorded in events:
        _fold(run, recorded)
        run.n = recorded.n
        run.asks = _is_asking(run.asks, recorded.event)
    return run


def _fold(run: LongRun, recorded: e.Recorded) -> None:
    match recorded.event:
        case e.MessageReceived():
            _fold_message(run, recorded.event)
        case e.ModelReplied(message=message, usage=usage):
            _spend(run, usage)
            run.touched |= any(call.name in TASK_TOOLS for call in message.calls)
            if not message.calls and message.text.strip():
                run.said = message.text
        case e.AskedAside(usage=usage):
            _spend(run, usage)
        case e.TurnEnded(reason=reason, said=said):
            run.open = False
            run.end_n = recorded.n
            run.end_at = recorded.at
            run.reason = reason
            run.said = said or run.said
            run.failures = run.failures + 1 if reason == "failed" else 0
            if reason == "failed" and not run.spoke:
                run.pushes = run.pushes[:-1]  # the failure says nothing about the tasks
        case e.OptionsSet():
            _fold_options(run, recorded)
        case e.CommandRun():
            _fold_command(run, recorded)
        case e.Undone():
            run.open = False
            run.halted = True
        case e.Erased():
            run.deep_n = 0
            run.goal = ""
            run.open = False
            run.deep_by = None
            run.goal_by = None
        case _:
            pass


def _is_asking(before: bool, event: e.AnyEvent) -> bool:
    match event:
        case e.ApprovalAsked() | e.QuestionAsked():
            return True
        case (
            e.ApprovalAnswered()
            | e.QuestionAnswered()
            | e.CallClosed()
            | e.ToolFinished()
            | e.TurnEnded()
        ):
            return False
        case _:
            return before


def _fold_message(run: LongRun, event: e.MessageReceived) -> None:
    who = event.principal
    if not run.open:
        run.open = True
        run.spoke = False
        run.said = ""
        run.used_before = run.used
        run.goal_before = run.goal_used
    if who.kind == "agent" and who.id == DEEP:
        run.pushes = [*run.pushes, event.external_id.rpartition(":")[2]]
    elif who.kind == "agent" and who.id == JUDGE:
        run.rounds += 1
    elif who.kind == "person":
        run.spoke = event.inbox_id != run.begins
        run.halted = False
        run.pushes = []
        run.address = event.address


def _spend(run: LongRun, usage: Usage) -> None:
    tokens = usage.input_tokens + usage.output_tokens
    run.used = run.used + tokens
    run.goal_used = run.goal_used + tokens


def _fold_options(run: LongRun, recorded: e.Recorded) -> None:
    event = recorded.event
    if not isinstance(event, e.OptionsSet):
        return
    mode = event.options.mode
    planning = event.options.plan_mode
    run.planning = run.planning if planning is None else planning
    if mode is not None:
        run.deep_n = recorded.n if mode == "deep_work" else 0
        run.deep_by = event.principal
        run.used = 0
        run.used_before = 0
        run.pushes = []
        run.halted = False
        run.failures = 0
        run.compactions = 0
        run.touched = True


def _fold_command(run: LongRun, recorded: e.Recorded) -> None:
    event = recorded.event
    if not isinstance(event, e.CommandRun) or event.refused:
        return
    if event.name in GOAL_COMMANDS and (goal := parse_goal(event.name, event.args)):
        run.goal = "" if goal == GOAL_OFF else goal
        run.goal_n = recorded.n
        run.goal_by = event.principal
        run.goal_used = 0
        run.goal_before = 0
        run.rounds = 0
        run.begins = event.inbox_id
        run.halted = False
        run.failures = 0
    elif event.name == DEEP_WORK_COMPACTED and run.deep:
        run.compactions += 1
        run.used = 0
        run.used_before = 0
    elif event.name in ("stop", "start") and event.principal.kind == "person":
        run.halted = True
        if not run.open and event.args != STOP_TURN_ONLY:  # the next words begin a new conversation
            run.goal = ""
            run.touched = False
