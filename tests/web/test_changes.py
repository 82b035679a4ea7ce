"""What agents changed, over HTTP and by /undo in a conversation: found by whom it was done for, and
put back."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.files import write_file
from deskhand.tools.kv import kv_set
from deskhand.tools.queries import find_value
from deskhand.types.events import CommandRun
from deskhand.types.messages import Message, ToolCall

from .served import Client, Served, serving
from .test_guard import problem
from .test_lookup import settled


def writing(request: Request) -> Message:
    """`write NAME TEXT` writes a file, and remembers its name."""
    last = request.messages[-1].message
    if last.role == "tool":
        return say("done")
    _, name, text = last.text[last.text.index("write ") :].split(" ", 2)
    file = msgspec.Raw(msgspec.json.encode({"path": name, "content": f"{text}\n"}))
    key = msgspec.Raw(msgspec.json.encode({"key": "last", "value": name}))
    return say(
        "", ToolCall(f"c{len(request.messages)}", "write_file", file), ToolCall("k", "kv_set", key)
    )


async def write(client: Client, name: str, text: str, chat: str = "work") -> None:
    status, _ = await client.ask("POST", f"/api/chat/{chat}", {"message": f"write {name} {text}"})
    assert status == 200


async def reply(served: Served, session: str, count: int) -> str:
    """What the command said that came as this one."""
    with anyio.fail_after(20):
        while True:
            found = [each.event for each in await served.app.store.events(session)]
            said = [event.reply for event in found if isinstance(event, CommandRun)]
            if len(said) >= count:
                return said[count - 1]
            await anyio.sleep(0.02)


async def test_the_timeline(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(writing), (write_file, kv_set)) as served:
        folder = Path(served.app.current.agent("default").folder)
        await write(served.owner, "a.txt", "one")
        await write(served.owner, "a.txt", "two")
        found = await served.owner.get("/api/changes?limit=3")
        assert [
            (each["n"], each["tool"], each["what"], each["can"]) for each in found["changes"]
        ] == [
            *(
                (3, "write_file", "a.txt", "undo"),
                (2, "kv_set", "last", "undo"),
                (1, "write_file", "a.txt", "undo"),
            ),
        ]  # to set a key to what it holds is no change
        assert found["more"] is None and found["changes"][0]["session"] == "work"
        one = await served.owner.get("/api/changes/1")
        assert one["places"] == [{"place": "a.txt", "did": "made", "kept": True}]
        _, refused = await served.owner.ask("POST", "/api/changes/1/undo")
        assert refused["change"] is None and "changed since by change 3" in refused["message"]
        status, done = await served.owner.ask("POST", "/api/changes/3/undo")
        assert (status, done["put_back"], done["message"]) == (200, ["a.txt"], "Put back: a.txt.")
        assert (folder / "a.txt").read_text() == "one\n"
        first, *_, undone = (await served.owner.get("/api/changes"))["changes"][:2]
        assert (first["n"], first["can"], first["undoes"], undone["can"]) == (
            done["change"],
            "redo",
            3,
            "",
        )
        assert (await served.owner.ask("POST", f"/api/changes/{done['change']}/undo"))[0] == 200
        assert (folder / "a.txt").read_text() == "two\n"
        assert [each["can"] for each in (await served.owner.get("/api/changes"))["changes"]] == [
            *("", "", "undo", "undo", "undo"),
        ]
        (folder / "a.txt").write_text("mine")
        assert (await served.owner.ask("POST", "/api/changes/3/undo"))[1]["change"] is None
        assert (await served.owner.ask("POST", "/api/changes/3/undo", {"force": True}))[1][
            "change"
        ] is not None
        assert (folder / "a.txt").read_text() == "one\n"
        assert problem(await served.owner.ask("GET", "/api/changes/99")) == (404, "not_found")
        assert problem(await served.owner.ask("GET", "/api/changes/x")) == (400, "bad_request")
        assert problem(await served.owner.ask("POST", "/api/changes/3/undo")) == (403, "refused")


async def test_members_see_what_was_done_for_them(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(writing), (write_file, kv_set)) as served:
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        _, reader = await served.token("eve", ("read",))
        await write(served.owner, "a.txt", "one")
        await write(eve, "b.txt", "one", "hers")
        assert {each["what"] for each in (await eve.get("/api/changes"))["changes"]} == {
            "b.txt",
            "last",
        }
        assert problem(await eve.ask("GET", "/api/changes/1")) == (404, "not_found")
        assert problem(await eve.ask("POST", "/api/changes/1/undo")) == (404, "not_found")
        theirs = await eve.ask("GET", "/api/changes?session=default~web:owner:work")
        assert problem(theirs) == (404, "not_found")
        number = next(
            each["n"]
            for each in (await eve.get("/api/changes"))["changes"]
            if each["what"] == "b.txt"
        )
        assert problem(await reader.ask("POST", f"/api/changes/{number}/undo")) == (
            403,
            "forbidden",
        )
        assert (await eve.ask("POST", f"/api/changes/{number}/undo"))[0] == 200
        assert len((await served.owner.get("/api/changes"))["changes"]) == 5
        assert "undo refused" in {
            note.what for note in await served.people.list_audit_notes() if note.who == "eve"
        }


async def test_undo_in_a_conversation(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(writing), (write_file, kv_set)) as served:
        folder = Path(served.app.current.agent("default").folder)
        session = "default/web:owner:work"
        for name, text in (("a.txt", "one"), ("a.txt", "two"), ("b.txt", "x")):
            await write(served.owner, name, text)
        await served.owner.ask("POST", "/api/sessions/work/messages", {"text": "/undo 2"})
        said = await reply(served, session, 1)
        assert said == (
            "Undone: the conversation is as it was before “write a.txt two”. Put back: "
            "last, b.txt, a.txt. "
            "`deskhand undo --redo` takes that back. Messages sent stay as they are."
        )
        assert (folder / "a.txt").read_text() == "one\n" and not (folder / "b.txt").exists()
        last = await find_value(served.app.store, "default", "", "last", 0.0)
        assert last is not None and last.value == "a.txt"
        (folder / "a.txt").write_text("mine")
        await served.owner.ask("POST", "/api/sessions/work/messages", {"text": "/undo"})
        said = await reply(served, session, 2)
        assert "Put back: last." in said and "a.txt was changed since, outside of Deskhand" in said
        assert (
            "`deskhand undo --change 1 --force`" in said
            and (folder / "a.txt").read_text() == "mine"
        )
        await settled(served.owner, "/api/changes", lambda found: len(found["changes"]) >= 9)


async def test_undo_of_mere_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.owner.ask("POST", "/api/chat/work", {"message": "hello"})
        await served.owner.ask("POST", "/api/sessions/work/messages", {"text": "/undo"})
        said = await reply(served, "default/web:owner:work", 1)
        assert said.endswith(
            "“hello”. No file, key-value or task was changed by it. Messages sent stay as they are."
        )


async def test_nobody_below_an_owner_brings_old_words_back_over_new_ones(tmp_path: Path) -> None:
    """What an owner had written once comes back by their own will alone, and not when somebody else
    chooses."""
    async with serving(tmp_path, ScriptedModel(writing), (write_file, kv_set)) as served:
        await served.people.add_user("bob", "member")
        bob = (await served.token("bob"))[1]
        rules = Path(served.app.current.agent("default").folder) / "rules.txt"
        await write(served.owner, "rules.txt", "old", "one")
        await write(bob, "rules.txt", "bob", "two")
        await write(served.owner, "rules.txt", "new", "three")
        number = next(
            each["n"]
            for each in (await bob.get("/api/changes"))["changes"]
            if each["what"] == "rules.txt"
        )
        for body in ({}, {"force": True}):
            await bob.ask("POST", f"/api/changes/{number}/undo", body)
            assert rules.read_text() == "new\n"
        status, refused = await bob.ask("POST", f"/api/changes/{number}/undo", {"force": True})
        assert (
            status == 403
            and "Only an owner may undo over what was changed since" in refused["error"]["message"]
        )
        assert (await served.owner.ask("POST", f"/api/changes/{number}/undo", {"force": True}))[
            0
        ] == 200
        assert rules.read_text() == "old\n"
