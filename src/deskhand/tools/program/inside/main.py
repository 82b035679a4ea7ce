"""The program that runs one program in the current folder: a line of JSON comes in, a line of JSON
goes out."""

from __future__ import annotations

import ast
import collections
import csv
import datetime
import io
import json
import math
import os
import re
import statistics
import sys
import textwrap
import traceback
from collections.abc import Collection
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from .assistant import Assistant, Needs
from .folder import Folder
from .tables import is_empty, sort_items, table
from .values import (
    Cell,
    Number,
    Stop,
    date_of,
    dates,
    emails,
    links,
    minutes_between,
    next_day,
    number,
    phones,
    round_number,
    time_of,
    unique,
)

MAX_SAID_CHARS = 8000
MODULES: dict[str, object] = {
    "collections": collections,
    "csv": csv,
    "datetime": datetime,
    "io": io,
    "json": json,
    "math": math,
    "os": os,
    "re": re,
    "statistics": statistics,
    "textwrap": textwrap,
    "Counter": collections.Counter,
    "defaultdict": collections.defaultdict,
    "date": date,
    "timedelta": timedelta,
    "Path": Path,
}


def main() -> None:
    """Read stdin, write stdout."""
    asked = json.loads(sys.stdin.buffer.readline())
    answer = sys.stdout
    sys.stdout = said = io.StringIO()
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 -- for as long as the program runs
    found = run_program(
        asked["program"], date.fromisoformat(asked["today"]), asked["answers"], said
    )
    answer.write(json.dumps(found, ensure_ascii=True))
    answer.flush()


def run_program(program: str, today: date, answers: list[str], said: io.StringIO) -> dict[str, Any]:
    """What came of running it here. `stopped` is a sentence for the person, `failed` one for who
    wrote the program."""
    folder = Folder()
    assistant = Assistant(answers)
    ended: dict[str, Any] = {"stopped": "", "failed": "", "needs": None}
    try:
        names = make_vocabulary(folder, assistant, today, said)
        exec(compile(rename_shadows(program, names), "program", "exec"), names)
        ended["stopped"] = folder.owed()
    except Stop as stop:
        ended["stopped"] = str(stop)
    except Needs as needs:
        ended["needs"] = {"act": needs.act, **needs.given}
    except SystemExit:
        pass
    except BaseException as error:  # noqa: BLE001 -- whatever a program raises is told to who wrote it
        ended["failed"] = _describe_error(error, program)
    own = {"read": unique(folder.read_paths), "blind": unique(folder.blind)}
    did = {"ran": folder.ran, "acts": assistant.acts}
    return {**ended, **own, **did, "said": said.getvalue().strip()[:MAX_SAID_CHARS]}


def rename_shadows(program: str, names: Collection[str]) -> ast.Module:
    """The program with other names for variables that are called as our functions are: `rows =
    rows("a.csv")`. Raises SyntaxError."""
    tree = _parse_program(program)
    stored = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)

    _Quoted({*stored, *names}).visit(tree)

    shadows = stored & set(names)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in shadows and id(node) not in called:
            node.id += "_"
        elif isinstance(node, ast.arg) and node.arg in names:
            node.arg += "_"
    return tree


class _Quoted(ast.NodeTransformer):
    """Takes `notes.txt` for the name of a file, where there is no such variable and there is the
    file."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Called by the visitor."""
        name = node.value
        if isinstance(name, ast.Name) and name.id not in self._known:
            path = f"{name.id}.{node.attr}"
            if Path(path).is_file():
                return ast.copy_location(ast.Constant(path), node)
        return self.generic_visit(node)


def _parse_program(program: str) -> ast.Module:
    """The program; what is said in it may have an apostrophe, or quotes in quotes. Raises
    SyntaxError."""
    try:
        return ast.parse(program, "program")
    except SyntaxError:
        mended = _SAY_CALL.sub(lambda found: f'{found[1]}say({found[2]}"""{found[3]}""")', program)
        try:
            return ast.parse(mended, "program")
        except SyntaxError:
            pass
        raise


_SAY_CALL = re.compile(r"""^([ \t]*)say\((f?)'([^\\\n]*[^"\\\n])'\)[ \t]*$""", re.MULTILINE)


def make_vocabulary(
    folder: Folder, assistant: Assistant, today: date, said: io.StringIO
) -> dict[str, Any]:
    """The names that a program may use without making them."""

    def say(*words: object) -> None:
        print(*map(_to_plain, words), file=said)

    own = [
        getattr(folder, name) for name in dir(Folder) if not name.startswith("_") and name != "owed"
    ]
    asked = [getattr(assistant, name) for name in dir(Assistant) if not name.startswith("_")]
    values = [
        Cell,
        Stop,
        date_of,
        dates,
        emails,
        links,
        minutes_between,
        number,
        phones,
        time_of,
        unique,
        table,
    ]
    return {
        "__name__": "__main__",
        **MODULES,
        **{each.__name__: each for each in (*own, *asked, *values)},
        "today": lambda: today,
        "name": lambda path: Path(str(path)).name,
        "weekday": lambda day: _to_date(day, today).strftime("%A"),
        "sorted": sort_items,
        "max": lambda *items, **how: _extreme(max, items, how),
        "min": lambda *items, **how: _extreme(min, items, how),
        "days": lambda count: timedelta(days=int(count)),
        "weeks": lambda count: timedelta(weeks=int(count)),
        "say": say,
        "sum": lambda items, start=0: _sum(items, start),
        "days_until": lambda day: (next_day(day, today) - today).days,
        "days_between": lambda a, b: abs((date_of(b) - date_of(a)).days),
    }


def _sum(items: Any, start: Any = 0) -> Any:
    """The sum; what is empty does not count."""
    total = sum((item for item in items if item == item), start)
    return Number(round(total, 10)) if isinstance(total, float) else total


def _extreme(which: Any, items: tuple[Any, ...], how: dict[str, Any]) -> Any:
    """The greatest or the least, where what is empty does not count."""
    found = list(items[0] if len(items) == 1 else items)
    key = how.get("key") or (lambda item: item)
    filled = [item for item in found if not is_empty(key(item))]
    return which(filled or found, **how)


def _to_date(value: object, today: date) -> date:
    """A date, of this year where none is told."""
    return date_of(value if dates(str(value)) else f"{value} {today.year}")


def _to_plain(word: object) -> object:
    if isinstance(word, float):
        return round_number(word) if math.isfinite(word) else "nan"
    if isinstance(word, list | tuple | set):
        return ", ".join(str(_to_plain(each)) for each in word)
    return word


def _describe_error(error: BaseException, program: str) -> str:
    """What went wrong, and in which line of the program."""
    lines = program.splitlines()
    frames = traceback.extract_tb(error.__traceback__)
    numbers = [frame.lineno or 0 for frame in frames if frame.filename == "program"] or [0]
    number = error.lineno or 0 if isinstance(error, SyntaxError) else numbers[-1]
    where = f" in the line: {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text[:300]}{where[:200]}"
