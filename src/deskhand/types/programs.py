"""What a program came to on a copy of the workspace, in the words that tools, policy and models
share."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

RUN_PROGRAM = "run_program"
REHEARSE_PROGRAM = "rehearse_program"
SURVEY_FILES = "survey_files"
"""The tools."""
Purpose = Literal["read", "compute", "change"]
"""What a request is for: to be answered from a text, to be worked out, or to change something."""


ChangeKind = Literal["new", "changed", "deleted", "moved", "folder"]


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What becomes of a path. `diff` is for people, and cut where it is long; `digest` binds the
    whole: the SHA-256 of what the file holds then, '' where it holds nothing. `to` is where it is
    moved. `loses` says what the person would miss, who may not have meant it; '' where nothing is
    lost, or the agent itself had made it here."""

    path: str
    kind: ChangeKind
    digest: str = ""
    diff: str = ""
    to: str = ""
    loses: str = ""


class ProgramCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of another tool that the program asks for. `words` say what it comes to, once it has
    been done."""

    tool: str
    arguments: dict[str, Any]
    words: str = ""


class Rehearsed(msgspec.Struct, frozen=True, omit_defaults=True):
    """`said` is what it tells the person. `stopped` is why it stopped itself, in a sentence for the
    person; `failed` what went wrong, for who wrote it. `needs` is a call whose result it needs to
    go on. `ran`: it ran a command."""

    said: str = ""
    stopped: str = ""
    failed: str = ""
    changes: tuple[FileChange, ...] = ()
    calls: tuple[ProgramCall, ...] = ()
    needs: ProgramCall | None = None
    read: tuple[str, ...] = ()
    ran: bool = False

    @property
    def is_successful(self) -> bool:
        """It came to an end, with something to show."""
        return not (self.stopped or self.failed or self.needs) and bool(
            self.said or self.changes or self.calls
        )


class RunArguments(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The arguments of `run_program`, and without changes those of `rehearse_program`."""

    program: str
    changes: tuple[FileChange, ...] = ()
    answers: tuple[str, ...] = ()


def parse_rehearsal(text: str) -> Rehearsed | None:
    """What a rehearsal came to, from the result of its call; None where that says something
    else."""
    try:
        return msgspec.json.decode(text, type=Rehearsed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
