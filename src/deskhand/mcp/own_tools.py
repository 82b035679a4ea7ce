"""What other programs can do here by MCP: each tool is an endpoint of our HTTP API, so that the
same rights, limits and labels hold. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from ..types.errors import ToolError

CONVERSATIONS = "deskhand://conversations/"
JOBS = "deskhand://jobs/"
MEMORY = "deskhand://memory"
MEMORY_PATH = "/api/files/raw?path=memory%2FMEMORY.md"
INSTRUCTIONS = (
    "Deskhand is a personal agent. `ask` gives it a task in a conversation and waits for the "
    "answer; what needs a person's approval waits in list_approvals."
)


class ToolParameter(msgspec.Struct, frozen=True):
    """A parameter: its JSON schema, and whether it stands in the path, the query or the body of the
    request. Without a `default` it must be given."""

    schema: dict[str, Any]
    place: str
    default: Any = None
    is_required: bool = True
    sent_as: str = ""


class OwnTool(msgspec.Struct, frozen=True):
    """A tool, and the endpoint that it is. `looks`: it changes nothing."""

    name: str
    description: str
    method: str
    path: str
    given: Mapping[str, ToolParameter]
    looks: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: each.schema for name, each in self.given.items()},
            "required": [name for name, each in self.given.items() if each.is_required],
            "additionalProperties": False,
        }


class ApiRequest(msgspec.Struct, frozen=True):
    """A request to our HTTP API; `path` has the query behind it."""

    method: str
    path: str
    body: bytes | None = None


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


_CONVERSATION = ToolParameter(_text("Name, as list_conversations says"), "path", sent_as="name")
_LIMIT = ToolParameter(
    {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many at most"},
    "query",
    default=20,
    is_required=False,
)

TOOLS = {
    tool.name: tool
    for tool in (
        OwnTool(
            "ask",
            "Give Deskhand a task or a question, and wait for its answer. The same conversation "
            "name continues what was said there.",
            "POST",
            "/api/chat/{name}",
            {
                "message": ToolParameter(_text("What to do, or what to answer"), "body"),
                "conversation": ToolParameter(
                    _text("Name of the conversation; a new name begins one"),
                    "path",
                    default="mcp",
                    is_required=False,
                    sent_as="name",
                ),
            },
        ),
        OwnTool(
            "list_conversations",
            "List conversations, the latest first.",
            "GET",
            "/api/sessions",
            {"limit": _LIMIT},
            looks=True,
        ),
        OwnTool(
            "read_conversation",
            "Read the messages of a conversation.",
            "GET",
            "/api/sessions/{name}/history",
            {"conversation": _CONVERSATION},
            looks=True,
        ),
        OwnTool(
            "search_messages",
            "Search the messages of all conversations.",
            "GET",
            "/api/search",
            {
                "query": ToolParameter(_text("Words to look for"), "query", sent_as="q"),
                "limit": _LIMIT,
            },
            looks=True,
        ),
        OwnTool(
            "list_approvals",
            "List what waits for a person's approval or answer.",
            "GET",
            "/api/approvals",
            {},
            looks=True,
        ),
        OwnTool(
            "answer_approval",
            "Answer an approval or a question: once, always, deny, never, or words.",
            "POST",
            "/api/sessions/{name}/asks/{ask}",
            {
                "conversation": _CONVERSATION,
                "ask_id": ToolParameter(
                    _text("Its id, as list_approvals says"), "path", sent_as="ask"
                ),
                "choice": ToolParameter(_text("The answer"), "body"),
            },
        ),
        OwnTool("list_jobs", "List scheduled jobs.", "GET", "/api/jobs", {}, looks=True),
        OwnTool(
            "run_job",
            "Run a job now.",
            "POST",
            "/api/jobs/{name}/run",
            {"job": ToolParameter(_text("Name of the job"), "path", sent_as="name")},
        ),
        OwnTool(
            "read_memory",
            "Read MEMORY.md, what Deskhand remembers. Needs a token with the scope admin.",
            "GET",
            MEMORY_PATH,
            {},
            looks=True,
        ),
    )
}


def make_request(tool: OwnTool, arguments: Mapping[str, Any]) -> ApiRequest:
    """The request that this call is. Raises ToolError for arguments that are not known or missing;
    the endpoint checks what they are."""
    unknown = arguments.keys() - tool.given.keys()
    missing = [name for name in tool.schema["required"] if name not in arguments]
    if unknown or missing:
        wrong = f"unknown: {', '.join(sorted(unknown))}" if unknown else f"missing: {missing[0]}"
        raise ToolError(f"{wrong}. {tool.name} takes: {', '.join(tool.given) or 'nothing'}")

    places: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
    for name, each in tool.given.items():
        value = arguments.get(name, each.default)
        if value is not None:
            places[each.place][each.sent_as or name] = value
    if {".", ".."} & {str(value) for value in places["path"].values()}:
        raise ToolError("a name cannot be `.` or `..`")
    filled = {name: quote(str(value), safe="") for name, value in places["path"].items()}
    path = tool.path.format_map(filled) if filled else tool.path
    if places["query"]:
        path += f"?{urlencode(places['query'])}"
    body = msgspec.json.encode(places["body"]) if tool.method == "POST" else None
    return ApiRequest(tool.method, path, body)


def make_resource_request(uri: str) -> ApiRequest | None:
    """The request that reading this resource is; None where it is none. Raises ToolError."""
    if uri == MEMORY:
        return make_request(TOOLS["read_memory"], {})
    if uri.startswith(CONVERSATIONS):
        name = uri.removeprefix(CONVERSATIONS)
        return make_request(TOOLS["read_conversation"], {"conversation": name})
    if uri.startswith(JOBS):
        return ApiRequest("GET", f"/api/jobs/{quote(uri.removeprefix(JOBS), safe='')}")
    return None
