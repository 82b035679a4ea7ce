"""A small model may pick the wrong file: a change to one that nobody named is asked about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import dropwhile
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

from ..types.intended_loss import is_file_mentioned, is_loss_requested
from ..types.marked_texts import mark_text
from ..types.programs import RUN_PROGRAM, RunArguments
from .commands import split_shell_words, split_simple_commands
from .programs import WRAPPER_PROGRAMS

Kind = Literal["", "file", "folder"]
PathKind = Callable[[str], Kind]
"""Tells what is at a path of the workspace; '' for nothing."""

_CHANGE_ALL = frozenset(
    {"mv", "rm", "rmdir", "unlink", "shred", "truncate", "tee", "chmod", "chown", "rename", "dd"}
)
_CHANGE_LAST = frozenset({"cp", "ln", "install", "rsync"})
_IN_PLACE = frozenset({"sed", "perl"})
_GLOB = re.compile(r"[*?\[$`~]")
MAX_SAID_CHARS = 8_000
MAX_PATH_CHARS = 1_000
"""Characters of what was said that are looked at, and of a path: what is only named behind them
counts as unnamed."""
MAX_CHANGED_PATHS = 50
"""A command that changes more paths than these names too many to be sure of."""


def find_unnamed_change(tool: str, arguments: bytes, said: str, kind: PathKind) -> str:
    """The existing file or folder that this call would change although its name does not occur in
    `said`; '' if there is none. Reading is never a change. What cannot be understood counts as
    unnamed."""
    try:
        given: Any = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return ""  # the tool refuses it
    if not isinstance(given, dict):
        return ""
    if tool == "shell":
        changed = _iter_changed_paths(str(given.get("command", "")), kind)
    elif tool in ("write_file", "edit_file"):
        path = str(given.get("path", ""))
        changed = iter((path,) if kind(path) == "file" else ())
    else:
        return ""
    said = said[:MAX_SAID_CHARS]
    return next(
        (
            path
            for path in changed
            if _GLOB.search(path) or len(path) > MAX_PATH_CHARS or not is_file_mentioned(path, said)
        ),
        "",
    )


def find_unrequested_loss(tool: str, arguments: bytes, said: str) -> str:
    """What a rehearsed program would lose that the request does not speak of, such as `overwrites
    diary.txt and its 12 lines`; '' for nothing. What cannot be understood the tool refuses."""
    if tool != RUN_PROGRAM:
        return ""
    try:
        changes = msgspec.json.decode(arguments, type=RunArguments).changes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    said = said[:MAX_SAID_CHARS]
    lost = [
        change
        for change in changes
        if change.loses
        and (len(change.path) > MAX_PATH_CHARS or not is_loss_requested(change, said))
    ]
    if len(lost) > 1:
        return mark_text("{loss_text}, and {more_number} more like it").format(
            loss_text=lost[0].loses, more_number=len(lost) - 1
        )
    return lost[0].loses if lost else ""


def _iter_changed_paths(command: str, kind: PathKind) -> Iterator[str]:
    """The existing paths that a shell command changes, as far as its words tell."""
    try:
        words = split_shell_words(command)
    except ValueError:
        yield command
        return
    moved = "cd" in words or "pushd" in words  # then a name says nothing about where the file lies
    paths = (
        path
        for simple in split_simple_commands(words)
        for path in _iter_write_targets(simple, kind)
    )
    for number, path in enumerate(paths):
        if number == MAX_CHANGED_PATHS:
            yield "*"
            return
        if moved or _GLOB.search(path) or kind(path):
            yield path


def _iter_write_targets(simple: list[str], kind: PathKind) -> Iterator[str]:
    """What one command writes to: the files behind `>`, and the arguments of programs that change
    files."""
    words: list[str] = []
    rest = iter(simple)
    for word in rest:
        if word.startswith((">", "<")) or word.endswith(">"):
            target = next(rest, "")
            if ">" in word and target not in ("/dev/null", "") and not target.isdecimal():
                yield target
        else:
            words.append(word)
    words = list(dropwhile(lambda word: word in WRAPPER_PROGRAMS or "=" in word, words))
    if not words:
        return
    program = PurePosixPath(words[0]).name
    options = [word for word in words[1:] if word.startswith("-")]
    plain = [word for word in words[1:] if not word.startswith("-")]
    if program in ("mv", *_CHANGE_LAST) and plain:
        last = plain.pop()
        if program == "mv":
            yield from plain
        inside = [f"{last.rstrip('/')}/{PurePosixPath(path).name}" for path in plain]
        yield from inside if kind(last) == "folder" else [last]
    elif program in _CHANGE_ALL or (
        program in _IN_PLACE and any(option.startswith("-i") for option in options)
    ):
        yield from (word.removeprefix("of=") for word in plain)
    elif program == "find" and {"-delete", "-exec", "-execdir"} & set(options):
        yield "*"
