"""Diffs over HTTP: what changes came to, what a call would change, and who may see which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.files import edit_file, write_file
from deskhand.tools.kv import kv_set
from deskhand.types.commit import Change
from deskhand.types.labels import Label
from deskhand.types.messages import Message, ToolCall

from .served import Client, Served, serving
from .test_guard import problem
from .test_lookup import settled

TOOLS = (write_file, edit_file, kv_set)


def calling(request: Request) -> Message:
    """`TOOL {arguments}` makes that call."""
    last = request.messages[-1].message
    if last.role == "tool":
        return say("done")
    text = last.text[last.text.index("call ") + 5 :]
    name, _, arguments = text.partition(" ")
    return say("", ToolCall(f"c{len(request.messages)}", name, msgspec.Raw(arguments.encode())))


async def make(client: Client, tool: str, chat: str = "work", **arguments: object) -> None:
    """Have this call made, and done."""
    said = f"call {tool} {msgspec.json.encode(arguments).decode()}"
    status, answer = await client.ask("POST", f"/api/chat/{chat}", {"message": said})
    assert status == 200, answer


async def calls(client: Client, chat: str = "work") -> list[str]:
    """The queries that ask for the diffs of a conversation's calls."""
    log = await client.get(f"/api/sessions/{chat}/log?limit=1000")
    return [
        f"n={each['n']}&call={part['id']}"
        for each in log
        if each["event"]["type"] == "model_replied"
        for part in each["event"]["message"]["parts"]
        if part["type"] == "tool_call"
    ]


def folder(served: Served) -> Path:
    return Path(served.app.current.agent("default").folder)


async def test_a_change_and_the_call_that_made_it(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(calling), TOOLS) as served:
        owner = served.owner
        await make(owner, "write_file", path="a.txt", content="one\ntwo\n")
        await make(owner, "edit_file", path="a.txt", edits=[{"old": "two", "new": "2"}])
        await make(owner, "kv_set", key="last", value="a.txt")
        (folder(served) / "b.bin").write_bytes(b"\0\1\2")
        await make(owner, "write_file", path="b.bin", content="text")
        made, edited, key, binary = [
            await owner.get(f"/api/changes/{n}/diff") for n in (1, 2, 3, 4)
        ]
        assert made == {
            "done": True,
            "files": [
                {"place": "a.txt", "did": "made", "diff": made["files"][0]["diff"], "why": ""}
            ],
            "more": 0,
        }
        assert made["files"][0]["diff"] == "--- /dev/null\n+++ a.txt\n@@ -0,0 +1,2 @@\n+one\n+two"
        assert edited["files"][0]["diff"] == "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
        assert "+a.txt" in key["files"][0]["diff"] and key["files"][0]["place"] == "last"
        assert (binary["files"][0]["diff"], binary["files"][0]["why"]) == (
            "",
            "It is no text: 3 bytes before, 4 after.",
        )
        (folder(served) / "a.txt").write_text(
            "mine\n"
        )  # what somebody did since changes nothing of what it was
        assert [
            await owner.get(f"/api/sessions/work/diff?{query}") for query in await calls(owner)
        ] == [
            *(made, edited, key, binary),
        ]
        assert problem(await owner.ask("GET", "/api/changes/99/diff")) == (404, "not_found")
        for query in ("n=1&call=c1", "n=999999&call=x", "n=2&call=.."):
            assert problem(await owner.ask("GET", f"/api/sessions/work/diff?{query}")) == (
                404,
                "not_found",
            ), query
        assert problem(await owner.ask("GET", "/api/sessions/work/diff?call=x")) == (
            404,
            "not_found",
        )
        for query in ("n=-1&call=x", f"n=2&call={'x' * 201}"):
            assert problem(await owner.ask("GET", f"/api/sessions/work/diff?{query}"))[0] == 400, (
                query
            )


async def test_others_learn_nothing(tmp_path: Path) -> None:
    """A member of another conversation and a viewer; and of a file for owners alone its text,
    though the call was theirs."""
    async with serving(tmp_path, ScriptedModel(calling), TOOLS) as served:
        for name, role in (("eve", "member"), ("vera", "viewer")):
            await served.people.add_user(name, role)
        (_, eve), (_, vera) = await served.token("eve"), await served.token("vera", ("read",))
        secret = folder(served) / "secret.txt"
        secret.write_text("the owner's\n")
        marked = (str(secret), msgspec.json.encode(Label("tool_local", ("role:owner",))), "", 0.0)
        await served.app.store.change([Change("file_label_set", marked)])
        await make(served.owner, "write_file", path="a.txt", content="one\n")
        await make(eve, "write_file", chat="hers", path="secret.txt", content="hers\n")
        theirs = "default~web:owner:work"
        (query,) = await calls(served.owner)
        for client in (eve, vera):
            assert problem(await client.ask("GET", "/api/changes/1/diff")) == (404, "not_found")
            assert problem(await client.ask("GET", f"/api/sessions/{theirs}/diff?{query}")) == (
                404,
                "not_found",
            )
        mine = await eve.get(f"/api/sessions/hers/diff?{(await calls(eve, 'hers'))[0]}")
        assert mine == await eve.get("/api/changes/2/diff")
        assert mine["files"] == [
            {
                "place": "secret.txt",
                "did": "changed",
                "diff": "",
                "why": "You may not see what stands in it.",
            }
        ]
        seen = await served.owner.get("/api/changes/2/diff")
        assert seen["files"][0]["diff"].endswith("-the owner's\n+hers")


async def asked(client: Client, chat: str, tool: str, **arguments: object) -> Any:
    """Have this call asked about, and what it would do."""
    await client.ask("PATCH", f"/api/sessions/{chat}", {"approval": True})
    said = f"call {tool} {msgspec.json.encode(arguments).decode()}"
    await client.ask("POST", f"/api/sessions/{chat}/messages", {"text": said})
    await settled(
        client, "/api/approvals", lambda found: any(each["name"] == chat for each in found)
    )
    waiting = [each for each in await client.get("/api/approvals") if each["name"] == chat]
    found = await client.get(f"/api/sessions/{chat}/diff?{(await calls(client, chat))[0]}")
    assert found == await client.get(f"/api/sessions/{chat}/diff?call={waiting[0]['call_id']}")
    return found


async def test_what_a_call_would_change_as_the_file_is_now(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(calling), TOOLS) as served:
        owner = served.owner
        notes = folder(served) / "notes.txt"
        notes.write_text("milk\nbread\n")
        would = await asked(
            owner, "one", "edit_file", path="notes.txt", edits=[{"old": "bread", "new": "a tent"}]
        )
        assert not would["done"]
        assert would["files"][0]["diff"].endswith("@@ -1,2 +1,2 @@\n milk\n-bread\n+a tent")
        notes.write_text("milk\nbread\n\nlater\n")
        (query,) = await calls(owner, "one")
        assert "later" in (await owner.get(f"/api/sessions/one/diff?{query}"))["files"][0]["diff"]
        notes.write_text("all gone\n")
        (file,) = (await owner.get(f"/api/sessions/one/diff?{query}"))["files"]
        assert file["diff"] == "" and file["why"].startswith(
            "This would fail: edit 1: the old text was not found"
        )
        assert notes.read_text() == "all gone\n"
        over = await asked(owner, "two", "write_file", path="notes.txt", content="x\n" * 2_000)
        assert over["files"][0]["diff"].endswith(" more lines")
        new = await asked(
            owner, "three", "str_replace", file_path="notes.txt", old_str="all", new_str="none"
        )
        assert new["files"][0]["diff"].endswith("-all gone\n+none gone")
        key = await asked(owner, "four", "kv_set", key="a", value="b")
        assert key == {"done": False, "files": [], "more": 0}


async def test_a_call_that_writes_beside_a_name_that_looks_like_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(calling), TOOLS) as served:
        (folder(served) / "notes.txt").write_text("milk\n")
        (file,) = (
            await asked(served.owner, "one", "write_file", path="Notes.txt", content="bread\n")
        )["files"]
        assert file["why"] == "Another name differs only by case: 'notes.txt'." and file[
            "diff"
        ].endswith("+bread")
        (same,) = (
            await asked(served.owner, "two", "write_file", path="notes.txt", content="bread\n")
        )["files"]
        assert same["why"] == ""


async def test_what_a_call_would_change_stays_inside(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(calling), TOOLS) as served:
        (tmp_path / "outside.txt").write_text("not for it\n")
        (folder(served) / "link").symlink_to(tmp_path / "outside.txt")
        for number, path in enumerate(
            ("../../../outside.txt", "link", str(tmp_path / "outside.txt"), "/etc/passwd")
        ):
            found = await asked(served.owner, f"c{number}", "write_file", path=path, content="x\n")
            (file,) = found["files"]
            assert file["diff"] == "" and file["why"].startswith("This would fail"), path
