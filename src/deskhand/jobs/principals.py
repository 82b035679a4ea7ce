"""In whose name a job acts."""

from __future__ import annotations

from ..assembly.host import Host
from ..config.config import Settings
from ..policy.roles import may_talk
from ..types.errors import JobInvalid
from ..types.identity import Principal
from ..types.jobs import Job
from ..types.marked_texts import mark_text
from ..types.people import OWNER_NAME
from ..users.queries import roles_of


async def principal_for(host: Host, job: Job) -> Principal:
    """The principal of this job, with the roles that its person has now. Raises JobInvalid when
    the person is unknown or may not talk to the agent."""
    person = job.person or OWNER_NAME
    roles = await roles_of(host.store, person)
    if roles is None:
        raise JobInvalid(
            mark_text(
                "`for: {person}` names nobody who is known here; see `deskhand users list`"
            ).format(person=person)
        )
    settings = host.settings()
    if problem := find_agent_problem(settings, job):
        raise JobInvalid(problem)
    agent = job.agent or settings.agents[0]
    custom_roles = {name: role.agents for name, role in settings.config.roles.items()}
    if not may_talk(Principal(person, roles), agent, custom_roles):
        raise JobInvalid(
            mark_text(
                "{person} may not talk to the agent {agent}; choose another in `agent:` or `for:`"
            ).format(person=person, agent=repr(agent))
        )
    return Principal(f"job:{job.name}", roles, "clock", person)


async def principal_or_powerless(host: Host, job: Job) -> Principal:
    """As `principal_for`, but without any roles when the person has lost their rights."""
    try:
        return await principal_for(host, job)
    except JobInvalid:
        return Principal(f"job:{job.name}", (), "clock", job.person)


def find_agent_problem(settings: Settings, job: Job) -> str:
    """Why no agent can do this job, or ''."""
    agents = settings.agents
    agent = job.agent or agents[0]
    if agent not in agents:
        return mark_text("there is no agent {agent}; there are: {agents}").format(
            agent=repr(agent), agents=", ".join(agents)
        )
    if "/" in job.session and job.session.partition("/")[0] != agent:
        return mark_text(
            "the session {session} belongs to another agent; name it {agent}/…"
        ).format(session=repr(job.session), agent=agent)
    return ""
