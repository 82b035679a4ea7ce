"""Undo and redo for the files of jobs.

Next to the folders of jobs is the folder `.kept`. It has a folder for each job with two stacks:
`back` for undo and `again` for redo. A step is a numbered folder with one of three entries:
`whole` is the folder of a job that was removed, `file` a JOB.md that was changed, and `none` says
that there was no job. A step without any of them was interrupted while it was made, and is ignored.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ..types.errors import JobInvalid, NoSuchJob
from ..types.folders import make_private_folder
from ..types.jobs import JOB_FILE_NAME, validate_job_name
from ..types.private_files import write_private_file

MAX_STEPS = 20
MAX_JOBS = 200
"""How many steps are kept of each job, and of how many jobs."""
Stack = Literal["back", "again"]
_OTHER: dict[Stack, Stack] = {"back": "again", "again": "back"}


class JobHistory:
    """Steps that can be undone and redone. `root` is the folder of all jobs. The methods block, and
    raise OSError."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept = root / ".kept"

    def record_change(self, name: str) -> None:
        """Keep the file as it is now. Call it before the file is written or made."""
        self._push(name, "back", self._save_current)
        self._clear(name)

    def archive(self, name: str) -> None:
        """Move the job's folder here. Of a link only the link is moved."""
        self._push(name, "back", lambda place: _move(self._root / name, place / "whole"))
        self._clear(name)

    def last_changed_job(self) -> str:
        """The job that was changed last. Raises NoSuchJob when none was."""
        names = sorted(
            self._kept.glob("*/back"), key=lambda each: each.stat().st_mtime, reverse=True
        )
        for stack in names:
            if self._top(stack.parent.name, "back") is not None:
                return stack.parent.name
        raise NoSuchJob(
            "no job was changed by an agent, on the page or in a terminal: there is nothing to undo"
        )

    def read_next(self, name: str, stack: Stack = "back") -> str | None:
        """The JOB.md that the next step restores, None when the step removes the job. Raises
        JobInvalid when there is no step."""
        place = self._next_step(name, stack)
        whole = place / "whole"
        if whole.is_symlink():  # a relative link only works from where it was
            whole = self._root / whole.readlink()
        for path in (place / "file", whole / JOB_FILE_NAME):
            if path.exists():
                return path.read_text(errors="replace")
        return None if (place / "none").exists() else ""

    def restore(self, name: str, stack: Stack = "back") -> None:
        """Do the next step: undo, or redo. Raises JobInvalid when there is none, or when a folder
        is in the way."""
        place = self._next_step(name, stack)
        folder = self._root / name
        whole = place / "whole"
        there = (folder / JOB_FILE_NAME).exists()
        if os.path.lexists(whole) and os.path.lexists(folder):
            raise JobInvalid(f"there is a job {name!r} already: move its folder away first")
        if os.path.lexists(whole):
            self._push(name, _OTHER[stack], self._save_current)
            _move(whole, folder)
            with suppress(OSError):
                # As new as now: times that passed while it was gone are not due.
                os.utime(folder / JOB_FILE_NAME)
        elif (place / "file").exists():
            self._push(name, _OTHER[stack], self._save_current)
            write_private_file(folder / JOB_FILE_NAME, (place / "file").read_text(errors="replace"))
        elif (place / "none").exists() and there:
            self._push(name, _OTHER[stack], lambda put: _move(folder, put / "whole"))
        shutil.rmtree(place)

    def _save_current(self, place: Path) -> None:
        path = self._root / place.parent.parent.name / JOB_FILE_NAME
        if path.exists():
            shutil.copyfile(path, place / ".part")
            (place / ".part").rename(place / "file")
        else:
            (place / "none").touch()

    def _next_step(self, name: str, stack: Stack) -> Path:
        """The next step. Steps that would remove a job that is gone already are deleted."""
        while (place := self._top(validate_job_name(name), stack)) is not None:
            if not (place / "none").exists() or (self._root / name / JOB_FILE_NAME).exists():
                return place
            shutil.rmtree(place)
        what = "no change of" if stack == "back" else "no undo of"
        raise JobInvalid(f"there is {what} the job {name!r} to take back")

    def _steps(self, name: str, stack: Stack) -> list[Path]:
        try:
            return sorted((self._kept / name / stack).iterdir())
        except FileNotFoundError:
            return []

    def _top(self, name: str, stack: Stack) -> Path | None:
        steps = self._steps(name, stack)
        return next((place for place in reversed(steps) if _is_complete(place)), None)

    def _push(self, name: str, stack: Stack, fill: Callable[[Path], None]) -> None:
        steps = self._steps(name, stack)
        number = int(steps[-1].name) + 1 if steps else 1
        place = self._kept / name / stack / f"{number:09d}"
        make_private_folder(place)
        try:
            fill(place)
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
            raise
        for old in steps[: max(0, len(steps) + 1 - MAX_STEPS)]:
            shutil.rmtree(old)
        names = sorted(self._kept.iterdir(), key=lambda each: each.stat().st_mtime)
        for each in names[: max(0, len(names) - MAX_JOBS)]:
            shutil.rmtree(each)

    def _clear(self, name: str) -> None:
        shutil.rmtree(self._kept / name / "again", ignore_errors=True)
        os.utime(self._kept / name)


def _is_complete(place: Path) -> bool:
    return any(os.path.lexists(place / each) for each in ("whole", "file", "none"))


def _move(here: Path, there: Path) -> None:
    make_private_folder(there.parent)
    here.rename(there)
