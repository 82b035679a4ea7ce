"""What the handlers of the API use: one Protocol for each part of the running Deskhand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Protocol

import msgspec
from anyio import CapacityLimiter, Event

from ..agent.state import State
from ..models.answer_schema import make_check_limiter
from ..speech.base import Sound, Use
from ..store.base import Store
from ..store.blobs import Blobs
from ..tools.base import ToolScope
from ..tools.journal import MadeFile
from ..tools.office_pdf import OfficePdfs
from ..types.clock import Clock, Ids
from ..types.diffs import CallDiff
from ..types.door import Door
from ..types.goals import LongWork
from ..types.health import Health
from ..types.identity import Principal
from ..types.people import Identity, People
from ..types.push import PushDevices
from ..types.shares import Shares
from ..types.webhooks import WebhookAnswer, WebhookRequest
from .access_views import AccessView
from .alert_views import AlertView
from .held_views import HeldView, SeenView
from .job_views import (
    BlueprintView,
    JobDetail,
    JobDraft,
    JobRowView,
    JobUndone,
    Preview,
    RunView,
    Scheduler,
)
from .mcp_views import McpServerView
from .memory_views import ContradictionView, FactDetail, MemoriesView, MemoryQuery, MemoryReader
from .proposal_views import ProposalDetail, ProposalView
from .screen_views import Screen
from .settings import AgentServerConfig
from .setup_views import CheckView, ConnectedView, Key, NewChannel, ProbeView, SetupView
from .shared_result import SharedResult
from .sign_in import SignIn
from .speech_queue import SpeechQueue
from .views import (
    AgentView,
    ChangeDetail,
    ChangeView,
    ErasedView,
    GrantView,
    ModelsView,
    ModelView,
    PresetView,
    Price,
    SettingsView,
    SkillDraft,
    SkillView,
    SpanView,
    StatusView,
    ToolView,
    UndoneView,
    VersionView,
    WorkspaceFile,
)

MAX_PDF_WORKERS = 3
"""How many processes may read PDFs for the page at one time. More have to wait."""


class AdminBackend(Protocol):
    """The running Deskhand apart from its conversations: agents, models, settings, changes."""

    # Status

    @property
    def agents(self) -> Sequence[str]:
        """The names of the agents. The first is the default."""
        ...

    @property
    def zone(self) -> tzinfo:
        """The time zone of the settings."""
        ...

    async def owner_name(self) -> str:
        """What agents call the owner, or '' if nobody has said."""
        ...

    async def status(self, agent: str) -> StatusView: ...

    async def health(self) -> Health: ...

    async def metrics(self) -> str:
        """The state of the service in numbers, as Prometheus reads them. Raises ConfigError."""
        ...

    async def alerts(self) -> list[AlertView]:
        """The alerts for owners, the latest first."""
        ...

    async def mark_alerts_seen(self) -> None:
        """Remember that an owner has seen all alerts."""
        ...

    # Agents

    def describe_agent(self, agent: str) -> AgentView: ...

    def tools(self, agent: str) -> list[ToolView]: ...

    async def tool_scope(self, agent: str) -> ToolScope:
        """The files and the sandbox of the agent. Raises ToolError."""
        ...

    async def skills(self, principal: Principal, agent: str) -> list[SkillView]: ...

    async def add_skill(self, agent: str, draft: SkillDraft) -> SkillView:
        """Raises Refused or ConfigError."""
        ...

    def presets(self) -> list[PresetView]: ...

    def long_work_limits(self, agent: str) -> tuple[int, int]:
        """How many steps one turn of this agent may take, and how many tokens deep work may use."""
        ...

    async def find_long_work(self, session: str) -> LongWork | None:
        """The progress of a session that works on by itself, or None for one that does not."""
        ...

    def may_change_answers(self, agent: str) -> bool:
        """Whether a hook may change the agent's answer after it was given."""
        ...

    # Models

    async def models(self) -> ModelsView: ...

    async def search_models(self, wanted: str) -> list[ModelView]:
        """The models of the catalogue whose names contain all of these words."""
        ...

    async def select_model(self, agent: str, model: str) -> None:
        """Use this model from the next step on, also after a restart. Raises ConfigError if it
        cannot be used."""
        ...

    def base_url(self, provider: str) -> str:
        """The address of a provider, or '' for an unknown one."""
        ...

    def price(self, model: str) -> Price | None:
        """What `provider/name` costs, or None when that is not known."""
        ...

    def unsupported_fields(
        self, agent: str, *, thinks: bool | None, temperature: float | None
    ) -> Collection[str]:
        """The fields of a chat completion that the agent's model does not support, at this
        temperature. `thinks`: whether it is asked to think first; None for the agent's default."""
        ...

    # Settings

    def settings(self) -> SettingsView: ...

    async def set_setting(self, key: str, value: Any) -> None:
        """Change one key of the configuration and apply it at once. Raises ConfigError, and then
        nothing is changed."""
        ...

    # Conversations

    def build_prompt(self, state: State) -> tuple[str, ...]:
        """The system prompt that the model would get in this conversation now, in its parts."""
        ...

    async def trace(self, session: str) -> list[SpanView]:
        """Each turn and call in this conversation and in those of its sub-agents, in the order in
        which they ended."""
        ...

    async def erase(self, principal: Principal, session: str) -> ErasedView:
        """Stop the session and erase what was said in it, with what was remembered from it alone.
        Raises Refused."""
        ...

    async def grants(self, principal: Principal) -> list[GrantView]: ...

    async def revoke_grant(self, principal: Principal, id_: str) -> GrantView:
        """Raises Refused if the grant is another person's."""
        ...

    # Changes that agents made

    async def list_changes(
        self, principal: Principal, session: str, before: int, limit: int
    ) -> list[ChangeView]:
        """What agents changed for this person, the latest first: in one session, or in all ('')."""
        ...

    async def get_change(
        self, principal: Principal, number: int, limit: int
    ) -> ChangeDetail | None:
        """One change with the first `limit` places that it touched. None if it is another
        person's."""
        ...

    async def diff_of_change(self, principal: Principal, number: int) -> CallDiff:
        """What a change did to files, as far as this person may see them. Raises Refused."""
        ...

    async def diff_of_call(
        self, principal: Principal, session: str, n: int, call_id: str
    ) -> CallDiff:
        """What a tool call of event `n` did to files, or would do if it has not run yet.

        The caller has checked that the person may see the session. Raises Refused.
        """
        ...

    async def undo(self, principal: Principal, number: int, force: bool) -> UndoneView:
        """Undo a change. Raises Refused."""
        ...

    async def list_versions(self, principal: Principal, agent: str, path: str) -> list[VersionView]:
        """What changed a file of this agent's workspace, the latest first, as far as this person
        may know of it."""
        ...

    async def read_version(self, principal: Principal, agent: str, path: str, number: int) -> bytes:
        """The content of a file after change `number`. Raises Refused."""
        ...

    async def list_made(self, session: str) -> list[MadeFile]:
        """The files of the workspace that a session made or changed, the latest first.

        The caller has checked that the person may see the session, and checks each file.
        """
        ...


class JobsBackend(Protocol):
    """The jobs that a person may see; others do not exist for them.

    Every method raises NoSuchJob, Refused, or ConfigError for a job that cannot be.
    """

    async def list_jobs(self, principal: Principal) -> list[JobRowView]: ...

    async def get_job(self, principal: Principal, name: str) -> JobDetail: ...

    def blueprints(self) -> list[BlueprintView]: ...

    async def preview(self, principal: Principal, draft: JobDraft) -> Preview:
        """What this draft would become. Nothing is written."""
        ...

    async def create(self, principal: Principal, draft: JobDraft) -> JobDetail: ...

    async def change(self, principal: Principal, name: str, text: str) -> JobDetail: ...

    async def remove(self, principal: Principal, name: str) -> None: ...

    async def undo(self, principal: Principal, name: str, *, again: bool = False) -> JobUndone:
        """Undo the last change of this job, or with `again` the last undo."""
        ...

    async def set_enabled(self, principal: Principal, name: str, on: bool) -> JobRowView: ...

    async def run(self, principal: Principal, name: str) -> str:
        """Start a run now and return its name."""
        ...

    async def runs(self, principal: Principal, name: str, limit: int) -> list[RunView]: ...

    async def scheduler_status(self) -> Scheduler: ...

    async def resume(self, principal: Principal) -> Scheduler:
        """Let jobs run again after they were paused. For owners only."""
        ...

    async def handle_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Accept what a program sent, if its signature is valid. Returns False for a repeated
        delivery. The names of the headers are in lower case."""
        ...


class MemoryBackend(Protocol):
    """What is remembered about a person, and what everybody is told. Other people's facts do not
    exist for them, whoever they are.

    Every method that takes an id raises NoSuchFact for what its reader may not see, and Refused for
    what they may not change or what cannot be done to it now. Each change returns the fact that
    holds afterwards.
    """

    async def list_facts(self, reader: MemoryReader, query: MemoryQuery) -> MemoriesView: ...

    async def list_contradictions(self, reader: MemoryReader) -> list[ContradictionView]:
        """Pairs that contradict each other by their form, except those that somebody said both
        hold."""
        ...

    async def require(self, reader: MemoryReader, id_: int) -> int:
        """The id, if the reader may see this fact."""
        ...

    async def get_fact(self, reader: MemoryReader, id_: int) -> FactDetail: ...

    async def correct(self, reader: MemoryReader, id_: int, text: str) -> FactDetail: ...

    async def merge(self, reader: MemoryReader, id_: int, other: int, text: str) -> FactDetail: ...

    async def share(self, reader: MemoryReader, id_: int, shared: bool) -> FactDetail:
        """Tell it to everybody, or to nobody but this reader. Unless an owner shares it, it waits
        for one."""
        ...

    async def pin(self, reader: MemoryReader, id_: int, pinned: bool) -> FactDetail: ...

    async def decide(self, reader: MemoryReader, id_: int, other: int, *, both: bool) -> FactDetail:
        """Close `other`, which contradicts this fact; or with `both`, never ask again."""
        ...

    async def approve(self, reader: MemoryReader, id_: int) -> FactDetail: ...

    async def forget(self, reader: MemoryReader, id_: int) -> FactDetail: ...

    async def undo(self, reader: MemoryReader, id_: int) -> FactDetail:
        """Undo the last thing that happened to it."""
        ...


class ProposalsBackend(Protocol):
    """Proposed skills, for owners only. Every method raises Refused, or ConfigError if the agent
    no longer exists."""

    async def list_proposals(self, principal: Principal, every: bool) -> list[ProposalView]: ...

    async def get_proposal(self, principal: Principal, id_: int) -> ProposalDetail: ...

    async def accept(self, principal: Principal, id_: int, untrusted: bool) -> ProposalDetail: ...

    async def reject(self, principal: Principal, id_: int, why: str) -> ProposalDetail: ...

    async def revert(self, principal: Principal, id_: int) -> ProposalDetail: ...


class HeldFilesBackend(Protocol):
    """Files that are kept out of prompts until an owner approves them. Every method raises
    Refused."""

    async def list_files(self, principal: Principal) -> list[HeldView]: ...

    async def view_file(self, principal: Principal, path: str) -> SeenView: ...

    async def approve(self, principal: Principal, path: str, digest: str) -> list[HeldView]: ...


class AccessBackend(Protocol):
    """What agents may use beyond their workspace, for owners only. Every method raises Refused."""

    async def list_access(self, principal: Principal) -> AccessView: ...

    async def allow_folder(
        self, principal: Principal, agent: str, path: str, *, write: bool
    ) -> AccessView:
        """Raises ConfigError for a folder that no agent may have."""
        ...

    async def revoke_folder(self, principal: Principal, agent: str, path: str) -> AccessView: ...

    async def revoke_host(self, principal: Principal, agent: str, host: str) -> AccessView: ...

    async def remove_sign_in(self, principal: Principal, site: str) -> AccessView:
        """Raises ConfigError where there is none."""
        ...


class McpBackend(Protocol):
    """MCP servers and their tools, for owners only. Every method raises Refused, and ToolError for
    a server that is not there or cannot be used."""

    async def list_servers(self, principal: Principal) -> list[McpServerView]: ...

    async def try_server(self, principal: Principal, name: str) -> McpServerView: ...

    async def accept_tools(
        self, principal: Principal, name: str, seen: Mapping[str, str]
    ) -> McpServerView: ...


class SetupBackend(Protocol):
    """The first setup: model, provider key, channel, name. Every method raises ConfigError, whose
    message says the next step."""

    async def view(self) -> SetupView: ...

    async def choose_model(self, model: str) -> None: ...

    async def probe_model(self, model: str) -> ProbeView: ...

    async def add_provider(self, given: Key) -> ProbeView:
        """Try a key, an address and a model. They are saved only if the model answers."""
        ...

    async def connect_channel(self, wanted: NewChannel) -> ConnectedView: ...

    async def set_owner(self, name: str, timezone: str) -> None: ...

    async def set_permission_mode(self, mode: str) -> None: ...

    async def run_checks(self) -> list[CheckView]: ...


class SpeechBackend(Protocol):
    """The engines that hear and speak, as they are set up."""

    def find_problem(self, use: Use) -> str:
        """Why this does not work here, with what to do; '' where nothing is known against it."""
        ...

    async def render(self, markdown: str) -> str:
        """An answer as it is read aloud; '' where no words are left."""
        ...

    async def say(self, words: str, language: str) -> Sound:
        """These words; `language` is a code of ISO 639-1, '' where the words tell it. Raises
        SpeechError."""
        ...


class ScreenBackend(Protocol):
    """What agents see in a browser or on a desktop. The caller has checked that the person may see
    the conversation."""

    def list_views(self, principal: Principal, session: str) -> Screen:
        """What is open for this conversation and may be seen by this person. Opens nothing."""
        ...

    async def take_picture(self, principal: Principal, session: str, view: str) -> bytes | None:
        """A picture of one of these, or None where there is no such view. Raises ToolError where
        there is no picture now."""
        ...


class ChannelWebhooksBackend(Protocol):
    """The channels to which a platform can post."""

    async def take(self, name: str, request: WebhookRequest) -> WebhookAnswer:
        """What a platform posts for the channel of this name. Raises Refused where there is none
        that it could post for, or it is not signed."""
        ...

    def identify(self, name: str, data: str) -> Identity:
        """Who has opened the page inside the platform of the channel of this name. Raises Refused
        where the platform has not signed it."""
        ...


class AgentServer(msgspec.Struct, frozen=True):
    """How other agents find this server. `public_key` is '' where it signs nothing."""

    settings: AgentServerConfig = AgentServerConfig()
    public_key: str = ""


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a handler may use. Each request gets it as `call.web`."""

    door: Door
    store: Store
    people: People
    admin: AdminBackend
    jobs: JobsBackend
    memory: MemoryBackend
    proposals: ProposalsBackend
    held: HeldFilesBackend
    access: AccessBackend
    mcp: McpBackend
    setup: SetupBackend
    speech: SpeechBackend
    screen: ScreenBackend
    channel_webhooks: ChannelWebhooksBackend
    shares: Shares
    push: PushDevices
    blobs: Blobs
    clock: Clock
    ids: Ids
    version: str
    """The version of Deskhand."""
    redact: Callable[[str], str]
    """Replaces secrets in a text."""
    sign_in: SignIn | None = None
    """How people sign in at a provider, where one is set."""
    proxied_hosts: frozenset[str] = frozenset()
    """Host names under which a proxy with TLS serves the page."""
    agent_server: AgentServer = AgentServer()
    stopping: Event
    """Set when the service begins to stop. Streams end then, and clients reconnect later."""
    checkers: CapacityLimiter = msgspec.field(default_factory=make_check_limiter)
    """Limits how many JSON schema checks run at one time."""
    speech_queue: SpeechQueue = msgspec.field(default_factory=SpeechQueue)
    """Limits how many answers are made into sound at one time."""
    listings: SharedResult[list[WorkspaceFile]] = msgspec.field(default_factory=SharedResult)
    """The files of a workspace, for all clients that are told of them at the end of a turn."""
    office: OfficePdfs = msgspec.field(default_factory=OfficePdfs)
    """Office documents as PDF."""
    pdf_limiter: CapacityLimiter = msgspec.field(
        default_factory=lambda: CapacityLimiter(MAX_PDF_WORKERS)
    )
