"""What is known of each part's health, as facts, and remembered over restarts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from ..types.clock import Clock
from ..types.errors import LoginRefused, first_of_group
from ..types.health import HealthFact, HealthState
from ..types.private_files import write_private_file

log = logging.getLogger(__name__)

SETTLED_S = 10.0
"""What has run for so long has come through its start."""
DOWN_AFTER = 3
"""Failures in a row, after which nobody hopes any more."""
NOTE_S = 1.0
NOTE_WELL_S = 60.0
"""How often the file is written at most: after a failure, and where all is well."""
ERROR_CHARS = 500


class Vital(msgspec.Struct):
    """What is known of one part. `failures` are those in a row; `refused`: trying again does not
    help, a person must do something; `ready`: it has begun well. `counts_until` is when its
    failures say nothing of it any more, None for not by the time alone."""

    since: float | None = None
    last_success_at: float | None = None
    last_error: str = ""
    last_error_at: float | None = None
    restarts: int = 0
    failures: int = 0
    counts_until: float | None = None
    refused: bool = False
    ready: bool = True
    vital: bool = False
    detail: str = ""


class RememberedHealth(msgspec.Struct, frozen=True, omit_defaults=True):
    """What outlives the process."""

    last_success_at: float | None = None
    last_error: str = ""
    last_error_at: float | None = None
    refused: bool = False


def compute_state(vital: Vital, now: float) -> HealthState:
    """How a part is doing, from what happened to it."""
    if vital.refused:
        return "down"
    anew = (
        vital.since is not None
        and vital.since >= (vital.last_error_at or 0.0)
        and now - vital.since >= SETTLED_S
    )
    outdated = vital.counts_until is not None and now >= vital.counts_until
    if vital.failures and not anew and not outdated:
        return "down" if vital.failures >= DOWN_AFTER else "degraded"
    return "ok" if vital.ready else "starting"


class Vitals:
    """Everything that is known. `redact` takes secrets out of an error before it is kept."""

    def __init__(self, clock: Clock, redact: Callable[[str], str], path: Path) -> None:
        self._clock = clock
        self._redact = redact
        self._path = path
        self._known: dict[str, Vital] = {}
        self._remembered: dict[str, RememberedHealth] = {}
        self._troubled = anyio.Event()
        self._writing = anyio.Lock()

    def get(self, name: str) -> Vital:
        if name not in self._known:
            before = self._remembered.get(name, RememberedHealth())
            self._known[name] = Vital(
                None, before.last_success_at, before.last_error, before.last_error_at
            )
            self._known[name].refused = before.refused
        return self._known[name]

    def record_start(self, name: str, *, awaited: bool = False, vital: bool = False) -> None:
        """It runs from now on. One that is `awaited` is starting until it is `ready`."""
        known = self.get(name)
        known.since = self._clock.now()
        known.ready = not awaited
        known.vital = vital

    def record_ready(self, name: str, detail: str = "") -> None:
        """It has begun well; `detail` says where it is, or the like."""
        known = self.get(name)
        known.ready = True
        known.detail = detail or known.detail

    def record_success(self, name: str) -> None:
        """It did what it is for."""
        known = self.get(name)
        known.last_success_at = self._clock.now()
        known.failures = 0
        if known.refused:
            known.refused = False
            self._troubled.set()

    def record_report(self, name: str, ok_at: float, error_at: float, error: str) -> None:
        """What a part has noted of itself, with times of its own; 0 for never."""
        known = self.get(name)
        if ok_at > (known.last_success_at or 0.0):
            known.last_success_at = ok_at
            if ok_at > (known.last_error_at or 0.0):
                known.failures = 0
                known.refused = False
        if error_at > (known.last_error_at or 0.0):
            known.last_error = self._redact(error)[:ERROR_CHARS]
            known.last_error_at = error_at

    def record_failure(
        self, name: str, error: BaseException | str, counts_s: float | None = None
    ) -> int:
        """It did not. Returns how often that was in a row.

        `counts_s` is for what does nothing by itself, and so may never have a chance to succeed:
        after so many seconds its failure says nothing any more. None: until it succeeds, or has run
        on for a while.
        """
        known = self.get(name)
        now = self._clock.now()
        settled = known.since is not None and now - known.since >= SETTLED_S
        outdated = known.counts_until is not None and now >= known.counts_until
        known.failures = 1 if settled or outdated else known.failures + 1
        known.counts_until = None if counts_s is None else now + counts_s
        said = error if isinstance(error, str) else format_error(error)
        known.last_error = self._redact(said)[:ERROR_CHARS]
        known.last_error_at = now
        known.refused = isinstance(error, LoginRefused)
        self._troubled.set()
        return known.failures

    def record_stop(self, name: str) -> None:
        """It does not run now."""
        self.get(name).since = None

    def reset_failures(self, prefix: str) -> None:
        """Parts whose names begin so are set up anew: how they failed before says nothing of them
        any more."""
        for name, known in self._known.items():
            if name.startswith(prefix):
                known.failures = 0

    def facts(self) -> list[HealthFact]:
        now = self._clock.now()
        return [self._make_fact(name, vital, now) for name, vital in self._known.items()]

    def _make_fact(self, name: str, vital: Vital, now: float) -> HealthFact:
        error = (vital.last_error, vital.last_error_at, vital.restarts, vital.vital)
        return HealthFact(
            name,
            compute_state(vital, now),
            vital.detail,
            vital.since,
            vital.last_success_at,
            *error,
        )

    # ------------------------------------------------------------------ over restarts

    def load(self) -> None:
        """Take up what the last process wrote down; where there is nothing to read, nothing is
        remembered."""
        try:
            self._remembered = msgspec.json.decode(
                self._path.read_bytes(), type=dict[str, RememberedHealth]
            )
        except (OSError, msgspec.MsgspecError, RecursionError):
            return

    async def run(self) -> None:
        """Write it down for ever: soon after a failure, and now and then."""
        try:
            while True:
                with anyio.move_on_after(NOTE_WELL_S):
                    await self._troubled.wait()
                self._troubled = anyio.Event()
                await self._write_if_possible()
                await anyio.sleep(NOTE_S)
        finally:
            with anyio.CancelScope(shield=True):
                await self._write_if_possible()

    async def _write_if_possible(self) -> None:
        try:
            await self.write()
        except OSError as error:
            log.warning("Could not save the health of the parts: %s", error)

    async def write(self) -> None:
        """Raises OSError."""
        found = dict(self._remembered)
        for name, vital in self._known.items():
            found[name] = RememberedHealth(
                vital.last_success_at, vital.last_error, vital.last_error_at, vital.refused
            )
        found = {name: each for name, each in found.items() if each != RememberedHealth()}
        text = msgspec.json.format(msgspec.json.encode(found)).decode() + "\n"
        async with self._writing:
            await anyio.to_thread.run_sync(write_private_file, self._path, text)


def format_error(error: BaseException) -> str:
    """An error in one line; of a group the first, which the others followed."""
    error = first_of_group(error)
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
