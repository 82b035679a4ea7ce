"""What an agent on a small model gets: a question before something of the person's is lost, or a
likely slip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ..policy.rules import Case, Decision
from ..policy.unnamed_files import find_unnamed_change, find_unrequested_loss


def asking_about_unnamed(
    judge: Callable[[Case], Decision], workspace: Path
) -> Callable[[Case], Decision]:
    """The judge, who also asks before an existing file is changed that nobody named in this
    turn."""

    def kind(path: str) -> Literal["", "file", "folder"]:
        found = workspace / path
        try:
            return "folder" if found.is_dir() else "file" if found.exists() else ""
        except (OSError, ValueError):
            return ""

    def careful(case: Case) -> Decision:
        decision = judge(case)
        if decision.verdict == "allow" and (
            loss := find_unrequested_loss(case.tool, case.arguments, case.said)
        ):
            return Decision("ask", f"it {loss}, and nobody asked for that")
        if decision.verdict == "allow" and (
            path := find_unnamed_change(case.tool, case.arguments, case.said, kind)
        ):
            return Decision(
                "ask", f"it would change {path!r}, which nobody named, and this is a small model"
            )
        return decision

    return careful
