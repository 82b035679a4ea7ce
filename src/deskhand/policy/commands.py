"""Which programs a shell command would run, as far as its words tell. It decides when to ask; the
sandbox is the boundary."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence

from ..types.marked_texts import mark_text
from .programs import WRAPPER_PROGRAMS, find_risk
from .words import MAX_COMMAND_CHARS, ShellWord, WordReader, parse_command

SHELL_OPERATORS = frozenset({";", "&", "&&", "|", "||", "|&", "(", ")", ";;", "\n"})
_PLACES = ("/bin/", "/usr/bin/")
_PLAIN_OPTIONS = {"xargs": frozenset({"-0", "-r", "-t"}), "command": frozenset({"-v", "-V"})}
_DURATION = re.compile(r"\d+[smh]?")
SHOWN_CHARS = 80


def split_shell_words(command: str) -> list[str]:
    """The words of a shell command, each operator by itself; a line end is one too. Raises
    ValueError for a quote that does not end, and for a command of more than LONGEST characters."""
    if len(command) > MAX_COMMAND_CHARS:
        raise ValueError(f"it has more than {MAX_COMMAND_CHARS:,} characters")
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def split_simple_commands(words: Sequence[str]) -> Iterator[list[str]]:
    """The commands between the operators."""
    simple: list[str] = []
    for word in words:
        if word in SHELL_OPERATORS:
            yield simple
            simple = []
        else:
            simple.append(word)
    yield simple


def find_doubt(command: str, allowed: Collection[str], *, strict: bool = False) -> str:
    """Why it is not certain that this command runs nothing but the programs in `allowed`, as the
    end of a sentence; '' where it is. `strict`: what an interpreter runs is never certain."""
    return find_doubt_in(parse_command(command), allowed, strict=strict)


def find_doubt_in(reading: WordReader, allowed: Collection[str], *, strict: bool = False) -> str:
    """The same of a command that has been read."""
    for words in reading.commands:
        if found := _find_word_doubt(words, allowed, strict):
            return found
    return format_unclear(reading.unclear) if reading.unclear else ""


def format_unclear(piece: str) -> str:
    return mark_text("it is not certain what this command runs: {command}").format(
        command=piece[:SHOWN_CHARS]
    )


def _find_word_doubt(words: Sequence[ShellWord], allowed: Collection[str], strict: bool) -> str:
    at = 0
    while at < len(words):
        name = program_name(words[at].text)
        if name not in allowed:
            return mark_text("{name} is not one of the commands that run without approval").format(
                name=repr(name[:SHOWN_CHARS])
            )
        if name not in WRAPPER_PROGRAMS:
            plain = (ShellWord(name, words[at].glob), *words[at + 1 :])
            risk = find_risk(plain, strict=strict)
            return format_unclear(risk) if risk else ""
        inner = _find_inner_command(name, words, at + 1)
        if isinstance(inner, str):
            return format_unclear(inner)
        if name == "xargs" and inner < len(words):
            # What comes through the pipe may be options of the program.
            piped = (words[inner], ShellWord("*", glob=True))
            if find_risk(piped, strict=strict):
                return format_unclear(f"{name} {words[inner].text}")
        at = inner
    return ""


def _find_inner_command(name: str, words: Sequence[ShellWord], at: int) -> int | str:
    """Where the command begins that a program runs which runs others, behind the last word for
    none; and text for what cannot be told."""
    options = _PLAIN_OPTIONS.get(name, frozenset())
    while at < len(words) and words[at].text in options:
        if name == "command":
            return len(words)  # it only says what it would run
        at += 1
    if name == "timeout" and at < len(words) and _DURATION.fullmatch(words[at].text):
        at += 1
    if at < len(words) and (
        words[at].text.startswith("-") or words[at].glob or "=" in words[at].text
    ):
        return f"{name} {words[at].text}"
    return at


def program_name(word: str) -> str:
    """The name of a program in one of the usual places; a path anywhere else stays as it is."""
    place = next((place for place in _PLACES if word.startswith(place)), "")
    rest = word.removeprefix(place)
    return rest if place and "/" not in rest else word


def list_programs(reading: WordReader) -> frozenset[str]:
    """The names of all programs that a command seems to run, wherever they lie; of those that run
    others, every word counts."""
    names: set[str] = set()
    for words in reading.commands:
        name = words[0].text.rpartition("/")[2]
        every = name in WRAPPER_PROGRAMS or bool(find_risk((ShellWord(name), *words[1:])))
        names.update(word.text.rpartition("/")[2] for word in (words if every else words[:1]))
    return frozenset(names)
