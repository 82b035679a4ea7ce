"""The homeserver for tests, as matrix-nio and the plain API see it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from nio import (  # type: ignore[import-untyped]
    AsyncClient,
    AsyncClientConfig,
    MemoryDownloadResponse,
    RoomMessage,
    RoomMessageText,
    RoomSendError,
    RoomSendResponse,
    SyncError,
    SyncResponse,
    UploadResponse,
)

from deskhand.testing.matrix.person import MatrixError, Person
from deskhand.testing.matrix.synapse import Homeserver, Synapse

ONCE = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0)
"""Without it nio repeats a request for ever, and nobody hears of it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    """Its start takes seconds: one for all."""
    with Homeserver(tmp_path_factory.mktemp("synapse")) as found:
        yield found


@pytest.fixture
async def synapse(home: Homeserver) -> AsyncIterator[Synapse]:
    async with Synapse(home) as found:
        yield found


@pytest.fixture
async def ann(synapse: Synapse, request: pytest.FixtureRequest) -> Person:
    return await synapse.register(f"ann-{request.node.name}")


@pytest.fixture
async def bot(synapse: Synapse, request: pytest.FixtureRequest) -> AsyncIterator[AsyncClient]:
    account = await synapse.register(f"bot-{request.node.name}")
    client = AsyncClient(synapse.url, account.user_id, config=ONCE)
    client.restore_login(account.user_id, "", account.token)
    yield client
    await client.close()


async def room_of(ann: Person, bot: AsyncClient) -> str:
    """A direct room, in which both are; nio knows it."""
    room = await ann.direct(bot.user_id)
    await bot.join(room)
    await synced(bot)
    return room


async def synced(bot: AsyncClient) -> SyncResponse:
    found = await bot.sync(timeout=1000)
    assert isinstance(found, SyncResponse), found
    return found


def contents(found: SyncResponse, room: str) -> list[dict[str, Any]]:
    events = found.rooms.join[room].timeline.events
    return [each.source["content"] for each in events if isinstance(each, RoomMessage)]


async def test_what_people_write(synapse: Synapse, ann: Person, bot: AsyncClient) -> None:
    room = await ann.direct(bot.user_id)
    invited = (await synced(bot)).rooms.invite[room].invite_state
    assert any(getattr(each, "content", {}).get("is_direct") for each in invited)
    await bot.join(room)
    await synced(bot)
    first = await ann.says(room, "hello", formatted="<b>hello</b>")
    await ann.replies(room, first, "and?")
    await ann.in_thread(room, first, "aside")
    await ann.edits(room, first, "hello!")
    await ann.reacts(room, first, "👍")
    gone = await ann.says(room, "never mind")
    await ann.redacts(room, gone)
    await ann.speaks(room, b"OggS")
    found = await synced(bot)
    said = contents(found, room)
    assert [each["body"] for each in said] == [
        "hello",
        "and?",
        "aside",
        "* hello!",
        "Voice message.ogg",
    ]
    assert said[1]["m.relates_to"] == {"m.in_reply_to": {"event_id": first}}
    assert said[2]["m.relates_to"]["rel_type"] == "m.thread"
    assert said[4]["org.matrix.msc3245.voice"] == {}
    file = await bot.download(said[4]["url"])
    assert isinstance(file, MemoryDownloadResponse) and file.body == b"OggS"
    posts = await ann.reads(room)
    assert [each.text for each in posts] == ["hello!", "and?", "aside", "Voice message.ogg"]
    assert posts[0].reactions == [(ann.user_id, "👍")] and posts[0].edits[0]["body"] == "hello"
    assert (posts[1].reply_to, posts[2].thread) == (first, first)


async def test_what_the_bot_says(synapse: Synapse, ann: Person, bot: AsyncClient) -> None:
    """A second one with the same transaction is the same message, even after a restart."""
    room = await room_of(ann, bot)
    text = {"msgtype": "m.notice", "body": "hi"}
    names = set()
    for _ in range(2):
        sent = await bot.room_send(room, "m.room.message", text, tx_id="k1")
        assert isinstance(sent, RoomSendResponse)
        names.add(sent.event_id)
    await synapse.restart()
    sent = await bot.room_send(room, "m.room.message", text, tx_id="k1")
    assert isinstance(sent, RoomSendResponse) and names == {sent.event_id}
    assert await ann.typing(room) == []
    await bot.room_typing(room, True)
    assert await ann.typing(room) == [bot.user_id]
    upload, _ = await bot.upload(BytesIO(b"one,two"), "text/csv", "a.csv", filesize=7)
    assert isinstance(upload, UploadResponse)
    named = {"msgtype": "m.file", "body": "a.csv", "url": upload.content_uri}
    await bot.room_send(room, "m.room.message", named)
    posts = await ann.reads(room)
    assert [each.text for each in posts] == ["hi", "a.csv"]
    assert await ann.downloads(posts[1].url) == b"one,two"


async def test_what_was_not_confirmed_comes_again(ann: Person, bot: AsyncClient) -> None:
    room = await room_of(ann, bot)
    since = bot.next_batch
    await ann.says(room, "one")
    first = await synced(bot)
    bot.next_batch = since
    again = await synced(bot)
    assert contents(first, room) == contents(again, room)
    assert "one" in contents(first, room)[0]["body"]


async def test_faults(synapse: Synapse, ann: Person, bot: AsyncClient) -> None:
    room = await room_of(ann, bot)
    text = {"msgtype": "m.text", "body": "hi"}
    synapse.fail("/send/", 429, retry_after_ms=1500)
    refused = await bot.room_send(room, "m.room.message", text)
    assert isinstance(refused, RoomSendError)
    assert (refused.status_code, refused.retry_after_ms) == ("M_LIMIT_EXCEEDED", 1500)
    # aiohttp itself repeats a PUT once if a connection that was kept open is cut.
    synapse.lose("/send/", times=2)
    with pytest.raises(aiohttp.ClientConnectionError):
        await bot.room_send(room, "m.room.message", text, tx_id="k1")
    assert not synapse.fails_next("/send/")
    await bot.room_send(room, "m.room.message", text, tx_id="k1")
    assert await ann.said(room, bot.user_id) == ["hi"]
    synapse.hang("/sync")
    with anyio.move_on_after(0.3) as waited:
        await bot.sync(timeout=1)
    assert waited.cancelled_caught
    await synapse.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await bot.room_send(room, "m.room.message", text)
    await synapse.start(synapse.port)
    await ann.says(room, "back")
    assert contents(await synced(bot), room)[-1]["body"] == "back"


async def test_refusals(ann: Person, bot: AsyncClient) -> None:
    """What the homeserver itself does not take."""
    text = {"msgtype": "m.text", "body": "hi"}
    refused = await bot.room_send("!nowhere:localhost", "m.room.message", text)
    assert isinstance(refused, RoomSendError) and refused.status_code == "M_FORBIDDEN"
    room = await room_of(ann, bot)
    long = {"msgtype": "m.text", "body": "x" * 66_000}
    refused = await bot.room_send(room, "m.room.message", long)
    assert isinstance(refused, RoomSendError) and refused.status_code == "M_TOO_LARGE"
    with pytest.raises(MatrixError, match="M_FORBIDDEN"):
        await ann.sends("!nowhere:localhost", "m.room.message", text)
    await bot.logout()
    bot.access_token = "revoked"
    error = await bot.sync()
    assert isinstance(error, SyncError) and error.status_code == "M_UNKNOWN_TOKEN"


async def test_an_encrypted_room(ann: Person, bot: AsyncClient) -> None:
    room = await ann.group("secret", bot.user_id, encrypted=True)
    await bot.join(room)
    await synced(bot)
    assert bot.rooms[room].encrypted
    sealed = {
        "algorithm": "m.megolm.v1.aes-sha2",
        "ciphertext": "AwgAEnACgAkLmt6qF84IK",
        "device_id": "RJYKSTBOIE",
        "sender_key": "IlRMeOPX2e0MurIyfWEucYBRVOEEUMrOHqn/8mLqMjA",
        "session_id": "X3lUlvLELLYxeTx4yOVu6UDpasGEVO0Jbu+QFnm0cKQ",
    }
    await ann.sends(room, "m.room.encrypted", sealed)
    events = (await synced(bot)).rooms.join[room].timeline.events
    assert [type(each).__name__ for each in events] == ["MegolmEvent"]
    assert not isinstance(events[0], RoomMessageText)


async def test_a_flood(tmp_path: Path) -> None:
    """The homeserver's own limit."""
    limit = {"rc_message": {"per_second": 0.1, "burst_count": 3}}
    async with Synapse(tmp_path, limit) as synapse:
        ann = await synapse.register("ann")
        room = await ann.group("noise")
        with pytest.raises(MatrixError) as caught:
            for number in range(9):
                await ann.says(room, f"{number}")
        assert caught.value.errcode == "M_LIMIT_EXCEEDED" and caught.value.retry_after_ms > 1000
