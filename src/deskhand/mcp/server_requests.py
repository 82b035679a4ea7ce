"""What a server asks back, as the official SDK hands it over: a person fills in its form, or the
agent's cheap model answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import mcp_types
from mcp.client.context import ClientRequestContext

from ..models.side_completion import Aside
from ..types.errors import ToolError
from .asking_call import AskingCall
from .forms import read_fields

MAX_PROMPT_CHARS = 100_000
MAX_OUTPUT_TOKENS = 4_000
MAX_SAMPLES = 10
"""So often a server may ask the model in one call."""


class ServerRequests:
    """Leads what a server asks to the call that it is busy with: one call at a time."""

    def __init__(self) -> None:
        self.call: AskingCall | None = None
        self.lock = anyio.Lock()
        self._asking = anyio.Lock()
        self.samples = 0

    async def elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        if self.call is None:
            return _refuse("nobody can be asked outside of a call")
        async with self._asking:  # a person is asked one thing at a time
            content = await _fill_in(self.call, params)
        action = "decline" if content is None else "accept"
        return mcp_types.ElicitResult.model_validate({"action": action, "content": content})

    async def sample(
        self, context: ClientRequestContext, params: mcp_types.CreateMessageRequestParams
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        self.samples += 1
        if self.call is None or not self.call.is_followed or self.samples > MAX_SAMPLES:
            return _refuse(f"a model is asked during a call, and at most {MAX_SAMPLES} times")
        text = "\n\n".join(_read_texts(params.messages))
        system = params.system_prompt or ""
        if not text or len(text) + len(system) > MAX_PROMPT_CHARS:
            return _refuse("the messages have no text, or too much")
        aside = Aside(system, text, output_tokens=min(params.max_tokens, MAX_OUTPUT_TOKENS))
        try:
            said = await self.call.context.ask(aside)
        except ToolError as error:
            return _refuse(str(error))
        return mcp_types.CreateMessageResult(
            role="assistant",
            content=mcp_types.TextContent(type="text", text=said),
            model="deskhand",
            stop_reason="endTurn",
        )


async def _fill_in(
    call: AskingCall, params: mcp_types.ElicitRequestParams
) -> dict[str, Any] | None:
    """What a person gives; None where they decline, or the form is none."""
    if isinstance(params, mcp_types.ElicitRequestURLParams):
        message = f"{params.message}\nIt wants you to open this page: {params.url}"
        return {} if await call.ask_whether(message) else None
    try:
        fields = read_fields(params.requested_schema)
    except ToolError:
        return None
    if not fields:
        return {} if await call.ask_whether(params.message) else None
    content: dict[str, Any] = {}
    for field in fields:
        is_answered, value = await call.ask_for(params.message, field)
        if not is_answered:
            return None
        if value is not None:
            content[field.name] = value
    return content


def _read_texts(messages: Sequence[mcp_types.SamplingMessage]) -> Iterator[str]:
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        for block in blocks:
            if isinstance(block, mcp_types.TextContent):
                yield block.text if message.role == "user" else f"[{message.role}] {block.text}"


def _refuse(why: str) -> mcp_types.ErrorData:
    return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=why)
