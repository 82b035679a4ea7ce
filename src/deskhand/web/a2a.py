"""Agents of this Deskhand for other agents, by the Agent2Agent protocol (JSON-RPC): the agent card,
messages, tasks and streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from ..types.door import Progress
from ..types.errors import DeskhandError
from ..types.messages import Part, Text
from .a2a_wire import (
    BAD_PARAMS,
    CARD_PATH,
    INTERNAL,
    NO_TASK,
    NOT_CANCELABLE,
    UNSUPPORTED,
    AttachedFile,
    RpcRequest,
    SentMessage,
    Version,
    WireError,
    find_method,
    make_answer,
    make_artifact_update,
    make_card,
    make_error,
    make_sent,
    make_status_update,
    make_task,
    read_message,
    read_request,
    read_task_id,
)
from .agent_runs import (
    Run,
    agent_from_path,
    answer_run,
    begin_run,
    cancel_run,
    follow_safely,
    keep_file,
    load_run,
    make_message,
    make_name,
    wait_for_run,
)
from .blobs import BLOB_BYTES
from .errors import HttpProblem, to_http_problem
from .routing import Call, Endpoint, check_depth, read_limited
from .stream import EventStream, make_standing

PATH = "/a2a/{agent}"


async def get_card(call: Call) -> Response:
    """The card of the first agent."""
    return _card_response(call, call.web.admin.agents[0])


async def get_agent_card(call: Call) -> Response:
    return _card_response(call, agent_from_path(call))


def _card_response(call: Call, agent: str) -> Response:
    url = f"{call.public_origin}/a2a/{quote(agent, safe='')}"
    card = make_card(agent, url, call.web.version)
    return Response(msgspec.json.encode(card), media_type="application/json")


async def serve(call: Call) -> Response:
    """One request of JSON-RPC."""
    agent = agent_from_path(call)
    id_: Any = None
    try:
        body = await read_limited(call.request, BLOB_BYTES)
        check_depth(body)
        request = read_request(body)
        id_ = request.id
        response = await _Serving(call, agent, request).respond()
        return response if request.is_answered else Response(status_code=202)
    except WireError as error:
        return _json(make_error(id_, error))
    except HttpProblem as problem:
        return _json(make_error(id_, _to_wire_error(problem)))
    except DeskhandError as error:
        return _json(make_error(id_, _to_wire_error(to_http_problem(error))))


def _to_wire_error(problem: HttpProblem) -> WireError:
    code = {400: BAD_PARAMS, 403: UNSUPPORTED, 404: NO_TASK, 413: BAD_PARAMS}
    return WireError(code.get(problem.status, INTERNAL), problem.message)


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


class _Serving:
    """A request to one agent, and what it is answered."""

    def __init__(self, call: Call, agent: str, request: RpcRequest) -> None:
        self._call = call
        self._agent = agent
        self._request = request
        said = call.request.headers.get("a2a-version", "")
        self._version: Version
        self._version, self._method = find_method(request, said)

    async def respond(self) -> Response:
        match self._method:
            case "send":
                message = read_message(self._request.params, self._version)
                run = await self._begin(message)
                if message.waits:
                    await wait_for_run(self._call, run)
                return self._answer(make_sent(run, self._version))
            case "stream":
                message = read_message(self._request.params, self._version)
                return self._follow(await self._begin(message))
            case "get":
                run = await self._load()
                return self._answer(make_task(run, self._version))
            case "cancel":
                run = await self._load()
                if run.is_over:
                    raise WireError(NOT_CANCELABLE, "This task is over.")
                await cancel_run(self._call, run)
                return self._answer(make_task(run, self._version))
            case _:
                run = await self._load()
                if run.is_over and self._version == "1.0":
                    raise WireError(UNSUPPORTED, "This task is over: get it.")
                return self._follow(run)

    def _answer(self, result: Any) -> Response:
        return _json(make_answer(self._request.id, result))

    async def _load(self) -> Run:
        run = await load_run(self._call, read_task_id(self._request.params))
        if run.id.agent != self._agent:
            raise WireError(NO_TASK, "This agent has no such task.")
        return run

    async def _begin(self, sent: SentMessage) -> Run:
        """Hand in the message: as the answer that a task waits for, or as a new task, which may be
        a further word to one that goes on."""
        call = self._call
        known = await load_run(call, sent.task_id) if sent.task_id else None
        if known is not None and known.id.agent != self._agent:
            raise WireError(NO_TASK, "This agent has no such task.")
        if known is not None and known.is_over:
            raise WireError(UNSUPPORTED, "This task is over: send a message without its taskId.")
        if known is not None and sent.context_id not in ("", known.id.name):
            raise WireError(BAD_PARAMS, "The task belongs to another context.")
        if known is not None and known.state == "waiting":
            texts = [each for each in sent.parts if isinstance(each, str)]
            if len(texts) < len(sent.parts):
                raise WireError(BAD_PARAMS, "An answer is text: send files with a new message.")
            await answer_run(call, known, "\n".join(texts), sent.message_id)
            return known
        message = make_message([await self._read(each) for each in sent.parts])
        if known is not None:
            name = known.id.name
        else:
            name = make_name(call, sent.context_id, "a2a", sent.message_id)
        return await begin_run(call, self._agent, name, message, sent.message_id)

    async def _read(self, part: str | AttachedFile) -> Part:
        if isinstance(part, str):
            return Text(part)
        return await keep_file(self._call, part.data, part.name, part.mime)

    def _follow(self, run: Run) -> EventStream:
        return EventStream(self._call.web, self._stream(run), make_standing(self._call.request))

    async def _stream(self, run: Run) -> AsyncGenerator[bytes]:
        """The task, the pieces of what is being said, each new state, and at the end the answer as
        a whole."""
        version = self._version
        yield self._piece(make_sent(run, version))
        state = run.state
        said_in = 0
        async with aclosing(follow_safely(self._call, run, lambda run: run.rests)) as items:
            async for item in items:
                if isinstance(item, Progress):
                    if item.kind in ("text", "snapshot") and item.text and run.state == "working":
                        append = item.kind == "text" and said_in == item.n and item.offset > 0
                        said_in = item.n
                        yield self._artifact(run, item.text, append=append, last=False)
                elif run.state != state and not run.rests:
                    state = run.state
                    yield self._piece(make_status_update(run, version))
        if run.state == "completed":
            yield self._artifact(run, run.answer, append=False, last=True)
        yield self._piece(make_status_update(run, version))

    def _artifact(self, run: Run, text: str, *, append: bool, last: bool) -> bytes:
        return self._piece(make_artifact_update(run, text, self._version, append=append, last=last))

    def _piece(self, result: Any) -> bytes:
        return b"data: %b\n\n" % make_answer(self._request.id, result)


_T = "agent2agent"
ENDPOINTS = (
    Endpoint(
        "GET",
        CARD_PATH,
        "public",
        get_card,
        "Get the agent card of the first agent (A2A)",
        returns=dict[str, Any],
        tag=_T,
    ),
    Endpoint(
        "GET",
        f"{PATH}{CARD_PATH}",
        "read",
        get_agent_card,
        "Get the agent card of an agent (A2A)",
        returns=dict[str, Any],
        tag=_T,
    ),
    Endpoint(
        "POST",
        PATH,
        "chat",
        serve,
        "Send messages and follow tasks (A2A, JSON-RPC)",
        body=dict[str, Any],
        raw=True,
        takes="application/json",
        returns=dict[str, Any],
        tag=_T,
    ),
)
