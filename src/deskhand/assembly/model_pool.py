"""Opens models, remembers which ones have failed, and picks the next one to try."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..models.base import Model
from ..models.chain import (
    ChainLink,
    Cooldowns,
    ModelFailure,
    ModelTry,
    decide_next_try,
    with_cooldown,
)
from ..types.events import ModelFailed

NONE: Mapping[str, Callable[[str], Model]] = {}


class ModelPool:
    """Implements `agent.protocols.ModelSource`. All sessions share the cooldowns, which are
    measured by the monotonic clock. `open_model` opens `provider/name`; `random` gives a number in
    [0, 1). `stand_ins` open what stands in the place of a model, by how its name begins."""

    def __init__(
        self,
        open_model: Callable[[str], Model],
        random: Callable[[], float],
        monotonic: Callable[[], float],
        stand_ins: Mapping[str, Callable[[str], Model]] = NONE,
    ) -> None:
        self._open_model = open_model
        self._random = random
        self._monotonic = monotonic
        self._stand_ins = stand_ins
        self._cooldowns: Cooldowns = {}

    def open(self, name: str) -> Model:
        for prefix, open_ in self._stand_ins.items():
            if name.startswith(prefix):
                return open_(name)
        return self._open_model(name)

    def next_try(
        self, chain: Sequence[str], failures: Sequence[ModelFailed], now: float
    ) -> tuple[str, float] | None:
        tick = self._monotonic()
        failed = [
            ModelFailure(failure.model, failure.error, tick, failure.retry_after_s)
            for failure in failures
        ]
        if failed:
            self._cooldowns = with_cooldown(self._cooldowns, failed[-1], tick)
        links = [ChainLink(model) for model in chain]
        chosen = decide_next_try(links, failed, self._cooldowns, tick, self._random())
        return (chosen.model, now + chosen.at - tick) if isinstance(chosen, ModelTry) else None
