"""Where a run goes on, what the conversation is told there, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from ..assembly.host import Host
from ..assembly.prompt import JOB_CHANNEL
from ..gateway.named_sessions import NamedSessions
from ..types.events import AnyEvent, MessageReceived, ModelReplied, Recorded, TurnEnded
from ..types.identity import OWN_SURFACES, Address, Inbound, Said, session_key
from ..types.jobs import CHAT, ISOLATED, Job
from ..types.messages import Message
from ..types.people import OWNER_NAME
from .ledger import RunEntry

JOBS_CHANNEL = JOB_CHANNEL
"""The channel of conversations that a job has for itself: nobody reads there, the log holds
them."""


def agent_of(ground: Host, job: Job) -> str:
    """Who is asked."""
    return job.agent or ground.settings().agents[0]


def session_of(ground: Host, entry: RunEntry) -> str:
    """The conversation of this run; '' for a chore, which has none."""
    job = entry.job
    run = entry.run
    agent = agent_of(ground, job)
    if job.kind == "chore":
        return ""
    if job.session == ISOLATED and job.kind == "prompt":
        epoch = f"{int(run.due_at)}"
        if run.slot[:1].isdigit():
            return f"{agent}/job:{job.name}:{epoch}"
        return (
            f"{agent}/job:{job.name}:{epoch}-"
            f"{blake2b(run.slot.encode(), digest_size=3).hexdigest()}"
        )
    if job.to is not None and (job.session == CHAT or job.kind == "deliver"):
        own = session_key(agent, job.to)
        return NamedSessions(ground.store).current_session(
            own, Inbound("", job.to, "", 0.0, Said(Message("user", ())))
        )
    if "/" in job.session:
        return job.session
    return session_key(agent, _page_address(job))


def address_of(job: Job) -> Address:
    """Where its answers go."""
    if job.to is not None:
        return job.to
    return Address(JOBS_CHANNEL, chat=job.name) if job.session == ISOLATED else _page_address(job)


def _page_address(job: Job) -> Address:
    return Address("web", job.person or OWNER_NAME, job.session)


def render_heading(entry: RunEntry) -> str:
    """What stands above its prompt: why it comes, and who will read the answer."""
    job = entry.job
    run = entry.run
    if job.to is None and job.session == ISOLATED:
        where = (
            "Nobody reads along, and your answer is only kept in the log: to tell somebody, use "
            "send_message."
        )
    elif job.to is not None and job.to.channel not in OWN_SURFACES:
        where = f"Your answer is sent to {job.to.channel}."
    else:
        where = "Your answer is read in this conversation."
    return f"[The job {job.name!r} {_describe_cause(run.slot)}. {where}]"


def _describe_cause(slot: str) -> str:
    """Whether it was a time, a person or an event."""
    run, by, person = slot.partition(" by ")
    if by and ":" not in run:  # before a colon stands which event it was, and behind that any words
        return f"was started by {person}"
    return f"is due ({slot})" if slot[:1].isdigit() or slot.startswith("startup") else "was set off"


def is_receipt(event: AnyEvent, key: str) -> bool:
    """Whether a turn takes this message in."""
    return isinstance(event, MessageReceived) and event.external_id == key


def is_received(log: Sequence[Recorded], key: str) -> bool:
    """Whether a turn has taken this message in; it may still wait behind another one."""
    return any(is_receipt(recorded.event, key) for recorded in log)


class Ended(msgspec.Struct, frozen=True):
    """The end of a turn, the number of that event, and what was said last in the turn."""

    n: int
    event: TurnEnded
    answer: str


def find_turn_end(log: Sequence[Recorded], key: str) -> Ended | None:
    """The end of the turn that took this message in; None while there is none."""
    number = 0
    answer = ""
    for recorded in log:
        event = recorded.event
        match event:
            case MessageReceived(external_id=external_id, inbox_id=inbox_id) if external_id == key:
                number = inbox_id
            case ModelReplied(message=message) if number:
                answer = "" if message.calls else message.text
            case TurnEnded(answers=answers) if number and number in answers:
                return Ended(recorded.n, event, event.said or answer)
            case _:
                pass
    return None


def describe_timeout(job: Job) -> str:
    minutes, seconds = divmod(round(job.timeout_s), 60)
    limit = f"{minutes} minutes" if minutes and not seconds else f"{round(job.timeout_s)} seconds"
    return f"it took longer than {limit} and was stopped"
