"""Small models make more slips: a person is asked before one loses or changes an unnamed file."""

from __future__ import annotations

from pathlib import Path

from ..policy.checks import AgentPolicy
from ..policy.rules import Case, Decision
from ..policy.unnamed_files import Kind, find_unnamed_change, find_unrequested_loss
from ..types.marked_texts import mark_text


def unnamed_files(case: Case, policy: AgentPolicy) -> Decision | None:
    """Ask before a small model changes an existing file that nobody named in this turn."""
    workspace = policy.guarded_workspace
    if workspace is None:
        return None

    def kind_of(path: str) -> Kind:
        return _kind_of(workspace / path)

    if loss := find_unrequested_loss(case.tool, case.arguments, case.said):
        return Decision(
            "ask", mark_text("it {loss_text}, and nobody asked for that").format(loss_text=loss)
        )

    if path := find_unnamed_change(case.tool, case.arguments, case.said, kind_of):
        return Decision(
            "ask",
            mark_text(
                "it would change {path}, which nobody named, and this is a small model"
            ).format(path=repr(path)),
        )
    return None


def _kind_of(path: Path) -> Kind:
    try:
        if path.is_dir():
            return "folder"
        return "file" if path.exists() else ""
    except (OSError, ValueError):
        return ""
