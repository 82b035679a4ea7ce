"""operator-use's agent server (https://agentcommunicationprotocol.dev in an early form): its
clients find what they know."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from ..types.messages import Part, Text
from .agent_runs import (
    Run,
    RunState,
    agent_from_path,
    begin_run,
    cancel_run,
    decode_file,
    follow_safely,
    keep_file,
    list_agents,
    load_run,
    make_message,
    make_name,
    wait_for_run,
)
from .agent_signatures import verify
from .blobs import BLOB_BYTES
from .blocks import to_iso
from .errors import HttpProblem, bad_request
from .routing import Call, Endpoint, check_depth, check_is_json, read_limited
from .stream import EventStream, make_standing

DEFAULT_AGENT = "operator"
"""What its clients call an agent that they do not choose."""
STATES: dict[RunState, str] = {
    "submitted": "created",
    "working": "in_progress",
    "waiting": "awaiting",
    "completed": "completed",
    "failed": "failed",
    "canceled": "cancelled",
}


class TextPart(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    text: str


class ImageUrlPart(msgspec.Struct, frozen=True, tag="image_url", tag_field="type"):
    """`image_url` has a `url`: a `data:` address."""

    image_url: dict[str, str]


class FilePart(msgspec.Struct, frozen=True, tag="file", tag_field="type"):
    """`file` has a `name`, its `content` in base64, and a `mime_type`."""

    file: dict[str, str]


MessagePart = TextPart | ImageUrlPart | FilePart


class RunRequest(msgspec.Struct, frozen=True):
    """A message to an agent. `session_id` is the conversation that it goes on; without one, a new
    one. `mode`: `sync` waits for the answer, the others do not."""

    agent_id: Annotated[str, msgspec.Meta(max_length=100)] = DEFAULT_AGENT
    session_id: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    mode: Literal["sync", "async", "stream"] = "async"
    input: Annotated[tuple[MessagePart, ...], msgspec.Meta(max_length=50)] = ()
    metadata: dict[str, Any] = {}


class RunView(msgspec.Struct, frozen=True):
    """`output` are the texts that the agent has said; while it is `awaiting`, the last one is what
    a person has to answer."""

    id: str
    agent_id: str
    session_id: str
    status: str
    mode: str
    input: list[TextPart]
    output: list[TextPart]
    error: str | None
    metadata: dict[str, Any]
    created_at: str
    finished_at: str | None


class AgentCapabilities(msgspec.Struct, frozen=True):
    streaming: bool = True
    async_mode: bool = True
    session: bool = True


class AgentMetadata(msgspec.Struct, frozen=True):
    id: str
    name: str
    description: str
    version: str
    capabilities: AgentCapabilities = AgentCapabilities()
    metadata: dict[str, Any] = {}


class AgentList(msgspec.Struct, frozen=True):
    """The agents that the caller may talk to. `server_id` is empty: a server is known by its
    address."""

    agents: list[AgentMetadata]
    server_id: str = ""


class PublicKey(msgspec.Struct, frozen=True):
    """The Ed25519 key with which this server signs, in base64url."""

    agent_id: str
    public_key: str
    algorithm: str = "ed25519"


class RunEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    type: Literal["output", "completed", "error"]
    run_id: str
    part: TextPart | None = None
    error: str | None = None


# Agents


async def get_agents(call: Call) -> AgentList:
    _check_signature(call, b"")
    return AgentList([_describe(call, each) for each in list_agents(call)])


async def get_agent(call: Call) -> AgentMetadata:
    _check_signature(call, b"")
    return _describe(call, agent_from_path(call))


async def get_public_key(call: Call) -> PublicKey:
    key = call.web.agent_server.public_key
    if not key:
        raise HttpProblem(404, "not_found", "This server signs nothing: set agent_server.sign.")
    return PublicKey(agent_from_path(call), key)


def _describe(call: Call, name: str) -> AgentMetadata:
    return AgentMetadata(name, name, f"The agent {name} of a Deskhand.", call.web.version)


def _check_signature(call: Call, body: bytes) -> str:
    """The signature, '' where none is wanted. Raises HttpProblem 401 where requests must be signed
    and this one is not."""
    settings = call.web.agent_server.settings
    if not settings.verify_signatures:
        return ""
    now = call.web.clock.now()
    signature = verify(call.request.headers, body, settings.trusted_agents, now)
    if not signature:
        raise HttpProblem(
            401,
            "bad_signature",
            "This server takes signed requests of agents that it knows: the headers X-ACP-Agent-ID,"
            " X-ACP-Timestamp and X-ACP-Signature are missing or do not hold.",
        )
    return signature


# Runs


async def create_run(call: Call) -> Response:
    check_is_json(call.request)
    body = await read_limited(call.request, BLOB_BYTES)
    check_depth(body)
    signature = _check_signature(call, body)
    try:
        wanted = msgspec.json.decode(body, type=RunRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"The body is not right: {error}.") from error

    run = await _begin(call, wanted, signature)
    if wanted.mode == "sync":
        await wait_for_run(call, run)
    view = _view(run, wanted.mode, wanted.metadata)
    status = 200 if wanted.mode == "sync" else 202
    return Response(msgspec.json.encode(view), status, media_type="application/json")


async def _begin(call: Call, wanted: RunRequest, signature: str) -> Run:
    """A signature is of exactly this request: one that is sent again is the same message."""
    message = make_message([await _read_part(call, each) for each in wanted.input])
    agents = list_agents(call)
    agent = wanted.agent_id
    if agent in ("", DEFAULT_AGENT) and agent not in agents and agents:
        agent = agents[0]
    name = make_name(call, wanted.session_id or "", "run", signature)
    return await begin_run(call, agent, name, message, signature)


async def _read_part(call: Call, part: MessagePart) -> Part:
    match part:
        case TextPart(text=text):
            return Text(text)
        case ImageUrlPart(image_url=given):
            head, _, data = given.get("url", "").partition(",")
            if not (head.startswith("data:") and head.endswith(";base64")):
                raise bad_request("A picture is given as a `data:` address with base64.")
            mime = head.removeprefix("data:").removesuffix(";base64")
            return await keep_file(call, _decode(data), "", mime)
        case FilePart(file=given):
            content = _decode(given.get("content", ""))
            mime = given.get("mime_type", "")
            return await keep_file(call, content, given.get("name", ""), mime)


def _decode(data: str) -> bytes:
    try:
        return decode_file(data)
    except ValueError as error:
        raise bad_request("A file is no base64.") from error


async def get_run(call: Call) -> RunView:
    _check_signature(call, b"")
    return _view(await load_run(call, call.path("run")))


async def delete_run(call: Call) -> None:
    _check_signature(call, b"")
    run = await load_run(call, call.path("run"))
    if not run.is_over:
        await cancel_run(call, run)


async def await_run(call: Call) -> EventStream:
    _check_signature(call, b"")
    run = await load_run(call, call.path("run"))
    begun = Run(run.id, 0)
    return EventStream(call.web, _stream(call, begun), make_standing(call.request))


async def _stream(call: Call, run: Run) -> AsyncGenerator[bytes]:
    """Each text when it has been said, and how it ended."""
    told = 0
    asked = ""
    id_ = str(run.id)
    async with aclosing(follow_safely(call, run, lambda run: run.is_over)) as items:
        async for _ in items:
            texts = run.texts[told:]
            told = len(run.texts)
            if run.asked is not None and run.asked.ask_id != asked:
                asked = run.asked.ask_id
                texts = [*texts, run.asked.question]
            for text in texts:
                yield _as_sse(RunEvent("output", id_, TextPart(text)))
    if run.state == "completed":
        yield _as_sse(RunEvent("completed", id_))
    else:
        yield _as_sse(RunEvent("error", id_, error=run.problem or STATES[run.state]))


def _as_sse(event: RunEvent) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(event)


def _view(run: Run, mode: str = "async", metadata: dict[str, Any] | None = None) -> RunView:
    texts = [*run.texts, run.asked.question] if run.asked is not None else run.texts
    return RunView(
        id=str(run.id),
        agent_id=run.id.agent,
        session_id=run.id.name,
        status=STATES[run.state],
        mode=mode,
        input=[TextPart(run.said)],
        output=[TextPart(each) for each in texts],
        error=run.problem or None,
        metadata=metadata or {},
        created_at=to_iso(run.began_at),
        finished_at=to_iso(run.ended_at) if run.ended_at is not None else None,
    )


_T = "operator-use"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/agents",
        "read",
        get_agents,
        "List the agents that you may talk to",
        returns=AgentList,
        tag=_T,
    ),
    Endpoint(
        "GET", "/agents/{agent}", "read", get_agent, "Get an agent", returns=AgentMetadata, tag=_T
    ),
    Endpoint(
        "GET",
        "/agents/{agent}/pubkey",
        "read",
        get_public_key,
        "Get the key with which this server signs",
        returns=PublicKey,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/runs",
        "chat",
        create_run,
        "Send a message to an agent",
        body=RunRequest,
        raw=True,
        takes="application/json",
        returns=RunView,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/runs/{run}",
        "read",
        get_run,
        "Get what became of a message",
        returns=RunView,
        tag=_T,
    ),
    Endpoint("DELETE", "/runs/{run}", "chat", delete_run, "Cancel a run", status=204, tag=_T),
    Endpoint(
        "GET",
        "/runs/{run}/await",
        "read",
        await_run,
        "Follow a run as server-sent events",
        media="text/event-stream",
        tag=_T,
    ),
)
