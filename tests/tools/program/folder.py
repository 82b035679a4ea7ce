"""A folder in which programs are run as the sandbox runs them, but in this process."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from deskhand.tools.program.inside.main import run_program
from deskhand.tools.program.source import Source

TODAY = date(2026, 11, 23)


def source_of(folder: Path) -> Source:
    """What programs see of this folder; it is open until the tests are over."""
    return Source(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))


class Ran(msgspec.Struct, frozen=True):
    """What a program came to. `files` are the texts of all files then."""

    said: str
    stopped: str
    failed: str
    acts: list[dict[str, Any]]
    needs: dict[str, Any] | None
    read: list[str]
    blind: list[str]
    files: dict[str, str]


def fill(files: Mapping[str, str | bytes]) -> None:
    """Make these files in the current folder."""
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def texts() -> dict[str, str]:
    """All files of the current folder; of what is no text, nothing is told."""
    found = sorted(path for path in Path().rglob("*") if path.is_file())
    return {str(path): path.read_bytes().decode(errors="replace") for path in found}


def run(
    program: str, files: Mapping[str, str | bytes] | None = None, answers: Sequence[str] = ()
) -> Ran:
    """Run a program in the current folder, with these files in it."""
    fill(files or {})
    came = run_program(program, TODAY, list(answers), io.StringIO())
    names = ("said", "stopped", "failed", "acts", "needs", "read", "blind")
    return Ran(**{name: came[name] for name in names}, files=texts())
