"""What a program comes to, in words."""

from __future__ import annotations

import pytest

from deskhand.types.program_words import summarize_changes, summarize_rehearsal
from deskhand.types.programs import FileChange, ProgramCall, Rehearsed

NEW = FileChange("a.txt", "new")
OTHER = FileChange("b/c.txt", "new")
EDIT = FileChange("notes.txt", "changed")
GONE = FileChange("old.txt", "deleted")
MOVED = FileChange("x.txt", "moved", to="y.txt")
FOLDER = FileChange("docs", "folder")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((), "change nothing"),
        ((EDIT,), "change notes.txt"),
        ((NEW, OTHER), "make 2 files"),
        ((GONE, NEW, EDIT, OTHER), "delete old.txt, make 2 files, change notes.txt"),
        ((MOVED,), "move x.txt to y.txt"),
        ((MOVED, MOVED), "move 2 files"),
        ((FOLDER,), "make the folder docs"),
        ((FOLDER, FOLDER), "make 2 folders"),
    ],
)
def test_changes(changes: tuple[FileChange, ...], words: str) -> None:
    assert summarize_changes(changes) == words


@pytest.mark.parametrize(
    ("came", "words"),
    [
        (Rehearsed("Done.", changes=(EDIT,)), "would change notes.txt"),
        (Rehearsed(calls=(ProgramCall("cron", {}), ProgramCall("cron", {}))), "would use cron"),
        (
            Rehearsed(changes=(EDIT,), calls=(ProgramCall("cron", {}),)),
            "would change notes.txt, and use cron",
        ),
        (Rehearsed("It is 4.\nNo more."), "says It is 4."),
        (Rehearsed("\n  \n"), "comes to nothing"),
        (Rehearsed("x", stopped="there is no a.txt"), "stopped: there is no a.txt"),
        (Rehearsed("x", failed="line 1: no"), "failed: line 1: no"),
        (
            Rehearsed(needs=ProgramCall("web_fetch", {"url": "https://a.test"})),
            "needs web_fetch first",
        ),
    ],
)
def test_outcomes(came: Rehearsed, words: str) -> None:
    assert summarize_rehearsal(came) == words
