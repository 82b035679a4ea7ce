"""What each person may do with jobs: their own, and for an owner those of everybody."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..config.config import Settings
from ..policy.roles import may_talk
from ..secrets.inbound_redaction import reject_secrets
from ..store.queries import members_of
from ..types.errors import JobInvalid, Refused
from ..types.identity import Address, Principal, is_own_session, responsible_person, session_key
from ..types.jobs import CHAT, ISOLATED, Job, JobView, validate_job
from ..types.marked_texts import mark_text
from ..types.people import OWNER_NAME
from ..types.schedules import Every
from .triggers.spec import parse_trigger

MAX_JOBS = 50
MAX_OWNER_JOBS = 800
"""How many jobs a person may make. Files that are there already are always accepted."""
MIN_INTERVAL_S = 60.0
"""Only an owner's job may ask a model more often."""
PROMPT_CHARS = 50_000
MAX_TRIGGERS = 20


def is_owner(principal: Principal) -> bool:
    return "owner" in principal.roles


def belongs_to(job: Job, principal: Principal) -> bool:
    """True when the job is theirs. A job that names nobody is the owner's."""
    if job.person in ("", OWNER_NAME) and is_owner(principal):
        return True
    return job.person == responsible_person(principal)


def may_see(view: JobView, principal: Principal) -> bool:
    """True for an owner, and for the person whose job it is."""
    if is_owner(principal):
        return True
    return view.job is not None and not view.builtin and belongs_to(view.job, principal)


async def authorize_job(host: Host, principal: Principal, job: Job, here: Address | None) -> Job:
    """The job in the name of this person. `here` is where it was asked for.

    Raises JobInvalid when it could never run, Refused when the person may not have such a job.
    """
    settings = host.settings()
    if not is_owner(principal):
        if job.person not in ("", responsible_person(principal)):
            raise Refused(mark_text("a job of yours acts in your name, and in nobody else's"))
        job = replace(job, person=responsible_person(principal))
    validate_job(job, settings.config.timezone)
    reject_secrets("the job", msgspec.json.encode(job).decode(), host.redact)
    _check_size(job)

    agent = job.agent or settings.agents[0]
    if agent not in settings.agents:
        raise JobInvalid(
            mark_text("there is no agent {agent}; there are: {agents}").format(
                agent=repr(agent), agents=", ".join(settings.agents)
            )
        )
    if not _may_talk(settings, principal, agent):
        raise Refused(mark_text("you may not talk to the agent {agent}").format(agent=repr(agent)))
    if not is_owner(principal):
        await _check_member_limits(host, principal, job, agent, here)
    return job


def _check_size(job: Job) -> None:
    if len(job.on) > MAX_TRIGGERS:
        raise JobInvalid(
            mark_text(
                "it has {lines_number} lines under `on`: at most {most_number}; make another job"
            ).format(lines_number=len(job.on), most_number=MAX_TRIGGERS)
        )
    for line in job.on:
        parse_trigger(line)
    if len(job.prompt) > PROMPT_CHARS:
        raise JobInvalid(
            mark_text(
                "its text is too long: at most {most_number} characters; put it into a file"
            ).format(most_number=f"{PROMPT_CHARS:,}")
        )


async def _check_member_limits(
    host: Host, principal: Principal, job: Job, agent: str, here: Address | None
) -> None:
    """Raises Refused for what only an owner may have."""
    settings = host.settings()
    if job.kind == "chore":
        raise Refused(mark_text("only an owner may have a job of kind `chore`"))
    configured = {model for name in settings.agents for model in settings.agent(name).models}
    for model in job.models:
        if model not in configured:
            raise Refused(
                mark_text("only an owner may use a model that is not configured: {model}").format(
                    model=repr(model)
                )
            )

    schedule = job.resolve_schedule(settings.config.timezone)
    is_often = isinstance(schedule, Every) and schedule.every_ms < MIN_INTERVAL_S * 1000
    if is_often and job.kind == "prompt":
        raise Refused(
            mark_text(
                "a job of yours may ask a model at most once in {seconds_number} seconds"
            ).format(seconds_number=f"{MIN_INTERVAL_S:.0f}")
        )

    is_elsewhere = job.to is not None and job.to != here
    if is_elsewhere and not await _takes_part(host, principal, agent, job.to):
        raise Refused(mark_text("its answers may go only to conversations in which you take part"))
    if job.session not in (ISOLATED, CHAT):
        raise Refused(mark_text("`session` must be `isolated`, or `chat` for one of yours"))


async def _takes_part(host: Host, principal: Principal, agent: str, to: Address | None) -> bool:
    if to is None:
        return True
    person = responsible_person(principal)
    session = session_key(agent, to)
    if is_own_session(Principal(person), session):
        return True
    return person in await members_of(host.store, session)


def _may_talk(settings: Settings, principal: Principal, agent: str) -> bool:
    custom_roles = {name: role.agents for name, role in settings.config.roles.items()}
    person = Principal(responsible_person(principal), principal.roles)
    return may_talk(person, agent, custom_roles)
