"""What an agent on a small model gets: the names of its files in the prompt, and a question before a likely slip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from ..agent.state import State
from ..models.shim_turn import LISTING, LISTING_CHARS
from ..policy.rules import Case, Decision
from ..policy.unnamed import unnamed_change
from .prompt import WORKSPACE_FILES, Prompting

OURS = frozenset({*WORKSPACE_FILES, "HEARTBEAT.md", "memory", "knowledge", "tools", "skills", "shared"})
"""What we put into a workspace: nobody asks about it by saying `my files`."""


def with_listing(prompt: Prompting, workspace: Path) -> Prompting:
    """The prompt, with the names in the workspace as the last line of its last block, where the shim looks for it."""

    def listed(state: State) -> tuple[str, ...]:
        *stable, last = prompt(state)
        return (*stable, f"{last}\n{LISTING}{names_in(workspace)}")

    return listed


def names_in(workspace: Path) -> str:
    """Names in the workspace, folders with a slash, as many as there is room for."""
    try:
        entries: Sequence[Path] = sorted(workspace.iterdir())
    except OSError:
        return ""
    names = [
        f"{path.name}/" if path.is_dir() else path.name
        for path in entries
        if path.name not in OURS and not path.name.startswith(".")
    ]
    while len(text := ", ".join(names)) > LISTING_CHARS:
        names = names[: len(names) * 3 // 4]
    return text


def asking_about_unnamed(judge: Callable[[Case], Decision], workspace: Path) -> Callable[[Case], Decision]:
    """The judge, who also asks before an existing file is changed that nobody named in this turn."""

    def kind(path: str) -> Literal["", "file", "folder"]:
        found = workspace / path
        try:
            return "folder" if found.is_dir() else "file" if found.exists() else ""
        except (OSError, ValueError):
            return ""

    def careful(case: Case) -> Decision:
        decision = judge(case)
        if decision.verdict == "allow" and (path := unnamed_change(case.tool, case.arguments, case.said, kind)):
            return Decision("ask", f"it would change {path!r}, which nobody named, and this is a small model")
        return decision

    return careful
