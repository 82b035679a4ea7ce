"""What the API shows: the shapes of its answers. Times are seconds since the epoch unless a name
says otherwise."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class DeepWorkLimits(msgspec.Struct, frozen=True):
    """What a deep work may use: calls of the model in a turn, and tokens; at `warning_threshold` of
    these it is told to finish."""

    max_iterations: int
    token_budget: int
    warning_threshold: float


class PinchTab(msgspec.Struct, frozen=True):
    """A browser service of agent_computer's. It is not used here."""

    enabled: bool = False
    base_url: str = ""


class StatusView(msgspec.Struct, frozen=True):
    """`GET /api/status`."""

    status: str
    agent: str
    model: str
    provider: str
    base_url: str
    tools: list[str]
    sessions: int
    cron_jobs: int
    deep_work: DeepWorkLimits
    version: str
    agents: list[str]
    started_at: float
    pinchtab: PinchTab = PinchTab()


class AgentView(msgspec.Struct, frozen=True):
    name: str
    models: list[str]
    workspace: str
    preset: str
    thinking: str


class ToolView(msgspec.Struct, frozen=True):
    """A tool. `deferred`: it is in a request once the conversation has loaded it."""

    name: str
    description: str
    effect: str
    parameters: dict[str, Any]
    deferred: bool = False


class SkillView(msgspec.Struct, frozen=True):
    name: str
    description: str
    source: str = ""


class SkillDraft(msgspec.Struct, frozen=True):
    name: str
    description: str
    body: str


class PresetView(msgspec.Struct, frozen=True):
    name: str
    description: str


class ModelView(msgspec.Struct, frozen=True):
    """`id` and `name` are `provider/name`. `price` is US dollars for a million tokens read and
    written, None where unknown."""

    id: str
    provider: str
    ready: bool = True
    why_not: str = ""
    window: int | None = None
    price: tuple[float, float] | None = None
    name: str = ""


class CurrentModel(msgspec.Struct, frozen=True):
    """The model that answers where a conversation has not chosen its own."""

    provider: str
    model_id: str

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model_id}" if self.provider else self.model_id


class PinnedModel(msgspec.Struct, frozen=True):
    """A model of the chain of the first agent; `id` goes into `model_id` of a selection, with its
    `provider`."""

    id: str
    name: str
    provider: str


class LocalModel(msgspec.Struct, frozen=True):
    id: str
    name: str


class LocalProvider(msgspec.Struct, frozen=True):
    """`reachable`: it has models here."""

    name: str
    models: list[LocalModel]
    reachable: bool


class HostedProvider(msgspec.Struct, frozen=True):
    """`searchable`: there is a key for it. `note` says what is missing."""

    name: str
    searchable: bool
    note: str


class Providers(msgspec.Struct, frozen=True):
    """The two providers of agent_computer's clients."""

    lmstudio: LocalProvider
    openrouter: HostedProvider


class ModelsView(msgspec.Struct, frozen=True):
    """`models` are all that can be chosen, of all providers."""

    current: CurrentModel
    pinned: list[PinnedModel]
    providers: Providers
    models: list[ModelView]


class SelectedView(msgspec.Struct, frozen=True):
    """The model that answers from now on."""

    status: str
    provider: str
    model_id: str
    base_url: str


class SpanView(msgspec.Struct, frozen=True, kw_only=True):
    """A turn (`agent_run`), or a call of a model or a tool in it. The ids stay the same;
    `parent_id` is '' for a turn. `n` is the event that ended it, `parent` that of the reply which
    made a tool's call; where `seq` is 0 it has not ended. `preview` is how what came of it
    begins."""

    kind: Literal["agent_run", "llm_call", "tool_call"]
    trace_id: str
    span_id: str
    parent_id: str
    seq: int
    n: int
    session: str
    name: str
    began_at: float
    at: float
    took_s: float
    status: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    parent: int
    detail: str
    preview: str


class Price(msgspec.Struct, frozen=True):
    """US dollars for a million tokens read anew, written, and read from the provider's cache."""

    read: float
    written: float
    cached: float


class GrantView(msgspec.Struct, frozen=True):
    """`always` or `never` to exactly this call, which `by` said at `at`."""

    id: str
    verdict: str
    agent: str
    tool: str
    arguments: str
    at: float
    by: str


class SettingsView(msgspec.Struct, frozen=True):
    """The configuration as it holds, without anything secret. `keys` are those that can be set
    here."""

    config: dict[str, Any]
    file: str
    warnings: list[str]
    keys: list[str]


class ChangeView(msgspec.Struct, frozen=True):
    """What one call changed, or one undo (of change `undoes`). `can` is what may be done about it
    now. `session` is the name of its conversation, '' for a file that was sent, `count` how many
    files or key-values it changed."""

    n: int
    at: float
    session: str
    agent: str
    person: str
    tool: str
    what: str
    count: int
    can: Literal["undo", "redo", ""]
    undoes: int | None
    undone_at: float | None


class PlaceView(msgspec.Struct, frozen=True):
    """One file or key-value. `kept`: it can be put back."""

    place: str
    did: Literal["made", "changed", "removed"]
    kept: bool


class VersionView(msgspec.Struct, frozen=True):
    """A change of one file. `can` is what may be done about it now; `kept`: its content after this
    change can be shown."""

    n: int
    at: float
    session: str
    person: str
    tool: str
    did: Literal["made", "changed", "removed"]
    can: Literal["undo", "redo", ""]
    kept: bool
    undone_at: float | None


class ChangesView(msgspec.Struct, frozen=True):
    """The latest first. `more`: ask again with `before` for those that came earlier; None for
    none."""

    changes: list[ChangeView]
    more: int | None


class ChangeDetail(msgspec.Struct, frozen=True):
    """`places` are the first of those that it changed."""

    change: ChangeView
    places: list[PlaceView]


class ErasedView(msgspec.Struct, frozen=True):
    """A conversation that was erased: so many events, and so many memories that were made of it
    alone; `kept` have another source, or another owner."""

    erased: int
    memories: int = 0
    kept: int = 0
    status: Literal["deleted"] = "deleted"


class UndoneView(msgspec.Struct, frozen=True):
    """`change` is the undo, which can be taken back; None where nothing was done, for the reason in
    `message`."""

    change: int | None
    message: str
    put_back: list[str]
    left: list[str]


class WorkspaceFile(msgspec.Struct, frozen=True):
    """A file as openagent-core's clients list them; its size is in bytes."""

    name: str
    path: str
    size: int
