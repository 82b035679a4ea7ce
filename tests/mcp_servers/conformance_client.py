"""Our client, as the public conformance suite starts it: with the address of a server, and the name
of a scenario in the environment. It connects, lists the tools and calls each."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.shared.auth import AuthorizationCodeResult

from deskhand.config.mcp_servers import McpServerConfig
from deskhand.mcp.connection import open_link
from deskhand.mcp.servers import Reach
from deskhand.net.client import Net

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
COMES_BACK = "http://127.0.0.1/callback"


class LoopbackNet(Net):
    """For servers that are all on this machine."""

    def with_allowed_host(self, host: str, port: int) -> LoopbackNet:
        return self

    def _check_address(self, host: str, address: str, port: int) -> None:
        return


class Memory:
    """A `sign_in.LoginPlace` for one run."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def set(self, name: str, value: str) -> None:
        self.values[name] = value


class Person:
    """Opens the address, and comes back at once: a `sign_in.SignInPage`."""

    redirect_uri = COMES_BACK

    def __init__(self) -> None:
        self.brought = AuthorizationCodeResult(code="")

    async def show(self, address: str) -> None:
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.get(address, follow_redirects=False)
        given = parse_qs(urlsplit(answer.headers["location"]).query)
        first = {name: values[0] for name, values in given.items()}
        self.brought = AuthorizationCodeResult(
            code=first["code"], state=first.get("state"), iss=first.get("iss")
        )

    async def wait(self) -> AuthorizationCodeResult:
        return self.brought


async def never() -> None:
    raise AssertionError("it has no program")


async def main(url: str) -> None:
    login = Memory()
    reach = Reach("test", never, LoopbackNet(), {}, Path("/"), login=login, page=Person())  # type: ignore[arg-type]
    given = {name: CONTEXT.get(name, "") for name in ("client_id", "client_secret")}
    config = McpServerConfig(url=url, timeout_s=20, **given)
    async with open_link(config, reach, lambda why: None, lambda: None) as link:
        tools, _ = await link.list_tools()
        for tool in tools:
            arguments = dict.fromkeys(tool.parameters.get("properties", {}), 1)
            await link._client.call_tool(tool.name, arguments, 20)


anyio.run(main, sys.argv[1])
