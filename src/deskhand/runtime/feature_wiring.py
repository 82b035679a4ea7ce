"""What goes on when nobody writes: memory, jobs, long work. Wired once, as `hands` are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..agent.profile import Agent
from ..agent.state import State
from ..assembly.chat_commands import CommandHandlers
from ..assembly.host import Host
from ..assembly.overrides import Tried
from ..assembly.past_search import PastSearch
from ..assembly.side_queries import SideQueries
from ..assembly.summarise import Condense
from ..assembly.workspace_tools import OwnTools, PendingLabels
from ..budgets.enforcement import BudgetLedger
from ..deepwork.continue_after_restart import Continuing
from ..deepwork.driver import Deep
from ..evals.runner import Replayer
from ..gateway.inject import InboundInjector
from ..jobs.chat import JobsCommand
from ..jobs.jobs import Jobs
from ..jobs.wiring import Automation
from ..learning.jobs import Learning
from ..learning.memory_command import MemoryCommand
from ..learning.proposals.review import Reviewing
from ..learning.proposals.store import propose_skill
from ..learning.recall import MeaningFactory, Remembering, open_no_meaning
from ..models.base import Model
from ..policy.roles import may_talk
from ..supervision.restart_with_backoff import Child
from ..tools.base import Tool, ToolScope
from ..types.events import CommandRun, Recalled, Recorded
from ..types.identity import EVERYBODY, Waiting, only_person
from ..workspace.change_tools import change_tools
from ..workspace.undo_journal import Effects


class FeatureWiring:
    """All of it. `ground` is what it stands on, `model` opens `provider/name`, `trying` gives an
    agent for replays."""

    def __init__(
        self,
        ground: Host,
        agent: Callable[[str], Agent],
        model: Callable[[str], Model],
        trying: Callable[[str, Tried], Agent],
        meaning: MeaningFactory = open_no_meaning,
        words: PendingLabels = lambda folder: (),
    ) -> None:
        self.host = ground
        self.injector = InboundInjector(ground.store, ground.dispatch, ground.redact)
        self.budgets = BudgetLedger(ground.store, ground.clock, ground.ids, ground.settings)
        self.side_queries = SideQueries(agent, model, self.budgets, ground.store.change, ground.ids)
        self.remembering = Remembering(ground, meaning)
        self.memory_command = MemoryCommand(ground, self.remembering.memory)
        self.jobs = Jobs(ground, self.injector)
        self.continuing = Continuing(ground, self.injector)
        self.past_search = PastSearch(ground.store, lambda: ground.settings().config.timezone)
        self.learning = Learning(ground, self.side_queries, self.remembering.memory)
        self.learning.register(self.jobs)
        self.summarize = Condense(ground.store, self.side_queries, ground.clock)
        self.deep = Deep(ground, self.injector, self.side_queries)
        self.automation = Automation(ground, self.jobs, self.injector)
        self.replaying = Replayer(ground, trying, model, self.budgets, self.agent_in_session)
        self.own_tools = OwnTools(ground.store, ground.clock, words)
        effects = Effects(ground.store, self._tool_scope, ground.clock, ground.ids)
        self._changes = change_tools(effects, lambda: ground.settings().config.timezone)
        self.reviewing = Reviewing(ground, self.injector, self.replaying)

    def children(self) -> Iterator[Child]:
        """What only the process that drives may do."""
        yield Child("budgets", lambda: self.budgets.run(self.injector))
        yield Child("going on", self.continuing.run)
        yield Child("memory files", self.learning.notebook.run)
        yield Child("looking back", self.learning.run)
        yield Child("long work", self.deep.run)
        yield from self.remembering.children()
        yield Child("memory commands", self.memory_command.run)
        yield Child("jobs", self.jobs.run)
        yield from self.automation.children()
        yield Child("skills", self.reviewing.run)

    def tools(self, agent: str) -> tuple[Tool, ...]:
        """What this agent can do with it."""
        own = (*self.past_search.tools(), *self.continuing.tools(), *self._changes)
        return (*self.remembering.tools(), *own, *self.automation.tools, propose_skill)

    async def _tool_scope(self, agent: str) -> ToolScope:
        return await self.host.agent_of(agent).open_scope()

    async def recall(self, agent: str, state: State) -> Recalled | None:
        """What memory holds of what was just said to this agent, and how far a long work is; None
        for nothing."""
        found = None
        if state.turn is None or len(state.turn.said) > state.turn.recalled:
            found = await self.remembering.recall(agent, state)
        if state.options.mode != "deep_work":
            return found
        return await self.deep.add_progress(state, found)

    def describe_progress(self, session: str) -> str:
        """How what goes on by itself in this conversation stands, for people; '' for nothing."""
        return self.deep.render_progress(session)

    def render_pinned_facts(self, agent: str, person: str) -> str:
        """What this agent always knows, for the prompt: of everybody, and of this person where they
        are alone with it ('' where they are not). From memory alone, since it is asked before every
        call."""
        return self.remembering.pinned_text(agent, person)

    def command_handlers(self) -> CommandHandlers:
        """The chat commands that are answered from here."""
        return {
            "cost": lambda state, row, args: self.budgets.render_cost(state.session, row.principal),
            "memory": self.memory_command.answer,
            "agents": self._answer_agents,
            "jobs": JobsCommand(self.host, self.jobs.files).answer,
            "skills": self._answer_skills,
        }

    def _answer_agents(self, state: State, row: Waiting, args: str) -> str:
        settings = self.host.settings()
        here = state.session.partition("/")[0]
        custom = {name: role.agents for name, role in settings.config.roles.items()}
        names = [name for name in settings.agents if may_talk(row.principal, name, custom)]
        return "\n".join(
            [
                "You may talk to:",
                *(f"{name} (this one)" if name == here else name for name in names),
            ]
        )

    def _answer_skills(self, state: State, row: Waiting, args: str) -> str:
        alone = only_person(state.participants_with(row)) != EVERYBODY
        return self.reviewing.answer(row.principal, args, alone=alone)

    def on_event(self, recorded: Recorded) -> None:
        """An event passes. Never waits."""
        self.automation.on_event(recorded)
        self.reviewing.on_event(recorded)
        self.budgets.on_event(recorded)
        self.jobs.on_event(recorded)
        self.deep.on_event(recorded)
        self.memory_command.on_event(recorded)
        if isinstance(recorded.event, CommandRun):
            self.learning.on_event(recorded)

    def agent_in_session(self, session: str, agent: Agent) -> Agent:
        """The agent as it is in this conversation."""
        return self.jobs.apply_job_settings(session, agent)
