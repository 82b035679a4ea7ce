"""Folders that are nobody else's."""

from __future__ import annotations

from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make this folder, and all above it that are missing, for their owner alone: `mkdir -p` gives
    its mode to the last one only. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    if not missing and not folder.is_dir():
        raise FileExistsError(f"{folder} is no folder")
