"""Remembers which models have failed, and picks the next one to try."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..models.chain import (
    ChainLink,
    Cooldowns,
    ModelFailure,
    ModelTry,
    decide_next_try,
    with_cooldown,
)
from ..types.events import ModelFailed


class Retries:
    """The cooldowns of models, shared by all sessions and measured by the monotonic clock. `random`
    gives a number in [0, 1)."""

    def __init__(self, random: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._random = random
        self._monotonic = monotonic
        self._cooldowns: Cooldowns = {}

    def next(
        self, models: Sequence[str], failures: Sequence[ModelFailed], now: float
    ) -> tuple[str, float] | None:
        """The model to try after these failures of one step, and when, on the same clock as `now`.
        None when nothing is left to try."""
        tick = self._monotonic()
        failed = [
            ModelFailure(failure.model, failure.error, tick, failure.retry_after_s)
            for failure in failures
        ]
        if failed:
            self._cooldowns = with_cooldown(self._cooldowns, failed[-1], tick)
        chosen = decide_next_try(
            [ChainLink(model) for model in models], failed, self._cooldowns, tick, self._random()
        )
        return (chosen.model, now + chosen.at - tick) if isinstance(chosen, ModelTry) else None
