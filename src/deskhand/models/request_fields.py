"""Which fields of OpenAI's chat completions a model has. What it has not is refused, and never left
out in silence."""

from __future__ import annotations

from .catalogue import Catalogue

SMALL_MODEL_UNSUPPORTED = frozenset(
    {"tools", "response_format", "temperature", "top_p", "seed", "reasoning_effort"}
)
"""A small model is bound to our own forms, and chooses its words by them."""


ANTHROPIC_MAX_TEMPERATURE = 1.0
"""https://docs.anthropic.com/en/api/messages, `temperature`: from 0 to 1."""


def find_unsupported_fields(
    catalogue: Catalogue,
    provider: str,
    name: str,
    base_url: str = "",
    *,
    thinks: bool = False,
    temperature: float | None = None,
) -> frozenset[str]:
    """The fields that this model does not have, or not with this `temperature`; `thinks`: it is
    asked to think before it answers. Of a provider that only an installed package knows nothing is
    known.

    `stop` and `response_format` are seen to by us, whatever the model does.
    """
    if provider not in catalogue.providers:
        return frozenset()
    found = set[str]()
    wire = catalogue.wire(provider, name, base_url)
    facts = catalogue.facts(provider, name)
    if wire != "openai":
        found.add("seed")
    if not facts.temperature or (wire == "anthropic" and thinks and facts.thinking):
        found |= {"temperature", "top_p"}
    if wire == "anthropic" and temperature is not None and temperature > ANTHROPIC_MAX_TEMPERATURE:
        found.add("temperature")
    return frozenset(found)
