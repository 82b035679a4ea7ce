"""MCP servers over HTTP: seen, tried and reviewed by owners alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.mcp_servers.working import server_of

from .served import Served, serving

SERVERS = "/api/mcp-servers"
BAD = {**server_of(), "args": ["-c", "import no_such_module"]}


async def see(served: Served, name: str) -> dict[str, Any]:
    found = {each["name"]: each for each in await served.owner.get(SERVERS)}
    return dict(found[name])


async def test_a_server_is_tried(tmp_path: Path) -> None:
    servers = {"test": server_of(), "bad": BAD, "off": server_of(enabled=False)}
    async with serving(tmp_path, tools=None, mcp=servers) as served:
        status, view = await served.owner.ask("POST", f"{SERVERS}/test/try")
        assert (status, view["kind"], view["trusted"], view["problem"]) == (
            200,
            "program",
            False,
            "",
        )
        assert {"add", "remember"} <= {tool["name"] for tool in view["tools"]}
        assert {tool["state"] for tool in view["tools"]} == {"accepted"}
        status, answer = await served.owner.ask("POST", f"{SERVERS}/bad/try")
        assert status == 400 and "is not available" in answer["error"]["message"]
        assert "it ended with code" in (await see(served, "bad"))["problem"]
        for name in ("off", "nobody"):
            status, answer = await served.owner.ask("POST", f"{SERVERS}/{name}/try")
            assert status == 400 and "there is no MCP server" in answer["error"]["message"].replace(
                "There", "there"
            )
        assert (await see(served, "off"))["enabled"] is False


async def test_what_has_changed_is_accepted_as_it_was_seen(tmp_path: Path) -> None:
    async with serving(tmp_path, tools=None, mcp={"test": server_of()}) as served:
        assert (await served.owner.ask("POST", f"{SERVERS}/test/try"))[0] == 200
    async with serving(tmp_path, tools=None, mcp={"test": server_of("poison", "shell")}) as served:
        _, view = await served.owner.ask("POST", f"{SERVERS}/test/try")
        waiting = {tool["name"]: tool for tool in view["tools"] if tool["state"] != "accepted"}
        assert {name: tool["state"] for name, tool in waiting.items()} == {
            "add": "changed",
            "shell": "new",
        }
        assert "+description: Add. <IMPORTANT>" in waiting["add"]["change"]

        accept = f"{SERVERS}/test/accept"
        for wrong in (
            {"name": "add", "digest": "0" * 64},
            {"name": "remember", "digest": waiting["add"]["digest"]},
            {"name": "nothing", "digest": waiting["add"]["digest"]},
        ):
            status, answer = await served.owner.ask("POST", accept, {"tools": [wrong]})
            assert status == 403 and "review them again" in answer["error"]["message"], wrong
        assert (await see(served, "test"))["tools"] == view["tools"]

        seen = [{"name": name, "digest": tool["digest"]} for name, tool in waiting.items()]
        status, view = await served.owner.ask("POST", accept, {"tools": seen})
        assert status == 200 and {tool["state"] for tool in view["tools"]} == {"accepted"}
        (note,) = [
            each for each in await served.people.list_audit_notes() if each.what == "tools accepted"
        ]
        assert note.subject == "test: add, shell"


async def test_only_owners_see_them(tmp_path: Path) -> None:
    async with serving(tmp_path, mcp={"test": server_of()}) as served:
        for role in ("member", "approver"):
            await served.people.add_user(role, role)
            other = (await served.token(role))[1]
            body = {"tools": [{"name": "add", "digest": "0" * 64}]}
            for method, path, given in (
                ("GET", SERVERS, None),
                ("POST", f"{SERVERS}/test/try", {}),
                ("POST", f"{SERVERS}/test/accept", body),
            ):
                assert (await other.ask(method, path, given))[0] == 403, (role, path)
