"""openagent-core's HTTP API: its clients find what they know."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import uuid4

import anyio.to_thread
import msgspec
from starlette.responses import Response

from ..tools.paths import Workspace
from ..types import events as e
from ..types.errors import ToolError
from ..types.messages import Usage
from ..types.options import SessionOptions
from .compat_computer import Line, lines_of
from .errors import HttpProblem, sentence
from .files import HIDDEN, Into, PreviewView, Uploaded, check_place, download, keep_uploads, previewed, workspace
from .names import key_of, name_of
from .routing import Call, Endpoint
from .seen import seen

MOST_FILES, DEEPEST = 2_000, 12
LISTED = 500
NOT_YET = {
    "teams": "not yet: the choice is kept, and there are no teammates so far",
}


class Begin(msgspec.Struct, frozen=True):
    """How the conversation is to be held. `enable_approval` asks before every tool outside the safe list; false is the
    normal policy, never less."""

    preset: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    system_prompt: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None
    enable_teams: bool = False
    enable_tracing: bool = False
    enable_approval: bool = False
    enable_plan_mode: bool = False
    enable_thinking: bool = False
    thinking_effort: Literal["low", "medium", "high", "max"] | None = None


class Begun(msgspec.Struct, frozen=True, omit_defaults=True):
    """`not_yet` says which of the wishes nothing acts on so far."""

    conversation_id: str
    not_yet: dict[str, str] = {}


class Conversation(msgspec.Struct, frozen=True):
    id: str
    title: str
    created_at: float
    updated_at: float


class ConversationDetail(msgspec.Struct, frozen=True):
    id: str
    title: str
    messages: list[Line]
    total_input_tokens: int
    total_output_tokens: int


class Deleted(msgspec.Struct, frozen=True):
    deleted: bool


class WorkspaceFile(msgspec.Struct, frozen=True):
    path: str
    name: str
    size: int
    modified_at: float


class WorkspaceFiles(msgspec.Struct, frozen=True):
    files: list[WorkspaceFile]
    truncated: bool = False


class AuthConfig(msgspec.Struct, frozen=True):
    """How one signs in here. Sign-in by Google is not offered."""

    auth_required: bool = True
    google_client_id: str | None = None
    methods: tuple[str, ...] = ("token", "link")


async def begin(call: Call) -> Begun:
    """A conversation that has its options and no message yet."""
    wanted: Begin = call.body
    name = uuid4().hex[:12]
    session = key_of(name, call.principal, call.web.house.agents[0])
    effort = wanted.thinking_effort or "medium" if wanted.enable_thinking else None
    options = SessionOptions(
        thinking=effort,
        preset=wanted.preset or None,
        system_prompt=wanted.system_prompt or None,
        approval=wanted.enable_approval,
        plan_mode=wanted.enable_plan_mode,
        teams=wanted.enable_teams,
        tracing=wanted.enable_tracing,
    )
    receipt = await call.web.door.configure(session, call.principal, options)
    if receipt.status == "refused":
        raise HttpProblem(400, "bad_request", sentence(receipt.reason))
    await seen(call, session)
    on = (("teams", wanted.enable_teams), ("plan_mode", wanted.enable_plan_mode))
    return Begun(name, {f"enable_{what}": NOT_YET[what] for what, wished in on if wished and what in NOT_YET})


async def conversations(call: Call) -> list[Conversation]:
    rows = await call.web.store.sessions(call.principal, LISTED)
    agent = call.web.house.agents[0]
    return [
        Conversation(name_of(row.session, call.principal, agent), row.title, row.opened_at, row.last_at) for row in rows
    ]


async def conversation(call: Call) -> ConversationDetail:
    session = await seen(call)
    log = await call.web.store.events(session)
    used = sum((each.event.usage for each in log if isinstance(each.event, e.ModelReplied)), Usage())
    lines = [line for each in log for line in lines_of(each, call.web.redact)]
    title = (await call.web.store.rows("session_get", (session,)))[0][4]
    return ConversationDetail(call.path("name"), title, lines, used.input_tokens, used.output_tokens)


async def delete(call: Call) -> Deleted:
    await call.web.house.erase(call.principal, await seen(call))
    return Deleted(True)


async def all_files(call: Call) -> WorkspaceFiles:
    files = await workspace(call, "")
    found = await anyio.to_thread.run_sync(_walk, files)
    return WorkspaceFiles(found[:MOST_FILES], len(found) > MOST_FILES)


def _walk(files: Workspace) -> list[WorkspaceFile]:
    found: list[WorkspaceFile] = []
    left = [("", 0)]
    while left and len(found) <= MOST_FILES:
        folder, depth = left.pop()
        try:
            entries = files.list(folder or ".")
        except ToolError:
            continue  # it went away in between
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.kind == "folder" and path not in HIDDEN and depth < DEEPEST:
                left.append((path, depth + 1))
            elif entry.kind == "file":
                found.append(WorkspaceFile(path, entry.name, entry.size_bytes, entry.modified_s))
    return sorted(found, key=lambda file: file.path)


async def one_file(call: Call) -> PreviewView:
    check_place(call, call.path("path"))
    return await anyio.to_thread.run_sync(previewed, await workspace(call, ""), call.path("path"))


async def upload(call: Call) -> Uploaded:
    files = await workspace(call, call.query.agent)
    return Uploaded(await keep_uploads(call, files, call.query.subdir))


async def of_conversation(call: Call) -> Response:
    """A file of the workspace in which that conversation happens."""
    session = await seen(call)
    files = await workspace(call, session.partition("/")[0])
    check_place(call, call.path("path"))
    return await anyio.to_thread.run_sync(download, files, call.path("path"))


async def auth_config(call: Call) -> AuthConfig:
    return AuthConfig()


_T: Any = "openagent-core"
ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/chat",
        "chat",
        begin,
        "Begin a conversation",
        body=Begin,
        returns=Begun,
        optional=True,
        tag=_T,
    ),
    Endpoint(
        "GET", "/api/conversations", "read", conversations, "Your conversations", returns=list[Conversation], tag=_T
    ),
    Endpoint(
        "GET", "/api/conversations/{name}", "read", conversation, "One of them", returns=ConversationDetail, tag=_T
    ),
    Endpoint("DELETE", "/api/conversations/{name}", "chat", delete, "Erase it", returns=Deleted, tag=_T),
    Endpoint("GET", "/api/workspace/files", "read", all_files, "All files", returns=WorkspaceFiles, tag=_T),
    Endpoint("GET", "/api/workspace/file/{path:path}", "read", one_file, "One of them", returns=PreviewView, tag=_T),
    Endpoint(
        "POST",
        "/api/workspace/upload",
        "chat",
        upload,
        "Put files into the workspace",
        query=Into,
        returns=Uploaded,
        raw=True,
        takes="multipart/form-data",
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/files/{name}/{path:path}",
        "read",
        of_conversation,
        "A file of a conversation's workspace, to be kept",
        media="application/octet-stream",
        tag=_T,
    ),
    Endpoint("GET", "/api/auth/config", "public", auth_config, "How one signs in here", returns=AuthConfig, tag=_T),
)
