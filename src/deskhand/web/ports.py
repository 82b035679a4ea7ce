"""What the web room is given: it reaches the rest of the house through nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from anyio import CapacityLimiter

from ..agent.state import State
from ..models.answer_schema import make_check_limiter
from ..store.base import Store
from ..store.blobs import Blobs
from ..tools.base import ToolScope
from ..types.clock import Clock, Ids
from ..types.diffs import CallDiff
from ..types.door import Door
from ..types.events import Recorded
from ..types.goals import LongWork
from ..types.health import Health
from ..types.identity import Principal
from ..types.people import People
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
from .proposal_views import ProposalDetail, ProposalView
from .steps import SetUp
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
)

MAX_PDF_WORKERS = 3
"""So many processes read PDFs for the page at one time; others wait."""


class House(Protocol):
    """What the page and the API may know and change of the running Deskhand beside its
    conversations."""

    @property
    def agents(self) -> Sequence[str]:
        """Their names, the first one is the default."""
        ...

    async def owner_name(self) -> str:
        """What the owner is called; '' where nobody has said."""
        ...

    async def status(self, agent: str) -> StatusView: ...
    async def health(self) -> Health: ...
    async def alerts(self) -> list[AlertView]:
        """The latest first."""
        ...

    async def mark_alerts_seen(self) -> None:
        """An owner has seen all of them."""
        ...

    def describe_agent(self, agent: str) -> AgentView: ...
    def tools(self, agent: str) -> list[ToolView]: ...
    async def skills(self, principal: Principal, agent: str) -> list[SkillView]: ...
    async def add_skill(self, agent: str, draft: SkillDraft) -> SkillView:
        """Raises Refused, ConfigError."""
        ...

    def presets(self) -> list[PresetView]: ...
    def long_work_limits(self, agent: str) -> tuple[int, int]:
        """How many steps one turn of this agent has, and how many tokens a deep work."""
        ...

    async def find_long_work(self, session: str) -> LongWork | None:
        """How far a conversation is that goes on by itself; None for one that does not."""
        ...

    async def models(self) -> ModelsView: ...
    def base_url(self, provider: str) -> str:
        """Where a provider is reached; '' for one that is not known."""
        ...

    async def select_model(self, agent: str, model: str) -> None:
        """Use this one from the next step on, and after a restart too. Raises ConfigError for one
        that cannot be."""
        ...

    async def search_models(self, wanted: str) -> list[ModelView]:
        """Those of the catalogue that have all these words in their name."""
        ...

    async def tool_scope(self, agent: str) -> ToolScope:
        """The agent's files. Raises ToolError."""
        ...

    def unsupported_fields(
        self, agent: str, *, thinks: bool | None, temperature: float | None
    ) -> Collection[str]:
        """The fields of a chat completion that the agent's model does not have, or not with this
        temperature. `thinks`: it is asked to think first; None: as its agent is set."""
        ...

    def may_change_answers(self, agent: str) -> bool:
        """Whether a hook may change what the agent says, once it has said it."""
        ...

    def settings(self) -> SettingsView: ...

    async def set_setting(self, key: str, value: Any) -> None:
        """Change one key of the configuration; it holds at once. Raises ConfigError, and then
        nothing is changed."""
        ...

    async def erase(self, principal: Principal, session: str) -> ErasedView:
        """Stop what is going on there and erase what was said, with what was remembered of it
        alone. Raises Refused."""
        ...

    async def grants(self, principal: Principal) -> list[GrantView]: ...

    async def revoke_grant(self, principal: Principal, id_: str) -> GrantView:
        """Raises Refused where it is not theirs."""
        ...

    async def list_changes(
        self, principal: Principal, session: str, before: int, limit: int
    ) -> list[ChangeView]:
        """What agents changed for this person, the latest first; `session` is one key, or ''."""
        ...

    async def get_change(
        self, principal: Principal, number: int, limit: int
    ) -> ChangeDetail | None:
        """One of them, with the first places that it changed; None where it is not theirs."""
        ...

    async def diff_of_change(self, principal: Principal, number: int) -> CallDiff:
        """What one of them changed in the files, as far as this person may see it. Raises
        Refused."""
        ...

    async def diff_of_call(
        self, principal: Principal, session: str, n: int, call_id: str
    ) -> CallDiff:
        """The same of the call that event `n` made; of one that has not run, what it would change
        now. Whether the person may see the conversation, the caller has asked. Raises Refused."""
        ...

    async def undo(self, principal: Principal, number: int, force: bool) -> UndoneView:
        """Take it back. Raises Refused."""
        ...

    def price(self, model: str) -> Price | None:
        """What `provider/name` costs; None where that is not known."""
        ...

    def build_prompt(self, state: State) -> tuple[str, ...]:
        """What stands before that conversation when the model is asked now."""
        ...

    def trace(self, log: Sequence[Recorded]) -> list[SpanView]: ...


class JobDesk(Protocol):
    """Jobs, each in the name of who asks: others' are not there for them. All raise NoSuchJob,
    Refused, and ConfigError for what cannot be."""

    async def list_jobs(self, principal: Principal) -> list[JobRowView]: ...
    async def get_job(self, principal: Principal, name: str) -> JobDetail: ...
    def blueprints(self) -> list[BlueprintView]: ...
    async def preview(self, principal: Principal, draft: JobDraft) -> Preview:
        """What it would be. Nothing is made."""
        ...

    async def create(self, principal: Principal, draft: JobDraft) -> JobDetail: ...
    async def change(self, principal: Principal, name: str, text: str) -> JobDetail: ...
    async def remove(self, principal: Principal, name: str) -> None: ...
    async def undo(self, principal: Principal, name: str, *, again: bool = False) -> JobUndone:
        """Take back the last change of this job, with `again` the last undo."""
        ...

    async def set_enabled(self, principal: Principal, name: str, on: bool) -> JobRowView: ...
    async def run(self, principal: Principal, name: str) -> str:
        """Returns the name of the run."""
        ...

    async def runs(self, principal: Principal, name: str, limit: int) -> list[RunView]: ...
    async def scheduler_status(self) -> Scheduler: ...
    async def resume(self, principal: Principal) -> Scheduler:
        """Let jobs run again. For owners alone."""
        ...

    async def handle_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Take what was sent, in nobody's name but that of its signature. False: it was taken
        before. Headers have names in lower case."""
        ...


class ProposalDesk(Protocol):
    """Skills that are proposed, for owners alone. All raise Refused, and ConfigError where an agent
    is gone."""

    async def list_proposals(self, principal: Principal, every: bool) -> list[ProposalView]: ...
    async def get_proposal(self, principal: Principal, id_: int) -> ProposalDetail: ...
    async def accept(self, principal: Principal, id_: int, untrusted: bool) -> ProposalDetail: ...
    async def reject(self, principal: Principal, id_: int, why: str) -> ProposalDetail: ...
    async def revert(self, principal: Principal, id_: int) -> ProposalDetail: ...


class HeldDesk(Protocol):
    """Files that are held back from prompts, for owners alone. All raise Refused."""

    async def list_files(self, principal: Principal) -> list[HeldView]: ...
    async def view_file(self, principal: Principal, path: str) -> SeenView: ...
    async def approve(self, principal: Principal, path: str, digest: str) -> list[HeldView]: ...


class Web(msgspec.Struct, frozen=True):
    """Everything that a handler may use. `version` is that of Deskhand. `redact` takes secrets out
    of a text. `stopping` tells that the service ends: streams are closed, so that clients come
    back. `checkers` are the places for checks of a JSON schema, `drawing` those for pages of a
    PDF."""

    door: Door
    store: Store
    people: People
    house: House
    jobs: JobDesk
    proposals: ProposalDesk
    held: HeldDesk
    setup: SetUp
    blobs: Blobs
    clock: Clock
    ids: Ids
    version: str
    redact: Callable[[str], str]
    wait_until_stopping: Callable[[], Awaitable[None]]
    checkers: CapacityLimiter = msgspec.field(default_factory=make_check_limiter)
    pdf_limiter: CapacityLimiter = msgspec.field(
        default_factory=lambda: CapacityLimiter(MAX_PDF_WORKERS)
    )
