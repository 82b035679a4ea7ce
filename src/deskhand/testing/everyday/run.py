"""Puts the everyday tasks to a real `deskhand serve`, each in a fresh home, and measures what comes
of them.

    python -m deskhand.testing.everyday.run --set tuned --model embedded/qwen2.5-coder-1.5b

It prints a line for each task and a table, and writes both with the details to a JSON file. It
takes a while. Of the sets that nothing is tuned on only ids and figures are printed and written, so
that nobody learns them by heart.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec

from ...config.clock import SystemClock
from ...config.config import read_settings
from . import fresh, tuned, unseen
from .measure import TaskResult, judged, summary, unmeasured
from .served import HarnessError, Served, ServedTurn, Setup, link_cache
from .task import After, EverydayTask, Files, look, put

SETS = {"tuned": tuned.TASKS, "unseen": unseen.TASKS, "fresh": fresh.TASKS}


class EverydayReport(msgspec.Struct, frozen=True):
    """One run over a set."""

    set: str
    model: str
    python: str
    results: list[TaskResult]


async def measure(task: EverydayTask, setup: Setup, *, detailed: bool = True) -> TaskResult:
    """Put one task to a fresh Deskhand. A start that fails is told in the result."""
    with tempfile.TemporaryDirectory(
        prefix="deskhand-everyday-", ignore_cleanup_errors=True
    ) as place:
        served = Served(setup, Path(place))
        put(served.workspace, task.before)
        try:
            async with served.running():
                return await _talk(task, served, detailed=detailed)
        except HarnessError as error:
            return unmeasured(task, str(error) if detailed else "not measured")


async def _talk(task: EverydayTask, served: Served, *, detailed: bool) -> TaskResult:
    began_at = SystemClock().now()
    turns: list[ServedTurn] = []
    stages: list[Files] = []
    for text in task.says:
        turns.append(await served.say(text, task.agrees))
        stages.append(look(served.workspace)[0])
        if turns[-1].cut_off:
            break

    files, folders = look(served.workspace)
    after = After(
        before=task.before,
        files=files,
        folders=folders,
        stages=tuple(stages),
        replies=tuple(turn.reply for turn in turns),
        asked=tuple(words for turn in turns for words in (*turn.approvals, *turn.questions)),
        jobs=await served.jobs(),
        memories=await served.memories() if task.kind == "memory" else (),
        began_at=began_at,
    )
    return judged(task, after, turns, detailed)


async def run(
    name: str, tasks: Sequence[EverydayTask], setup: Setup, out: Path, *, detailed: bool
) -> list[TaskResult]:
    """One task after the other. What is known so far is in `out` after each. Ctrl+C and SIGTERM end
    the run and its server in good order; what was measured until then is returned."""
    results: list[TaskResult] = []

    async def work() -> None:
        for task in tasks:
            result = await measure(task, setup, detailed=detailed)
            results.append(result)
            sys.stdout.write(f"{result.line()}\n{_told(result)}")
            sys.stdout.flush()
            report = EverydayReport(name, setup.model, setup.python, results)
            await anyio.Path(out).write_bytes(
                msgspec.json.format(msgspec.json.encode(report), indent=1)
            )
        group.cancel_scope.cancel()

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            async for _ in signals:
                group.cancel_scope.cancel()
    return results


def _told(result: TaskResult) -> str:
    """What was said, where a task failed and its words may be shown."""
    if result.solved or result.detail is None:
        return ""
    pairs = zip(result.detail.says, result.detail.replies, strict=False)
    return "".join(f"    > {said}\n    {reply[:300]!r}\n" for said, reply in pairs)


def chosen(name: str, only: Sequence[str]) -> list[EverydayTask]:
    """The tasks of this set, or of it only those with these ids. Raises ValueError for an id that
    is not there."""
    tasks = {task.id: task for task in SETS[name]}
    if missing := [each for each in only if each not in tasks]:
        raise ValueError(
            f"there is no task {missing[0]!r} in this set; there are: {', '.join(tasks)}"
        )
    return [task for task in tasks.values() if not only or task.id in only]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Put the everyday tasks to a real Deskhand.")
    parser.add_argument(
        "--set", dest="name", choices=sorted(SETS), default="tuned", help="which fifty"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="only these tasks")
    parser.add_argument("--model", default="embedded/qwen2.5-coder-1.5b", help="provider/name")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/everyday.json"),
        help="where the results are written",
    )
    parser.add_argument(
        "--python", default=sys.executable, help="the interpreter whose deskhand is served"
    )
    parser.add_argument(
        "--dev-detail", action="store_true", help="also show the words of unseen tasks"
    )
    given = parser.parse_args()
    try:
        tasks = chosen(given.name, given.only)
    except ValueError as error:
        parser.error(str(error))
    detailed = given.name == "tuned" or given.dev_detail

    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="deskhand-everyday-cache-") as cache:
        link_cache(read_settings().cache_folder, Path(cache))
        setup = Setup(model=given.model, cache=Path(cache), python=given.python)
        results = anyio.run(partial(run, given.name, tasks, setup, given.out, detailed=detailed))
    sys.stdout.write("\n" + summary(results))


if __name__ == "__main__":
    main()
