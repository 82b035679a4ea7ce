"""Starts jobs when files or pages change, conversations end, or webhooks and messages come in."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
import msgspec

from ...gateway.name_labels import label_of_name
from ...store.base import Store
from ...store.queries import members_of
from ...types.clock import Clock
from ...types.errors import JobInvalid, NetError, Refused, StoreCorrupt, StoreError, ToolError
from ...types.events import MessageReceived, Recorded, TurnEnded
from ...types.identity import SYSTEM, Principal
from ...types.jobs import Job
from ...types.labels import LOCAL, UNTRUSTED, Label, join_labels
from ...types.marked_texts import mark_text
from ...types.messages import Text, clean_text
from .broker import render_message
from .files import (
    FilesSnapshot,
    FolderChange,
    WatchedFiles,
    changed_paths,
    describe_changes,
    snapshot_files,
)
from .queries import forget_states, load_state, own_changes, save_state
from .signatures import BODY_ID_PREFIX, verify_webhook
from .spec import Trigger, parse_trigger, topic_matches

log = logging.getLogger(__name__)

TICK_S = 1.0
"""How often files are looked at. Only names, times and sizes are read, in a thread."""
PAYLOAD_CHARS = 32_000
PAGE_CHARS = 50_000
NEW_CHARS = 6_000
LOOKBACK_S = 24 * 3600.0
MAX_LOOKBACK_SESSIONS = 200
"""After a start: conversations that ended this long ago at most, and how many of them."""
LONGEST_PAUSE_S = 24 * 3600.0
FORGET_S = 7 * 24 * 3600.0
"""How long the states of a job that is gone are kept."""
RESERVED_NAMES = ("", "heartbeat")
"""States under these names belong to no job."""
HOUR_S = 3600.0
MAX_PER_HOUR = 20
"""How often files may start one job. A job that changes what it watches would never end."""
MAX_OWN_PATHS = 500
MTIME_TOLERANCE_S = 1.0
TOO_OFTEN = mark_text(
    "it was started {times_number} times within an hour; it waits, in case it starts itself"
).format(times_number=MAX_PER_HOUR)

TriggerKey = tuple[str, str]
"""The name of a job, and the line of a trigger in it."""


class TriggerTarget(Protocol):
    """Starts runs of jobs."""

    async def triggered_jobs(self) -> Sequence[Job]:
        """All jobs with triggers: the same object as long as none has changed."""
        ...

    async def trigger(self, name: str, slot: str, payload: Text) -> bool:
        """Start a run, once for each slot. Returns False when there was one already."""
        ...


class TriggerSources(Protocol):
    """What triggers look at."""

    def agent_of(self, job: Job) -> str:
        """The agent that does this job."""
        ...

    def workspace_of(self, job: Job) -> Path:
        """The real path of the job's workspace."""
        ...

    async def labels_of(self, job: Job, paths: Sequence[str]) -> Sequence[Label]:
        """The label of each of these files of the workspace, contents and name."""
        ...

    async def fetch_page(self, job: Job, url: str) -> str:
        """The text of a page. Raises NetError, ToolError."""
        ...

    def find_secret(self, name: str) -> str:
        """The secret of this name, or ''."""
        ...


class DueTrigger(msgspec.Struct):
    """When a page is fetched next, on the monotonic clock, and how often that failed in a row."""

    due_at: float
    failures: int = 0


def webhook_secret_name(job: str) -> str:
    """The name of the secret that signs the webhook of this job."""
    return f"webhook.{job}"


def parse_triggers(job: Job) -> tuple[list[Trigger], list[str]]:
    """The triggers that can be used, and a sentence for each that cannot."""
    triggers: list[Trigger] = []
    problems: list[str] = []
    for line in job.on:
        try:
            triggers.append(parse_trigger(line))
        except JobInvalid as error:
            problems.append(str(error))
    return triggers, problems


class Triggering:
    """Watches what jobs wait for, and starts them.

    Only the process that drives conversations may call `run`. Times are on the monotonic clock.
    `problems` says why a trigger does not work.
    """

    def __init__(
        self, store: Store, clock: Clock, target: TriggerTarget, sources: TriggerSources
    ) -> None:
        self._store = store
        self._clock = clock
        self._target = target
        self._sources = sources
        self.problems: dict[TriggerKey, str] = {}

        self._jobs: Sequence[Job] | None = None
        self._triggers: dict[str, tuple[Job, list[Trigger]]] = {}
        self._files: dict[TriggerKey, WatchedFiles] = {}
        self._labels: dict[TriggerKey, dict[str, Label]] = {}
        self._recent_starts: dict[TriggerKey, list[float]] = {}
        self._pages: dict[TriggerKey, DueTrigger] = {}
        self._ended: dict[str, tuple[float, int]] = {}
        self._turns_of_jobs: set[str] = set()

    def find_secret(self, name: str) -> str:
        """The secret of this name, or ''."""
        return self._sources.find_secret(name)

    # Events, webhooks and messages

    listens_to = (
        MessageReceived,
        TurnEnded,
    )

    def on_event(self, recorded: Recorded) -> None:
        """Note turns that begin and end. Never waits."""
        match recorded.event:
            case MessageReceived(principal=principal) if _is_a_job(principal):
                self._turns_of_jobs.add(recorded.session)
            case MessageReceived():
                self._turns_of_jobs.discard(recorded.session)
                self._ended.pop(recorded.session, None)
            case TurnEnded() if recorded.session in self._turns_of_jobs:
                self._turns_of_jobs.discard(recorded.session)
            case TurnEnded() if not _is_job_session(recorded.session):
                self._ended[recorded.session] = (self._clock.monotonic(), recorded.n)
            case _:
                pass

    async def handle_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Start the job for which a webhook came in; headers have names in lower case. Returns
        False when the delivery was here before.

        Raises Refused with the reason, which is for the log and not for the sender.
        """
        job, triggers = (await self._load_triggers()).get(name, (None, []))
        if job is None or not any(each.kind == "webhook" for each in triggers):
            raise Refused(f"there is no job {name[:80]!r} with `on: webhook` that is switched on")
        try:
            secret = self.find_secret(webhook_secret_name(name))
            delivery_id = verify_webhook(secret, headers, body, self._clock.now())
        except Refused as error:
            raise Refused(f"the webhook of {name!r} was refused: {error}") from error
        shown = _shorten(clean_text(body.decode(errors="replace")), PAYLOAD_CHARS)
        payload = Text(f"A webhook came in:\n\n{shown}", Label(source=f"webhook {name}"))
        kind = "body" if delivery_id.startswith(BODY_ID_PREFIX) else "webhook"
        slot = f"{kind}:{sha256(delivery_id.encode()).hexdigest()[:32]}"
        return await self._target.trigger(name, slot, payload)

    def topics(self) -> frozenset[str]:
        """The topics that jobs want now."""
        return frozenset(trigger.what for _, trigger in self._triggers_of_kind("mqtt"))

    async def on_message(self, topic: str, payload: bytes, slot: str) -> None:
        """Start the jobs that want messages on this topic. Returns when that is on disk."""
        for job, trigger in self._triggers_of_kind("mqtt"):
            if topic_matches(trigger.what, topic):
                await self._fire(job, trigger, slot, render_message(topic, payload))

    def report_broker_problem(self, problem: str) -> None:
        """Why no messages come, or '' when the broker is connected."""
        for job, trigger in self._triggers_of_kind("mqtt"):
            self._set_problem((job.name, str(trigger)), problem)

    # The loop

    async def run(self) -> None:
        """Watch for ever."""
        await self._load_triggers()
        if any(self._triggers_of_kind("session-end")):
            await self._find_ended_sessions()
        await self._forget_gone_jobs()
        while True:
            await self.poll()
            await anyio.sleep(TICK_S)

    async def _forget_gone_jobs(self) -> None:
        """Delete the states of jobs that are gone."""
        names = [job.name for job in await self._target.triggered_jobs()]
        before = self._clock.now() - FORGET_S
        await self._store.change([forget_states([*names, *RESERVED_NAMES], before)])

    async def _find_ended_sessions(self) -> None:
        """Find conversations that ended while Deskhand did not run. Those that started a job before
        do so no second time: their slot is taken."""
        now = self._clock.now()
        tick = self._clock.monotonic()
        for row in await self._store.sessions(SYSTEM, MAX_LOOKBACK_SESSIONS):
            is_known = row.session in self._ended or _is_job_session(row.session)
            if row.last_at < now - LOOKBACK_S or is_known:
                continue
            try:
                events = await self._read_end(row.session)
            except StoreCorrupt as error:  # its driver reports that
                log.warning("Cannot read the session %s: %s", row.session, error)
                continue
            said = [each.event for each in events if isinstance(each.event, MessageReceived)]
            if not said or _is_a_job(said[-1].principal):
                continue
            if isinstance(events[-1].event, TurnEnded):
                ago_s = max(0.0, now - events[-1].at)  # negative when the clock was set back
                self._ended.setdefault(row.session, (tick - ago_s, events[-1].n))

    async def _read_end(self, session: str) -> Sequence[Recorded]:
        """The last events, with the last message among them. Raises StoreCorrupt."""
        events = await self._store.history(session)
        said = any(isinstance(each.event, MessageReceived) for each in events)
        return events if said else await self._store.events(session)

    async def poll(self) -> None:
        """Look at everything once, and start what is due."""
        if not await self._load_triggers():
            self._ended.clear()
            return
        await self._poll_files()
        await self._poll_pages()
        await self._poll_conversations()

    async def _load_triggers(self) -> dict[str, tuple[Job, list[Trigger]]]:
        """The jobs with triggers, by name. Parsed again when jobs have changed."""
        jobs = await self._target.triggered_jobs()
        if jobs is self._jobs:
            return self._triggers
        self._jobs = jobs
        self._triggers = {}
        for job in jobs:
            triggers, _ = parse_triggers(job)
            if job.enabled and triggers:
                self._triggers[job.name] = (job, triggers)
        self._forget_old_keys()
        return self._triggers

    def _forget_old_keys(self) -> None:
        keys = {
            (name, str(trigger))
            for name, (_, triggers) in self._triggers.items()
            for trigger in triggers
        }
        for known in (self._files, self._labels, self._pages, self._recent_starts, self.problems):
            for key in [key for key in known if key not in keys]:
                del known[key]

    def _triggers_of_kind(self, kind: str) -> Iterator[tuple[Job, Trigger]]:
        for job, triggers in list(self._triggers.values()):
            for trigger in triggers:
                if trigger.kind == kind:
                    yield job, trigger

    # Files

    async def _poll_files(self) -> None:
        watched = []
        for job, trigger in self._triggers_of_kind("file"):
            if not self._is_rate_limited((job.name, str(trigger))):
                watched.append((job, trigger, str(self._sources.workspace_of(job))))
        if not watched:
            return
        places = list({(folder, trigger.what) for _, trigger, folder in watched})
        found = await anyio.to_thread.run_sync(
            lambda: {place: snapshot_files(*place) for place in places}
        )
        now = self._clock.monotonic()
        for job, trigger, folder in watched:
            await self._observe(job, trigger, folder, found[folder, trigger.what], now)

    async def _observe(
        self, job: Job, trigger: Trigger, folder: str, files: FilesSnapshot, now: float
    ) -> None:
        """Start the job when the files have changed and the change is over."""
        key = (job.name, str(trigger))
        watched = self._files.get(key)
        is_new = watched is None
        if watched is None:
            paths = tuple(files)
            labels = await self._sources.labels_of(job, paths)
            self._labels[key] = dict(zip(paths, labels, strict=True))
            watched = WatchedFiles(await load_state(self._store, *key))
            self._files[key] = watched
        change = watched.observe(files, now)
        if change is not None and await self._on_files_changed(job, trigger, change, folder):
            self._recent_starts[key].append(self._clock.monotonic())
        if change is not None or is_new:
            await self._save_state(key, watched.state)

    async def _on_files_changed(
        self, job: Job, trigger: Trigger, change: FolderChange, folder: str
    ) -> bool:
        """Start the job for a change that is over. Returns False when the job made the change
        itself. A change that could not be stored is seen again. Raises StoreError."""
        try:
            if await self._is_own_change(job, change, folder):
                return False
            words = (
                "Files have changed under "
                f"{trigger.what}:\n\n{describe_changes(change.before, change.now)}"
            )
            payload = Text(words, await self._label_of_change(job, trigger, change))
            await self._fire(job, trigger, f"file:{trigger.what}:{change.state}", payload)
        except StoreError:
            del self._files[job.name, str(trigger)]
            raise
        return True

    async def _label_of_change(self, job: Job, trigger: Trigger, change: FolderChange) -> Label:
        """The label of the description of a change. Removed files can no longer be read: the label
        that they had is kept."""
        known = self._labels[job.name, str(trigger)]
        removed = _removed_paths(change)
        label = join_labels(
            (
                LOCAL,
                *(known.get(path, UNTRUSTED) for path in removed),
                *await self._sources.labels_of(job, removed),
            )
        )
        changed = changed_paths(change.before, change.now)
        labels = await self._sources.labels_of(job, changed)
        known.update(zip(changed, labels, strict=True))
        for path in removed:
            known.pop(path, None)
        return join_labels((label, *labels))

    async def _is_own_change(self, job: Job, change: FolderChange, folder: str) -> bool:
        """True when every change is as this job's own conversations left it: what a job writes does
        not start it again. A command that still runs is not in the journal yet."""
        paths = [*changed_paths(change.before, change.now), *_removed_paths(change)]
        prefix = f"{self._sources.agent_of(job)}/job:{job.name}:"
        try:
            own = await own_changes(self._store, folder, paths[:MAX_OWN_PATHS], prefix)
        except UnicodeEncodeError:  # not a name that we would give
            return False
        if len(paths) > MAX_OWN_PATHS:
            return False
        for path in paths:
            made = own.get(path)
            if made is None:
                return False
            if path not in change.now:
                is_own = made.removed
            else:
                is_own = change.now[path][0] / 1e9 <= made.at + MTIME_TOLERANCE_S
            if not is_own:
                return False
        return True

    def _is_rate_limited(self, key: TriggerKey) -> bool:
        """True when the trigger has started its job too often. Changes are seen later."""
        now = self._clock.monotonic()
        recent = [at for at in self._recent_starts.get(key, []) if now - at < HOUR_S]
        self._recent_starts[key] = recent
        if len(recent) >= MAX_PER_HOUR:
            self._set_problem(key, TOO_OFTEN)
            return True
        if self.problems.get(key) == TOO_OFTEN:
            del self.problems[key]
        return False

    # Pages

    async def _poll_pages(self) -> None:
        now = self._clock.monotonic()
        for job, trigger in self._triggers_of_kind("page"):
            key = (job.name, str(trigger))
            due = self._pages.setdefault(key, DueTrigger(now))
            if due.due_at > now:
                continue
            try:
                text = (await self._sources.fetch_page(job, trigger.what))[:PAGE_CHARS]
            except (NetError, ToolError) as error:
                due.failures += 1
                delay_s = trigger.every_s * 2.0 ** min(due.failures, 10)
                due.due_at = now + min(delay_s, LONGEST_PAUSE_S)
                self._set_problem(key, str(error))
                continue
            due.failures = 0
            due.due_at = now + trigger.every_s
            self.problems.pop(key, None)
            await self._compare_page(job, trigger, key, text or " ")

    async def _compare_page(self, job: Job, trigger: Trigger, key: TriggerKey, now: str) -> None:
        """Start the job when the text of a page is not as it was. The first time it is stored
        alone."""
        before = await load_state(self._store, *key)
        if before == now:
            return
        if before:
            old_lines = {line.strip() for line in before.splitlines()}
            new_lines = [
                line for line in now.splitlines() if line.strip() and line.strip() not in old_lines
            ]
            shown = _shorten("\n".join(new_lines), NEW_CHARS) or "(none, some are gone)"
            words = f"{trigger.what} has changed. Its new lines:\n\n{shown}"
            state = sha256(f"{sha256(before.encode()).hexdigest()}{now}".encode()).hexdigest()[:32]
            await self._fire(job, trigger, f"page:{state}", Text(words, Label(source=trigger.what)))
        await self._save_state(key, now)

    # Conversations

    async def _poll_conversations(self) -> None:
        """Start the jobs that wait for the end of a conversation, once it was silent for long
        enough."""
        now = self._clock.monotonic()
        triggers = list(self._triggers_of_kind("session-end"))
        longest_s = max((trigger.every_s for _, trigger in triggers), default=0.0)
        for session, (ended_at, n) in list(self._ended.items()):
            silent_s = now - ended_at
            for job, trigger in triggers:
                if silent_s >= trigger.every_s and await self._may_know(job, session):
                    words = (
                        f"The conversation {session} has ended: nothing was said for "
                        f"{trigger.every_s / 60:g} minutes."
                    )
                    payload = Text(words, await label_of_name(self._store, session))
                    await self._fire(job, trigger, f"session:{session}:{n}", payload)
            if silent_s >= longest_s:
                self._ended.pop(session, None)

    async def _may_know(self, job: Job, session: str) -> bool:
        """True when the person of this job takes part in the conversation. An owner's job is
        started by all."""
        members = await members_of(self._store, session)
        return not job.person or job.person in members

    # Starting jobs, and states

    async def _fire(self, job: Job, trigger: Trigger, slot: str, payload: Text) -> None:
        try:
            await self._target.trigger(job.name, slot, payload)
        except (Refused, JobInvalid) as error:
            self._set_problem((job.name, str(trigger)), str(error))

    def _set_problem(self, key: TriggerKey, problem: str) -> None:
        if not problem:
            self.problems.pop(key, None)
        elif self.problems.get(key) != problem:
            log.warning("The trigger %r of the job %r does not work: %s", key[1], key[0], problem)
            self.problems[key] = problem

    async def _save_state(self, key: TriggerKey, value: str) -> None:
        try:
            await self._store.change([save_state(*key, value, self._clock.now())])
        except StoreError as error:
            log.warning("Cannot store what started the job %r: %s", key[0], error)


def _removed_paths(change: FolderChange) -> list[str]:
    return [path for path in change.before if path not in change.now]


def _shorten(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]}\n[cut off]"


def _is_a_job(principal: Principal) -> bool:
    """True when a job spoke and no person. Turns of jobs do not count as conversations that end,
    or jobs would start each other for ever."""
    return principal.id.startswith("job:")


def _is_job_session(session: str) -> bool:
    """True for a conversation that a job has for itself. It starts no job, or that would never
    end."""
    return session.partition("/")[2].startswith("job:")
