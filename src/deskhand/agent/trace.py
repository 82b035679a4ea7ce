"""What a model is asked, shown to whoever follows a conversation that is traced."""

from __future__ import annotations

import msgspec

from ..models.base import Request, ThinkingLevel, ToolSchema
from ..types.door import Progress
from ..types.messages import Message


class TracedRequest(msgspec.Struct, frozen=True):
    """One request without its system prompt. `model` is `provider/name`; `max_output_tokens` None
    is the model's own maximum."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]
    max_output_tokens: int | None
    thinking: ThinkingLevel
    temperature: float | None


def trace_request(
    model: str, request: Request, *, n: int, attempt: int
) -> tuple[Progress, Progress]:
    """The system prompt, which owners alone are shown, and then the request."""
    messages = tuple(shown.message for shown in request.messages)
    traced = TracedRequest(
        model=model,
        messages=messages,
        tools=request.tools,
        max_output_tokens=request.max_output_tokens,
        thinking=request.thinking,
        temperature=request.temperature,
    )
    text = msgspec.json.encode(traced).decode()
    prompt = "\n\n".join(request.system)
    return Progress("prompt", n, attempt, text=prompt), Progress("request", n, attempt, text=text)


def read_request(text: str) -> TracedRequest:
    """The request of a `Progress` of the kind `request`. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(text, type=TracedRequest)
