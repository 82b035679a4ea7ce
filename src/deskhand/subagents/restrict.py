"""What a sub-agent may: never more than the conversation that gave it the task."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec.structs import replace

from ..agent.agent import Agent
from ..agent.protocols import Judge
from ..config.config import Settings
from ..config.sections import SubagentsConfig
from ..policy.checks import STRICTNESS
from ..policy.profiles import is_offered
from ..policy.rules import Case, Decision
from ..store.base import Store
from ..store.queries import find_subagent
from ..tools.base import Tools
from ..tools.deferred import TOOL_SEARCH, ToolSearch, defer_tools
from ..types.subagents import SCRIPT_MODEL, SubagentTask
from ..types.teams import TeamMembership
from .kinds import MAX_CALLS, SCRIPT, STAND_INS, choose_tools, kind_of

ENDLESS = 10**12
SPARE_STEPS = 10
"""So that a script is ended by itself, with what it has done, and not by the limit of a turn."""


class BothJudges:
    """Implements `agent.protocols.Judge`: the stricter of what an agent's own judge says and what
    the judge of the agent `parent` says, which gave the task."""

    def __init__(self, own: Judge, parent: str, parents: Judge) -> None:
        self._own = own
        self._parent = parent
        self._parents = parents

    def judge(self, case: Case) -> Decision:
        own = self._own.judge(case)
        theirs = self._parents.judge(replace(case, agent=self._parent))
        return max(own, theirs, key=lambda decision: STRICTNESS[decision.verdict])


class Restricting:
    """Makes agents as they are in the conversations of sub-agents. `agent_of` is the agent of a
    conversation, `inside` as it is there. `for_teammates` are tools that only teammates have."""

    def __init__(
        self,
        store: Store,
        settings: Callable[[], Settings],
        agent_of: Callable[[str], Agent],
        inside: Callable[[str, Agent], Agent],
        for_teammates: Tools,
    ) -> None:
        self._store = store
        self._settings = settings
        self._agent_of = agent_of
        self._inside = inside
        self._for_teammates = for_teammates

    def restrict(self, session: str, agent: Agent) -> Agent:
        """The agent as the sub-agent whose conversation this is."""
        task = find_subagent(self._store, session)
        if task is None:  # it was erased with the conversation that it worked for
            return replace(agent, tools={}, limits=replace(agent.limits, steps=1))
        usual = self._agent_of(task.parent)
        parent = self._inside(task.parent, usual)

        if agent.name == parent.name:
            agent = parent
        else:
            agent = replace(
                agent,
                tools=self._shared_tools(agent.tools, usual, parent),
                judge=BothJudges(agent.judge, parent.name, parent.judge),
            )
        return self._as_kind(agent, task)

    def _shared_tools(self, tools: Tools, usual: Agent, parent: Agent) -> Tools:
        """Of the tools of another agent those that the parent has, or might have: it has none of
        that name, and its settings do not leave it out."""
        offered = self._settings().offered_tools(parent.name)
        is_free = parent.tools.keys() == usual.tools.keys()
        return _keep_tools(
            tools,
            [
                name
                for name in tools
                if name in parent.tools
                or (is_free and name not in usual.tools and is_offered(offered, name))
            ],
        )

    def _as_kind(self, agent: Agent, task: SubagentTask) -> Agent:
        config = self._settings().config.subagents
        request = task.request
        kind = kind_of(request.kind)
        names = choose_tools(kind, agent.tools, nests=request.depth < config.depth)
        kept = _keep_tools(agent.tools, names)
        if kind.only:
            kept = {name: agent.tools[name] for name in names}  # nothing that it would search for
        agent = replace(agent, tools=kept, depth=request.depth)
        if request.kind in STAND_INS:
            return _as_script(agent, task)
        if request.teammate:
            membership = TeamMembership(task.parent, request.teammate)
            agent = replace(
                agent, tools={**agent.tools, **self._for_teammates}, membership=membership
            )
        return _with_limits(agent, config, request.kind, kept=request.agents[:-1])


def _as_script(agent: Agent, task: SubagentTask) -> Agent:
    """With a script in the place of its models, which forgets nothing; the task list is that of the
    conversation that runs it."""
    limits = replace(agent.limits, steps=MAX_CALLS + SPARE_STEPS, window=ENDLESS, model_window=0)
    models = (f"{SCRIPT_MODEL}{task.session}",)
    membership = agent.membership or TeamMembership(task.parent, SCRIPT)
    return replace(
        agent,
        models=models,
        stands_in_for=agent.models,
        limits=limits,
        model_limits=None,
        membership=membership,
    )


def _keep_tools(tools: Tools, names: Collection[str]) -> Tools:
    """These of the tools; those that are deferred stay so."""
    search = tools.get(TOOL_SEARCH)
    deferred = search.deferred if isinstance(search, ToolSearch) else {}
    kept = {name: tool for name, tool in tools.items() if name in names and name != TOOL_SEARCH}
    return defer_tools(kept, frozenset(deferred) & kept.keys())


def _with_limits(agent: Agent, config: SubagentsConfig, kind: str, kept: Collection[str]) -> Agent:
    """With the model and the limits of sub-agents; an agent that was named keeps its model."""
    special = next((each for name, each in config.kinds.items() if name == kind), None)
    model = (special and special.model) or config.model
    if model and agent.name in kept:
        others = (other for other in agent.models if other != model)
        agent = replace(agent, models=(model, *others))
    temperature = config.temperature
    if special is not None and special.temperature is not None:
        temperature = special.temperature
    limits = agent.limits_for(agent.models[0]) if agent.models else agent.limits
    limits = replace(
        limits,
        steps=min(limits.steps, (special and special.steps) or kind_of(kind).steps or config.steps),
        tokens=min(limits.tokens, config.tokens),
    )
    return replace(
        agent,
        limits=limits,
        temperature=agent.temperature if temperature is None else temperature,
    )
