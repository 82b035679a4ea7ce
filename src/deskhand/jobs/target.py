"""The conversation of a run: where it is, what is said there first, and how its turn ended."""

from __future__ import annotations

from hashlib import blake2b

from ..agent.fold import fold
from ..agent.state import State
from ..assembly.host import Host
from ..assembly.prompt import JOB_CHANNEL
from ..gateway.named_sessions import NamedSessions
from ..types.identity import (
    OWN_SURFACES,
    Address,
    Inbound,
    Said,
    principal_label,
    session_key,
)
from ..types.jobs import CHAT, ISOLATED, Job
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import Message
from ..types.people import OWNER_NAME
from .ledger import RunEntry
from .principals import principal_or_powerless

JOBS_CHANNEL = JOB_CHANNEL
"""The channel of conversations that a job has for itself. Nothing is sent there; people read the
log."""


def agent_of(host: Host, job: Job) -> str:
    """The name of the agent that does this job."""
    return job.agent or host.settings().agents[0]


def session_of(host: Host, entry: RunEntry) -> str:
    """The session key of this run, or '' for a chore, which has no conversation."""
    job = entry.job
    agent = agent_of(host, job)
    if job.kind == "chore":
        return ""
    if job.kind == "prompt" and job.session == ISOLATED:
        return f"{agent}/job:{job.name}:{_isolated_name(entry)}"
    if job.to is not None and (job.session == CHAT or job.kind == "deliver"):
        nothing = Inbound("", job.to, "", 0.0, Said(Message("user", ())))
        return NamedSessions(host.store).current_session(session_key(agent, job.to), nothing)
    if "/" in job.session:
        return job.session
    return session_key(agent, _page_address(job))


def _isolated_name(entry: RunEntry) -> str:
    """When the run is due and, for one that no time has started, a hash of its slot."""
    run = entry.run
    due = f"{int(run.due_at)}"
    if run.slot[:1].isdigit():
        return due
    return f"{due}-{blake2b(run.slot.encode(), digest_size=3).hexdigest()}"


def address_of(job: Job) -> Address:
    """Where the answers of this job go."""
    if job.to is not None:
        return job.to
    if job.session == ISOLATED:
        return Address(JOBS_CHANNEL, chat=job.name)
    return _page_address(job)


def _page_address(job: Job) -> Address:
    return Address("web", job.person or OWNER_NAME, job.session)


def render_heading(entry: RunEntry) -> str:
    """The line above the prompt: why the run begins, and who reads the answer."""
    job = entry.job
    if job.to is None and job.session == ISOLATED:
        where = (
            "Nobody reads along, and your answer is only kept in the log: to tell somebody, use "
            "send_message."
        )
    elif job.to is not None and job.to.channel not in OWN_SURFACES:
        where = f"Your answer is sent to {job.to.channel}."
    else:
        where = "Your answer is read in this conversation."
    return f"[The job {job.name!r} {_describe_cause(entry.run.slot)}. {where}]"


def _describe_cause(slot: str) -> str:
    """What started the run: a person, a time or an event."""
    run, by, person = slot.partition(" by ")
    if by and ":" not in run:  # the slot of an event has a colon, and after it any words
        return f"was started by {person}"
    if slot[:1].isdigit() or slot.startswith("startup"):
        return f"is due ({slot})"
    return "was set off"


async def label_of_run(host: Host, entry: RunEntry) -> Label:
    """The label of everything that went into this run: its conversation, the job, and the event
    that started it."""
    session = entry.run.session
    history = await host.store.history(session) if session else ()
    labels = [
        LOCAL,
        principal_label(await principal_or_powerless(host, entry.job)),
        fold(State(session), history).label,
    ]
    if entry.payload is not None:
        labels.append(entry.payload.label)
    return join_labels(tuple(labels))


def describe_timeout(job: Job) -> str:
    """Why a run that took too long was stopped."""
    minutes, seconds = divmod(round(job.timeout_s), 60)
    if minutes and not seconds:
        return mark_text("it took longer than {count_number} minutes and was stopped").format(
            count_number=minutes
        )
    return mark_text("it took longer than {count_number} seconds and was stopped").format(
        count_number=round(job.timeout_s)
    )
