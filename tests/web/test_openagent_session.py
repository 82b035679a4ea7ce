"""A client of openagent-core, from the first request to the last, against a whole Deskhand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from .openagent_client import Conversation, Event, OpenAgentClient, example
from .recorded.openagent import DONE, LONG, READ, RUN, Step, reply
from .served import Served, serving
from .test_recorded_openagent import CONFIG, RepliesInTurn

LIST = reply("", ("bash", {"command": "ls"}))
WRITE = reply("", ("write_file", {"path": "new.txt", "content": "new"}))


@asynccontextmanager
async def opened(
    home: Path, *replies: Step, **config: Any
) -> AsyncIterator[tuple[Served, OpenAgentClient]]:
    """A Deskhand whose model says these replies, and a client of its owner."""
    model = RepliesInTurn()
    model.replies = list(replies)
    async with serving(home, model, None, **{**CONFIG, **config}) as served:
        yield served, client_of(served, served.owner.headers["authorization"])


def client_of(served: Served, authorization: str) -> OpenAgentClient:
    return OpenAgentClient(served.http, served.url, authorization.removeprefix("Bearer "))


def types(events: list[Event]) -> list[str]:
    return list(dict.fromkeys(event["type"] for event in events))


def said(events: list[Event]) -> str:
    return "".join(event["content"] for event in events if event["type"] == "text_delta")


def files(events: list[Event]) -> set[str]:
    return {file["path"] for file in events[-1]["files"]}


async def test_the_documents_own_session(tmp_path: Path) -> None:
    async with opened(tmp_path, LIST, DONE) as (served, _):
        (served.app.settings.home.workspace("default") / "a.txt").write_text("hello\n")
        while (await served.owner.get("/health"))["status"] != "ok":
            await anyio.sleep(0.01)
        events = await example(
            served.url, served.owner.headers["authorization"].removeprefix("Bearer ")
        )
    assert types(events) == ["tool_call", "tool_result", "text_delta", "done"]
    assert "a.txt" in events[1]["result"] and said(events) == "That is all."
    assert "a.txt" in files(events)


async def test_a_session_from_start_to_end(tmp_path: Path) -> None:
    """Everything that a client of its documents does: files, skills, approvals, an interrupt,
    history, the end."""
    async with opened(tmp_path, READ, DONE, RUN, DONE, WRITE, DONE, LONG, DONE) as (_, client):
        assert await client.upload("a.txt", b"hello\n") == ["a.txt"]
        preview = await client.call("GET", "/api/workspace/file/a.txt")
        assert (preview["content"], preview["language"]) == ("hello\n", "plaintext")
        skill = {"name": "my-skill", "description": "Use it for reading", "body": "# Reading"}
        assert (await client.call("POST", "/api/skills", skill))["name"] == "my-skill"
        assert "my-skill" in {each["name"] for each in await client.call("GET", "/api/skills")}
        async with client.conversation(enable_approval=True) as conversation:
            assert types(await conversation.ask("read it")) == [
                "tool_call",
                "tool_result",
                "text_delta",
                "done",
            ]
            await conversation.send("message", content="run it")
            (asked,) = (await conversation.until("tool_approval_request"))[-1]["tools"]
            assert asked["input"] == {"command": "echo hi"} and asked["id"]
            await conversation.send("tool_approval_response", decision="approve")
            assert types(await conversation.until("done")) == ["tool_result", "text_delta", "done"]
            await conversation.send("message", content="write it")
            await conversation.until("tool_approval_request")
            await conversation.send("tool_approval_response", decision="deny")
            denied = await conversation.until("done")
            assert types(denied) == ["tool_approval_result", "tool_result", "text_delta", "done"]
            assert denied[0] == {
                "type": "tool_approval_result",
                "decision": "denied",
                "tools": ["write_file"],
            }
            assert "a.txt" in files(denied) and "new.txt" not in files(denied)
            await conversation.send("message", content="go on")
            await conversation.until("text_delta")
            await conversation.send("interrupt", content="stop that")
            assert said(await after(conversation, "interrupted")) == "That is all."
        history = await client.call("GET", f"/api/conversations/{conversation.id}")
        assert history["title"] == "read it" and history["enable_approval"] is True
        assert history["messages"][0]["content"] == "read it"
        call = history["messages"][1]["content"][0]
        result = history["messages"][2]["content"][0]
        assert (call["type"], call["name"], result["type"]) == (
            "tool_use",
            "read_file",
            "tool_result",
        )
        assert call["id"] == result["tool_use_id"] and "hello" in result["content"]
        listed = await client.call("GET", "/api/conversations")
        assert [(each["id"], each["title"]) for each in listed] == [(conversation.id, "read it")]
        assert await client.call("DELETE", f"/api/conversations/{conversation.id}") == {
            "status": "deleted"
        }
        assert await client.call("GET", "/api/conversations") == []


async def test_a_skill_that_was_uploaded_is_read(tmp_path: Path) -> None:
    read = reply("", ("list_skills", {}), ("read_skill", {"skill": "my-skill"}))
    async with opened(tmp_path, read, DONE) as (_, client):
        skill = {
            "name": "my-skill",
            "description": "Use it for reading",
            "body": "# Reading\n\nRead it twice.",
        }
        await client.call("POST", "/api/skills", skill)
        async with client.conversation() as conversation:
            listed, loaded = [
                each["result"]
                for each in await conversation.ask("read it")
                if each["type"] == "tool_result"
            ]
    assert "my-skill: Use it for reading" in listed
    assert loaded.startswith('<skill-loaded name="my-skill">') and "Read it twice." in loaded


async def after(conversation: Conversation, type_: str) -> list[Event]:
    """The events behind the first of this type, up to the end of the turn."""
    await conversation.until(type_)
    return await conversation.until("done")


async def test_only_owners_see_the_system_prompt(tmp_path: Path) -> None:
    """A member who may see the conversation is shown the rest of what the model is asked."""
    flags = {"enable_tracing": True, "system_prompt": "A rule of the house."}
    async with opened(tmp_path, DONE, DONE) as (served, client):
        async with client.conversation(**flags) as conversation:
            request = (await conversation.ask("hello"))[0]
            assert request["type"] == "llm_request" and "A rule of the house." in request["system"]
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        async with client_of(served, eve.headers["authorization"]).conversation(
            **flags
        ) as conversation:
            request = (await conversation.ask("hello"))[0]
            assert (request["type"], request["system"]) == ("llm_request", "")
            assert (
                request["messages"][0]["role"] == "user"
                and request["tool_count"] == len(request["tools"]) > 0
            )


async def test_a_request_that_is_shown_holds_no_secret(tmp_path: Path) -> None:
    """Also one that stands in a prompt file: the log never had it."""
    secret = "sk-or-0123456789abcdef"
    async with opened(tmp_path, DONE, environment={"OPENROUTER_API_KEY": secret}) as (
        served,
        client,
    ):
        (served.app.settings.home.workspace("default") / "AGENTS.md").write_text(
            f"The key is {secret}.\n"
        )
        async with client.conversation(enable_tracing=True) as conversation:
            events = await conversation.ask("hello")
    assert secret not in str(events) and "The key is" in events[0]["system"]


async def test_a_call_of_the_model_is_told_only_where_it_is_traced(tmp_path: Path) -> None:
    async with opened(tmp_path, DONE) as (served, client), client.conversation() as conversation:
        session = f"default/web:owner:{conversation.id}"
        kinds: list[str] = []
        with served.app.feed.following(session, sees_prompts=True) as follower:
            await conversation.ask("hello")
            kinds = [getattr(item, "kind", "") for item in follower.items]
    assert "text" in kinds and not {"prompt", "request"} & set(kinds)


async def test_a_fault_names_the_field(tmp_path: Path) -> None:
    async with opened(tmp_path) as (served, _):
        faults = {
            "enable_teams": {"enable_teams": "perhaps"},
            "system_prompt": {"system_prompt": ["x"]},
            "thinking_effort": {"thinking_effort": "enormous"},
        }
        for field, body in faults.items():
            status, answer = await served.owner.ask("POST", "/api/chat", body)
            (fault,) = answer["detail"]
            assert (status, fault["loc"]) == (422, ["body", field]) and fault["msg"], answer
        status, answer = await served.owner.ask(
            "POST", "/api/skills", {"name": "x", "description": "y"}
        )
        assert (status, answer["detail"][0]["loc"]) == (422, ["body", "body"])


async def test_what_a_command_prints_after_the_turn_is_told(tmp_path: Path) -> None:
    """The end of a command in the background opens a turn of its own; its clients are told of it
    first."""
    beside = reply("", ("background_run", {"command": "sleep 1; echo beside"}))
    async with (
        opened(tmp_path, beside, DONE, DONE) as (_, client),
        client.conversation() as conversation,
    ):
        await conversation.ask("run it beside")
        events = await conversation.until("done")
    assert types(events) == ["background_result", "text_delta", "done"]
    (notice,) = events[0]["notifications"]
    assert (notice["status"], notice["command"]) == ("completed", "sleep 1; echo beside")
    assert notice["result"].strip() == "beside" and notice["task_id"]


async def test_members_are_not_shown_what_is_known_of_the_owner(tmp_path: Path) -> None:
    async with opened(tmp_path, DONE) as (served, client):
        workspace = served.app.settings.home.workspace("default")
        await anyio.Path(workspace / "memory").mkdir(exist_ok=True)
        (workspace / "memory" / "private.md").write_text("x")
        (workspace / "a.txt").write_text("x")
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        member = client_of(served, eve.headers["authorization"])
        assert "memory/private.md" in {
            each["path"] for each in await client.call("GET", "/api/workspace/files")
        }
        theirs = {each["path"] for each in await member.call("GET", "/api/workspace/files")}
        async with member.conversation() as conversation:
            assert files(await conversation.ask("hello")) == theirs
        assert "a.txt" in theirs and not {path for path in theirs if path.startswith("memory/")}
