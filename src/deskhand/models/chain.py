"""What to do after a model call failed: the same model again, the next one of the chain, or give
up. Pure.

A reply that broke off in the middle is never spliced to what the next try says: the next try starts
afresh, and what was shown of the broken one is void.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

MAX_TRIES = 5
MAX_TRIES_PER_MODEL = 3
MAX_MALFORMED = 2
BASE_WAIT_S = 1.0
MAX_WAIT_S = 30.0
MAX_WAIT_WITH_FALLBACK_S = 60.0
"""So long is waited for a model although there is another one in the chain."""
MAX_WAIT_LAST_MODEL_S = 3600.0
"""So long is waited for the last model of the chain; the person is told until when."""
SILENT_WAIT_S = 30.0
"""Who waits for a model for longer is told until when."""
COOLDOWN_S = 5.0
MAX_COOLDOWN_S = 900.0

_RETRYABLE = frozenset({"ModelOverloaded", "ModelUnavailable", "ModelTimeout"})

Cooldowns = Mapping[str, float]
"""Until when a model is left alone, because its provider said that it is overloaded."""


class ChainLink(msgspec.Struct, frozen=True, gc=False):
    """One model of a chain, such as `openai/gpt-5`. The same model with another key is another link
    with another name. `window` in tokens; 0: not known."""

    model: str
    window: int = 0


class ModelFailure(msgspec.Struct, frozen=True, gc=False):
    """A try of this turn that failed. `error` names a class of the error tree, `at` is by the clock
    of `now`."""

    model: str
    error: str
    at: float
    retry_after_s: float | None = None


class ModelTry(msgspec.Struct, frozen=True, gc=False):
    """Call `model` at `at`, by the clock of `now` and never more than MAX_WAIT_LAST_MODEL_S from
    now."""

    model: str
    at: float


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    """Tell the person; `why` is a half sentence."""

    why: str


def decide_next_try(
    chain: Sequence[ChainLink],
    failures: Sequence[ModelFailure],
    cooldowns: Cooldowns,
    now: float,
    jitter: float,
) -> ModelTry | GiveUp:
    """What comes next in a turn in which `failures` happened, oldest first. `jitter` is a number in
    [0, 1).

    A ContextOverflow goes to a later model with a larger window or gives up: who can shorten the
    conversation does so, and then asks again without that failure.
    """
    if not failures:
        return _first_available(chain, cooldowns, now) or GiveUp("no model is configured")
    if len(failures) >= MAX_TRIES:
        return GiveUp(f"{MAX_TRIES} tries failed")
    last = failures[-1]
    if last.error == "BudgetSpent":
        return GiveUp("a budget is used up")
    later = [link for link in _links_after(chain, last.model) if _may_retry(link.model, failures)]
    if last.error == "ContextOverflow":
        window = next((link.window for link in chain if link.model == last.model), 0)
        larger = [link for link in later if link.window > window > 0]
        return _first_available(larger, cooldowns, now) or GiveUp(
            "no model of the chain can read a conversation of this length"
        )
    if _may_retry(last.model, failures) and any(link.model == last.model for link in chain):
        wait = _wait_s(last, failures, jitter)
        longest = MAX_WAIT_WITH_FALLBACK_S if later else MAX_WAIT_LAST_MODEL_S
        if wait <= longest:
            return ModelTry(last.model, min(max(now, last.at + wait), now + longest))
        if not later:
            return GiveUp("its provider asks to wait for more than an hour")
    return _first_available(later, cooldowns, now) or GiveUp("every model of the chain failed")


def with_cooldown(cooldowns: Cooldowns, failure: ModelFailure, now: float) -> Cooldowns:
    """The cooldowns after this failure, so that other sessions pass over a model that is
    overloaded."""
    kept = {model: until for model, until in cooldowns.items() if until > now}
    if failure.error == "ModelOverloaded":
        asked = failure.retry_after_s
        wait = COOLDOWN_S
        if asked is not None and math.isfinite(asked):
            wait = min(max(asked, 0.0), MAX_COOLDOWN_S)
        kept[failure.model] = max(kept.get(failure.model, 0.0), failure.at + wait)
    return kept


def without_cooldown(cooldowns: Cooldowns, model: str, now: float) -> Cooldowns:
    """The cooldowns after `model` has answered."""
    return {name: until for name, until in cooldowns.items() if name != model and until > now}


def _links_after(chain: Sequence[ChainLink], model: str) -> Sequence[ChainLink]:
    """The links behind `model`; all of them where it is no longer in the chain."""
    for position, link in enumerate(chain):
        if link.model == model:
            return [later for later in chain[position + 1 :] if later.model != model]
    return chain


def _may_retry(model: str, failures: Sequence[ModelFailure]) -> bool:
    """Whether what this model did in this turn allows one more try."""
    errors = [failure.error for failure in failures if failure.model == model]
    if len(errors) >= MAX_TRIES_PER_MODEL or errors.count("MalformedReply") >= MAX_MALFORMED:
        return False
    return all(error in _RETRYABLE or error == "MalformedReply" for error in errors)


def _wait_s(last: ModelFailure, failures: Sequence[ModelFailure], jitter: float) -> float:
    """Seconds from the last failure to the next try of the same model."""
    if last.error not in _RETRYABLE:
        return 0.0
    asked = last.retry_after_s
    if asked is not None and not math.isnan(asked):
        return max(0.0, asked)
    failed = [failure for failure in failures if failure.model == last.model]
    before = sum(failure.error in _RETRYABLE for failure in failed) - 1
    return min(math.ldexp(BASE_WAIT_S, before) + jitter, MAX_WAIT_S)


def _first_available(
    links: Sequence[ChainLink], cooldowns: Cooldowns, now: float
) -> ModelTry | None:
    """The first link that may be called now, else the one that may be called first."""
    if not links:
        return None

    def free_at(link: ChainLink) -> float:
        return max(now, cooldowns.get(link.model, now))

    first = min(links, key=free_at)
    return ModelTry(first.model, min(free_at(first), now + MAX_WAIT_WITH_FALLBACK_S))
