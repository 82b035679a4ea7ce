"""The folder of jobs: a folder for each, with JOB.md in it. A file is parsed again when it has
changed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ..config.parse import read_text
from ..config.yaml_edit import write_private_file
from ..types.errors import ConfigError, JobInvalid
from ..types.jobs import JOB_FILE_NAME, Job, validate_job, validate_job_name
from .history import JobHistory
from .hooks import STATE_FOLDER
from .job_file import Parsed, parse_job, render_job_file, with_enabled

log = logging.getLogger(__name__)

MAX_JOBS = 1000


class JobFile(msgspec.Struct, frozen=True):
    """A job's file. `job` is None where it cannot be used, and `problem` says why; `at` is when it
    was written, 0 for what is `builtin` and has no file."""

    name: str
    job: Job | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    written_at: float = 0.0
    builtin: bool = False


class Folder:
    """Its methods block, each for a moment. `zone` gives that of the configuration, `builtins` our
    own jobs."""

    def __init__(
        self,
        root: Path,
        zone: Callable[[], str],
        builtins: Sequence[Callable[[], Iterable[Job]]] = (),
    ) -> None:
        self.root = root
        self._zone = zone
        self._builtins = builtins
        self.history = JobHistory(root)
        self._known: dict[str, tuple[tuple[int, int, int], JobFile]] = {}
        self._out_of_reach = False

    @property
    def zone(self) -> str:
        return self._zone()

    def scan_with_builtins(self) -> dict[str, JobFile]:
        """Those with a file, and our own; a file of that name takes the place of ours."""
        own = [self._make_builtin(job) for builtin in self._builtins for job in builtin()]
        return {each.name: each for each in own} | self.scan()

    def _make_builtin(self, job: Job) -> JobFile:
        try:
            return JobFile(job.name, validate_job(job, self.zone), builtin=True)
        except JobInvalid as error:
            return JobFile(job.name, None, str(error), builtin=True)

    def job_folder(self, name: str) -> Path:
        return self.root / name

    def scan(self) -> dict[str, JobFile]:
        """All of them by name. What is broken stands among them, with a sentence."""
        try:
            with os.scandir(self.root) as entries:
                names = sorted(entry.name for entry in entries if _may_hold_a_job(entry))
        except FileNotFoundError:
            names = []
        except OSError as error:
            if not self._out_of_reach:
                log.warning(
                    "the jobs in %s cannot be read (%s): those that are known go on",
                    self.root,
                    error.strerror,
                )
            self._out_of_reach = True
            return {one.name: one for _, one in self._known.values()}
        self._out_of_reach = False
        found: dict[str, JobFile] = {}
        for name in names[:MAX_JOBS]:
            one = self._read_if_changed(name)
            if one is not None:
                found[one.name] = one
        self._known = {name: each for name, each in self._known.items() if name in names}
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

    def _read(self, path: Path, name: str, at: float) -> JobFile:
        try:
            parsed: Parsed = parse_job(read_text(path), name, self.zone)
        except (ConfigError, OSError) as error:
            return JobFile(decode_name(name), None, str(error), written_at=at)
        return JobFile(name, parsed.job, "", parsed.notes, at)

    def write(self, job: Job) -> Path:
        """Write its file in one step. Raises JobInvalid, OSError."""
        path = self.job_folder(validate_job(job, self.zone).name) / JOB_FILE_NAME
        text = render_job_file(job)
        self.history.record_change(job.name)
        write_private_file(path, text)
        return path

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Change that one line of it. Raises JobInvalid where there is no such job, OSError."""
        path = self.job_folder(validate_job_name(name)) / JOB_FILE_NAME
        try:
            text = read_text(path)
        except FileNotFoundError as error:
            raise no_such_job(name) from error
        self.history.record_change(name)
        write_private_file(path, self._rewrite_enabled(text, name, enabled))

    def _rewrite_enabled(self, text: str, name: str, enabled: bool) -> str:
        """Its text with that one line changed; written anew where a line would not do, as where all
        are indented."""
        changed = with_enabled(text, enabled)
        try:
            before = parse_job(text, name, self.zone).job
        except ConfigError:  # it is broken, and stays so
            return changed
        try:
            if parse_job(changed, name, self.zone).job == replace(before, enabled=enabled):
                return changed
        except ConfigError:
            pass
        return render_job_file(replace(before, enabled=enabled))

    def remove(self, name: str, *, scripts: bool = True) -> None:
        """Remove the job; with `scripts` all that lies beside it too, and that can be undone.
        Raises JobInvalid, OSError."""
        folder = self.job_folder(validate_job_name(name))
        if not (folder / JOB_FILE_NAME).exists():
            raise no_such_job(name)
        if scripts:
            self.history.archive(name)
            return
        (folder / JOB_FILE_NAME).unlink()
        for empty in (folder / STATE_FOLDER, folder):
            if empty.is_dir() and not any(empty.iterdir()):
                empty.rmdir()


def _may_hold_a_job(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one. A link that leads nowhere, or round in a circle, is
    none."""
    try:
        return not entry.name.startswith(".") and entry.is_dir()
    except OSError:
        return False


def decode_name(name: str) -> str:
    """A name as text, whatever bytes it is made of: it is shown, and sent to the page."""
    return os.fsencode(name).decode(errors="replace")


def no_such_job(name: str) -> JobInvalid:
    return JobInvalid(f"there is no job {name[:80]!r}; `deskhand jobs` lists them")
