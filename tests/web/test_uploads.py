"""What people put into the workspace: judged by where it comes to lie, with their name, and
undoable like a call."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from deskhand.sandbox.choose import Proven

from .served import Client
from .test_files import form
from .test_two_people import MEMBERS, OWNERS, Pair, living, texts

SKILL = f"---\nname: helper\ndescription: {MEMBERS}\n---\n{MEMBERS}\n"
TOOL = f'def evil(text: str = "") -> str:\n    """{MEMBERS}"""\n    return text\n'
PUT = (
    ("knowledge", "mail.md", MEMBERS),
    ("skills/helper", "SKILL.md", SKILL),
    ("tools", "evil.py", TOOL),
    (".", "SOUL.md", MEMBERS),
)


async def put(client: Client, folder: str, name: str, text: str) -> int:
    status, _ = await client.ask(
        "POST", f"/api/files?subdir={quote(folder)}", data=form((name, text.encode()))
    )
    return status


async def changes(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get("/api/changes"))["changes"]
    return found


@pytest.mark.parametrize(("folder", "name", "text"), PUT)
async def test_a_link_to_what_steers_takes_no_upload_of_a_member(
    proven: Proven, folder: str, name: str, text: str
) -> None:
    async with living(proven) as pair:
        await pair.shell("bob", f"mkdir -p {folder}; ln -sn {folder} way; ln -sn way way2")
        for way in (folder, "way", "way2", f"./{folder}", f"{pair.work}/{folder}"):
            assert await put(pair.clients["bob"], way, name, text) == 403, way
        assert (
            not (pair.work / folder / name).exists()
            or MEMBERS not in (pair.work / folder / name).read_text()
        )
        await pair.check()


async def test_an_upload_over_a_file_can_be_undone(proven: Proven) -> None:
    async with living(proven) as pair:
        owner = pair.clients["owner"]
        bob = pair.clients["bob"]
        await pair.says("owner", ("write_file", {"path": "plan.txt", "content": "hers\n"}))
        assert await put(bob, ".", "plan.txt", MEMBERS) == 200
        assert await labelled(pair, "plan.txt") == ("bob",)
        (change,) = [each for each in await changes(owner) if each["tool"] == "upload"]
        assert (change["person"], change["session"], change["what"], change["count"]) == (
            "bob",
            "",
            "plan.txt",
            1,
        )
        found = await owner.get(f"/api/changes/{change['n']}/diff")
        assert MEMBERS in str(found) and "hers" in str(found)
        status, said = await owner.ask("POST", f"/api/changes/{change['n']}/undo", {})
        assert status == 200, said
        assert (pair.work / "plan.txt").read_text() == "hers\n"
        assert await labelled(pair, "plan.txt") == ()
        await pair.check()


async def test_what_an_upload_took_the_place_of_keeps_its_readers(proven: Proven) -> None:
    """A member sends a file over one that they may not read: neither the diff nor an undo of it
    shows it to them."""
    async with living(proven) as pair:
        bob = pair.clients["bob"]
        await pair.shell("owner", "cat USER.md > plan.txt")
        assert await put(bob, ".", "plan.txt", "mine") == 200
        assert (await bob.ask("GET", "/api/files/raw?path=plan.txt"))[1] == "mine"
        for change in await changes(bob):
            for path in (f"/api/changes/{change['n']}", f"/api/changes/{change['n']}/diff"):
                assert OWNERS not in str(await bob.get(path))
            await bob.ask("POST", f"/api/changes/{change['n']}/undo", {})
        assert OWNERS in (pair.work / "plan.txt").read_text()
        assert (await bob.ask("GET", "/api/files/raw?path=plan.txt"))[0] == 403
        await pair.check()


async def labelled(pair: Pair, name: str) -> tuple[str, ...]:
    """On whose word the owner's model reads it."""
    pair.model.requests.clear()
    await pair.says("owner", ("read_file", {"path": name}))
    return tuple(
        {each for request in pair.model.requests for _, by in texts(request) for each in by}
    )


SECRETS = {
    "a name": 'touch "f-$(tr -dc a-z- < USER.md | head -c 8)"',
    "sizes": 'head -c "$(cat USER.md | wc -c)" /dev/zero > size.bin',
    "how many": "for n in $(seq $(cat USER.md | wc -c)); do touch n-$n; done",
    "a time of a file": "touch plain.txt; touch -d @$(cat USER.md | wc -c) plain.txt",
    "a time of a folder": "mkdir -p box; touch -d @$(cat USER.md | wc -c) box",
    "a branch": (
        'git init -q repo; git -C repo symbolic-ref HEAD "refs/heads/$(tr -dc a-z- < USER.md | '
        'head -c 8)"'
    ),
}


@pytest.mark.parametrize("way", SECRETS)
async def test_what_a_command_made_of_what_is_private_is_in_no_list(
    proven: Proven, way: str
) -> None:
    """A member sees the same of it whatever stands in the file that their command has read."""
    told = list[str]()
    for text in ("kanari-o a\n", "another secret, which is longer than that\n"):
        async with living(proven) as pair:
            bob = pair.clients["bob"]
            (pair.work / "USER.md").write_text(text)
            await pair.says(
                "bob",
                ("shell", {"command": "mkdir -p box; echo plain > plain.txt; touch g-1 g-2 g-3"}),
            )
            await pair.says("bob", ("shell", {"command": SECRETS[way]}))
            asked = ["/api/files", "/api/files?path=box", "/api/workspace/files"]
            numbers = [each["n"] for each in await changes(bob)]
            asked += [f"/api/changes/{n}{rest}" for n in numbers for rest in ("", "/diff")]
            found = [await bob.ask("GET", path) for path in (*asked, "/api/changes")]
            told.append(str([_timeless(each) for each in found]))
    assert told[0] == told[1]


def _timeless(said: Any) -> Any:
    """Without the times at which we ran."""
    if isinstance(said, dict):
        return {
            key: _timeless(each)
            for key, each in said.items()
            if key not in ("at", "undone_at") and not _now(each)
        }
    return [_timeless(each) for each in said] if isinstance(said, list | tuple) else said


def _now(value: object) -> bool:
    return isinstance(value, float) and value > 1_000_000_000
