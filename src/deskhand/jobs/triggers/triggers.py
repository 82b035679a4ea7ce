"""Sets jobs off by what happens: files that change, pages that change, conversations that end,
webhooks."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
import msgspec

from ...gateway.name_labels import label_of_name
from ...store.base import Store
from ...types.clock import Clock
from ...types.commit import Change
from ...types.errors import JobInvalid, NetError, Refused, StoreCorrupt, StoreError, ToolError
from ...types.events import MessageReceived, Recorded, TurnEnded
from ...types.identity import SYSTEM, Principal
from ...types.jobs import Job
from ...types.labels import LOCAL, UNTRUSTED, Label, join_labels
from ...types.messages import Text, clean_text
from .broker import render_message
from .files import FolderChange as Over
from .files import WatchedFiles, changed_paths, describe_changes, snapshot_files
from .signatures import BODY_ID_PREFIX, verify_webhook
from .spec import Trigger, parse_trigger, topic_matches

log = logging.getLogger(__name__)

TICK_S = 1.0
"""How often files are looked at: at names, times and sizes, in a thread."""
PAYLOAD_CHARS = 32_000
PAGE_CHARS = 50_000
NEW_CHARS = 6_000
LOOKBACK_S = 24 * 3600.0
MAX_LOOKBACK_SESSIONS = 200
"""Conversations that ended while nobody looked, so long ago at most, and so many."""
LONGEST_PAUSE_S = 24 * 3600.0
FORGET_S = 7 * 24 * 3600.0
RESERVED_NAMES = ("", "heartbeat")
"""What is remembered of a job that is gone; under these names lies what belongs to none."""
HOUR_S = 3600.0
MAX_PER_HOUR = 20
"""So often may files set one job off: one that changes what it watches would never end."""
MAX_OWN_PATHS = 500
MTIME_TOLERANCE_S = 1.0
TOO_OFTEN = f"it was set off {MAX_PER_HOUR} times within an hour; it waits, lest it sets itself off"


class Fires(Protocol):
    """What is set off."""

    async def list_jobs(self) -> Sequence[Job]:
        """All jobs that can run: the same object as long as none has changed."""
        ...

    async def trigger(self, name: str, slot: str, payload: Text) -> bool:
        """False: it was already, by this very slot."""
        ...


class Looks(msgspec.Struct, frozen=True):
    """How the world is looked at: the workspace of a job as its real path, a page as text (raises
    NetError, ToolError), the secret of this name ('' for none), the agent of a job, and whose word
    each of these files of its workspace and its name is."""

    workspace: Callable[[Job], Path]
    fetch_page: Callable[[Job, str], Awaitable[str]]
    secret: Callable[[str], str]
    agent: Callable[[Job], str]
    labels: Callable[[Job, Sequence[str]], Awaitable[Sequence[Label]]]


class DueTrigger(msgspec.Struct):
    """A page: when it is looked at next, by the clock that nobody sets, and after how many
    failures."""

    due_at: float
    failures: int = 0


def webhook_secret_name(job: str) -> str:
    """Under this name lies the secret with which its webhook is signed."""
    return f"webhook.{job}"


def parse_triggers(job: Job) -> tuple[list[Trigger], list[str]]:
    """Those that can be used, and a sentence for each that cannot."""
    good: list[Trigger] = []
    wrong: list[str] = []
    for line in job.on:
        try:
            good.append(parse_trigger(line))
        except JobInvalid as error:
            wrong.append(str(error))
    return good, wrong


class Triggering:
    """One for a process. Only who drives may call `run`. What it counts, it counts by the clock
    that nobody sets."""

    def __init__(self, store: Store, clock: Clock, jobs: Fires, looks: Looks) -> None:
        self._store = store
        self._clock = clock
        self._jobs = jobs
        self._looks = looks
        self.secret = looks.secret
        self._wanted: dict[str, tuple[Job, list[Trigger]]] = {}
        self._of: Sequence[Job] | None = None
        self._files: dict[tuple[str, str], WatchedFiles] = {}
        self._named: dict[tuple[str, str], dict[str, Label]] = {}
        self._pages: dict[tuple[str, str], DueTrigger] = {}
        self._ended: dict[str, tuple[float, int]] = {}
        self._spoken_to: set[str] = set()
        self._lately: dict[tuple[str, str], list[float]] = {}
        self.problems: dict[tuple[str, str], str] = {}

    # What passes by

    def on_event(self, recorded: Recorded) -> None:
        """An event passes: a turn that begins or ends."""
        match recorded.event:
            case MessageReceived(principal=principal) if _is_a_job(principal):
                self._spoken_to.add(recorded.session)
            case MessageReceived():
                self._spoken_to.discard(recorded.session)
                self._ended.pop(recorded.session, None)
            case TurnEnded() if recorded.session in self._spoken_to:
                self._spoken_to.discard(recorded.session)
            case TurnEnded() if not _is_job_session(recorded.session):
                self._ended[recorded.session] = (self._clock.monotonic(), recorded.n)
            case _:
                pass

    async def handle_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> bool:
        """A webhook came in for the job of this name; headers have names in lower case. False: it
        had come before.

        Raises Refused, with the reason, which is for the log and never for a stranger.
        """
        job, triggers = (await self._load_triggers()).get(name, (None, []))
        if job is None or not any(each.kind == "webhook" for each in triggers):
            raise Refused(f"there is no job {name[:80]!r} with `on: webhook` that is switched on")
        try:
            id_ = verify_webhook(
                self._looks.secret(webhook_secret_name(name)), headers, body, self._clock.now()
            )
        except Refused as error:
            raise Refused(f"the webhook of {name!r} is closed to it: {error}") from error
        text = clean_text(body.decode(errors="replace"))
        shown = text[:PAYLOAD_CHARS] + ("\n[cut off]" if len(text) > PAYLOAD_CHARS else "")
        said = Text(f"A webhook came in:\n\n{shown}", Label(source=f"webhook {name}"))
        known_by = "body" if id_.startswith(BODY_ID_PREFIX) else "webhook"
        return await self._jobs.trigger(
            name, f"{known_by}:{sha256(id_.encode()).hexdigest()[:32]}", said
        )

    def topics(self) -> frozenset[str]:
        """Those on which jobs want to hear messages."""
        return frozenset(trigger.what for _, trigger in self._triggers_of_kind("mqtt"))

    async def on_message(self, topic: str, payload: bytes, slot: str) -> None:
        """A message came. When this returns, it is not lost."""
        for job, trigger in self._triggers_of_kind("mqtt"):
            if topic_matches(trigger.what, topic):
                await self._fire(job, trigger, slot, render_message(topic, payload))

    def report_broker_problem(self, why_not: str) -> None:
        """Whether the broker is heard; '' where it is."""
        for job, trigger in self._triggers_of_kind("mqtt"):
            self._set_problem((job.name, str(trigger)), why_not)

    # For ever

    async def run(self) -> None:
        """Look, and set off what is due."""
        await self._load_triggers()
        if any(self._triggers_of_kind("session-end")):
            await self._catch_up()
        await self._forget()
        while True:
            await self.poll()
            await anyio.sleep(TICK_S)

    async def _forget(self) -> None:
        """What was kept for jobs that there are no more."""
        names = msgspec.json.encode(
            [*(job.name for job in await self._jobs.list_jobs()), *RESERVED_NAMES]
        ).decode()
        await self._store.change((Change("trigger_forget", (names, self._clock.now() - FORGET_S)),))

    async def _catch_up(self) -> None:
        """Conversations that ended while nobody looked: what was set off by one then, is not set
        off again."""
        now = self._clock.now()
        tick = self._clock.monotonic()
        since = now - LOOKBACK_S
        for row in await self._store.sessions(SYSTEM, MAX_LOOKBACK_SESSIONS):
            if (
                row.last_at >= since
                and not _is_job_session(row.session)
                and row.session not in self._ended
            ):
                try:
                    events = await self._store.events(row.session)
                except StoreCorrupt as error:  # its own driver tells of it
                    log.warning("%s cannot be read: %s", row.session, error)
                    continue
                said = [each.event for each in events if isinstance(each.event, MessageReceived)]
                if (
                    said
                    and not _is_a_job(said[-1].principal)
                    and isinstance(events[-1].event, TurnEnded)
                ):
                    ago_s = max(0.0, now - events[-1].at)  # below: the clock has been set back
                    self._ended.setdefault(row.session, (tick - ago_s, events[-1].n))

    async def poll(self) -> None:
        """Once."""
        wanted = await self._load_triggers()
        if not wanted:
            self._ended.clear()
            return
        await self._poll_files()
        await self._poll_pages()
        await self._poll_conversations()

    async def _load_triggers(self) -> dict[str, tuple[Job, list[Trigger]]]:
        """The jobs that something may set off, by name; worked out anew where they have changed."""
        now = await self._jobs.list_jobs()
        if now is not self._of:
            found = {
                job.name: (job, parse_triggers(job)[0]) for job in now if job.enabled and job.on
            }
            self._of, self._wanted = now, {name: pair for name, pair in found.items() if pair[1]}
            keys = {
                (name, str(each))
                for name, (_, triggers) in self._wanted.items()
                for each in triggers
            }
            for known in (self._files, self._named, self._pages, self._lately, self.problems):
                for key in [key for key in known if key not in keys]:
                    del known[key]
        return self._wanted

    def _triggers_of_kind(self, kind: str) -> Iterator[tuple[Job, Trigger]]:
        for job, triggers in list(self._wanted.values()):
            yield from ((job, each) for each in triggers if each.kind == kind)

    async def _poll_files(self) -> None:
        calm = [
            (job, each)
            for job, each in self._triggers_of_kind("file")
            if not self._is_rate_limited((job.name, str(each)))
        ]
        asked = [(job, each, str(self._looks.workspace(job))) for job, each in calm]
        if not asked:
            return
        places = list({(folder, trigger.what) for _, trigger, folder in asked})
        found = await anyio.to_thread.run_sync(
            lambda: {place: snapshot_files(*place) for place in places}
        )
        now = self._clock.monotonic()
        for job, trigger, folder in asked:
            key = (job.name, str(trigger))
            watched = self._files.get(key)
            if watched is None:
                there = tuple(found[folder, trigger.what])
                self._named[key] = dict(
                    zip(there, await self._looks.labels(job, there), strict=True)
                )
                watched = self._files[key] = WatchedFiles(await self._load_state(key))
                fresh = True
            else:
                fresh = False
            change = watched.observe(found[folder, trigger.what], now)
            if change is not None and await self._on_files_changed(job, trigger, change, folder):
                self._lately[key].append(self._clock.monotonic())
            if change is not None or fresh:
                await self._save_state(key, watched.state)

    async def _on_files_changed(
        self, job: Job, trigger: Trigger, change: Over, folder: str
    ) -> bool:
        """A change is over. What could not be written down is seen again. False: the job did it
        itself."""
        words = (
            "Files have changed under "
            f"{trigger.what}:\n\n{describe_changes(change.before, change.now)}"
        )
        try:
            if await self._is_own_change(job, change, folder):
                return False
            label = await self._label_of_change(job, trigger, change)
            await self._fire(
                job, trigger, f"file:{trigger.what}:{change.state}", Text(words, label)
            )
        except StoreError:
            del self._files[job.name, str(trigger)]
            raise
        return True

    async def _label_of_change(self, job: Job, trigger: Trigger, change: Over) -> Label:
        """Whose word what is told of a change is. Of what is gone nothing can be read any more:
        that was kept."""
        named = self._named[job.name, str(trigger)]
        here = changed_paths(change.before, change.now)
        gone = [path for path in change.before if path not in change.now]
        label = join_labels(
            (
                LOCAL,
                *(named.get(path, UNTRUSTED) for path in gone),
                *await self._looks.labels(job, gone),
            )
        )
        now = dict(zip(here, await self._looks.labels(job, here), strict=True))
        named.update(now)
        for path in gone:
            named.pop(path, None)
        return join_labels((label, *now.values()))

    async def _is_own_change(self, job: Job, change: Over, folder: str) -> bool:
        """Whether all that is other now is as this job's own conversations left it: what it wrote
        does not set it off again. A command that still runs is not in the journal yet."""
        paths = [
            *changed_paths(change.before, change.now),
            *(path for path in change.before if path not in change.now),
        ]
        try:
            asked = msgspec.json.encode(paths[:MAX_OWN_PATHS]).decode()
        except UnicodeEncodeError:  # a name that is no text: nothing of ours
            return False
        own = f"{self._looks.agent(job)}/job:{job.name}:"
        rows = await self._store.query("trigger_own", (folder, asked, own))
        at = {path: at for path, at, _ in rows}
        gone = {path for path, _, away in rows if away}
        return len(paths) <= MAX_OWN_PATHS and all(
            path in at
            and (
                path in gone
                if path not in change.now
                else change.now[path][0] / 1e9 <= at[path] + MTIME_TOLERANCE_S
            )
            for path in paths
        )

    def _is_rate_limited(self, key: tuple[str, str]) -> bool:
        """What changes meanwhile is seen later."""
        now = self._clock.monotonic()
        self._lately[key] = lately = [at for at in self._lately.get(key, []) if now - at < HOUR_S]
        if len(lately) < MAX_PER_HOUR:
            if self.problems.get(key) == TOO_OFTEN:
                del self.problems[key]
            return False
        self._set_problem(key, TOO_OFTEN)
        return True

    async def _poll_pages(self) -> None:
        now = self._clock.monotonic()
        for job, trigger in self._triggers_of_kind("page"):
            key = (job.name, str(trigger))
            due = self._pages.setdefault(key, DueTrigger(now))
            if due.due_at > now:
                continue
            try:
                text = (await self._looks.fetch_page(job, trigger.what))[:PAGE_CHARS]
            except (NetError, ToolError) as error:
                due.failures += 1
                self._set_problem(key, str(error))
                due.due_at = now + min(
                    trigger.every_s * 2.0 ** min(due.failures, 10), LONGEST_PAUSE_S
                )
                continue
            due.failures = 0
            due.due_at = now + trigger.every_s
            self.problems.pop(key, None)
            await self._compare_page(job, trigger, key, text)

    async def _compare_page(
        self, job: Job, trigger: Trigger, key: tuple[str, str], text: str
    ) -> None:
        before = await self._load_state(key)
        if before == (now := text or " "):
            return
        if before:
            old = {line.strip() for line in before.splitlines()}
            new = "\n".join(
                line for line in now.splitlines() if line.strip() and line.strip() not in old
            )
            shown = new[:NEW_CHARS] + ("\n[cut off]" if len(new) > NEW_CHARS else "")
            words = (
                f"{trigger.what} has changed. Its new lines:\n\n{shown or '(none, some are gone)'}"
            )
            state = sha256(f"{sha256(before.encode()).hexdigest()}{now}".encode()).hexdigest()[:32]
            await self._fire(job, trigger, f"page:{state}", Text(words, Label(source=trigger.what)))
        await self._save_state(key, now)

    async def _poll_conversations(self) -> None:
        now = self._clock.monotonic()
        over = set[str]()
        asked = list(self._triggers_of_kind("session-end"))
        longest = max((trigger.every_s for _, trigger in asked), default=0.0)
        for session, (at, n) in list(self._ended.items()):
            for job, trigger in asked:
                if now - at >= trigger.every_s and await self._may_know(job, session):
                    words = (
                        f"The conversation {session} has ended: nothing was said for "
                        f"{trigger.every_s / 60:g} minutes."
                    )
                    label = await label_of_name(self._store, session)
                    await self._fire(job, trigger, f"session:{session}:{n}", Text(words, label))
            if now - at >= longest:
                over.add(session)
        for session in over:
            self._ended.pop(session, None)

    async def _may_know(self, job: Job, session: str) -> bool:
        """Whether the person whose job it is takes part in this conversation. An owner's job hears
        of all."""
        members = {member for (member,) in await self._store.query("session_members", (session,))}
        return not job.person or job.person in members

    # What is kept

    async def _fire(self, job: Job, trigger: Trigger, slot: str, payload: Text) -> None:
        try:
            await self._jobs.trigger(job.name, slot, payload)
        except (Refused, JobInvalid) as error:
            self._set_problem((job.name, str(trigger)), str(error))

    def _set_problem(self, key: tuple[str, str], why: str) -> None:
        if not why:
            self.problems.pop(key, None)
        elif self.problems.get(key) != why:
            log.warning("the job %r is not set off by %r: %s", *key, why)
            self.problems[key] = why

    async def _load_state(self, key: tuple[str, str]) -> str:
        rows = await self._store.query("trigger_seen", key)
        return str(rows[0][0]) if rows else ""

    async def _save_state(self, key: tuple[str, str], value: str) -> None:
        try:
            await self._store.change((Change("trigger_saw", (*key, value, self._clock.now())),))
        except StoreError as error:
            log.warning("what set %r off is not remembered: %s", key[0], error)


def _is_a_job(principal: Principal) -> bool:
    """Whether no person spoke: what jobs say in a chat is no conversation that ends, or they would
    go on for ever."""
    return principal.id.startswith("job:")


def _is_job_session(session: str) -> bool:
    """Whether this is the conversation of a job: one that sets itself off would never end."""
    return session.partition("/")[2].startswith("job:")
