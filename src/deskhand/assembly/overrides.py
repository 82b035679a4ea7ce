"""What a replay changes of an agent."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Tried(msgspec.Struct, frozen=True):
    """A text that replaces SYSTEM.md unless it is '', and a folder with more skills."""

    system: str = ""
    skills: Path | None = None
