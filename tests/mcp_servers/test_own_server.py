"""Other programs reach Deskhand by MCP: over HTTP with a token, and over standard streams."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from deskhand.mcp.own_tools import TOOLS, make_request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ToolError
from deskhand.types.people import Scope
from deskhand.web.endpoints import ENDPOINTS
from tests.web.served import Served, serving


@asynccontextmanager
async def connected(
    served: Served,
    scopes: tuple[Scope, ...] = ("read", "chat"),
    user: str = "owner",
    mode: str = "auto",
) -> AsyncIterator[Client]:
    """A program that has a token."""
    _, secret = await served.people.make_token(user, "program", scopes)
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {secret}"}) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


async def call(client: Client, name: str, **arguments: Any) -> tuple[bool, str]:
    """Whether it worked, and what it said."""
    answer = await client.call_tool(name, arguments)
    (block,) = answer.content
    return not answer.is_error, str(getattr(block, "text", ""))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    model = ScriptedModel(lambda request: say("It is noon."))
    async with serving(tmp_path, model) as running:
        yield running


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_program_talks_reads_and_searches(served: Served, mode: str) -> None:
    async with connected(served, mode=mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
        worked, said = await call(client, "ask", message="What time is it?", conversation="clock")
        assert worked and msgspec.json.decode(said)["response"] == "It is noon."
        _, listed = await call(client, "list_conversations")
        assert [each["name"] for each in msgspec.json.decode(listed)["sessions"]] == ["clock"]
        _, read = await call(client, "read_conversation", conversation="clock")
        assert [each["content"] for each in msgspec.json.decode(read)["messages"]] == [
            "What time is it?",
            "It is noon.",
        ]
        _, found = await call(client, "search_messages", query="noon")
        assert msgspec.json.decode(found)[0]["name"] == "clock"
        uris = [str(each.uri) for each in (await client.list_resources()).resources]
        assert uris == ["deskhand://memory", "deskhand://conversations/clock"]
        (content,) = (await client.read_resource(uris[1])).contents
        assert "It is noon." in str(getattr(content, "text", ""))


async def test_jobs_are_resources_of_whoever_may_see_them(served: Served) -> None:
    text = "---\nschedule: daily 9:00\n---\n\nWater the plants.\n"
    draft = {"name": "plants", "text": text}
    _, program = await served.token("owner", ("read", "chat"))
    assert (await program.ask("POST", "/api/jobs", draft))[0] in (200, 201)
    async with connected(served) as client:
        uris = [str(each.uri) for each in (await client.list_resources()).resources]
        assert uris == ["deskhand://memory", "deskhand://jobs/plants"]
        (content,) = (await client.read_resource("deskhand://jobs/plants")).contents
        assert "Water the plants." in str(getattr(content, "text", ""))
        for uri in ("deskhand://jobs/none", "deskhand://jobs/../tokens", "deskhand://what"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
    await served.people.add_user("ben", "member")
    async with connected(served, user="ben") as client:
        uris = [str(each.uri) for each in (await client.list_resources()).resources]
        assert uris == ["deskhand://memory"]


async def test_it_has_the_rights_of_its_token_alone(served: Served) -> None:
    async with connected(served, scopes=("read",)) as client:
        worked, said = await call(client, "ask", message="hello")
        assert not worked and "chat" in said
        assert (await call(client, "list_conversations"))[0]
        assert not (await call(client, "read_memory"))[0]
    await served.people.add_user("ben", "member")
    async with connected(served) as client:
        await call(client, "ask", message="mine", conversation="private")
    async with connected(served, user="ben") as client:
        assert msgspec.json.decode((await call(client, "list_conversations"))[1])["sessions"] == []
        _, own = await call(client, "read_conversation", conversation="private")
        assert msgspec.json.decode(own)["messages"] == []
        theirs = "default/web:owner:private"
        assert not (await call(client, "read_conversation", conversation=theirs))[0]


async def test_nobody_gets_in_without_a_token(served: Served) -> None:
    async with httpx2.AsyncClient() as http:
        for headers in ({}, {"authorization": "Bearer nothing"}):
            answer = await http.post(f"{served.url}/mcp", json={}, headers=headers)
            assert answer.status_code == 401
        foreign = {"authorization": "Bearer x", "host": "evil.example"}
        assert (await http.post(f"{served.url}/mcp", json={}, headers=foreign)).status_code == 421


async def test_what_is_wrong_is_said(served: Served) -> None:
    async with connected(served) as client:
        for name, arguments, told in (
            ("run_job", {}, "missing: job. run_job takes: job"),
            ("run_job", {"job": "none", "x": 1}, "unknown: x"),
            ("run_job", {"job": "none"}, "There is no such job here."),
            ("nothing", {}, "there is no tool 'nothing'"),
            ("read_conversation", {"conversation": "../../api/settings"}, "error"),
        ):
            worked, said = await call(client, name, **arguments)
            assert not worked and told in said, (name, said)


async def test_over_standard_streams(tmp_path: Path) -> None:
    """`deskhand mcp serve`, for a Deskhand that runs; its token is gone afterwards."""
    home = str(tmp_path / "home")
    env = {
        **{name: os.environ[name] for name in ("PATH",)},
        "DESKHAND_HOME": home,
        "HOME": home,
        "DESKHAND_MODELS": "scripted/echo",
        "DESKHAND_WEB__PORT": "0",
    }
    python = [sys.executable, "-m", "deskhand"]
    async with await anyio.open_process([*python, "serve"], env=env, stdin=None) as service:
        with anyio.fail_after(60):
            while not list(Path(home).rglob("web.json")) and service.returncode is None:
                await anyio.sleep(0.05)
        try:
            target = StdioServerParameters(
                command=sys.executable, args=["-m", "deskhand", "mcp", "serve"], env=env
            )
            async with Client(target) as client:
                worked, said = await call(client, "ask", message="one")
                assert worked and "You said: one" in said
            listed = await anyio.run_process([*python, "tokens", "list"], env=env)
            assert b"mcp serve" not in listed.stdout
        finally:
            service.terminate()
            await service.wait()
    refused = await anyio.run_process([*python, "mcp", "serve"], env=env, check=False)
    assert b"start it with deskhand serve" in refused.stderr


KNOWN = {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}


def test_each_tool_is_an_endpoint() -> None:
    for tool in TOOLS.values():
        assert (tool.method, tool.path.partition("?")[0]) in KNOWN, tool.name


@given(st.text(max_size=50).filter(lambda name: name not in (".", "..")))
def test_a_name_stays_one_part_of_the_path(name: str) -> None:
    request = make_request(TOOLS["read_conversation"], {"conversation": name})
    start, _, rest = request.path.partition("/api/sessions/")
    inner, _, end = rest.partition("/history")
    assert (start, end) == ("", "") and "/" not in inner and "?" not in inner
    with pytest.raises(ToolError):
        make_request(TOOLS["read_conversation"], {"name": name})


@pytest.mark.parametrize("name", [".", ".."])
def test_no_name_leads_to_another_endpoint(name: str) -> None:
    with pytest.raises(ToolError, match="a name cannot be"):
        make_request(TOOLS["run_job"], {"job": name})
