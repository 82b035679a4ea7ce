"""A request and its reply as a program wants them that asks over the API."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..types.client import ClientRequest
from ..types.messages import Message, Part, Text, ToolCall
from .answer_schema import render_schema_prompt
from .base import Reply, Request, ToolSchema, make_tool_schema


def apply_client_request(request: Request, client: ClientRequest, *, tools: bool = True) -> Request:
    """The request as the program wants it; without `tools` the model can only answer in words. Of
    two tools of one name the program's is offered; where it says that one of its tools must be
    called, ours are not."""
    system = request.system
    if client.answer_schema is not None:
        *stable, last = request.system or ("",)
        wanted = render_schema_prompt(client.answer_schema)
        system = (*stable, f"{last}\n\n{wanted}" if last else wanted)
    limits = [request.max_output_tokens, client.max_output_tokens]
    temperature = client.temperature
    if temperature is None:
        temperature = request.temperature
    return replace(
        request,
        system=system,
        tools=_merge_tools(request.tools, client) if tools else (),
        max_output_tokens=min((limit for limit in limits if limit is not None), default=None),
        thinking=client.thinking or request.thinking,
        temperature=temperature,
        top_p=client.top_p,
        seed=client.seed,
        stop=client.stop,
        form=client.answer_schema,
        strict_form=client.strict_schema,
        must_call=client.must_call if tools else "",
        one_call=not client.parallel_calls,
    )


def _merge_tools(ours: Sequence[ToolSchema], client: ClientRequest) -> tuple[ToolSchema, ...]:
    theirs = tuple(
        make_tool_schema(tool.name, tool.description, tool.parameters) for tool in client.tools
    )
    if client.must_call:
        return theirs
    offered = [tool for tool in ours if client.tool(tool.name) is None]
    return (*offered, *theirs)


def truncate_reply(reply: Reply, chars: int) -> Reply:
    """The reply with only so many characters of its text, and nothing behind them."""
    parts: list[Part] = []
    left = chars
    for part in reply.message.parts:
        if isinstance(part, Text):
            parts.append(replace(part, text=part.text[:left]))
            left -= len(part.text)
        elif not isinstance(part, ToolCall):
            parts.append(part)
    return replace(reply, message=Message("assistant", tuple(parts)), finish="stop")
