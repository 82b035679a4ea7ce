"""Typed queries on the audit trail."""

from __future__ import annotations

from ..types.commit import Change


def audit_note(at: float, by: str, what: str, subject: str) -> Change:
    """A line of the audit trail: who did what to which subject, and when (seconds since the
    epoch)."""
    return Change("people_note", (at, by, what, subject))
