"""A connection to one MCP server, by the official SDK: both of its protocols, the one with a
handshake (up to 2025-11-25) and the one without (2026-07-28)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.client import Client
from mcp.client.context import ClientRequestContext
from mcp.client.session import ListRootsFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import FileUrl, ValidationError

from ..config.mcp_servers import McpServerConfig, fill_variables
from ..net.url import parse_url
from ..sandbox.base import Mount, SandboxCommand
from ..sandbox.line_process import LineProcess
from ..tools.base import Context, Done
from ..tools.documents.invisible_characters import escape_invisible
from ..types.errors import ConfigError, ToolError, first_of_group
from ..types.labels import Label
from .asking_call import AskingCall
from .definitions import MAX_TOOLS, ToolDefinition, clean_definition, find_problem
from .http_transport import MAX_EVENT_BYTES, make_http_client
from .process_transport import open_process
from .results import make_content_result, make_tool_result
from .server_requests import ServerRequests
from .servers import Reach, ToolRequest
from .sign_in import NoPerson, make_auth, make_client
from .sign_in_secrets import ServerLogin

LIFE_S = 10 * 365 * 86_400.0
MEMORY_BYTES = 4 << 30
"""Node reserves far more than it uses."""
MAX_PAGES = 50
MAX_ERROR_CHARS = 4_000
ANSWER_S = 60.0
ASKING_S = 3_600.0
"""So long a call may take in which people are asked."""
GRACE_S = 5.0
ALIVE_S = 3.0
"""A program that answers nothing for so long after a call has failed is begun anew."""
CACHE_FOLDERS = {"npm_config_cache": ".npm", "UV_CACHE_DIR": ".uv", "PIP_CACHE_DIR": ".pip"}


_FAILURES = (
    MCPError,
    OAuthFlowError,
    ValidationError,
    TimeoutError,
    httpx2.TransportError,
    anyio.ClosedResourceError,
)


P = TypeVar("P", bound=mcp_types.PaginatedResult)
E = TypeVar("E")


class SdkLink:
    """Implements `servers.ServerLink`. `describe_end` says why the server does not answer any
    more; `requests` are what the server asks of us."""

    def __init__(
        self, client: Client, describe_end: Callable[[], str], requests: ServerRequests
    ) -> None:
        self._client = client
        self._describe_end = describe_end
        self._requests = requests

    async def list_tools(self) -> tuple[list[ToolDefinition], list[str]]:
        with as_tool_errors(self._describe_end):
            return await _list_definitions(self._client)

    async def call_tool(self, wanted: ToolRequest, context: Context, label: Label) -> Done:
        show = partial(_show_progress, lambda: context)
        with as_tool_errors(self._describe_end):
            answer = await self._client.call_tool(
                wanted.name, wanted.arguments, wanted.timeout_s, progress_callback=show
            )
        return await make_tool_result(answer, context, label)

    async def call_asking_tool(self, wanted: ToolRequest, call: AskingCall, label: Label) -> Done:
        show = partial(_show_progress, lambda: call.context)
        async with self._requests.lock:
            self._requests.call, self._requests.samples = call, 0
            call.was_sent = True
            try:
                with as_tool_errors(self._describe_end):
                    answer = await self._client.call_tool(
                        wanted.name, wanted.arguments, ASKING_S, progress_callback=show
                    )
            finally:
                self._requests.call = None
        return await make_tool_result(answer, call.context, label)

    async def answers(self) -> bool:
        with anyio.move_on_after(ALIVE_S):
            try:
                await self._client.list_tools()
            except (ExceptionGroup, *_FAILURES) as error:
                return isinstance(first_of_group(error), MCPError)
            return True
        return False

    async def list_resources(self) -> list[str]:
        """A line for each, and for each template of some."""
        with as_tool_errors(self._describe_end):
            if self._client.server_capabilities.resources is None:
                return []
            resources = await _list_all(self._client.list_resources, lambda page: page.resources)
            templates = await _list_all(
                self._client.list_resource_templates, lambda page: page.resource_templates
            )
        return [
            *(_describe(each.uri, each.name, each.description) for each in resources),
            *(_describe(each.uri_template, each.name, each.description) for each in templates),
        ]

    async def read_resource(self, uri: str, context: Context, label: Label) -> Done:
        with as_tool_errors(self._describe_end):
            answer = await self._client.read_resource(uri)
        content = [
            mcp_types.EmbeddedResource(type="resource", resource=each) for each in answer.contents
        ]
        return await make_content_result(content, context, label)

    async def list_prompts(self) -> list[str]:
        """A line for each."""
        with as_tool_errors(self._describe_end):
            if self._client.server_capabilities.prompts is None:
                return []
            prompts = await _list_all(self._client.list_prompts, lambda page: page.prompts)
        lines = []
        for each in prompts:
            names = ", ".join(given.name for given in each.arguments or ())
            lines.append(_describe(f"{each.name}({names})", each.title or "", each.description))
        return lines

    async def get_prompt(
        self, name: str, arguments: dict[str, str], context: Context, label: Label
    ) -> Done:
        with as_tool_errors(self._describe_end):
            answer = await self._client.get_prompt(name, arguments)
        content = [each.content for each in answer.messages]
        return await make_content_result(content, context, label)


async def _show_progress(
    context: Callable[[], Context], progress: float, total: float | None, message: str | None
) -> None:
    of = f" of {total:g}" if total else ""
    context().emit(f"{message or 'progress'} ({progress:g}{of})\n")


@contextmanager
def as_tool_errors(describe_end: Callable[[], str]) -> Iterator[None]:
    """What goes wrong in here with a server is told as a ToolError."""
    try:
        yield
    except (ExceptionGroup, *_FAILURES) as error:
        found = first_of_group(error)
        if not isinstance(found, _FAILURES):
            raise
        raise ToolError(_explain(found, describe_end())) from error


def _explain(error: Exception, ended: str) -> str:
    said = error.message if isinstance(error, MCPError) else str(error)
    if isinstance(error, ValidationError):
        said = f"its answer does not follow the protocol: {said[:500]}"
    text = "\n".join(filter(None, (said or "it did not answer in time", ended)))
    return escape_invisible(text[:MAX_ERROR_CHARS])


def _describe(name: str, title: str, description: str | None) -> str:
    words = " ".join(filter(None, (title, description)))
    line = f"{name[:500]}: {' '.join(words.split())[:200]}" if words else name[:500]
    return escape_invisible(line)


@asynccontextmanager
async def open_link(
    config: McpServerConfig,
    reach: Reach,
    on_end: Callable[[str], None],
    on_new_tools: Callable[[], None],
) -> AsyncIterator[SdkLink]:
    """Connect, and shake hands where the server wants that. `on_end` is told why the server has
    gone, `on_new_tools` that its tools are others now. Raises ToolError, ConfigError, SandboxError
    and NetError."""
    describe_end = _say_nothing
    transport: Any
    async with AsyncExitStack() as stack:
        if config.url:
            transport = await _open_http(config, reach, stack)
        else:
            process = LineProcess(await reach.sandbox(), make_command(config, reach))
            transport = open_process(process, on_end)
            describe_end = process.describe_end
        stack.enter_context(as_tool_errors(describe_end))
        requests = ServerRequests()

        async def handle(message: object) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                on_new_tools()

        client = Client(
            transport,
            read_timeout_seconds=_longest_wait(config),
            list_roots_callback=_make_roots(config),
            elicitation_callback=requests.elicit if config.elicitation else None,
            sampling_callback=requests.sample if config.sampling else None,
            message_handler=handle,
            # Without a handshake a server has no way to ask by itself.
            mode="legacy" if config.asks else "auto",
            client_info=mcp_types.Implementation(name="deskhand", version=version("deskhand")),
            cache=None,
        )
        await stack.enter_async_context(client)
        yield SdkLink(client, describe_end, requests)


def _longest_wait(config: McpServerConfig) -> float:
    """How long nothing may come: beside a call, which has a limit of its own, also while the server
    begins."""
    if config.asks:
        return ASKING_S
    return max(config.timeout_s, ANSWER_S) + GRACE_S


def _make_roots(config: McpServerConfig) -> ListRootsFnT | None:
    """Its folders, for a server that asks."""
    if not config.folders:
        return None
    paths = [Path(each.removesuffix(":rw")).expanduser() for each in config.folders]
    roots = [mcp_types.Root(uri=FileUrl(each.as_uri()), name=each.name) for each in paths]

    async def list_roots(context: ClientRequestContext) -> mcp_types.ListRootsResult:
        return mcp_types.ListRootsResult(roots=roots)

    return list_roots


def _say_nothing() -> str:
    return ""


async def _open_http(config: McpServerConfig, reach: Reach, stack: AsyncExitStack) -> Any:
    url = fill_variables(config.url, reach.environment)
    address = parse_url(url)
    headers = {
        name: fill_variables(text, reach.environment) for name, text in config.headers.items()
    }
    auth = None
    if reach.login is not None and "authorization" not in {name.lower() for name in headers}:
        _keep_client(config, reach.environment, reach.login)
        auth = make_auth(url, reach.login, reach.page or NoPerson(reach.name))
    # The word of whoever sets this, as for a collector of traces: it may be on this machine.
    net = reach.net.with_allowed_host(address.host, address.port)
    http = make_http_client(net, headers, _longest_wait(config), auth)
    await stack.enter_async_context(http)
    return streamable_http_client(url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES)


def _keep_client(
    config: McpServerConfig, environment: Mapping[str, str], login: ServerLogin
) -> None:
    """Sign in as the client that the settings name, where they do. Raises ConfigError."""
    if not config.client_id:
        return
    known = make_client(
        fill_variables(config.client_id, environment),
        fill_variables(config.client_secret, environment),
    )
    if login.get("client") != known:
        login.set("client", known)


def make_command(config: McpServerConfig, reach: Reach) -> SandboxCommand:
    """How its program is run: in a folder of its own, which is its home. Raises ConfigError."""
    folder = str(reach.folder)
    fill = [fill_variables(each, reach.environment) for each in (config.command, *config.args)]
    environment = {name: f"{folder}/{cache}" for name, cache in CACHE_FOLDERS.items()}
    environment |= {
        name: fill_variables(text, reach.environment) for name, text in config.env.items()
    }
    mounts = [Mount(folder, write=True)]
    for each in config.folders:
        path = Path(each.removesuffix(":rw")).expanduser()
        if not path.is_absolute():
            raise ConfigError(f"the folder {each!r} of an MCP server must be an absolute path")
        mounts.append(Mount(str(path.resolve()), write=each.endswith(":rw")))
    return SandboxCommand(
        argv=tuple(fill),
        cwd=folder,
        mounts=tuple(mounts),
        env=tuple(environment.items()),
        timeout_s=LIFE_S,
        memory_bytes=MEMORY_BYTES,
        egress=reach.egress,
    )


async def _list_definitions(client: Client) -> tuple[list[ToolDefinition], list[str]]:
    """Its tools, and why some of them are left out."""
    found: dict[str, ToolDefinition] = {}
    problems: list[str] = []
    if client.server_capabilities.tools is None:
        return [], []
    for tool in await _list_all(client.list_tools, lambda page: page.tools):
        definition = _make_definition(tool)
        if why := find_problem(definition):
            problems.append(f"{tool.name[:64]!r} is left out: {why}")
        elif len(found) >= MAX_TOOLS:
            problems.append(f"{tool.name!r} is left out: there are {MAX_TOOLS} already")
        else:
            found[tool.name] = definition
    return list(found.values()), problems


async def _list_all(
    ask: Callable[..., Awaitable[P]], entries: Callable[[P], Iterable[E]]
) -> list[E]:
    """What stands on all pages of a list, or on the first MAX_PAGES."""
    found: list[E] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await ask(cursor=cursor)
        found += entries(page)
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _make_definition(tool: mcp_types.Tool) -> ToolDefinition:
    given = tool.annotations
    annotations = given.model_dump(by_alias=True, exclude_none=True) if given is not None else {}
    return clean_definition(
        ToolDefinition(
            name=tool.name,
            description=tool.description or tool.title or "",
            parameters=dict(tool.input_schema),
            output=dict(tool.output_schema or {}),
            annotations=annotations,
        )
    )
