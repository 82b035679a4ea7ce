"""The heartbeat: the lines of HEARTBEAT.md, put to the agent when they are due.

A line is due when something has changed since the last time: the file itself, the workspace, or
what people said. A line that begins with a time (`daily 09:00: …`, `every 6h: …`) is due then, and
only then. While nothing is due, no model is asked.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

import anyio
import anyio.to_thread
import msgspec

from ..assembly.host import Host
from ..config.config import workspace_of
from ..config.sections import HeartbeatConfig
from ..gateway.inject import InboundInjector
from ..tools.approved import bound_from_rows
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.label_marks import load_scope_marks
from ..tools.paths import Place, place_of, set_noatime
from ..tools.queries import approved_digests
from ..types.commit import Change
from ..types.errors import JobInvalid
from ..types.events import Recorded, TurnEnded
from ..types.identity import Address, Inbound, Principal, Said
from ..types.jobs import Job
from ..types.labels import LOCAL, Label
from ..types.messages import Message, Text
from ..types.people import OWNER_NAME
from ..types.schedules import Schedule, last_due_times, parse_schedule
from .builtins import BuiltinJobs, Chore
from .triggers.files import digest_files, snapshot_files
from .triggers.queries import last_message_at, load_state, save_state

log = logging.getLogger(__name__)

NAME = "heartbeat"
FILE = "HEARTBEAT.md"
FILE_BYTES = 32_000
IGNORED_PATHS = ("memory/", "knowledge/", "MEMORY.md", "learnings.md")
"""Files that Deskhand writes from what it knows: changes in them are no news."""
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
    """A line of the file. `schedule` is None when it has no time of its own."""

    text: str
    schedule: Schedule | None = None


class HeartbeatFile(msgspec.Struct, frozen=True):
    """A digest of how things were at the last heartbeat, and when that was (seconds since the
    epoch)."""

    state: str
    at: float


def parse_items(text: str, zone: str) -> list[HeartbeatItem]:
    """The lines that ask for something, without headings, comments and boxes that are ticked."""
    found = []
    for line in _COMMENT.sub("", text).splitlines():
        plain = line.strip()
        if not plain or _IDLE.fullmatch(plain):
            continue
        timed = _TIMED.fullmatch(plain)
        item = None
        if timed is not None:
            with suppress(JobInvalid):  # not a time after all
                item = HeartbeatItem(timed[2], parse_schedule(timed[1], zone))
        found.append(item or HeartbeatItem(re.sub(r"^[-*+]\s+(\[ ?\]\s+)?", "", plain)))
    return found


def select_due_items(
    items: Sequence[HeartbeatItem], known: HeartbeatFile | None, state: str, now: float
) -> tuple[list[HeartbeatItem], bool]:
    """The lines that are due at `now`, and whether something has changed for one of them. `state`
    is the digest of how things are."""
    changed = known is None or known.state != state
    since = known.at if known is not None else now
    due = []
    has_news = False
    for item in items:
        if item.schedule is None:
            if changed:
                due.append(item)
                has_news = True
        elif last_due_times(item.schedule, since, now, 1):
            due.append(item)
    return due, has_news


class Heartbeat:
    """The builtin job `heartbeat`, and the chore that it does.

    `run` notes how things are after the agent's own turn, so that its changes do not count as news;
    `settled` is true when it has.
    """

    def __init__(self, host: Host, injector: InboundInjector) -> None:
        self._host = host
        self._store = host.store
        self._injector = injector
        self._session = ""
        self._agent = ""
        self._turn_ended = anyio.Event()
        self.settled = True

    def builtin_jobs(self) -> Iterator[Job]:
        """The job as the configuration has it now."""
        settings = self._host.settings()
        config = settings.config.heartbeat
        every = f"every {config.every}"
        try:
            parse_schedule(every)
        except JobInvalid as error:
            log.warning("heartbeat.every: %s", error)
            every = f"every {HeartbeatConfig().every}"
        yield Job(
            NAME,
            description=f"look after the lines of {FILE} that are due",
            schedule=every,
            agent=config.agent if config.agent in settings.agents else settings.agents[0],
            kind="chore",
            chore=NAME,
            misfire="skip",
            enabled=config.enabled,
        )

    def chores(self) -> Mapping[str, Chore]:
        return {NAME: self.beat}

    async def beat(self, job: Job) -> str:
        """Ask the agent about the lines that are due. Returns what was done, '' for nothing."""
        agent = job.agent
        now = self._host.clock.now()
        text, place = await anyio.to_thread.run_sync(_read, f"{self._workspace(agent)}/{FILE}")
        items = parse_items(text, self._host.settings().config.timezone)
        if not items:
            return ""
        if await self._is_untrusted(agent, place):
            return (
                f"{FILE} holds words that are not an owner's and is left alone: look at it, "
                "then save it yourself"
            )

        known = await self._load_state(agent)
        state = await self._fingerprint(agent, text)
        due, has_news = select_due_items(items, known, state, now)
        if not due:
            before = state if known is None else known.state
            await self._store.change([self._state_change(agent, HeartbeatFile(before, now))])
            return ""

        why = "Something has changed since the last time." if has_news else "Their time has come."
        shown = "\n".join(f"- {item.text}" for item in due)
        prompt = PROMPT.format(file=FILE, items=shown, why=why)
        # In one transaction with the message: a crash neither loses it nor sends it twice.
        note = self._state_change(agent, HeartbeatFile(state, now))
        self._agent = agent
        self._session = await self._ask_agent(job, prompt, [note])
        return f"asked about {len(due)} of {len(items)} lines"

    listens_to = (TurnEnded,)

    def on_event(self, recorded: Recorded) -> None:
        """Note the end of the turn that the heartbeat has started. Never waits."""
        if isinstance(recorded.event, TurnEnded) and recorded.session == self._session:
            self.settled = False
            self._turn_ended.set()

    async def run(self) -> None:
        """After each turn that the heartbeat has started, note how things are. For ever."""
        while True:
            await self._turn_ended.wait()
            self._turn_ended = anyio.Event()
            agent = self._agent
            known = await self._load_state(agent)
            text, _ = await anyio.to_thread.run_sync(_read, f"{self._workspace(agent)}/{FILE}")
            if known is not None:
                state = await self._fingerprint(agent, text)
                note = self._state_change(agent, HeartbeatFile(state, known.at))
                await self._store.change([note])
            self.settled = not self._turn_ended.is_set()

    def _workspace(self, agent: str) -> str:
        return str(workspace_of(self._host.settings(), agent).resolve())

    async def _is_untrusted(self, agent: str, place: Place) -> bool:
        """True when the file holds untrusted words, or those of somebody who is no owner, or was
        changed since an owner approved it."""
        scope = await self._host.agent_of(f"{agent}/").workspace.open_scope()
        marks = await load_scope_marks(scope)
        path = place.real
        approved = await approved_digests(self._store)
        bound = await anyio.to_thread.run_sync(bound_from_rows, approved)
        if bound.is_changed(path) or bound.covers(path):
            return bound.is_changed(path)
        label = marks.file_label(place)
        return label.integrity == "untrusted" or bool(label.by)

    async def _ask_agent(self, job: Job, prompt: str, changes: Sequence[Change]) -> str:
        """Put the prompt to the agent, in a conversation of its own, and commit `changes` with it.
        Returns the session key."""
        host = self._host
        now = host.clock.now()
        owner = await host.with_current_roles(Principal(OWNER_NAME, ("owner",)))
        principal = Principal(f"job:{job.name}", owner.roles, "clock", OWNER_NAME)
        channel, _, chat = host.settings().config.heartbeat.to.partition(":")
        address = Address(channel, "", chat) if chat else Address("job", "", job.name)
        session = f"{job.agent}/job:{job.name}:{int(now)}"
        text = Text(prompt, Label(LOCAL.integrity, None, principal.id))
        inbound = Inbound(
            f"{job.name}:{now}",
            address,
            principal.id,
            now,
            Said(Message("user", (text,))),
            session,
            when="queue",
        )
        await self._injector.hand_in(inbound, principal, changes)
        return session

    async def _fingerprint(self, agent: str, text: str) -> str:
        """A digest of everything whose change is news."""
        files = await anyio.to_thread.run_sync(snapshot_files, self._workspace(agent), "")
        watched = {
            path: seen
            for path, seen in files.items()
            if not path.startswith(IGNORED_PATHS) and path != FILE
        }
        said_at = await last_message_at(self._store, agent)
        digest = f"{text}\0{digest_files(watched)}\0{said_at}"
        return sha256(digest.encode(errors="replace")).hexdigest()

    async def _load_state(self, agent: str) -> HeartbeatFile | None:
        stored = await load_state(self._store, NAME, agent)
        return msgspec.json.decode(stored, type=HeartbeatFile) if stored else None

    def _state_change(self, agent: str, known: HeartbeatFile) -> Change:
        value = msgspec.json.encode(known).decode()
        return save_state(NAME, agent, value, self._host.clock.now())


def _read(path: str) -> tuple[str, Place]:
    """The first FILE_BYTES of a file as text, and where it was read; '' when there is none. Never
    follows a link."""
    nothing = "", Place(path, path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return nothing
    with os.fdopen(fd, "rb") as file:
        set_noatime(fd)
        try:
            data = file.read(FILE_BYTES)
        except OSError:  # a folder
            return nothing
        place = place_of(fd, path)
    if place is None:
        return nothing
    return escape_invisible(data.decode("utf-8-sig", "replace")), place


_jobs: type[BuiltinJobs] = Heartbeat
