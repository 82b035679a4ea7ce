"""Files that are sent: which, to whom, and as what."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from deskhand.tools.label_marks import OWNER_READERS
from deskhand.tools.send_file import MAX_BYTES, SendFile
from deskhand.types.commit import Change, Outgoing
from deskhand.types.errors import ToolError
from deskhand.types.identity import Address
from deskhand.types.labels import Label
from deskhand.types.messages import File, Image, Text

from .conftest import Hands, text_of

SEND = SendFile(frozenset({"terminal"}))
HERE = Address("memory", "bot", "1", "t", group=True)


@pytest.mark.parametrize(
    ("to", "address", "effect"),
    [
        ({}, HERE, "send_owner"),
        ({"thread_id": "u"}, Address("memory", "bot", "1", "u", group=True), "send_other"),
        ({"chat": "2"}, Address("memory", "bot", "2"), "send_other"),
        ({"channel": "mail", "chat": "x@y"}, Address("mail", "", "x@y"), "send_other"),
    ],
)
async def test_a_file_is_sent_as_it_was(
    hands: Hands, to: dict[str, str], address: Address, effect: str
) -> None:
    hands.address = HERE
    hands.write("out/a b.pdf", b"%PDF-1.7 \x00\xff")
    done = await hands.done(SEND, path="out/a b.pdf", text="Here it is", **to)
    hands.write("out/a b.pdf", b"changed")
    (outgoing,) = done.outbox
    words, file = outgoing.parts
    assert (outgoing.key, outgoing.address) == (f"{hands.session}#1.c:send", address)
    assert words == Text("Here it is") and isinstance(file, File)
    assert (file.name, file.mime, file.size_bytes) == ("a b.pdf", "application/pdf", 11)
    assert await (await hands.context()).reach.host.get_blob(file.blob) == b"%PDF-1.7 \x00\xff"
    assert text_of(done) == f"on its way, as {outgoing.key}\n" and isinstance(done.parts[1], File)
    assert SEND.effect_of(msgspec.Raw(msgspec.json.encode({"path": "a"} | to)), HERE) == effect


async def test_a_picture_goes_as_a_picture(hands: Hands) -> None:
    hands.write("cat.png", b"\x89PNG")
    (outgoing,) = (await hands.done(SEND, path="cat.png")).outbox
    assert [type(part) for part in outgoing.parts] == [Image]


async def test_where_people_read_the_log_it_stands_in_it(hands: Hands) -> None:
    hands.address = Address("terminal", chat="z")
    hands.write("a.txt", b"x")
    done = await hands.done(SEND, path="a.txt", text="look")
    assert done.outbox == () and text_of(done) == "shown in the conversation\n"
    assert isinstance(done.parts[1], File)
    for elsewhere in ({"chat": "y"}, {"channel": "mail"}):
        with pytest.raises(ToolError, match=r"read only their own conversations|name the chat"):
            await hands(SEND, path="a.txt", **elsewhere)


async def test_what_is_not_sent(hands: Hands, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("TOPSECRET")
    (hands.folder / "shared").symlink_to(outside)
    (hands.folder / "key").symlink_to(outside / "key")
    (hands.folder / "folder").mkdir()
    os.mkfifo(hands.folder / "pipe")
    hands.write("nothing", b"")
    with (hands.folder / "large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    for path, why in (
        ("shared/key", "outside the workspace"),
        ("key", "outside the workspace"),
        ("../outside/key", "outside the workspace"),
        (f"{outside}/key", "outside the workspace"),
        ("/etc/passwd", "outside the workspace"),
        ("/proc/self/environ", "outside the workspace"),
        ("folder", "folder. is not a file"),
        ("pipe", "not a file"),
        ("nothing", "empty"),
        ("large", "larger than 50 MB"),
        ("missing", "missing"),
    ):
        with pytest.raises(ToolError, match=why):
            await hands(SEND, path=path)
    with (hands.folder / "large").open("r+b") as file:
        file.truncate(MAX_BYTES)
    assert (await hands.done(SEND, path="large")).outbox
    await hands.allow(outside)
    assert isinstance((await hands.done(SEND, path=f"{outside}/key")).outbox[0], Outgoing)


async def test_what_is_for_its_owner_alone_goes_to_nobody_else(hands: Hands) -> None:
    hands.write("memory.md", b"likes tea")
    (hands.folder / "link.md").symlink_to("memory.md")
    label = msgspec.json.encode(Label("tool_local", OWNER_READERS, "file diary.txt"))
    hands.write("diary.txt", b"dear diary")
    await hands.store.change(
        (Change("file_label_set", (str(hands.folder / "diary.txt"), label, "s", 0.0)),)
    )
    for path in ("memory.md", "./link.md", "diary.txt"):
        assert (await hands.done(SEND, path=path)).outbox
        with pytest.raises(ToolError, match="only for its owner"):
            await hands(SEND, path=path, chat="2")
    hands.audience = ("bob",)
    with pytest.raises(ToolError, match="only for its owner"):
        await hands(SEND, path="diary.txt")
