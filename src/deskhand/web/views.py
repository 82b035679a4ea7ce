"""What the API shows: the shapes of its answers. Times are seconds since the epoch unless a name says otherwise."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


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
    deep_work: dict[str, Any]
    version: str
    agents: list[str]
    started_at: float


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
    """`id` is `provider/name`. `price` is US dollars for a million tokens read and written, None where unknown."""

    id: str
    provider: str
    ready: bool = True
    why_not: str = ""
    window: int | None = None
    price: tuple[float, float] | None = None


class ModelsView(msgspec.Struct, frozen=True):
    current: str
    pinned: str
    models: list[ModelView]


class SpanView(msgspec.Struct, frozen=True):
    """One call of a model or a tool. `n` is the event that ended it (0: it has not ended), `parent` that of the reply
    which made it. `at` is when it ended."""

    seq: int
    n: int
    session: str
    kind: Literal["model", "tool"]
    name: str
    at: float
    took_s: float
    status: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    parent: int
    detail: str


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
    """The configuration as it holds, without anything secret. `keys` are those that can be set here."""

    config: dict[str, Any]
    file: str
    warnings: list[str]
    keys: list[str]


class ChangeView(msgspec.Struct, frozen=True):
    """What one call changed, or one undo (of change `undoes`). `can` is what may be done about it now. `session` is the
    name of its conversation, `count` how many files or key-values it changed."""

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


class ChangesView(msgspec.Struct, frozen=True):
    """The latest first. `more`: ask again with `before` for those that came earlier; None for none."""

    changes: list[ChangeView]
    more: int | None


class ChangeDetail(msgspec.Struct, frozen=True):
    """`places` are the first of those that it changed."""

    change: ChangeView
    places: list[PlaceView]


class ErasedView(msgspec.Struct, frozen=True):
    """A conversation that was erased: so many events, and so many memories that were made of it alone; `kept` have
    another source, or another owner."""

    erased: int
    memories: int = 0
    kept: int = 0


class UndoneView(msgspec.Struct, frozen=True):
    """`change` is the undo, which can be taken back; None where nothing was done, for the reason in `message`."""

    change: int | None
    message: str
    put_back: list[str]
    left: list[str]
