"""The Twitch of the tests is one that two independent clients take for the real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import pytest

from deskhand.testing.twitch.chat import CHAT_DELETE, WHISPER
from deskhand.testing.twitch.eventsub import EventSub
from deskhand.testing.twitch.server import TwitchServer

# Importing twitchio makes a subclass of aiohttp's Application, of which aiohttp warns.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpAdapter")


@pytest.fixture
async def server() -> AsyncIterator[TwitchServer]:
    async with TwitchServer() as started:
        yield started


async def until(true: Callable[[], object]) -> None:
    with anyio.fail_after(10):
        while not true():
            await anyio.sleep(0.02)


# ---------------------------------------------------------------------- twitchio


@asynccontextmanager
async def twitchio(
    server: TwitchServer, patch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Any, list[tuple[str, Any]]]]:
    """A client that notes the events it hears. Its three addresses are globals of the library."""
    from twitchio import Client
    from twitchio.eventsub import websockets
    from twitchio.http import Route

    patch.setattr(Route, "BASE", server.base_url)
    patch.setattr(Route, "ID_BASE", server.auth_url.removesuffix("oauth2/"))
    patch.setattr(websockets, "WSS", server.eventsub_url)
    heard: list[tuple[str, Any]] = []

    class Listener(Client):
        def dispatch(self, event: str, payload: Any = None) -> None:
            heard.append((event, payload))
            super().dispatch(event, payload)

    tokens = server.tokens
    client = Listener(client_id=tokens.client_id, client_secret=tokens.client_secret)
    await client.login(load_tokens=False, save_tokens=False)
    await client.add_token(server.token.access, server.token.refresh)
    try:
        yield client, heard
    finally:
        for sockets in list(client._websockets.values()):
            for socket in list(sockets.values()):
                await socket.close()
        await client.close(save_tokens=False)


async def listen(client: Any, server: TwitchServer) -> None:
    from twitchio import eventsub

    here = {"broadcaster_user_id": server.channel.id, "user_id": server.bot.id}
    for payload in (
        eventsub.ChatMessageSubscription(**here),
        eventsub.ChatMessageDeleteSubscription(**here),
        eventsub.WhisperReceivedSubscription(user_id=server.bot.id),
    ):
        await client.subscribe_websocket(payload, token_for=server.bot.id)


def texts(heard: list[tuple[str, Any]]) -> list[str]:
    return [payload.text for event, payload in heard if event == "message"]


async def test_twitchio(server: TwitchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from twitchio import MessageRejectedError

    server.chat.person("ann")
    async with twitchio(server, monkeypatch) as (client, heard):
        (bot, ann) = await client.fetch_users(logins=["Ann"], ids=[server.bot.id])
        assert {ann.name, bot.name} == {"ann", "desk_bot"}
        await listen(client, server)
        asked = server.says("ann", "what is it?")
        answered = server.says("ann", "well?", reply_to=asked)
        server.deletes(answered)
        server.whispers("ann", "psst")
        await until(lambda: "message_whisper" in [event for event, _ in heard])
        assert texts(heard) == ["what is it?", "@Ann well?"]
        reply = next(each for event, each in heard if event == "message" and each.reply is not None)
        assert (reply.reply.parent_message_id, reply.chatter.name) == (asked.id, "ann")
        assert [each.message_id for event, each in heard if event == "message_delete"] == [
            answered.id
        ]

        channel = client.create_partialuser(server.channel.id)
        sent = await channel.send_message(
            "it is that",
            sender=server.bot.id,
            token_for=server.bot.id,
            reply_to_message_id=asked.id,
        )
        assert sent.sent and server.said() == ["it is that"]
        await until(lambda: "it is that" in texts(heard))
        with pytest.raises(MessageRejectedError) as repeated:
            await channel.send_message("it is that", sender=bot, token_for=bot)
        assert repeated.value.code == "msg_duplicate"
        server.drop_message("channel_settings", "held")
        with pytest.raises(MessageRejectedError) as held:
            await channel.send_message("more", sender=bot, token_for=bot)
        assert held.value.code == "channel_settings" and server.said() == ["it is that"]
        await bot.send_whisper(to_user=server.chat.person("ann").id, message="w" * 10_001)
        assert [len(each) for each in server.whispered("ann")] == [10_000]


async def test_twitchio_and_tokens(server: TwitchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refreshes after a 401, once; with a revoked token it raises what the token endpoint
    answered, and it knows nothing of when a flood ends."""
    from twitchio import HTTPException

    async with twitchio(server, monkeypatch) as (client, heard):
        channel = client.create_partialuser(server.channel.id)
        server.tokens.expire(server.bot)
        assert (
            await channel.send_message("hi", sender=server.bot.id, token_for=server.bot.id)
        ).sent
        await until(lambda: "token_refreshed" in [event for event, _ in heard])
        assert server.tokens.refreshes == [server.token.refresh]
        server.fail("POST chat/messages", 429, retry_after=2)
        with pytest.raises(HTTPException) as flooded:
            await channel.send_message("two", sender=server.bot.id, token_for=server.bot.id)
        assert flooded.value.status == 429
        server.tokens.revoke(server.bot)
        with pytest.raises(HTTPException) as caught:
            await channel.send_message("three", sender=server.bot.id, token_for=server.bot.id)
        assert caught.value.extra["message"] == "Invalid refresh token"


@pytest.mark.parametrize("keeps_id", [True, False])
async def test_twitchio_reconnects(
    server: TwitchServer, monkeypatch: pytest.MonkeyPatch, keeps_id: bool
) -> None:
    server.events.keeps_session_id = keeps_id
    async with twitchio(server, monkeypatch) as (client, heard):
        await listen(client, server)
        server.events.reconnect()
        await until(lambda: server.events.connections == 2 and len(server.events.sessions) == 1)
        server.says("ann", "after the move")
        await until(lambda: texts(heard) == ["after the move"])
        assert len(server.events.enabled()) == 3, "nobody had to subscribe again"


async def test_twitchio_after_a_cut(server: TwitchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It connects and subscribes again; what was said meanwhile is lost, as with Twitch."""
    async with twitchio(server, monkeypatch) as (client, heard):
        await listen(client, server)
        server.events.drop()
        server.says("ann", "nobody hears this")
        await until(lambda: server.events.connections == 2 and len(server.events.enabled()) == 3)
        server.says("ann", "but this")
        await until(lambda: texts(heard) == ["but this"])


# ---------------------------------------------------------------------- twitchAPI


@asynccontextmanager
async def twitchapi(server: TwitchServer) -> AsyncIterator[tuple[Any, list[Any]]]:
    """Its socket lives in a thread of its own; starting and stopping it block the caller."""
    from twitchAPI.eventsub.websocket import EventSubWebsocket
    from twitchAPI.twitch import Twitch
    from twitchAPI.type import AuthScope

    tokens = server.tokens
    twitch = Twitch(
        tokens.client_id,
        tokens.client_secret,
        authenticate_app=False,
        base_url=server.base_url,
        auth_base_url=server.auth_url,
    )
    scopes = [AuthScope(each) for each in server.token.scopes]
    await twitch.set_user_authentication(server.token.access, scopes, server.token.refresh)
    heard: list[Any] = []

    async def note(event: Any) -> None:
        heard.append(event)

    async def revoked(payload: Any) -> None:
        heard.append(payload)

    socket = EventSubWebsocket(
        twitch,
        connection_url=server.eventsub_url,
        subscription_url=server.base_url,
        revocation_handler=revoked,
    )
    await anyio.to_thread.run_sync(socket.start)
    try:
        await socket.listen_channel_chat_message(server.channel.id, server.bot.id, note)
        await socket.listen_user_whisper_message(server.bot.id, note)
        yield twitch, heard
    finally:
        await anyio.to_thread.run_sync(end, socket)


def end(socket: Any) -> None:
    """Stop it, and close the event loop that it leaves open."""
    asyncio.run(socket.stop())
    socket._socket_thread.join()
    loop = socket._socket_loop
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.close()


async def test_twitchapi(server: TwitchServer) -> None:
    from twitchAPI.type import AuthType, TwitchAPIException

    ann = server.chat.person("ann")
    async with twitchapi(server) as (twitch, heard):
        users = [each async for each in twitch.get_users(logins=["ann"], user_ids=[server.bot.id])]
        assert {each.id for each in users} == {ann.id, server.bot.id}
        asked = server.says("ann", "what is it?")
        await until(lambda: heard)
        event = heard[0].event
        assert (event.message.text, event.chatter_user_login) == ("what is it?", "ann")
        assert heard[0].metadata.message_id and event.message_id == asked.id
        sent = await twitch.send_chat_message(server.channel.id, server.bot.id, "that", asked.id)
        assert sent.is_sent and server.said() == ["that"]
        assert server.chat.posts[-1].parent == asked
        await until(lambda: len(heard) == 2)
        assert heard[1].event.reply.parent_message_id == asked.id
        with pytest.raises(TwitchAPIException, match="too large"):
            await twitch.send_chat_message(server.channel.id, server.bot.id, "x" * 501)
        server.whispers("ann", "psst")
        await until(lambda: len(heard) == 3)
        assert heard[2].event.whisper.text == "psst"
        await twitch.send_whisper(server.bot.id, ann.id, "yes?")
        assert server.whispered("ann") == ["yes?"]
        listed = await twitch.get_eventsub_subscriptions(target_token=AuthType.USER)
        assert [each.status async for each in listed] == ["enabled", "enabled"]
        server.events.revoke()
        await until(lambda: len(heard) == 5)
        assert heard[-1]["subscription"]["status"] == "authorization_revoked"


async def test_twitchapi_and_tokens(server: TwitchServer) -> None:
    """It refreshes after a 401. A flood it waits out, and then loses the message all the same."""
    async with twitchapi(server) as (twitch, _):
        server.tokens.expire(server.bot)
        assert (await twitch.send_chat_message(server.channel.id, server.bot.id, "hi")).is_sent
        assert twitch.get_user_auth_token() != server.token.access
        server.fail("POST chat/messages", 429, retry_after=0.5)
        with pytest.raises(KeyError):
            await twitch.send_chat_message(server.channel.id, server.bot.id, "two")
        assert server.said() == ["hi"]


async def test_twitchapi_reconnects(server: TwitchServer) -> None:
    async with twitchapi(server) as (_, heard):
        server.events.reconnect()
        await until(lambda: server.events.connections == 2 and len(server.events.sessions) == 1)
        server.says("ann", "after the move")
        await until(lambda: [each.event.message.text for each in heard] == ["after the move"])


async def test_twitchapi_after_a_cut(server: TwitchServer) -> None:
    async with twitchapi(server) as (_, heard):
        server.events.drop()
        await until(lambda: server.events.connections == 2 and len(server.events.enabled()) == 2)
        server.says("ann", "again")
        await until(lambda: [each.event.message.text for each in heard] == ["again"])


# ---------------------------------------------------------------------- the wire itself


class Wire:
    """A client by hand, for what the two libraries hide."""

    def __init__(self, server: TwitchServer, session: aiohttp.ClientSession) -> None:
        self._server = server
        self.session = session
        self.access = server.token.access
        self._sockets: list[aiohttp.ClientWebSocketResponse] = []

    async def connect(self, url: str = "") -> aiohttp.ClientWebSocketResponse:
        socket = await self.session.ws_connect(url or self._server.eventsub_url)
        self._sockets.append(socket)
        return socket

    async def close(self) -> None:
        for socket in self._sockets:
            await socket.close()

    async def open(self, url: str = "") -> tuple[aiohttp.ClientWebSocketResponse, Any]:
        socket = await self.connect(url)
        return socket, (await told(socket))["payload"]["session"]

    async def call(self, method: str, path: str, **json: object) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.access}", "Client-Id": "test-client"}
        url = self._server.base_url + path
        async with self.session.request(method, url, json=json, headers=headers) as response:
            return response.status, await response.json() if response.status != 204 else None

    async def subscribe(self, session: str, type: str = "channel.chat.message") -> tuple[int, Any]:
        condition = {"broadcaster_user_id": self._server.channel.id, "user_id": self._server.bot.id}
        if type == WHISPER:
            del condition["broadcaster_user_id"]
        transport = {"method": "websocket", "session_id": session}
        return await self.call(
            "POST",
            "eventsub/subscriptions",
            type=type,
            version="1",
            condition=condition,
            transport=transport,
        )


@pytest.fixture
async def wire(server: TwitchServer) -> AsyncIterator[Wire]:
    async with aiohttp.ClientSession() as session:
        opened = Wire(server, session)
        yield opened
        await opened.close()


async def told(socket: aiohttp.ClientWebSocketResponse) -> Any:
    return await socket.receive_json(timeout=5)


async def test_a_duplicate_has_the_same_name(server: TwitchServer, wire: Wire) -> None:
    socket, session = await wire.open()
    assert (await wire.subscribe(session["id"]))[0] == 202
    server.says("ann", "one")
    server.events.redeliver()
    first = await told(socket)
    assert await told(socket) == first
    assert first["metadata"]["subscription_type"] == "channel.chat.message"


async def test_keepalives(server: TwitchServer, wire: Wire) -> None:
    """What is asked for is answered with the nearest that is allowed."""
    for asked, given in (("1", 10), ("30", 30), ("9999", 600)):
        _, session = await wire.open(f"{server.eventsub_url}?keepalive_timeout_seconds={asked}")
        assert session["keepalive_timeout_seconds"] == given
    server.events.shortest_keepalive_s = 1
    socket, _ = await wire.open(f"{server.eventsub_url}?keepalive_timeout_seconds=1")
    assert (await told(socket))["metadata"]["message_type"] == "session_keepalive"
    server.events.stall()
    with pytest.raises(TimeoutError):
        await socket.receive(timeout=1.5)


async def test_close_codes(server: TwitchServer, wire: Wire) -> None:
    events: EventSub = server.events
    events.unused_s = 0.1
    socket, _ = await wire.open()
    await socket.receive(timeout=5)
    assert socket.close_code == 4003
    events.unused_s = 10
    socket, _ = await wire.open()
    await socket.send_str("hello")
    await socket.receive(timeout=5)
    assert socket.close_code == 4001
    socket = await wire.connect(f"{server.eventsub_url}?reconnect_id=nonsense")
    await socket.receive(timeout=5)
    assert socket.close_code == 4007
    socket, _ = await wire.open()
    events.close(4000)
    await socket.receive(timeout=5)
    assert socket.close_code == 4000 and events.closed == [4003, 4001, 4007, 4000]


async def test_a_reconnect_loses_nothing(server: TwitchServer, wire: Wire) -> None:
    """The old connection is told what comes until the new one is welcomed, and is closed if it is
    kept too long; the subscriptions move."""
    server.events.grace_s = 0.2
    old, session = await wire.open()
    await wire.subscribe(session["id"])
    server.events.reconnect()
    moving = await told(old)
    assert moving["payload"]["session"]["status"] == "reconnecting"
    server.says("ann", "still here")
    assert (await told(old))["payload"]["event"]["message"]["text"] == "still here"
    url = moving["payload"]["session"]["reconnect_url"]
    new, _ = await wire.open(url)
    server.says("ann", "over there")
    assert (await told(new))["payload"]["event"]["message"]["text"] == "over there"
    await old.receive(timeout=5)
    assert old.close_code == 4004
    again = await wire.connect(url)
    await again.receive(timeout=5)
    assert again.close_code == 4007


async def test_what_a_subscription_needs(server: TwitchServer, wire: Wire) -> None:
    _, session = await wire.open()
    assert (await wire.subscribe("nonsense"))[0] == 400
    assert (await wire.subscribe(session["id"]))[0] == 202
    assert (await wire.subscribe(session["id"]))[0] == 409
    assert (await wire.subscribe(session["id"], "channel.nonsense"))[0] == 400
    server.bans()
    assert (await wire.subscribe(session["id"], CHAT_DELETE))[0] == 403
    wire.access = server.tokens.grant(server.bot, ["user:read:chat"]).access
    assert (await wire.subscribe(session["id"], WHISPER))[0] == 403
    status, body = await wire.call("POST", "whispers")
    assert (status, body["message"]) == (401, "Missing scope: user:manage:whispers")
    wire.access = "nonsense"
    status, body = await wire.call("GET", "users")
    assert (status, body["message"]) == (401, "Invalid OAuth token")


async def test_a_ban_is_told(server: TwitchServer, wire: Wire) -> None:
    socket, session = await wire.open()
    await wire.subscribe(session["id"])
    await wire.subscribe(session["id"], WHISPER)
    server.bans()
    told_of = (await told(socket))["payload"]["subscription"]
    assert (told_of["type"], told_of["status"]) == ("channel.chat.message", "chat_user_banned")
    assert [each.type for each in server.events.enabled()] == [WHISPER]
    here = {"broadcaster_id": server.channel.id, "sender_id": server.bot.id}
    assert (await wire.call("POST", "chat/messages", message="hi", **here))[0] == 403


async def test_faults(server: TwitchServer, wire: Wire) -> None:
    here = {"broadcaster_id": server.channel.id, "sender_id": server.bot.id}
    server.lose("POST chat/messages")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await wire.call("POST", "chat/messages", message="lost", **here)
    server.hang("POST chat/messages")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await wire.call("POST", "chat/messages", message="hung", **here)
    assert server.said() == ["lost", "hung"] and not server.fails_next("POST chat/messages")
    server.fail("GET ws", 503)
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await wire.open()
    socket, session = await wire.open()
    await wire.subscribe(session["id"])
    await server.stop()
    await until(lambda: not server.events.sessions)
    await socket.receive(timeout=5)
    assert socket.closed
    with pytest.raises(aiohttp.ClientConnectorError):
        await wire.open()
    await server.start(server.port)
    _, session = await wire.open()
    assert (await wire.subscribe(session["id"]))[0] == 202


async def test_tokens(server: TwitchServer, wire: Wire) -> None:
    """A refresh token works once."""
    ask = {"client_id": "test-client", "client_secret": "test-secret"}
    ask |= {"grant_type": "refresh_token", "refresh_token": server.token.refresh}
    async with wire.session.post(server.auth_url + "token", data=ask) as response:
        given = await response.json()
    assert given["refresh_token"] != server.token.refresh and given["token_type"] == "bearer"
    async with wire.session.post(server.auth_url + "token", data=ask) as response:
        assert (response.status, await response.json()) == (
            400,
            {"error": "Bad Request", "status": 400, "message": "Invalid refresh token"},
        )
    headers = {"Authorization": f"OAuth {given['access_token']}"}
    async with wire.session.get(server.auth_url + "validate", headers=headers) as response:
        about = await response.json()
    assert (about["login"], about["user_id"]) == ("desk_bot", server.bot.id)
    server.tokens.revoke(server.bot)
    async with wire.session.get(server.auth_url + "validate", headers=headers) as response:
        assert response.status == 401
