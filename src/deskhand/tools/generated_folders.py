"""Folders that are made again by a program, not by a person: we do not look into them."""

from __future__ import annotations

GENERATED_FOLDERS = frozenset(
    {
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".cache",
        ".gradle",
        ".terraform",
        ".next",
        ".parcel-cache",
        ".turbo",
    }
)


def is_generated_folder(path: str) -> bool:
    """Whether the folder at `path` is one of them. What git keeps of its history is only ever added
    to."""
    above, _, name = path.rpartition("/")
    if name == "objects":
        return above == ".git" or above.endswith("/.git") or ".git/" in above
    return name in GENERATED_FOLDERS
