"""Which programs a shell command would run, as far as its words tell. It decides when to ask; the sandbox is the
boundary."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

ENDS = frozenset({";", "&", "&&", "|", "||", "|&", "(", ")", ";;", "\n"})
RUNS_OTHERS = frozenset({"sudo", "nice", "env", "xargs", "time", "command", "nohup", "exec", "builtin"})
"""Programs whose own first word is a program."""
_PLACES = ("/bin/", "/usr/bin/")
_OPAQUE = ("$(", "`", "<(", ">(", "${")
"""Marks of words that bash makes something else of, and may run."""


def words_of(command: str) -> list[str]:
    """The words of a shell command, each operator by itself; a line end is one too. Raises ValueError for a quote that
    does not end."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(lexer)


def simple_commands(words: Sequence[str]) -> Iterator[list[str]]:
    """The commands between the operators."""
    simple: list[str] = []
    for word in words:
        if word in ENDS:
            yield simple
            simple = []
        else:
            simple.append(word)
    yield simple


def unlisted(command: str, allowed: Collection[str]) -> str:
    """The first program that this command may run and that is not in `allowed`; '' if there is none. What cannot be
    understood counts as not listed."""
    try:
        words = words_of(command)
    except ValueError:
        return command.strip()[:80]
    for word in words:
        if any(mark in word for mark in _OPAQUE) or word in ("$", "<<", "<<<", "<<-"):
            return word[:80]
    for simple in simple_commands(words):
        for program in _programs(_without_redirections(simple)):
            if program not in allowed:
                return program[:80]
    return ""


def _without_redirections(simple: Sequence[str]) -> list[str]:
    kept: list[str] = []
    rest = iter(simple)
    for word in rest:
        if word and set(word) <= set("<>&|") and set(word) & set("<>"):
            if kept and kept[-1].isdecimal():
                kept.pop()
            next(rest, "")
        else:
            kept.append(word)
    return kept


def _programs(words: Sequence[str]) -> Iterator[str]:
    """The program, and where it runs another, that one too."""
    for number, word in enumerate(words):
        if word.startswith("-") and number:
            continue  # an option of a program that runs others
        place = next((place for place in _PLACES if word.startswith(place)), "")
        program = word.removeprefix(place) if "/" not in word.removeprefix(place) else word
        yield program
        if program not in RUNS_OTHERS:
            return
