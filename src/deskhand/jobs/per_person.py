"""The jobs of a person: each sees and changes their own, an owner those of everybody. Every surface
goes this way."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
from msgspec.structs import replace

from ..secrets.inbound_redaction import reject_secrets
from ..types.errors import JobInvalid, NoSuchJob, Refused
from ..types.identity import Address, Principal, is_own_session, responsible_person, session_key
from ..types.jobs import CHAT, ISOLATED, Job, JobView, Run, validate_job
from ..types.people import OWNER_NAME
from ..types.schedules import Every, next_due_after
from .triggers.spec import parse_trigger

MAX_JOBS = 50
MAX_OWNER_JOBS = 800
"""So many jobs may a person make. What lies there already is never refused."""
MIN_INTERVAL_S = 60.0
"""Nobody but an owner may have a model asked more often."""
PROMPT_CHARS = 50_000
MAX_TRIGGERS = 20


class Book(Protocol):
    """All jobs, whosever they are. `by` is written down with what is changed. All raise
    JobInvalid."""

    async def all(self) -> list[JobView]: ...

    async def save(self, job: Job, by: Principal) -> Path: ...

    async def remove(self, name: str, by: Principal) -> None: ...

    async def set_enabled(self, name: str, enabled: bool, by: Principal) -> None: ...

    async def preview_undo(self, name: str, *, again: bool = False) -> tuple[str, Job | None]:
        """What an undo would bring back."""
        ...

    async def undo(self, name: str, by: Principal, *, again: bool = False) -> None: ...

    async def run_now(self, name: str, by: Principal) -> str:
        """The name of the run."""
        ...

    async def runs(self, name: str, limit: int) -> list[Run]:
        """The latest first."""
        ...

    async def pause_status(self) -> tuple[str, bool]:
        """Why no job runs now ('' where they run), and whether `resume` would change that."""
        ...

    async def resume(self) -> str:
        """Why they were paused."""
        ...


class Rules(msgspec.Struct, frozen=True):
    """What bounds a person: the agents that there are and those to whom they may talk, the models
    that are configured, whether somebody takes part in a conversation, and the zone of the
    configuration. `redact` takes secrets out."""

    agents: Callable[[], Sequence[str]]
    may_talk: Callable[[Principal, str], bool]
    models: Callable[[], Collection[str]]
    takes_part: Callable[[str, str], Awaitable[bool]]
    zone: Callable[[], str]
    redact: Callable[[str], str] = str


def is_owner(principal: Principal) -> bool:
    return "owner" in principal.roles


def belongs_to(job: Job, principal: Principal) -> bool:
    """Whether it is theirs. What names nobody is the owner's."""
    return job.person == responsible_person(principal) or (
        job.person in ("", OWNER_NAME) and is_owner(principal)
    )


class OwnJobs:
    """`book` holds the jobs. `changed` is called when one is not any more as it was."""

    def __init__(
        self, book: Book, rules: Rules, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._book = book
        self._rules = rules
        self._changed = changed
        self._changing = anyio.Lock()

    async def list_jobs(self, principal: Principal) -> list[JobView]:
        """Those that this person may see, by name. One whose file cannot be read is an owner's to
        mend."""
        return sorted(
            (v for v in await self._book.all() if may_see(v, principal)), key=lambda view: view.name
        )

    async def get(self, principal: Principal, name: str) -> JobView:
        """Raises NoSuchJob, in the same words where there is none and where it is not theirs."""
        view = next((each for each in await self._book.all() if each.name == name), None)
        if view is None or not may_see(view, principal):
            raise NoSuchJob(f"there is no job {name[:80]!r}; `deskhand jobs` lists them")
        return view

    async def create(self, principal: Principal, job: Job, here: Address | None = None) -> JobView:
        """Make it. `here` is where it was asked for. Raises JobInvalid, Refused."""
        job = await self._authorize_job(principal, job, here)
        most = MAX_OWNER_JOBS if is_owner(principal) else MAX_JOBS
        async with self._changing:
            there = await self._book.all()
            if any(each.name.casefold() == job.name.casefold() for each in there):
                raise Refused(
                    f"there is a job {job.name!r} already; choose another name, or change that one"
                )
            if (
                sum(1 for each in there if each.job is not None and belongs_to(each.job, principal))
                >= most
            ):
                raise Refused(
                    f"you have {most} jobs already; remove one that is not needed any more"
                )
            await self._book.save(job, principal)
        self._changed()
        return await self.get(principal, job.name)

    async def free_name(self, wanted: str) -> str:
        """This name, or the first like it that no job has."""
        taken = {view.name for view in await self._book.all()}
        base = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:40].strip("-") or "job"
        return next(
            name for i in count(1) if (name := base if i == 1 else f"{base}-{i}") not in taken
        )

    async def change(self, principal: Principal, job: Job, here: Address | None = None) -> JobView:
        """Write it anew. Raises JobInvalid, Refused."""
        before = await self.get(principal, job.name)
        if before.builtin:
            raise Refused(
                f"{job.name!r} is part of Deskhand: it is set in the configuration, see "
                "`deskhand config`"
            )
        person = job.person or (before.job.person if before.job is not None else "")
        await self._book.save(
            await self._authorize_job(principal, replace(job, person=person), here), principal
        )
        self._changed()
        return await self.get(principal, job.name)

    async def remove(self, principal: Principal, name: str) -> None:
        """Raises Refused."""
        if (await self.get(principal, name)).builtin:
            raise Refused(f"{name!r} is part of Deskhand and stays; switch it off instead")
        await self._book.remove(name, principal)
        self._changed()

    async def set_enabled(self, principal: Principal, name: str, on: bool) -> JobView:
        """Raises Refused."""
        if (await self.get(principal, name)).builtin:
            raise Refused(
                f"{name!r} is part of Deskhand: switch it in the configuration, see "
                "`deskhand config`"
            )
        await self._book.set_enabled(name, on, principal)
        self._changed()
        return await self.get(principal, name)

    async def undo(
        self, principal: Principal, name: str, *, again: bool = False
    ) -> tuple[str, JobView | None]:
        """Take back the last change of a job (for an owner '' is that of any), with `again` the
        last undo. Returns its name and how it is now, None where it is gone. Raises JobInvalid,
        Refused."""
        owner = is_owner(principal)
        not_theirs = NoSuchJob(f"there is no job {name[:80]!r} of yours")
        view = next((each for each in await self._book.all() if each.name == name), None)
        if not owner and (not name or (view is not None and not may_see(view, principal))):
            raise not_theirs
        try:
            name, job = await self._book.preview_undo(name, again=again)
        except JobInvalid:
            if not owner and view is None:  # whether somebody else had one of this name is not said
                raise not_theirs from None
            raise
        if job is not None and not owner:
            if not belongs_to(job, principal):
                raise not_theirs
            await self._authorize_job(principal, job, None)
        async with self._changing:
            await self._book.undo(name, principal, again=again)
        self._changed()
        return name, next((each for each in await self._book.all() if each.name == name), None)

    async def run(self, principal: Principal, name: str) -> str:
        """Have it run now. Returns the name of the run. Raises JobInvalid, Refused."""
        await self.get(principal, name)
        return await self._book.run_now(name, principal)

    async def runs(self, principal: Principal, name: str, limit: int) -> list[Run]:
        """What became of it, the latest first. Raises Refused."""
        await self.get(principal, name)
        return await self._book.runs(name, limit)

    async def pause_status(self) -> tuple[str, bool]:
        """Why no job runs now ('' where they run), and whether `resume` would change that."""
        return await self._book.pause_status()

    async def resume(self, principal: Principal) -> str:
        """Let jobs run again. Returns why they were paused. Raises Refused."""
        if not is_owner(principal):
            raise Refused("only an owner may resume jobs")
        return await self._book.resume()

    async def validate(self, principal: Principal, job: Job, here: Address | None = None) -> Job:
        """The job as it would be written. Raises JobInvalid, Refused."""
        return await self._authorize_job(principal, job, here)

    async def _authorize_job(self, principal: Principal, job: Job, here: Address | None) -> Job:
        """The job in this person's name, with nothing in it that they may not."""
        rules = self._rules
        owner = is_owner(principal)
        if not owner:
            if job.person not in ("", responsible_person(principal)):
                raise Refused("a job of yours acts in your name, and in nobody else's")
            job = replace(job, person=responsible_person(principal))
        validate_job(job, rules.zone())
        reject_secrets("the job", msgspec.json.encode(job).decode(), rules.redact)
        if len(job.on) > MAX_TRIGGERS:
            raise JobInvalid(
                f"it has {len(job.on)} lines under `on`: at most {MAX_TRIGGERS}; make another job"
            )
        for line in job.on:
            parse_trigger(line)
        if len(job.prompt) > PROMPT_CHARS:
            raise JobInvalid(
                f"its text is too long: at most {PROMPT_CHARS:,} characters; put it into a file"
            )
        agent = job.agent or rules.agents()[0]
        if agent not in rules.agents():
            raise JobInvalid(f"there is no agent {agent!r}; there are: {', '.join(rules.agents())}")
        if not rules.may_talk(principal, agent):
            raise Refused(f"you may not talk to the agent {agent!r}")
        if not owner:
            await self._check_member_limits(principal, job, agent, here)
        return job

    async def _check_member_limits(
        self, principal: Principal, job: Job, agent: str, here: Address | None
    ) -> None:
        """Raises where this is for owners alone."""
        if job.kind == "chore":
            raise Refused("only an owner may have Deskhand's own work done by a job")
        if strange := [model for model in job.models if model not in self._rules.models()]:
            raise Refused(f"only an owner may use a model that is not configured: {strange[0]!r}")
        schedule = job.resolve_schedule(self._rules.zone())
        if (
            isinstance(schedule, Every)
            and job.kind == "prompt"
            and schedule.every_ms < MIN_INTERVAL_S * 1000
        ):
            raise Refused(
                f"at most once in {MIN_INTERVAL_S:.0f} seconds may a job of yours ask a model"
            )
        if (
            job.to is not None
            and job.to != here
            and not await self._takes_part(principal, agent, job.to)
        ):
            raise Refused("its answers may go only to conversations in which you take part")
        if job.session not in (ISOLATED, CHAT):
            raise Refused("`session` must be `isolated`, or `chat` for one of yours")

    async def _takes_part(self, principal: Principal, agent: str, to: Address) -> bool:
        person = responsible_person(principal)
        session = session_key(agent, to)
        return is_own_session(Principal(person), session) or await self._rules.takes_part(
            person, session
        )


def may_see(view: JobView, principal: Principal) -> bool:
    return is_owner(principal) or (
        view.job is not None and not view.builtin and belongs_to(view.job, principal)
    )


def next_run_times(job: Job, zone: str, now: float, most: int = 3) -> list[float]:
    """When it is due next. Raises JobInvalid."""
    schedule = job.resolve_schedule(zone)
    found = list[float]()
    while schedule is not None and len(found) < most:
        at = next_due_after(schedule, found[-1] if found else now)
        if at is None:
            break
        found.append(at)
    return found
