"""An agent for programs that start it themselves: JSON-RPC 2.0 in lines over standard input and
output, as operator-use's `acp stdio` speaks it. `initialize`; `agent/run` with `text` and
`session_id`; `agent/stream`, the same with notifications `agent/chunk` on the way."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from importlib.metadata import version
from typing import Any

import anyio
import msgspec

from ..runtime.app import App
from ..types.events import Recorded
from ..types.identity import Address, Inbound, Principal, Said, session_key
from ..types.messages import Message, Text
from ..web.a2a_wire import (
    INTERNAL,
    NO_METHOD,
    RpcRequest,
    WireError,
    make_answer,
    make_error,
    read_request,
)
from ..web.agent_runs import Run, RunId, advance

CHANNEL = "terminal"
ANSWER_S = 120.0
AT_ONCE = 16
MAX_LINE_BYTES = 4 << 20
BAD_PARAMS = -32600
"""What its clients expect for a request that lacks something."""
Send = Callable[[bytes], Awaitable[None]]


class JsonRpcAgent:
    """Answers requests for one agent of a Deskhand, in the name of its owner."""

    def __init__(self, app: App, agent: str, owner: Principal, send: Send) -> None:
        self._app = app
        self._agent = agent
        self._owner = owner
        self._send = send

    async def answer(self, line: bytes) -> None:
        """One line. Whatever is wrong with it is answered."""
        id_: Any = None
        try:
            request = read_request(line)
            id_ = request.id
            result = await self._respond(request)
        except WireError as error:
            await self._send(make_error(id_, error))
            return
        if request.is_answered:
            await self._send(make_answer(id_, result))

    async def _respond(self, request: RpcRequest) -> Any:
        match request.method:
            case "initialize":
                return {
                    "protocolVersion": "1.0",
                    "serverInfo": {"name": "deskhand", "version": version("deskhand")},
                    "agent": {"id": self._agent, "name": self._agent},
                    "capabilities": {"streaming": True, "session": True},
                }
            case "agent/run":
                return await self._run(request, streams=False)
            case "agent/stream":
                return await self._run(request, streams=True)
            case _:
                raise WireError(NO_METHOD, f"There is no method {request.method[:100]!r}.")

    async def _run(self, request: RpcRequest, *, streams: bool) -> dict[str, Any]:
        text, name = request.params.get("text"), request.params.get("session_id")
        if not isinstance(text, str) or not text.strip():
            raise WireError(BAD_PARAMS, "`text` is missing.")
        if name is not None and (not isinstance(name, str) or len(name) > 200):
            raise WireError(BAD_PARAMS, "`session_id` is a text of at most 200 characters.")
        name = name or self._app.parts.ids.new("rpc")
        with anyio.move_on_after(ANSWER_S):
            run = await self._say(text, name, request.id if streams else None)
            if run.state == "failed":
                raise WireError(INTERNAL, run.problem)
            asked = [run.asked.question] if run.asked is not None else []
            return {
                "output": "\n\n".join([*run.texts, *asked]),
                "session_id": name,
                "status": run.state,
            }
        raise WireError(INTERNAL, f"It took longer than {ANSWER_S:g} s, and still goes on.")

    async def _say(self, text: str, name: str, stream_id: Any) -> Run:
        """Hand it in, and follow it until it rests. With a `stream_id`, each text is told when it
        was said."""
        parts = self._app.parts
        address = Address(CHANNEL, chat=name)
        session = session_key(self._agent, address)
        body = Said(Message("user", (Text(text),)))
        made = Inbound(
            parts.ids.new("rpc"), address, self._owner.id, parts.clock.now(), body, session
        )
        receipt = await self._app.door.submit(made)
        if receipt.status == "refused":
            raise WireError(INTERNAL, receipt.reason)
        run = Run(RunId(self._agent, name, receipt.inbox_id), receipt.after)
        told = 0
        async with aclosing(self._app.door.follow(session, self._owner, receipt.after)) as items:
            async for item in items:
                if isinstance(item, Recorded):
                    advance(run, item)
                if stream_id is not None:
                    for each in run.texts[told:]:
                        await self._send(_make_chunk(stream_id, each))
                    told = len(run.texts)
                if run.rests:
                    return run
        raise AssertionError("following never ends by itself")


def _make_chunk(id_: Any, text: str) -> bytes:
    params = {"id": id_, "text": text}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "agent/chunk", "params": params})


async def serve_json_rpc(app: App, agent: str, owner: Principal) -> None:
    """Serve over the standard streams of this process until its input ends and all is answered."""
    lock = anyio.Lock()
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def send(data: bytes) -> None:
        async with lock:
            await anyio.to_thread.run_sync(sys.stdout.buffer.write, data + b"\n")
            await anyio.to_thread.run_sync(sys.stdout.buffer.flush)

    serving = JsonRpcAgent(app, agent, owner, send)

    async def answer(line: bytes) -> None:
        async with limiter:
            await serving.answer(line)

    async with anyio.create_task_group() as tasks:
        while line := await anyio.to_thread.run_sync(
            sys.stdin.buffer.readline, MAX_LINE_BYTES, abandon_on_cancel=True
        ):
            if line.strip():
                tasks.start_soon(answer, line)
