"""The agent as a job wants it, in the conversations that the job has for itself."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from msgspec.structs import replace

from ..agent.agent import Agent
from ..store.base import Store
from ..tools.deferred import restrict_tools
from ..types.jobs import session_job_name
from .ledger import job_of_session

PATTERN_CHARS = 200
"""A pattern of tool names that is longer matches none."""


def apply_job_settings(store: Store, session: str, agent: Agent) -> Agent:
    """The agent with the models, limits and tools of the job whose own conversation this is. In any
    other conversation the agent is returned as it is."""
    if not session_job_name(session):
        return agent
    job = job_of_session(store, session)
    if job is None:
        return agent

    limits = agent.limits_for(job.models[0]) if job.models else agent.limits
    limits = replace(limits, steps=job.steps or limits.steps, tokens=job.tokens or limits.tokens)
    tools = agent.tools
    if job.tools is not None:
        tools = restrict_tools(tools, [name for name in tools if _matches_any(name, job.tools)])
    return replace(agent, models=job.models or agent.models, limits=limits, tools=tools)


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    short = [pattern for pattern in patterns if len(pattern) <= PATTERN_CHARS]
    return any(fnmatchcase(name, pattern) for pattern in short)
