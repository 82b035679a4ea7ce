"""How a task came out, written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from deskhand.testing.everyday.task import After, EverydayTask, JobState

BEGAN_AT = datetime(2026, 11, 24, 10, 15, tzinfo=UTC).timestamp()
"""A Tuesday."""

Written = Mapping[str, str | bytes | None]
"""Files as they are afterwards; None is one that is gone."""


class Outcome(msgspec.Struct, frozen=True):
    """What is true after a task. `stages` are the files after each turn, where they differ from
    those at the end."""

    files: Written
    replies: tuple[str, ...]
    jobs: tuple[JobState, ...] = ()
    memories: tuple[str, ...] = ()
    stages: tuple[Written, ...] = ()

    def after(self, task: EverydayTask) -> After:
        return After(
            before=task.before,
            files=_changed(task, self.files),
            replies=self.replies,
            stages=tuple(_changed(task, stage) for stage in self.stages),
            jobs=self.jobs,
            memories=self.memories,
            began_at=BEGAN_AT,
        )


class Case(msgspec.Struct, frozen=True):
    """`right` solves the task, none of `wrong` does."""

    right: Outcome
    wrong: tuple[Outcome, ...]


def case(right: Outcome, *wrong: Outcome) -> Case:
    return Case(right, wrong)


def does(
    files: Written,
    *replies: str,
    jobs: Sequence[JobState] = (),
    memories: Sequence[str] = (),
    stages: Sequence[Written] = (),
) -> Outcome:
    return Outcome(files, replies, tuple(jobs), tuple(memories), tuple(stages))


def job(name: str, schedule: str, prompt: str) -> JobState:
    return JobState(name, schedule, prompt)


def _changed(task: EverydayTask, files: Written) -> dict[str, bytes]:
    now = dict(task.before)
    for path, data in files.items():
        if data is None:
            del now[path]
        else:
            now[path] = data if isinstance(data, bytes) else data.encode()
    return now
