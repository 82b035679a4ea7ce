"""Every provider that pydantic-ai knows (Bedrock, Vertex, Cohere, Hugging Face …), behind our
Model: the extra [providers]. Only its model classes are used; the agent is ours.
https://pydantic.dev/docs/ai/models/overview

`pydantic-ai/bedrock/NAME` names such a model. This file is imported when one is opened.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeVar

import anyio
from pydantic_ai import messages as theirs
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model as TheirModel
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from ..types.errors import ConfigError
from . import encode, faults
from .base import Item, Request
from .faults import FailedCall
from .pydantic_ai_reply import PydanticAiReply, make_model_error
from .pydantic_ai_talk import convert_messages
from .transport import TransportLimits

T = TypeVar("T")


class PydanticModel:
    """One of pydantic-ai's models; `aclose` frees its connections. `whom` is what failures call it,
    provider/name, and `key` what they never say."""

    def __init__(
        self, model: TheirModel, whom: str, key: str = "", limits: TransportLimits | None = None
    ) -> None:
        provider, _, name = whom.partition("/")
        self._model = model
        self._limits = limits or TransportLimits()
        self._call = FailedCall(provider, name, model.base_url or "", {}, key)
        self._entered = False

    async def reply(self, request: Request) -> AsyncGenerator[Item, None]:
        """See Model.reply. Of `extra` and `encoded` nothing is used: what is sent is pydantic-ai's
        own."""
        if not self._entered:
            self._entered = True
            await self._model.__aenter__()
        assembly = PydanticAiReply(self._call, request)
        limits = self._limits
        wire = assembly.wire
        pictures = bool(self._model.profile.get("supports_image_input", True))
        talk = await convert_messages(request, wire, pictures)
        end = anyio.current_time() + limits.total_s
        opened = self._model.request_stream(
            talk, self._make_settings(request), _make_parameters(request)
        )
        try:
            async with AsyncExitStack() as stack:
                with anyio.fail_after(limits.first_s):
                    response = await stack.enter_async_context(opened)
                async with aclosing(_with_timeouts(aiter(response), limits, end)) as events:
                    async for event in events:
                        for delta in assembly.feed(event):
                            yield delta
                whole = response.get()
        except TimeoutError as error:
            raise self._make_timeout(assembly, end) from error
        except (AgentRunError, UserError) as error:
            raise make_model_error(self._call, error) from error
        for item in assembly.close(whole):
            yield item

    async def aclose(self) -> None:
        """Close every connection. The model may be used again."""
        if self._entered:
            self._entered = False
            await self._model.__aexit__(None, None, None)

    def _make_timeout(self, assembly: PydanticAiReply, end: float) -> Exception:
        if anyio.current_time() >= end:
            return faults.make_timeout(self._call, "total", self._limits.total_s)
        if assembly.has_begun:
            return faults.make_timeout(self._call, "idle", self._limits.idle_s)
        return faults.make_timeout(self._call, "first", self._limits.first_s)

    def _make_settings(self, request: Request) -> ModelSettings:
        found: ModelSettings = {
            "thinking": False if request.thinking == "off" else request.thinking
        }
        if request.max_output_tokens is not None:
            found["max_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            found["temperature"] = request.temperature
        if request.top_p is not None:
            found["top_p"] = request.top_p
        if request.seed is not None:
            found["seed"] = request.seed
        if request.stop:
            found["stop_sequences"] = list(request.stop)
        if request.tools and request.must_call == "*":
            found["tool_choice"] = "required"
        elif request.tools and request.must_call:
            found["tool_choice"] = [encode.safe_tool_name(request.must_call)]
        if request.tools and request.one_call:
            found["parallel_tool_calls"] = False
        if "max_retries" not in self._model.unsupported_settings:
            found["max_retries"] = 0  # the agent decides what comes next
        return found


def open_pydantic(
    name: str, key: str = "", base_url: str = "", limits: TransportLimits | None = None
) -> PydanticModel:
    """The model `provider/name` in pydantic-ai's names. Without `key` its provider looks for one
    where its own documentation says. Raises ConfigError: for a provider that it does not know,
    whose client is not installed, or that has no key."""
    provider, slash, model = name.partition("/")
    if not (provider and slash and model):
        raise ConfigError(
            f"{name!r} is not a model name: write pydantic-ai/PROVIDER/NAME, such as "
            "pydantic-ai/cohere/m."
        )
    try:
        found = infer_model(
            f"{provider}:{model}", lambda given: _make_provider(given, key, base_url)
        )
    except (ImportError, UserError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"pydantic-ai cannot open {provider}/{model}: {said}") from error
    return PydanticModel(found, name, key, limits)


def _make_provider(name: str, key: str, base_url: str) -> Provider[Any]:
    given = {"api_key": key, "base_url": base_url}
    return infer_provider_class(name)(**{field: value for field, value in given.items() if value})


def _make_parameters(request: Request) -> ModelRequestParameters:
    tools = [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
        )
        for tool in request.tools
    ]
    return ModelRequestParameters(function_tools=tools)


async def _with_timeouts(
    events: AsyncIterator[theirs.ModelResponseStreamEvent], limits: TransportLimits, end: float
) -> AsyncGenerator[theirs.ModelResponseStreamEvent, None]:
    """The events, each within its time. Raises TimeoutError."""
    wait_s = limits.first_s
    while True:
        with anyio.fail_after(min(wait_s, max(0.0, end - anyio.current_time()))):
            event = await anext(events, None)
        if event is None:
            return
        yield event
        wait_s = limits.idle_s
