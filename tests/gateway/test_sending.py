"""Messages and files that go elsewhere: asked, durable, and what came of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.testing.conversations import ELSEWHERE, HERE, Conversations
from deskhand.testing.injections import deed
from deskhand.testing.obedient import Obedient
from deskhand.testing.person import OnlyThese, no
from deskhand.types.messages import File, Text


@pytest.fixture
def desk(tmp_path: Path) -> Conversations:
    made = Conversations(tmp_path)
    made.work.mkdir(parents=True, exist_ok=True)
    (made.work / "plan.pdf").write_bytes(b"%PDF-1.7")
    return made


@pytest.mark.parametrize(
    ("name", "arguments"), [("send_file", {"path": "plan.pdf"}), ("send_message", {"text": "hi"})]
)
async def test_what_goes_to_others_waits_for_a_yes(
    desk: Conversations, name: str, arguments: dict[str, str]
) -> None:
    there = deed(name, **arguments, channel=ELSEWHERE, chat="ada", thread_id="9")
    async with desk.running():
        refused = await desk.hold("1", "send it", Obedient((there,), "done", ()), no)
        await desk.settled()
        assert [each.status for each in refused.results.values()] == ["denied"]
        assert {each.address.channel for each in desk.sent} == {HERE}
        told = await desk.hold("2", "send it", Obedient((there,), "done", ()), OnlyThese([there]))
        await desk.settled()
    (result,) = told.results.values()
    assert result.text.startswith("on its way, as default/memory:2#")
    (sent,) = [each for each in desk.sent if each.address.channel == ELSEWHERE]
    assert (sent.address.chat, sent.address.thread) == (
        "ada",
        "9",
    ) and f"as {sent.key}" in result.text
    part = sent.parts[0]
    assert (
        isinstance(part, File) and (part.name, part.size_bytes) == ("plan.pdf", 8)
        if name == "send_file"
        else (isinstance(part, Text) and part.text == "hi")
    )


async def test_a_file_for_this_conversation_needs_nobody(desk: Conversations) -> None:
    (desk.work / "out").symlink_to("/etc")
    task = (
        deed("send_file", path="plan.pdf", text="the plan"),
        deed("send_file", path="out/passwd"),
    )
    async with desk.running():
        told = await desk.hold("1", "send it", Obedient(task, "done", ()), no)
        await desk.settled()
    assert told.asks == [] and [each.status for each in told.results.values()] == ["ok", "error"]
    assert "outside the workspace" in [*told.results.values()][1].text
    words, file = desk.sent[0].parts
    assert words == Text("the plan") and isinstance(file, File) and desk.sent[0].address.chat == "1"


async def test_a_file_that_was_sent_stays_as_long_as_its_conversation(desk: Conversations) -> None:
    async with desk.running():
        await desk.hold(
            "1", "send it", Obedient((deed("send_file", path="plan.pdf"),), "done", ()), no
        )
        await desk.settled()
        (file,) = [part for each in desk.sent for part in each.parts if isinstance(part, File)]
        desk.app.blobs.collect(desk.app.store.is_blob_used, 1e12)
        assert await desk.app.blobs.get(file.blob) == b"%PDF-1.7"
