"""The folder of jobs: one folder for each job, with its JOB.md."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ..config.parse import read_text
from ..types.errors import ConfigError, JobInvalid
from ..types.jobs import JOB_FILE_NAME, Job, validate_job, validate_job_name
from ..types.marked_texts import mark_text
from ..types.private_files import write_private_file
from .history import JobHistory, Stack
from .hooks import STATE_FOLDER
from .job_file import parse_job, render_job_file, with_enabled

log = logging.getLogger(__name__)

MAX_JOBS = 1000

FileVersion = tuple[int, int, int]
"""Time of the last change, size and inode. A file is parsed again when one of them differs."""


class JobFile(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was found. `job` is None when it cannot be used, and `problem` says why; `notes`
    are what is odd in the file. `written_at` is in seconds since the epoch, 0 for a `builtin` job,
    which has no file."""

    name: str
    job: Job | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    written_at: float = 0.0
    builtin: bool = False


class JobFiles:
    """Reads and writes jobs. All methods block for a moment: call them in a thread.

    `zone` gives the time zone of the configuration; `builtins` give the jobs that come with
    Deskhand.
    """

    def __init__(
        self,
        root: Path,
        zone: Callable[[], str],
        builtins: Sequence[Callable[[], Iterable[Job]]] = (),
    ) -> None:
        self.root = root
        self.builtins = list(builtins)
        self.history = JobHistory(root)
        self.revision = 0
        """Grows with each change that is made here. Other processes change files unnoticed."""
        self._zone = zone
        self._known: dict[str, tuple[FileVersion, JobFile]] = {}
        self._is_unreadable = False

    @property
    def zone(self) -> str:
        return self._zone()

    def job_folder(self, name: str) -> Path:
        return self.root / name

    def exists(self, name: str) -> bool:
        """True when this job has a file."""
        return (self.job_folder(name) / JOB_FILE_NAME).exists()

    def scan_with_builtins(self) -> dict[str, JobFile]:
        """All jobs by name. A file takes the place of a builtin job of its name."""
        found = {}
        for builtin in self.builtins:
            for job in builtin():
                found[job.name] = self._make_builtin(job)
        return found | self.scan()

    def _make_builtin(self, job: Job) -> JobFile:
        try:
            return JobFile(name=job.name, job=validate_job(job, self.zone), builtin=True)
        except JobInvalid as error:
            return JobFile(name=job.name, job=None, problem=str(error), builtin=True)

    def scan(self) -> dict[str, JobFile]:
        """The jobs that have a file, by name, also those that cannot be used."""
        try:
            with os.scandir(self.root) as entries:
                names = sorted(entry.name for entry in entries if _may_hold_a_job(entry))
        except FileNotFoundError:
            names = []
        except OSError as error:
            if not self._is_unreadable:
                log.warning(
                    "Cannot read the jobs in %s (%s). Those read earlier stay in use.",
                    self.root,
                    error.strerror,
                )
            self._is_unreadable = True
            return {file.name: file for _, file in self._known.values()}

        self._is_unreadable = False
        found: dict[str, JobFile] = {}
        for name in names[:MAX_JOBS]:
            file = self._read_if_changed(name)
            if file is not None:
                found[file.name] = file
        self._known = {name: known for name, known in self._known.items() if name in names}
        return found

    def _read_if_changed(self, name: str) -> JobFile | None:
        path = self.root / name / JOB_FILE_NAME
        try:
            status = path.stat()
        except OSError:
            return None
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known.get(name)
        if known is None or known[0] != version:
            self._known[name] = known = (version, self._read(path, name, status.st_mtime))
        return known[1]

    def _read(self, path: Path, name: str, written_at: float) -> JobFile:
        try:
            parsed = parse_job(read_text(path), name, self.zone)
        except (ConfigError, OSError) as error:
            shown = decode_name(name)
            return JobFile(name=shown, job=None, problem=str(error), written_at=written_at)
        return JobFile(name=name, job=parsed.job, notes=parsed.notes, written_at=written_at)

    def read(self, name: str, job: Job | None) -> str:
        """The text of the file, also when it cannot be used; of a job without one, what its file
        would be."""
        try:
            return read_text(self.job_folder(name) / JOB_FILE_NAME)
        except (ConfigError, OSError):
            return render_job_file(job) if job is not None else ""

    def write(self, job: Job) -> Path:
        """Write the file in one step, and return its path. Raises JobInvalid, OSError."""
        path = self.job_folder(validate_job(job, self.zone).name) / JOB_FILE_NAME
        text = render_job_file(job)
        self.history.record_change(job.name)
        write_private_file(path, text)
        self.revision += 1
        return path

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Change the line `enabled` of the file. Raises JobInvalid when there is no such job,
        OSError."""
        path = self.job_folder(validate_job_name(name)) / JOB_FILE_NAME
        try:
            text = read_text(path)
        except FileNotFoundError as error:
            raise no_such_job(name) from error
        self.history.record_change(name)
        write_private_file(path, self._rewrite_enabled(text, name, enabled))
        self.revision += 1

    def _rewrite_enabled(self, text: str, name: str, enabled: bool) -> str:
        """The text with that one line changed. The whole file is rendered again when changing the
        line would not be enough, as when all lines are indented."""
        changed = with_enabled(text, enabled)
        try:
            before = parse_job(text, name, self.zone).job
        except ConfigError:  # the file cannot be used, before and after
            return changed
        try:
            if parse_job(changed, name, self.zone).job == replace(before, enabled=enabled):
                return changed
        except ConfigError:
            pass
        return render_job_file(replace(before, enabled=enabled))

    def remove(self, name: str) -> None:
        """Move the job's folder into the history. Raises JobInvalid when there is no such job,
        OSError."""
        self._require_file(name)
        self.history.archive(name)
        self.revision += 1

    def remove_file(self, name: str) -> None:
        """Delete the job's file for good, and its folder when nothing else is in it. Raises
        JobInvalid when there is no such job, OSError."""
        self._require_file(name)
        folder = self.job_folder(name)
        (folder / JOB_FILE_NAME).unlink()
        for inner in (folder / STATE_FOLDER, folder):
            if inner.is_dir() and not any(inner.iterdir()):
                inner.rmdir()
        self.revision += 1

    def restore(self, name: str, stack: Stack) -> None:
        """Undo or redo the last change of the job. Raises JobInvalid when there is none,
        OSError."""
        self.history.restore(name, stack)
        self.revision += 1

    def _require_file(self, name: str) -> None:
        if not self.exists(validate_job_name(name)):
            raise no_such_job(name)


def _may_hold_a_job(entry: os.DirEntry[str]) -> bool:
    """True for a folder and for a link to one, but not for a broken or circular link."""
    try:
        return not entry.name.startswith(".") and entry.is_dir()
    except OSError:
        return False


def decode_name(name: str) -> str:
    """The name of a folder as valid text: it is shown, and sent to the page."""
    return os.fsencode(name).decode(errors="replace")


def no_such_job(name: str) -> JobInvalid:
    return JobInvalid(
        mark_text("there is no job {name}; `deskhand jobs` lists them").format(name=repr(name[:80]))
    )
