"""Says why a home cannot be taken over: which of its files cannot be read."""

from __future__ import annotations

from .model import ImportedHome


def describe_broken_home(found: ImportedHome) -> str:
    """What a person reads, with each file and the reason."""
    files = "\n".join(f"  {each.file}: {each.why}" for each in found.broken)
    return (
        f"the home {found.root} is damaged. Nothing was written. These files cannot be read:\n"
        f"{files}\nRepair them, move them away, or import the rest with --skip-broken."
    )
