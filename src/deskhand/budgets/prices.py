"""What model calls cost, by the prices of the catalogue."""

from __future__ import annotations

from ..models.catalogue import Catalogue
from ..store.base import Used


def cost_usd(used: Used, catalogue: Catalogue) -> float | None:
    """In US dollars; None where a price is not known, and 0 only where the model runs on a machine
    of one's own. What went into a provider's cache counts as read."""
    provider, _, name = used.model.partition("/")
    listed = catalogue.providers.get(provider)
    if listed is None:
        return None
    if listed.local:
        return 0.0
    facts = catalogue.facts(provider, name)
    if not facts.input_usd or not facts.output_usd:
        return None
    cached = min(used.cached_tokens, used.input_tokens)
    read = (used.input_tokens - cached) * facts.input_usd + cached * (
        facts.cached_usd or facts.input_usd
    )
    return (read + used.output_tokens * facts.output_usd) / 1e6


def total_usd(rows: list[Used], catalogue: Catalogue) -> tuple[float | None, bool]:
    """What all of these cost together, as far as it is known (None: nothing is), and whether that
    is all of it."""
    costs = [cost_usd(row, catalogue) for row in rows]
    known = [cost for cost in costs if cost is not None]
    return (sum(known) if known or not rows else None), len(known) == len(costs)
