"""openagent-core's HTTP API: its clients find what they know."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Annotated, Any
from uuid import uuid4

import anyio.to_thread
import msgspec
from starlette.responses import Response

from ..agent.fold import fold
from ..agent.state import State
from ..models.base import ThinkingLevel
from ..store.queries import count_messages
from ..tools.paths import Place, Workspace
from ..types import events as e
from ..types.errors import ToolError
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.messages import Usage
from ..types.options import SessionOptions
from .blocks import ComputerMessage, messages_from_log, to_iso
from .errors import FieldError, HttpProblem, bad_request, not_found, to_sentence
from .files import (
    HIDDEN,
    PRIVATE,
    Into,
    Uploaded,
    check_place,
    download,
    keep_uploads,
    path_problem,
    preview_file,
    require_workspace,
    which_visible,
)
from .names import format_session_name, parse_session_name
from .protocols import Web
from .routing import Call, Endpoint
from .settings import GOOGLE
from .views import WorkspaceFile
from .visible_sessions import require_row, require_session

MOST_FILES = 2_000
MAX_DEPTH = 12
MAX_CONVERSATIONS = 500
TRUNCATED_NOTE = "\n\n[cut after 100 KB]"
PLAIN_SUFFIXES = (".txt", ".log", ".csv")
EFFORTS: dict[str, ThinkingLevel] = {
    "low": "low",
    "medium": "medium",
    "high": "high",
    "max": "max",
    "xhigh": "max",
}
"""What `thinking_effort` may be."""


class Begin(msgspec.Struct, frozen=True):
    """How the conversation is to be held. `enable_approval` asks before every tool outside the safe
    list; false is the normal policy, never less."""

    preset: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    system_prompt: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None
    enable_teams: bool = False
    enable_tracing: bool = False
    enable_approval: bool = False
    enable_plan_mode: bool = False
    enable_thinking: bool | None = None
    thinking_effort: str | None = None


class Begun(msgspec.Struct, frozen=True):
    conversation_id: str


class Conversation(msgspec.Struct, frozen=True):
    """`message_count` counts what people and models said."""

    id: str
    title: str | None
    created_at: str
    message_count: int


class ConversationDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation, how it is held, and what was said and used in it."""

    id: str
    title: str | None
    system_prompt: str | None
    preset: str | None
    enable_teams: bool
    enable_tracing: bool
    enable_approval: bool
    enable_plan_mode: bool
    enable_thinking: bool
    thinking_effort: str
    created_at: str
    messages: list[ComputerMessage]
    total_input_tokens: int
    total_output_tokens: int


class Deleted(msgspec.Struct, frozen=True):
    status: str = "deleted"


class FileContent(msgspec.Struct, frozen=True):
    """`content` is None where it is no text (`binary`), `language` where nobody knows it."""

    path: str
    name: str
    size: int
    content: str | None
    binary: bool
    language: str | None


class AuthConfig(msgspec.Struct, frozen=True):
    """How one signs in here. `enabled`: at a provider, which is called `provider`;
    `google_client_id` is our name there, where that is Google."""

    enabled: bool = False
    auth_required: bool = True
    google_client_id: str | None = None
    methods: tuple[str, ...] = ("token", "link")
    provider: str = ""


async def create_conversation(call: Call) -> Begun:
    """A conversation that has its options and no message yet."""
    wanted: Begin = call.body
    name = uuid4().hex[:12]
    session = parse_session_name(name, call.principal, call.web.admin.agents[0])
    effort = _parse_effort(wanted.thinking_effort)
    options = SessionOptions(
        thinking=effort if wanted.enable_thinking else None,
        preset=wanted.preset or None,
        system_prompt=wanted.system_prompt or None,
        approval=wanted.enable_approval,
        plan_mode=wanted.enable_plan_mode,
        teams=wanted.enable_teams,
        tracing=wanted.enable_tracing,
    )
    receipt = await call.web.door.configure(session, call.principal, options)
    if receipt.status == "refused":
        raise HttpProblem(400, "bad_request", to_sentence(receipt.reason))
    await require_session(call, session)
    return Begun(name)


def _parse_effort(wanted: str | None) -> ThinkingLevel:
    """Raises HttpProblem for one that there is not."""
    if wanted is None:
        return "medium"
    if wanted not in EFFORTS:
        said = f"There is no effort {wanted[:100]!r}; there are: {', '.join(EFFORTS)}."
        raise bad_request(
            said, FieldError("literal_error", ("body", "thinking_effort"), said, wanted)
        )
    return EFFORTS[wanted]


async def list_conversations(call: Call) -> list[Conversation]:
    rows = await call.web.store.sessions(call.principal, MAX_CONVERSATIONS)
    agent = call.web.admin.agents[0]
    counts = await count_messages(call.web.store, [row.session for row in rows])
    return [
        Conversation(
            id=format_session_name(row.session, call.principal, agent),
            title=row.title or None,
            created_at=to_iso(row.opened_at),
            message_count=counts.get(row.session, 0),
        )
        for row in rows
    ]


async def get_conversation(call: Call) -> ConversationDetail:
    session = await require_session(call)
    log = await call.web.store.events(session)
    used = sum(
        (each.event.usage for each in log if isinstance(each.event, e.ModelReplied)), Usage()
    )
    options = fold(State(session), log).options
    row = await require_row(call, session)
    thinking = options.thinking or "off"
    return ConversationDetail(
        id=call.path("name"),
        title=row.title or None,
        system_prompt=options.system_prompt or None,
        preset=options.preset or None,
        enable_teams=bool(options.teams),
        enable_tracing=bool(options.tracing),
        enable_approval=bool(options.approval),
        enable_plan_mode=bool(options.plan_mode),
        enable_thinking=thinking != "off",
        thinking_effort=thinking,
        created_at=to_iso(row.opened_at),
        messages=messages_from_log(log, call.web.redact),
        total_input_tokens=used.input_tokens,
        total_output_tokens=used.output_tokens,
    )


async def delete(call: Call) -> Deleted:
    await call.web.admin.erase(call.principal, await require_session(call))
    return Deleted()


async def list_files(call: Call) -> Response:
    """At most 2,000: a header says if there are more."""
    await require_workspace(call, "")
    found = await _list_visible(call.web, call.principal, "")
    response = Response(msgspec.json.encode(found[:MOST_FILES]), media_type="application/json")
    if len(found) > MOST_FILES:
        response.headers["x-truncated"] = "true"
    return response


async def files_for(web: Web, principal: Principal, agent: str) -> list[WorkspaceFile]:
    """The files of this agent's workspace, as `GET /api/workspace/files` lists them. None where it
    cannot be reached, or is not theirs."""
    if not web.people.may_talk(principal, agent):
        return []
    try:
        found = await web.listings.get(
            (principal, agent), lambda: _list_visible(web, principal, agent)
        )
    except ToolError:
        return []
    return found[:MOST_FILES]


async def _list_visible(web: Web, principal: Principal, agent: str) -> list[WorkspaceFile]:
    """All of which this person may know; one too many where there are more. Raises ToolError."""
    files = (await web.admin.tool_scope(agent or web.admin.agents[0])).files
    found = await anyio.to_thread.run_sync(_walk, files, _hidden_names(principal))
    seen = await which_visible(web, principal, agent, [place for _, place in found])
    return [each for (each, _), may in zip(found, seen, strict=True) if may]


def _hidden_names(principal: Principal) -> frozenset[str]:
    """What is left out at the top of the workspace, in lower case."""
    return HIDDEN if "owner" in principal.roles else HIDDEN | PRIVATE


def _walk(files: Workspace, hidden: Collection[str]) -> list[tuple[WorkspaceFile, Place]]:
    found: list[tuple[WorkspaceFile, Place]] = []
    left = [("", 0)]
    while left and len(found) <= MOST_FILES:
        folder, depth = left.pop()
        try:
            listed = files.list_folder(folder or ".", MOST_FILES + 1)
        except ToolError:
            continue  # it went away in between
        for entry in listed.entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path.lower() in hidden:
                continue
            if entry.kind == "folder" and depth < MAX_DEPTH:
                left.append((path, depth + 1))
            elif entry.kind == "file":
                found.append(
                    (WorkspaceFile(entry.name, path, entry.size_bytes), listed.place_of(entry))
                )
    return sorted(found, key=lambda each: each[0].path)


def _check_hidden(path: str) -> None:
    """Raises HttpProblem for another system's own folders: they are not shown, and nothing is put
    there."""
    first = PurePosixPath(path).parts[:1]
    if first and first[0] in HIDDEN:
        raise HttpProblem(
            403, "forbidden", f"{first[0]!r} is not shown here, and nothing can be put there."
        )


async def get_file(call: Call) -> FileContent:
    path = call.path("path")
    files = await require_workspace(call, "")
    check_place(call, path)
    _check_hidden(path)
    await anyio.to_thread.run_sync(_check_file, files, path)
    found = await preview_file(call, "", path)
    content = found.content
    if content is not None and found.truncated:
        content += TRUNCATED_NOTE
    known = (
        found.language
        if found.language != "text" or PurePosixPath(path).suffix in PLAIN_SUFFIXES
        else None
    )
    language = None if found.binary else "plaintext" if known in ("text", "csv") else known
    return FileContent(path, found.name, found.size, content, found.binary, language)


def _check_file(files: Workspace, path: str) -> None:
    """Raises HttpProblem for what is no file."""
    try:
        kind = files.stat(path).kind
    except ToolError as error:
        raise path_problem(error) from error
    if kind != "file":
        raise not_found(mark_text("such file"))


async def upload(call: Call) -> Uploaded:
    _check_hidden(call.query.subdir)
    return Uploaded(await keep_uploads(call, call.query.agent, call.query.subdir))


async def get_conversation_file(call: Call) -> Response:
    """A file of the workspace in which that conversation happens."""
    session = await require_session(call)
    _check_hidden(call.path("path"))
    return await download(call, session.partition("/")[0], call.path("path"))


async def get_auth_config(call: Call) -> AuthConfig:
    sign_in = call.web.sign_in
    if sign_in is None:
        return AuthConfig()
    return AuthConfig(
        enabled=True,
        google_client_id=sign_in.client_id if sign_in.provider.issuer == GOOGLE else None,
        methods=("token", "link", "provider"),
        provider=sign_in.name,
    )


_T: Any = "openagent-core"
ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/chat",
        "chat",
        create_conversation,
        "Start a conversation",
        body=Begin,
        returns=Begun,
        invalid=422,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/conversations",
        "read",
        list_conversations,
        "List your conversations",
        returns=list[Conversation],
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/conversations/{name}",
        "read",
        get_conversation,
        "Get a conversation",
        returns=ConversationDetail,
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/conversations/{name}",
        "chat",
        delete,
        "Erase a conversation",
        returns=Deleted,
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/workspace/files",
        "read",
        list_files,
        "List all files of the workspace",
        returns=list[WorkspaceFile],
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/workspace/file/{path:path}",
        "read",
        get_file,
        "Get a file of the workspace",
        returns=FileContent,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/workspace/upload",
        "chat",
        upload,
        "Upload files to the workspace",
        query=Into,
        returns=Uploaded,
        raw=True,
        invalid=422,
        takes="multipart/form-data",
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/files/{name}/{path:path}",
        "read",
        get_conversation_file,
        "Download a file of a conversation's workspace",
        media="application/octet-stream",
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/auth/config",
        "public",
        get_auth_config,
        "Get how to sign in",
        returns=AuthConfig,
        tag=_T,
    ),
)
