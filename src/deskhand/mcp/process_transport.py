"""Talks with an MCP server that is a program in our sandbox: a message on each line, over its
standard streams.

The official SDK has such a transport, which starts the program bare and takes lines of any length.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import anyio
import anyio.lowlevel
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from ..sandbox.line_process import LineProcess

_validate = mcp_types.jsonrpc_message_adapter.validate_json
_Out = MemoryObjectSendStream[SessionMessage | Exception]
_In = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def open_process(
    process: LineProcess, on_end: Callable[[str], None]
) -> AsyncIterator[TransportStreams]:
    """See `mcp.client.Transport`. `on_end` is told why the program has ended by itself, or must.
    It and all that it started are gone afterwards, whatever happens."""
    told_in, told = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    asked, asked_out = anyio.create_memory_object_stream[SessionMessage](0)
    async with (
        anyio.create_task_group() as tasks,
        told_in,
        told,
        asked,
        asked_out,
        process.open(),
    ):
        tasks.start_soon(_read, process, told_in, on_end)
        tasks.start_soon(_write, asked_out, process)
        try:
            yield told, asked
        finally:
            told.close()
            asked.close()
            tasks.cancel_scope.cancel()


async def _read(process: LineProcess, told_in: _Out, on_end: Callable[[str], None]) -> None:
    """Hand on each line as a message, until it has ended, or must."""
    async with aclosing(process.lines()) as lines:
        async for line in lines:
            await _hand_on(line, told_in)
    on_end(process.describe_end())
    await told_in.aclose()


async def _hand_on(line: bytes, told_in: _Out) -> None:
    if not line.strip():
        await anyio.lowlevel.checkpoint()
        return
    try:
        message = SessionMessage(_validate(line, by_name=False))
    except (ValueError, RecursionError):
        return  # many servers print what is no message; the next line may be one
    try:
        await told_in.send(message)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return


async def _write(asked_out: _In, process: LineProcess) -> None:
    async for asked in asked_out:
        text = asked.message.model_dump_json(by_alias=True, exclude_unset=True)
        await process.send(text.encode())
