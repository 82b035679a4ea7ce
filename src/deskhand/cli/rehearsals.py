"""The programs of small models in the terminal: what is called, what came of it, and the question,
in words."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..types.messages import ToolCall
from ..types.program_words import summarize_changes, summarize_rehearsal
from ..types.programs import (
    REHEARSE_PROGRAM,
    RUN_PROGRAM,
    SURVEY_FILES,
    RunArguments,
    parse_rehearsal,
)

_DESTRUCTIVE = ("overwrites ", "empties ", "deletes ")
_DIFF_STYLES = {"  +": "good", "  -": "bad", "  @": "quiet", "  …": "quiet"}


class _About(msgspec.Struct):
    """What matters of the arguments of `survey_files`."""

    about: str


def describe_arguments(call: ToolCall) -> str | None:
    """What this call is about; None where it is none of these, or what it is given makes no
    sense."""
    try:
        match call.name:
            case str(name) if name == RUN_PROGRAM:
                return summarize_changes(
                    msgspec.json.decode(call.arguments, type=RunArguments).changes
                )
            case str(name) if name == REHEARSE_PROGRAM:
                return msgspec.json.decode(call.arguments, type=RunArguments).program
            case str(name) if name == SURVEY_FILES:
                return msgspec.json.decode(call.arguments, type=_About).about
            case _:
                return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def describe_result(tool: str, text: str) -> str:
    """What a call came to, where that is told in another form than words; else the text."""
    if tool != REHEARSE_PROGRAM or not text.startswith("{"):
        return text
    came = parse_rehearsal(text)
    return summarize_rehearsal(came) if came is not None else "rehearsed"


def style_question(question: str) -> list[tuple[str, str]]:
    """The lines of a question, with their styles where it is about a program."""
    if not question.startswith(f"{RUN_PROGRAM} \n"):
        return [(question, "")]
    return list(_style_program(question.split("\n")))


def _style_program(lines: list[str]) -> Iterator[tuple[str, str]]:
    """What is lost stands before the first empty line, diffs before the program, and digests behind
    it."""
    part = "changes"
    for line in lines:
        if line.startswith("The program:"):
            part = "program"
        elif line.startswith("SHA-256 "):
            part = "digests"
        elif not line and part == "changes":
            part = "diffs"
        match part:
            case "changes":
                yield line, "warn" if line.startswith(_DESTRUCTIVE) or ": " in line else ""
            case "diffs":
                yield line, _DIFF_STYLES.get(line[:3], "")
            case "digests":
                yield line, "quiet"
            case _:
                yield line, ""
