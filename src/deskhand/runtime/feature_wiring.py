"""Builds the features that go on when nobody writes: memory, jobs, long work, budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..agent.agent import Agent
from ..agent.state import State
from ..assembly.chat_commands import CommandHandlers
from ..assembly.host import Host
from ..assembly.overrides import Tried
from ..assembly.past_search import PastSearch
from ..assembly.side_queries import SideQueries
from ..assembly.summarise import Summarizer
from ..assembly.workspace_tools import OwnTools
from ..budgets.enforcement import BudgetLedger
from ..codemode.macro_tool import MacroPlayer
from ..codemode.script_model import Scripts
from ..codemode.tool import RunScript
from ..computer.browser.browsers import Browsers
from ..computer.browser.other_names import make_browser_views
from ..computer.browser.sign_ins import SignIns
from ..computer.browser.tool import BrowserTool
from ..computer.desktop.host import DesktopHost
from ..computer.desktop.tool import DesktopTool
from ..computer.live_views import LiveViews
from ..deepwork.continue_after_restart import Continuing
from ..deepwork.driver import Deep
from ..evals.runner import Replayer
from ..gateway.inject import InboundInjector
from ..gateway.publisher import Listener
from ..jobs.chat import JobsCommand
from ..jobs.run_settings import apply_job_settings
from ..jobs.wiring import JobWiring
from ..learning.jobs import Learning
from ..learning.memory_command import MemoryCommand
from ..learning.proposals.review import Reviewing
from ..learning.proposals.store import propose_skill
from ..learning.recall import MeaningFactory, Remembering, open_no_meaning
from ..learning.titles import Titles
from ..mcp.servers import McpServers
from ..mcp.tools import make_mcp_tools
from ..models.base import Model
from ..policy.roles import may_talk
from ..remote_agents.client import Sign
from ..remote_agents.own_key import load_seed, make_sign
from ..remote_agents.tools import make_remote_agent_tools
from ..secrets.server_egress import open_server_network
from ..store.queries import find_subagent
from ..subagents.kinds import BROWSER, MACRO
from ..subagents.restrict import Restricting
from ..subagents.tasks import Subagents
from ..subagents.tools import make_subagent_tools
from ..supervision.restart_with_backoff import Child
from ..teams.calls import TeamCalls
from ..teams.command import TeamsCommand
from ..teams.driver import Teams
from ..teams.tools import FOR_TEAMMATES, make_team_tools
from ..tools.base import Tool
from ..types.events import Recalled
from ..types.identity import EVERYBODY, Waiting, only_person
from ..types.marked_texts import mark_text
from ..types.subagents import SubagentTask, is_subagent_session
from ..users.notification_commands import DIGEST, QUIET, NotificationCommands
from ..users.reader_languages import LANGUAGE, ReaderLanguages
from ..workspace.change_tools import change_tools
from ..workspace.undo_journal import UndoJournal
from .tool_wiring import ToolWiring


class FeatureWiring:
    """The features of one running Deskhand. `model` opens `provider/name`, `trying` makes an agent
    for replays, and `hands` is what their tools share."""

    def __init__(
        self,
        ground: Host,
        agent: Callable[[str], Agent],
        model: Callable[[str], Model],
        trying: Callable[[str, Tried], Agent],
        hands: ToolWiring,
        meaning: MeaningFactory = open_no_meaning,
    ) -> None:
        self.host = ground
        self.more_tools: tuple[Tool, ...] = ()
        self.injector = InboundInjector(ground.store, ground.dispatch, ground.redact)
        self.budgets = BudgetLedger(ground.store, ground.clock, ground.ids, ground.settings)
        self.side_queries = SideQueries(agent, model, self.budgets, ground.store.change, ground.ids)
        self.remembering = Remembering(ground, meaning)
        self._notifications = NotificationCommands(ground.store)
        self._languages = ReaderLanguages(ground.store, lambda: ground.settings().config.language)
        self.memory_command = MemoryCommand(ground, self.remembering.memory)
        self.continuing = Continuing(ground, self.injector)
        self.past_search = PastSearch(ground.store, lambda: ground.settings().config.timezone)
        self.subagents = Subagents(ground, self.injector)
        self._restricting = Restricting(
            ground.store, ground.settings, ground.agent_of, self.agent_in_session, FOR_TEAMMATES
        )
        self.scripts = Scripts(ground)
        self.teams = Teams(ground, self.injector, self.subagents)
        self._team_calls = TeamCalls(
            self.subagents, ground.store, ground.settings, self.teams.expect
        )
        self.learning = Learning(ground, self.side_queries, self.remembering.memory)
        self.jobs = JobWiring(ground, self.injector, self.learning)
        self.summarizer = Summarizer(ground.store, self.side_queries, ground.clock)
        self.deep = Deep(ground, self.injector, self.side_queries)
        self.replaying = Replayer(ground, trying, model, self.budgets, self.agent_in_session)
        self.own_tools = OwnTools(
            ground.store, ground.clock, ground.sandbox, hands.scopes.pending_labels
        )
        self.browsers = Browsers(owner_of=self._browser_owner)
        self._browser_tool = BrowserTool(
            self.browsers, hands.egress.find_refusal, SignIns(ground.settings().home.sign_ins)
        )
        self.desktop = DesktopHost(
            lambda: ground.settings().config.desktop, lambda: ground.settings().started_with
        )
        self._macro_player = MacroPlayer(self.subagents, ground.store, self.browsers, self.desktop)
        self.live_views = LiveViews(self.browsers, self.desktop, self._root_of)
        self.mcp = McpServers(ground, partial(open_server_network, hands.egress))
        effects = UndoJournal(ground.store, ground.open_scope, ground.clock, ground.ids)
        self._changes = change_tools(effects, lambda: ground.settings().config.timezone)
        self.reviewing = Reviewing(ground, self.injector, self.replaying)

    def children(self) -> Iterator[Child]:
        """What only the process runs that leads."""
        yield Child("going on", self.continuing.run)
        yield Child("memory files", self.learning.notebook.run)
        yield Child("looking back", self.learning.run)
        yield Child("titles", Titles(self.host, self.side_queries, self.injector).run)
        yield Child("long work", self.deep.run)
        yield from self.remembering.children()
        yield Child("memory commands", self.memory_command.run)
        yield from self.jobs.children()
        yield Child("skills", self.reviewing.run)
        yield Child("sub-agents", self.subagents.run)
        yield Child("teams", self.teams.run)

    def tools(self, agent: str) -> tuple[Tool, ...]:
        """The tools of the features for this agent."""
        helpers = make_subagent_tools(self.subagents, self.host.store, self.host.settings)
        if helpers:
            helpers += (RunScript(self.subagents), self._macro_player)
        helpers += make_team_tools(self._team_calls)
        helpers += make_mcp_tools(self.mcp, self.host.settings())
        helpers += (DesktopTool(self.desktop),)
        helpers += (self._browser_tool, *make_browser_views(self._browser_tool))
        helpers += make_remote_agent_tools(
            self.host.settings, self._load_sign, lambda: load_seed(self.host.secrets)
        )
        own = (*helpers, *self.past_search.tools(), *self.continuing.tools(), *self._changes)
        made = (*self.remembering.tools(), *own, *self.jobs.tools, propose_skill)
        return (*made, *self.more_tools)

    def _browser_owner(self, session: str) -> str:
        """The conversation whose browser this one uses: sub-agents for the browser have that of
        people, which stays open between their tasks; macros that of whoever plays them."""
        task = self._find_task(session)
        if task is not None and task.request.kind == MACRO:
            session = task.parent
            task = self._find_task(session)
        return task.request.root if task and task.request.kind == BROWSER else session

    def _root_of(self, session: str) -> str:
        """The conversation of people that a sub-agent works for; any other is its own."""
        task = self._find_task(session)
        return task.request.root if task else session

    def _find_task(self, session: str) -> SubagentTask | None:
        """What this conversation works on, where it is a sub-agent's."""
        return find_subagent(self.host.store, session) if is_subagent_session(session) else None

    def _load_sign(self) -> Sign | None:
        """How requests to agents elsewhere are signed; None where they are not."""
        settings = self.host.settings()
        if not settings.config.agent_server.sign:
            return None
        return make_sign(self.host.secrets, settings.agents[0], self.host.clock)

    async def recall(self, agent: str, state: State) -> Recalled | None:
        """What the model is told of memories that fit what was just said, and of the progress of
        long work. None for nothing."""
        found = None
        if state.turn is None or len(state.turn.said) > state.turn.recalled:
            found = await self.remembering.recall(agent, state)
        if state.options.mode != "deep_work":
            return found
        return await self.deep.add_progress(state, found)

    def describe_progress(self, session: str) -> str:
        """The progress of long work in this session, for people; '' for none."""
        return self.deep.render_progress(session)

    def render_pinned_facts(self, agent: str, person: str) -> str:
        """The facts that are always in the prompt of this agent: for a person who is alone with it,
        or for everybody (''). Reads memory only, as it is called before every call of a model."""
        return self.remembering.pinned_text(agent, person)

    def command_handlers(self) -> CommandHandlers:
        """The chat commands of the features."""
        return {
            "cost": lambda state, row, args: self.budgets.render_cost(state.session, row.principal),
            "memory": self.memory_command.answer,
            "agents": self._answer_agents,
            "teams": TeamsCommand(self.host.store).answer,
            "jobs": JobsCommand(self.host, self.jobs.files).answer,
            "skills": self._answer_skills,
            QUIET: self._answer_quiet,
            DIGEST: self._answer_digest,
            LANGUAGE: lambda state, row, args: self._languages.answer(row.principal, args),
        }

    def _answer_agents(self, state: State, row: Waiting, args: str) -> str:
        settings = self.host.settings()
        here = state.session.partition("/")[0]
        custom = {name: role.agents for name, role in settings.config.roles.items()}
        names = [name for name in settings.agents if may_talk(row.principal, name, custom)]
        this = mark_text("{agent_name} (this one)").format(agent_name=here)
        return "\n".join(
            [
                mark_text("You may talk to:"),
                *(this if name == here else name for name in names),
            ]
        )

    def _answer_quiet(self, state: State, row: Waiting, args: str) -> str:
        return self._notifications.answer(row.principal, QUIET, args)

    def _answer_digest(self, state: State, row: Waiting, args: str) -> str:
        return self._notifications.answer(row.principal, DIGEST, args)

    def _answer_skills(self, state: State, row: Waiting, args: str) -> str:
        alone = only_person(state.participants_with(row)) != EVERYBODY
        return self.reviewing.answer(row.principal, args, alone=alone)

    def listeners(self) -> Iterator[Listener]:
        """What is told of events."""
        yield self.reviewing
        yield self.budgets
        yield from self.jobs.listeners()
        yield self.deep
        yield self.memory_command
        yield self.learning

    def agent_in_session(self, session: str, agent: Agent) -> Agent:
        """The agent with the settings that a job makes for this session, or as a sub-agent."""
        if is_subagent_session(session):
            return self._restricting.restrict(session, agent)
        return apply_job_settings(self.host.store, session, agent)
