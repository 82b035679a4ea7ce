"""What the catalogue says about providers and models, as the wires need it."""

from __future__ import annotations

from typing import Literal

import msgspec

WireName = Literal["openai", "responses", "anthropic"]
EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""The strengths of thinking that some provider has a name for, the weakest first."""


class Quirks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a provider's dialect differs.

    `max_tokens` is the name of that field. `stream_usage`: it understands stream_options. `effort`
    is where the strength of thinking goes: reasoning_effort, OpenRouter's `reasoning`, DeepSeek's
    `thinking`, or the chat template's enable_thinking. `reasoning_back`: which reasoning it wants
    to see again, that of the current turn or all of it; `reasoning_field` is what that is called.
    `call_ids` are free or Mistral's nine letters. `call_signatures`: a tool call carries Google's
    thought signature, which must come back. `auth` is the header that carries the key.
    `answer_schema`: it takes the JSON schema of the answer as response_format, or only that it is a
    JSON object.
    """

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    effort: Literal["", "reasoning_effort", "reasoning", "thinking", "template"] = (
        "reasoning_effort"
    )
    reasoning_back: Literal["never", "turn", "all"] = "never"
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    call_ids: Literal["any", "nine"] = "any"
    call_signatures: bool = False
    auth: Literal["bearer", "api-key", "x-api-key"] = "bearer"
    answer_schema: Literal["", "json_object", "json_schema"] = ""


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model can do. Sizes in tokens, prices in USD per million tokens (0: free or not
    known).

    `thinking` is how it is asked to think: not at all, by effort, by nothing but on and off, by a
    budget of tokens, or adaptively; `efforts` are the strengths that it knows, `off_effort` the one
    that turns it off, or down as far as it goes; `tools_effort` the only one that Chat Completions
    takes together with tools. `temperature`: it takes one. `vision`: it sees pictures, it does not,
    or nobody knows. `wire` is the one to speak with this model at its provider's own address, where
    that is not the provider's usual one.
    """

    window: int
    max_output: int = 0
    input_usd: float = 0
    output_usd: float = 0
    cached_usd: float = 0
    vision: bool | None = None
    thinking: Literal["", "effort", "switch", "budget", "adaptive"] = ""
    efforts: tuple[str, ...] = ("low", "medium", "high")
    off_effort: str = ""
    tools_effort: str = ""
    temperature: bool = True
    wire: WireName | Literal[""] = ""

    def nearest_effort(self, asked: str) -> str:
        """The strength that comes nearest to what is asked, rather more than less; its highest
        where that is less."""
        least = EFFORTS.index(asked)
        stronger = [effort for effort in EFFORTS[least:] if effort in self.efforts]
        if stronger:
            return stronger[0]
        weaker = [effort for effort in EFFORTS if effort in self.efforts]
        return weaker[-1]


class ModelSpec(msgspec.Struct, frozen=True):
    """One model at one provider, ready to be called. `key` is a secret."""

    provider: str
    name: str
    base_url: str
    facts: Facts
    quirks: Quirks = Quirks()
    key: str = ""

    def __repr__(self) -> str:
        return f"Spec({self.provider}/{self.name} at {self.base_url})"


class Catalogued(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A provider. `keys` are the environment variables that may hold its key, the preferred one
    first. `source` is where its models' figures come from, `as_of` when they were true."""

    wire: WireName
    source: str
    as_of: str
    base_url: str = ""
    keys: tuple[str, ...] = ()
    local: bool = False
    quirks: Quirks = Quirks()
    models: dict[str, Facts] = {}
