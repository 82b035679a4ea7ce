"""What is tried on an agent in a replay."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Tried(msgspec.Struct, frozen=True):
    """Another text in place of SYSTEM.md ('': its own), and the skills in this folder beside its
    own."""

    system: str = ""
    skills: Path | None = None
