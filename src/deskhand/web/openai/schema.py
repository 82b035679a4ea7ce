"""OpenAI's chat completions as they stand on the wire:
https://platform.openai.com/docs/api-reference/chat"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Name = Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]

MOST_MESSAGES = 5_000
MOST_CALLS = 128
"""So many calls has one message; a model that asks for more is not known."""


class FunctionCall(msgspec.Struct, frozen=True):
    """`arguments` is JSON in a string, as the model wrote it."""

    name: Name
    arguments: str = ""


class ToolCallItem(msgspec.Struct, frozen=True):
    id: str
    function: FunctionCall
    type: Literal["function"] = "function"


class ChatMessage(msgspec.Struct, frozen=True):
    """One message of the conversation, as the client tells it."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[ToolCallItem], msgspec.Meta(max_length=MOST_CALLS)] | None = None
    tool_call_id: str | None = None


class Function(msgspec.Struct, frozen=True):
    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionToolParam(msgspec.Struct, frozen=True):
    """A tool that the client runs itself."""

    type: Literal["function"]
    function: Function


class FunctionName(msgspec.Struct, frozen=True):
    name: str


class NamedTool(msgspec.Struct, frozen=True):
    """The tool that has to be called."""

    type: Literal["function"]
    function: FunctionName


class JsonSchema(msgspec.Struct, frozen=True):
    name: Name
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False
    include_obfuscation: bool = False


class ChatBody(msgspec.Struct, frozen=True):
    """A request. `model` is `deskhand/AGENT`, and `messages` are the conversation: nothing else is
    known of it, unless the header `X-Deskhand-Session` names one that goes on.

    From `user` on fields are only noted, or not looked at at all. From `n` on they are refused,
    unless they say what holds anyway.
    """

    model: str
    messages: Annotated[list[ChatMessage], msgspec.Meta(max_length=MOST_MESSAGES)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[FunctionToolParam], msgspec.Meta(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stop: str | Annotated[list[str], msgspec.Meta(max_length=4)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None

    user: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    safety_identifier: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None

    n: int | None = None
    store: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: dict[str, float] | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    verbosity: str | None = None
    functions: list[Any] | None = None
    function_call: str | dict[str, Any] | None = None


class Choice(msgspec.Struct, frozen=True):
    index: int
    message: dict[str, Any]
    finish_reason: str
    logprobs: None = None


class CachedTokens(msgspec.Struct, frozen=True):
    cached_tokens: int


class ResponseUsage(msgspec.Struct, frozen=True):
    """The tokens of all model calls that the answer took."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class Completion(msgspec.Struct, frozen=True):
    """OpenAI's `chat.completion`."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: ResponseUsage
    object: str = "chat.completion"


class ModelCard(msgspec.Struct, frozen=True):
    """An agent. `created` is when this Deskhand started."""

    id: str
    created: int
    object: str = "model"
    owned_by: str = "deskhand"


class ModelCards(msgspec.Struct, frozen=True):
    data: list[ModelCard]
    object: str = "list"
