"""The heartbeat: what stands in HEARTBEAT.md is looked after now and then, and no model is asked
while nothing is new.

A line is due when something has changed since the last time: the file itself, the workspace, or
what people said. One that begins with a time (`daily 09:00: …`, `every 6h: …`) is due then, and
only then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256

import anyio
import anyio.to_thread
import msgspec

from ..store.base import Store
from ..tools.documents.invisible import written_out
from ..tools.paths import Place, leave_no_trace, place_of
from ..types.clock import Clock
from ..types.commit import Change
from ..types.errors import JobInvalid
from ..types.events import Recorded, TurnEnded
from ..types.jobs import Job
from ..types.schedules import Schedule, last_due_times, parse_schedule
from .triggers.files import digest_files, snapshot_files

NAME = "heartbeat"
FILE = "HEARTBEAT.md"
FILE_BYTES = 32_000
IGNORED_PATHS = ("memory/", "knowledge/", "MEMORY.md", "learnings.md")
"""Files that are written from what is known: nothing new is in them."""
PROMPT = """Heartbeat. Nobody wrote: look after what is due of {file}.

{items}

{why} Do only what these lines ask for. Where nothing needs a person, answer with one short line; else say in at most
five lines what they must know."""  # noqa: E501
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IDLE = re.compile(r"#.*|[-*_=\s]*|[-*+]\s*+(?:\[[ xX]?\]\s*+)?|[-*+]\s*\[[xX]\].*|```.*")
_TIMED = re.compile(
    r"(?:[-*+]\s+)?(?:\[ ?\]\s+)?((?:every|daily|hourly|at)(?:\s[^:]*(?::\d\d)?)?):\s+(.+)"
)


class HeartbeatItem(msgspec.Struct, frozen=True):
    """A line of the file. `schedule` is None where it has no time of its own."""

    text: str
    schedule: Schedule | None = None


class HeartbeatFile(msgspec.Struct, frozen=True):
    """How things were when it last looked, at `at`."""

    state: str
    at: float


class HeartbeatBody(msgspec.Struct, frozen=True):
    """What it stands on. `folder` is the workspace of an agent, `held` whether the words of others
    went into a file of it that was read there, `zone` that of the configuration. `ask` puts a
    prompt to the agent of a job, in a conversation of its own, and writes these rows in the same
    transaction."""

    store: Store
    clock: Clock
    folder: Callable[[str], str]
    is_untrusted: Callable[[str, Place], Awaitable[bool]]
    zone: Callable[[], str]
    ask: Callable[[Job, str, Sequence[Change]], Awaitable[str]]


def parse_items(text: str, zone: str) -> list[HeartbeatItem]:
    """The lines that ask for something: no headings, no comments, nothing that is ticked off."""
    found = []
    for line in _COMMENT.sub("", text).splitlines():
        plain = line.strip()
        if not plain or _IDLE.fullmatch(plain):
            continue
        timed = _TIMED.fullmatch(plain)
        try:
            schedule = parse_schedule(timed[1], zone) if timed else None
        except JobInvalid:
            schedule = None
            timed = None
        found.append(
            HeartbeatItem(
                timed[2] if timed else re.sub(r"^[-*+]\s+(\[ ?\]\s+)?", "", plain), schedule
            )
        )
    return found


def select_due_items(
    items: Sequence[HeartbeatItem], known: HeartbeatFile | None, state: str, now: float
) -> tuple[list[HeartbeatItem], bool]:
    """Those that are due, and whether that is because something has changed."""
    changed = known is None or known.state != state
    since = known.at if known is not None else now
    due = [
        item
        for item in items
        if (
            changed if item.schedule is None else bool(last_due_times(item.schedule, since, now, 1))
        )
    ]
    return due, changed and any(item.schedule is None for item in due)


class Heartbeat:
    """One for a process. `beat` is a chore of its job; `run` keeps what it did itself from counting
    as news, and `settled` says that it has."""

    def __init__(self, body: HeartbeatBody) -> None:
        self._body = body
        self._session = self._agent = ""
        self._over = anyio.Event()
        self.settled = True

    async def beat(self, job: Job) -> str:
        """Look, and ask the agent where something is due. Returns what was done, '' for nothing."""
        body = self._body
        agent = job.agent
        folder = body.folder(agent)
        now = body.clock.now()
        text, place = await anyio.to_thread.run_sync(_read, f"{folder}/{FILE}")
        items = parse_items(text, body.zone())
        if not items:
            return ""
        if await body.is_untrusted(agent, place):
            return (
                f"{FILE} holds words that are not an owner's and is left alone: look at it, "
                "then save it yourself"
            )
        known = await self._load_state(agent)
        state = await self._fingerprint(agent, text)
        due, changed = select_due_items(items, known, state, now)
        if not due:
            await self._save_state(
                agent, HeartbeatFile(state if known is None else known.state, now)
            )
            return ""
        why = "Something has changed since the last time." if changed else "Their time has come."
        shown = "\n".join(f"- {item.text}" for item in due)
        self._agent = agent
        rows = (
            self._state_change(agent, HeartbeatFile(state, now)),
        )  # a crash neither forgets it nor does it twice
        self._session = await body.ask(job, PROMPT.format(file=FILE, items=shown, why=why), rows)
        return f"asked about {len(due)} of {len(items)} lines"

    def on_event(self, recorded: Recorded) -> None:
        """An event passes: what it had asked for is over."""
        if isinstance(recorded.event, TurnEnded) and recorded.session == self._session:
            self.settled = False
            self._over.set()

    async def run(self) -> None:
        """For ever: what the agent changed in its own heartbeat is no news."""
        while True:
            await self._over.wait()
            self._over = anyio.Event()
            known = await self._load_state(self._agent)
            text, _ = await anyio.to_thread.run_sync(
                _read, f"{self._body.folder(self._agent)}/{FILE}"
            )
            if known is not None:
                await self._save_state(
                    self._agent, HeartbeatFile(await self._fingerprint(self._agent, text), known.at)
                )
            self.settled = not self._over.is_set()

    async def _fingerprint(self, agent: str, text: str) -> str:
        """One word for all that may be news."""
        folder = self._body.folder(agent)
        files = await anyio.to_thread.run_sync(snapshot_files, folder, "")
        mine = {
            path: seen
            for path, seen in files.items()
            if not path.startswith(IGNORED_PATHS) and path != FILE
        }
        ((said_at,),) = await self._body.store.query("session_latest", (agent,))
        return sha256(
            f"{text}\0{digest_files(mine)}\0{said_at}".encode(errors="replace")
        ).hexdigest()

    async def _load_state(self, agent: str) -> HeartbeatFile | None:
        rows = await self._body.store.query("trigger_seen", (NAME, agent))
        return msgspec.json.decode(rows[0][0], type=HeartbeatFile) if rows else None

    async def _save_state(self, agent: str, known: HeartbeatFile) -> None:
        await self._body.store.change((self._state_change(agent, known),))

    def _state_change(self, agent: str, known: HeartbeatFile) -> Change:
        return Change(
            "trigger_saw",
            (NAME, agent, msgspec.json.encode(known).decode(), self._body.clock.now()),
        )


def _read(path: str) -> tuple[str, Place]:
    """The beginning of a file and where it was read, '' where there is none. Never by way of a
    link."""
    nothing = "", Place(path, path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return nothing
    with os.fdopen(fd, "rb") as file:
        leave_no_trace(fd)
        try:
            data = file.read(FILE_BYTES)
        except OSError:  # a folder
            return nothing
        place = place_of(fd, path)
    return (
        (written_out(data.decode("utf-8-sig", "replace")), place) if place is not None else nothing
    )
