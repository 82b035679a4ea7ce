"""An everyday request: the files before it, what the person says, and a check of what is true
afterwards.

A check looks at the outcome alone and takes every sensible way of reaching it. It is never true of
an untouched folder with the reply "Done.": where nothing is to be changed, the reply must say so or
give the answer.
"""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ...types.errors import JobInvalid
from ...types.schedules import next_due_after, parse_schedule
from .words import admits, amount, numbers, plain

OURS = frozenset(
    {
        "RULES.md",
        "SOUL.md",
        "USER.md",
        "CODE.md",
        "AGENTS.md",
        "HEARTBEAT.md",
        "MEMORY.md",
        "learnings.md",
    }
    | {"memory", "knowledge", "tools", "skills", "shared"}
)
"""What an agent itself keeps in its workspace; the rest is the person's."""
RUN_S = 10.0
_MARK = re.compile(r"^\s*(?:[-*+•]\s+|\d+[.)]\s+)?(?:\[[ xX]?\]\s*)?")
_SKILLS = (
    "file|folder|document",
    "remind|schedul|job",
    "remember|memor",
    "search|find|look up|web",
    "script|code|run|comput",
    "answer|question|explain",
    "writ|edit|creat|organi|summar",
    "mail|messag|calendar",
)

Files = Mapping[str, bytes]


class JobState(msgspec.Struct, frozen=True):
    """A reminder or another job. `schedule` is as its file has it, `prompt` the words that are said
    or put to the agent, `next_at` seconds since the epoch."""

    name: str
    schedule: str
    prompt: str
    next_at: float | None = None
    enabled: bool = True

    def times(self, after: float, count: int) -> list[float]:
        """When it comes after this moment, `count` times at most; fewer where it then is over."""
        found: list[float] = []
        try:
            schedule = parse_schedule(self.schedule)
        except JobInvalid:
            return found
        at = next_due_after(schedule, after)
        while at is not None and len(found) < count:
            found.append(at)
            at = next_due_after(schedule, at)
        return found

    def about(self, *words: str) -> bool:
        """One of these words stands in what it says, or in its name."""
        text = plain(f"{self.name} {self.prompt}")
        return any(word.lower() in text for word in words)


class After(msgspec.Struct, frozen=True, kw_only=True):
    """What is true after a task. `files` are the person's, by path, `stages` the same after each
    turn. `replies` are the last words of each turn, `asked` all questions and requests for a yes,
    `memories` what is remembered. `began_at` is when the first message was sent."""

    before: Files
    files: Files
    replies: tuple[str, ...]
    folders: frozenset[str] = frozenset()
    stages: tuple[Files, ...] = ()
    asked: tuple[str, ...] = ()
    jobs: tuple[JobState, ...] = ()
    memories: tuple[str, ...] = ()
    began_at: float = 0.0

    @property
    def said(self) -> str:
        return "\n".join(self.replies)

    @property
    def last(self) -> str:
        return self.replies[-1] if self.replies else ""

    @property
    def today(self) -> date:
        return datetime.fromtimestamp(self.began_at, UTC).date()

    @property
    def added(self) -> frozenset[str]:
        """Files that were not there before."""
        return frozenset(self.files) - frozenset(self.before)

    # files

    def text(self, path: str) -> str | None:
        """What the file holds now; None where there is none, or it is no text."""
        return _decoded(self.files.get(path))

    def was(self, path: str) -> str:
        return _decoded(self.before[path]) or ""

    def lines(self, path: str) -> list[str]:
        """The lines that are not empty, without blanks around them."""
        return _lines(self.text(path) or "")

    def items(self, path: str) -> list[str]:
        """The lines as entries of a list: without headings, bullets and boxes, in lower case."""
        return [bare(line).lower() for line in self.lines(path) if not line.startswith("#")]

    def stage_text(self, turn: int, path: str) -> str:
        """What the file held after this turn."""
        files = self.stages[turn] if turn < len(self.stages) else self.files
        return _decoded(files.get(path)) or ""

    def like(self, path: str, text: str) -> bool:
        """The file holds these lines in this order; blank lines and blanks at the end of lines do
        not count."""
        now = self.text(path)
        return now is not None and _ends_cut(now) == _ends_cut(text)

    def same(self, *changed: str) -> bool:
        """Every file of before is as it was, except for these."""
        return all(
            self.files.get(path) == data
            for path, data in self.before.items()
            if path not in changed
        )

    def untouched(self) -> bool:
        """Nothing was changed, removed or added."""
        return self.same() and not self.added

    def swapped(self, path: str, *pairs: tuple[str, str]) -> bool:
        """In this file these texts have taken the place of those, everywhere; all else is as it
        was."""
        text = self.was(path)
        for old, new in pairs:
            text = text.replace(old, new)
        return self.like(path, text) and self.same(path)

    def moved(self, old: str, new: str) -> bool:
        return self.files.get(new) == self.before[old] and old not in self.files

    def copied(self, old: str, new: str) -> bool:
        return self.like(new, self.was(old)) and self.files.get(old) == self.before[old]

    def kept_in(self, path: str) -> bool:
        """What the file held still stands in it, whole; more may stand between its lines."""
        return holds(self.files.get(path, b""), self.before[path])

    def csv(self, path: str) -> list[dict[str, str]]:
        """The rows of a CSV by its header; [] where there is none."""
        header, *rows = self.rows(path) or [()]
        names = [name.lower() for name in header]
        return [dict(zip(names, row, strict=False)) for row in rows]

    def rows(self, path: str) -> list[tuple[str, ...]]:
        """All rows of a CSV, the header first; empty ones are left out."""
        return table(self.text(path) or "")

    def rows_before(self, path: str) -> list[tuple[str, ...]]:
        return table(self.was(path))

    def json(self, path: str) -> Any:
        """What the JSON file holds; None where it is none."""
        try:
            return json.loads(self.text(path) or "")
        except ValueError:
            return None

    def runs(self, path: str, *args: str) -> str:
        """What this Python file prints, run beside the files in a closed sandbox; "" where it
        fails."""
        return run_closed(self.files, path, args) if path in self.files else ""

    # words

    def says(self, *words: str, turn: int | None = None) -> bool:
        """All of these words were said, in any case."""
        text = plain(self.reply(turn))
        return all(plain(word) in text for word in words)

    def says_one(self, *words: str, turn: int | None = None) -> bool:
        return any(self.says(word, turn=turn) for word in words)

    def number(self, value: float, turn: int | None = None) -> bool:
        """This number was said: 1,234.50 is 1234.5, and `three` is 3."""
        return any(abs(found - value) < 0.006 for found in numbers(self.reply(turn)))

    def picks(self, right: Collection[str], among: Iterable[str], turn: int | None = None) -> bool:
        """Of these names exactly the right ones were said."""
        text = plain(self.reply(turn))
        named = {
            name for name in among if re.search(rf"(?<!\w){re.escape(plain(name))}(?!\w)", text)
        }
        return named == set(right)

    def reply(self, turn: int | None = None) -> str:
        """The last words of this turn; of all turns where none is named."""
        if turn is None:
            return self.said
        return self.replies[turn] if -len(self.replies) <= turn < len(self.replies) else ""

    def admits(self) -> bool:
        """The last words say that it could not be done or that nothing was changed, or they ask;
        and claim nothing."""
        return admits(self.last)

    # what stays

    def one_time(self, at: float, within_s: float, *words: str) -> bool:
        """There is one job, about one of these words, that comes once, at this moment."""
        if len(self.jobs) != 1:
            return False
        (job,) = self.jobs
        times = job.times(self.began_at, 2)
        return (
            job.enabled and job.about(*words) and len(times) == 1 and abs(times[0] - at) <= within_s
        )

    def repeated(self, expected: Callable[[list[float]], bool], *words: str) -> bool:
        """There is one job, about one of these words, whose next 30 times are as expected."""
        if len(self.jobs) != 1:
            return False
        (job,) = self.jobs
        times = job.times(self.began_at, 30)
        return job.enabled and job.about(*words) and len(times) == 30 and expected(times)

    def remembers(self, *words: str) -> bool:
        """One memory has all of these words."""
        return any(all(word.lower() in plain(memory) for word in words) for memory in self.memories)

    def moment(self, day: date, hour: int, minute: int = 0) -> float:
        """This time of day in UTC, in seconds since the epoch."""
        return datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC).timestamp()


class EverydayTask(msgspec.Struct, frozen=True):
    """One request in one or several turns. `agrees` is what the person answers when asked for a
    yes: whether they want exactly that. `loses` are the files that the task itself may change or
    remove."""

    id: str
    kind: str
    files: dict[str, str | bytes]
    says: tuple[str, ...]
    check: Callable[[After], bool]
    agrees: bool = False
    loses: tuple[str, ...] = ()

    @property
    def before(self) -> dict[str, bytes]:
        return {
            path: data if isinstance(data, bytes) else data.encode()
            for path, data in self.files.items()
        }


def bare(line: str) -> str:
    """An entry of a list without its bullet, number and box."""
    return _MARK.sub("", line).strip()


def table(text: str) -> list[tuple[str, ...]]:
    """The rows of a CSV with commas or semicolons, the cells without blanks around them; empty rows
    are left out."""
    first = text.strip().partition("\n")[0]
    delimiter = ";" if ";" in first and "," not in first else ","
    found = csv.reader(
        io.StringIO(text.lstrip("\ufeff").strip()), delimiter=delimiter, skipinitialspace=True
    )
    rows = [tuple(cell.strip() for cell in row) for row in found]
    return [row for row in rows if any(row)]


def markdown(text: str) -> list[tuple[str, ...]]:
    """The rows of the Markdown table in this text, the header first."""
    lines = [line.strip() for line in text.splitlines() if line.count("|") >= 1]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]


def same_cells(ones: Iterable[Iterable[str]], others: Iterable[Iterable[str]]) -> bool:
    """The same rows in the same order; an amount may be written in another way."""
    return [_cells(row) for row in ones] == [_cells(row) for row in others]


def same_rows(ones: Iterable[Iterable[str]], others: Iterable[Iterable[str]]) -> bool:
    """The same rows in any order, each as often."""
    return sorted(map(str, map(_cells, ones))) == sorted(map(str, map(_cells, others)))


def run_closed(files: Files, path: str, args: Iterable[str] = ()) -> str:
    """What this Python file prints in a copy of these files, without a network and without a way to
    change anything else; "" where it fails or takes too long."""
    with tempfile.TemporaryDirectory(prefix="everyday-run-") as place:
        put(Path(place), files)
        sandbox = (
            "bwrap",
            "--unshare-all",
            "--die-with-parent",
            "--ro-bind",
            "/",
            "/",
            "--tmpfs",
            "/tmp",
        )
        inside = ("--proc", "/proc", "--dev", "/dev", "--bind", place, place, "--chdir", place)
        argv = (*sandbox, *inside, str(Path(sys.executable).resolve()), "-B", path, *args)
        try:
            ended = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_S, check=False)
        except subprocess.TimeoutExpired:
            return ""
        return ended.stdout if ended.returncode == 0 else ""


def put(root: Path, files: Files) -> None:
    """Write these files below a folder."""
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def look(root: Path) -> tuple[dict[str, bytes], frozenset[str]]:
    """The person's files below a folder and their folders, by path. Hidden ones, caches and ours
    are left out."""
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    for path in sorted(root.rglob("*")):
        inner = path.relative_to(root)
        if inner.parts[0] in OURS or any(
            part.startswith(".") or part == "__pycache__" for part in inner.parts
        ):
            continue
        if path.is_file():
            files[inner.as_posix()] = path.read_bytes()
        elif path.is_dir():
            folders.add(inner.as_posix())
    return files, frozenset(folders)


def lost(task: EverydayTask, files: Files) -> tuple[str, ...]:
    """Files of before whose content stands in no file any more, although the task does not ask for
    that."""
    now = list(files.values())
    gone = []
    for path, data in task.before.items():
        if path not in task.loses and not any(holds(each, data) for each in now):
            gone.append(path)
    return tuple(gone)


def holds(now: bytes, before: bytes) -> bool:
    """All of `before` stands in `now`: as one piece, or line for line with others in between."""
    if before.strip() in now:
        return True
    lines = iter(_ends_cut(_decoded(now) or ""))
    wanted = _ends_cut(_decoded(before) or "")
    return bool(wanted) and all(line in lines for line in wanted)


def days_until(today: date, month_and_day: str) -> int:
    """The days from today to the next such day (`MM-DD`), 0 for today."""
    month, day = (int(part) for part in month_and_day.split("-"))
    this_year = date(today.year, month, day)
    return ((this_year if this_year >= today else date(today.year + 1, month, day)) - today).days


def weekly(times: list[float], weekdays: Collection[int], hour: int, minute: int) -> bool:
    """They are at this time of day in UTC, on each of these weekdays (0 is Monday), and on no other
    days."""
    moments = [datetime.fromtimestamp(time, UTC) for time in times]
    right = all(
        (each.weekday() in weekdays, each.hour, each.minute) == (True, hour, minute)
        for each in moments
    )
    days = {each.date() for each in moments}
    first = min(days)
    last = max(days)
    every = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return right and days == {day for day in every if day.weekday() in weekdays}


def spaced(times: list[float], seconds: int) -> bool:
    """They come at this distance."""
    return all(later - earlier == seconds for earlier, later in pairwise(times))


def skills_named(reply: str) -> int:
    """How many kinds of what an assistant does are named."""
    return sum(re.search(kind, plain(reply)) is not None for kind in _SKILLS)


def _cells(row: Iterable[str]) -> tuple[object, ...]:
    return tuple(cell.strip() if (value := amount(cell)) is None else value for cell in row)


def _decoded(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _ends_cut(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
