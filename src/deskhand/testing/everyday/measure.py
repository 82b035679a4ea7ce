"""What came of the tasks, as figures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from .served import ServedTurn
from .task import After, EverydayTask, Files, lost
from .words import false_done


class Detail(msgspec.Struct, frozen=True):
    """What was said and done: for whoever may look at the task. `changed` are files as they are
    now, None is gone."""

    says: tuple[str, ...]
    replies: tuple[str, ...]
    asked: tuple[str, ...]
    changed: dict[str, str | None]


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """One task. `seconds` is the sum of its turns, `first_s` the time to the first visible sign of
    work in its first turn. `tokens_new` were read and not taken from a cache, `tokens_out` written.
    `ended` is why each turn ended, `load` the load average of the machine over the last minute:
    where others work on it, seconds say little."""

    id: str
    kind: str
    solved: bool
    seconds: float
    first_s: float | None
    tokens_new: int
    tokens_in: int
    tokens_out: int
    model_calls: int
    questions: int
    approvals: int
    false_done: bool
    lost: int
    ended: tuple[str, ...]
    load: float = 0.0
    problem: str = ""
    detail: Detail | None = None

    def line(self) -> str:
        """One line, without a word of the task."""
        first = "-" if self.first_s is None else f"{self.first_s:.1f}"
        marks = [
            *(["claimed"] if self.false_done else []),
            *([f"lost {self.lost}"] if self.lost else []),
            *([f"ended: {', '.join(self.ended)}"] if set(self.ended) - {"done"} else []),
            *([self.problem] if self.problem else []),
        ]
        verdict = "ok " if self.solved else "BAD"
        figures = (
            f"{self.seconds:6.1f} s, first {first:>5} s, in {self.tokens_new:>6}, out "
            f"{self.tokens_out:>5}"
        )
        asked = f"asked {self.questions + self.approvals}"
        return f"{self.id:<13} {verdict} {figures}, {asked}  {'; '.join(marks)}".rstrip()


def judged(
    task: EverydayTask, after: After, turns: Sequence[ServedTurn], detailed: bool
) -> TaskResult:
    """What this task came to."""
    whole = len(turns) == len(task.says) and not any(turn.cut_off for turn in turns)
    solved = whole and task.check(after)
    detail = (
        Detail(task.says, after.replies, after.asked, _changed(after.before, after.files))
        if detailed
        else None
    )
    return TaskResult(
        id=task.id,
        kind=task.kind,
        solved=solved,
        seconds=round(sum(turn.seconds for turn in turns), 2),
        first_s=None if not turns or turns[0].first_s is None else round(turns[0].first_s, 2),
        tokens_new=sum(turn.tokens_in - turn.tokens_cached for turn in turns),
        tokens_in=sum(turn.tokens_in for turn in turns),
        tokens_out=sum(turn.tokens_out for turn in turns),
        model_calls=sum(turn.model_calls for turn in turns),
        questions=sum(len(turn.questions) for turn in turns),
        approvals=sum(len(turn.approvals) for turn in turns),
        false_done=false_done(solved, after.last),
        lost=len(lost(task, after.files)),
        ended=tuple(turn.ended for turn in turns),
        load=round(os.getloadavg()[0], 1),
        detail=detail,
    )


def unmeasured(task: EverydayTask, problem: str) -> TaskResult:
    """A task that could not be put: it counts as not solved."""
    return TaskResult(
        id=task.id,
        kind=task.kind,
        solved=False,
        seconds=0,
        first_s=None,
        tokens_new=0,
        tokens_in=0,
        tokens_out=0,
        model_calls=0,
        questions=0,
        approvals=0,
        false_done=False,
        lost=0,
        ended=(),
        problem=problem,
    )


def summary(results: Sequence[TaskResult]) -> str:
    """The table at the end."""
    rows = [
        "kind        solved",
        *(_kind_row(kind, results) for kind in dict.fromkeys(each.kind for each in results)),
    ]
    firsts = [each.first_s for each in results if each.first_s is not None]
    totals = {
        "solved": f"{sum(each.solved for each in results)} of {len(results)}",
        "seconds a task, median": f"{_middle(each.seconds for each in results):.1f}",
        "seconds to the first sign, median": f"{_middle(firsts):.1f}",
        "new tokens in, median": f"{_middle(each.tokens_new for each in results):.0f}",
        "tokens out, median": f"{_middle(each.tokens_out for each in results):.0f}",
        "tokens in and out, sum": f"{sum(each.tokens_in + each.tokens_out for each in results)}",
        "questions": f"{sum(each.questions for each in results)}",
        "approvals asked": f"{sum(each.approvals for each in results)}",
        "false done": f"{sum(each.false_done for each in results)}",
        "files lost": f"{sum(each.lost for each in results)}",
        "load of the machine, median": f"{_middle(each.load for each in results):.1f}",
        "not measured": f"{sum(bool(each.problem) for each in results)}",
    }
    return "\n".join([*rows, "", *(f"{name:<34} {value}" for name, value in totals.items())]) + "\n"


def _kind_row(kind: str, results: Sequence[TaskResult]) -> str:
    ours = [each for each in results if each.kind == kind]
    return f"{kind:<11} {sum(each.solved for each in ours)}/{len(ours)}"


def _middle(values: Iterable[float]) -> float:
    return median(list(values) or [0])


def _changed(before: Files, now: Files) -> dict[str, str | None]:
    gone: dict[str, str | None] = {path: None for path in before if path not in now}
    new = {
        path: data.decode(errors="replace")
        for path, data in now.items()
        if before.get(path) != data
    }
    return gone | new
