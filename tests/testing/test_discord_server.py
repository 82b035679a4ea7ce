"""The Discord of the tests is one that two independent clients take for the real one."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import discord
import pytest
from discord.http import HTTPClient, Route

from deskhand.testing.discord.guild import GENERAL
from deskhand.testing.discord.server import DiscordServer

ANN = 77
BOB = 88
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as started:
        started.guild.person(ANN, "ann")
        yield started


async def until(true: Callable[[], object]) -> None:
    with anyio.fail_after(10):
        while not true():
            await anyio.sleep(0.01)


class LocalHTTP(HTTPClient):
    """The library's own, elsewhere."""

    def __init__(self, client: discord.Client, server: DiscordServer) -> None:
        super().__init__(client.loop, max_ratelimit_timeout=client.http.max_ratelimit_timeout)
        self._server = server

    async def request(self, route: Route, **kwargs: Any) -> Any:
        route.url = route.url.replace(Route.BASE, self._server.api_url, 1)
        return await super().request(route, **kwargs)

    async def ws_connect(self, url: str, **kwargs: Any) -> aiohttp.ClientWebSocketResponse:
        url = url.replace("wss://gateway.discord.gg", self._server.gateway_url, 1)
        return await super().ws_connect(url, **kwargs)


class LocalClient(discord.Client):
    def __init__(self, server: DiscordServer, intents: discord.Intents, **options: Any) -> None:
        self.server = server
        self.seen: list[tuple[str, Any]] = []
        options |= {
            "max_messages": None,
            "chunk_guilds_at_startup": False,
            "guild_ready_timeout": 0.1,
        }
        super().__init__(intents=intents, **options)

    def _get_state(self, **options: Any) -> Any:
        self.http = LocalHTTP(self, self.server)
        return super()._get_state(**options)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """The library's own waits for five seconds before it identifies again."""

    async def on_message(self, message: discord.Message) -> None:
        self.seen.append(("message", message))

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        self.seen.append(("edit", event.message.content))

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self.seen.append(("delete", event.message_id))

    async def on_raw_reaction_add(self, event: discord.RawReactionActionEvent) -> None:
        self.seen.append(("reaction", (event.user_id, str(event.emoji))))

    async def on_raw_reaction_remove(self, event: discord.RawReactionActionEvent) -> None:
        self.seen.append(("no reaction", (event.user_id, str(event.emoji))))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.seen.append(("press", interaction))

    async def on_thread_create(self, thread: discord.Thread) -> None:
        self.seen.append(("thread", thread.name))

    def texts(self) -> list[str]:
        """What came from others, in the order in which it came."""
        return [
            each.content
            for kind, each in self.seen
            if kind == "message" and each.author != self.user
        ]


def intents(*, content: bool = True) -> discord.Intents:
    chosen = discord.Intents.default()
    chosen.message_content = content
    return chosen


@asynccontextmanager
async def running(server: DiscordServer, **options: Any) -> AsyncIterator[LocalClient]:
    chosen = options.pop("intents", intents())
    client = LocalClient(server, chosen, **options)
    async with client, anyio.create_task_group() as tasks:
        await client.login(server.token)
        tasks.start_soon(client.connect)
        with anyio.fail_after(10):
            await client.wait_until_ready()
        yield client
        await client.close()


async def test_discord_py_reads(server: DiscordServer) -> None:
    guild = server.guild
    async with running(server) as client:
        assert client.user is not None and client.user.id == 4200
        assert [each.name for each in client.guilds] == ["Desk"]
        asked = guild.says(ANN, "hello")
        guild.says(BOB, "hi <@4200>", GENERAL, reply_to=guild.says(ANN, "one", GENERAL))
        guild.edits(asked, "hello again")
        guild.reacts(ANN, asked, "👍")
        guild.reacts(ANN, asked, "👍", add=False)
        guild.deletes(asked)
        guild.sends_file(ANN, PNG, "a b.png", text="look")
        guild.forwards(ANN, "buy this", file=guild.store(GENERAL, PNG, "x.png"))
        guild.bot_says("I am a program")
        talk = guild.thread(ANN, GENERAL, "plans")
        guild.says(ANN, "in here", talk)
        await until(lambda: len(client.seen) >= 12)
        assert client.texts() == ["hello", "one", "hi <@4200>", "look", "", *client.texts()[5:]]
        assert client.texts()[5:] == ["I am a program", "in here"]
        kinds = {kind: each for kind, each in client.seen if kind != "message"}
        assert kinds == {
            "edit": "hello again",
            "reaction": (ANN, "👍"),
            "no reaction": (ANN, "👍"),
            "delete": asked.id,
            "thread": "plans",
        }
        direct, _, reply, picture, forward, program, inner = (
            each for kind, each in client.seen if kind == "message"
        )
        assert isinstance(direct.channel, discord.DMChannel) and direct.guild is None
        assert reply.mentions[0].id == 4200 and reply.reference.resolved.content == "one"
        assert isinstance(inner.channel, discord.Thread) and program.author.bot
        assert forward.message_snapshots[0].content == "buy this"
        (file,) = picture.attachments
        assert (file.filename, file.content_type, await file.read()) == (
            "a_b.png",
            "image/png",
            PNG,
        )
        guild.expires_links()
        with pytest.raises(discord.NotFound):
            await file.read()
        again = await picture.channel.fetch_message(picture.id)
        assert await again.attachments[0].read() == PNG


async def test_discord_py_writes(server: DiscordServer) -> None:
    guild = server.guild
    async with running(server) as client:
        place = await (await client.fetch_user(ANN)).create_dm()
        view = discord.ui.View(timeout=None)
        view.add_item(discord.ui.Button(label="yes", custom_id="a:1"))
        asked = guild.says(ANN, "may I?")
        reference = discord.MessageReference(
            message_id=asked.id, channel_id=place.id, fail_if_not_exists=False
        )
        sent = await place.send("yes or no", view=view, reference=reference, silent=True)
        assert sent.flags.suppress_notifications and sent.reference is not None
        assert [each.label for each in guild.last(ANN).buttons] == ["yes"]
        file = discord.File(io.BytesIO(b"one,two"), "a.csv", description="a table")
        with_file = await place.send("see here", file=file)
        assert await with_file.attachments[0].read() == b"one,two"
        assert guild.last(ANN).files[0].about["description"] == "a table"
        await sent.edit(content="done", view=None)
        await sent.add_reaction("👀")
        await sent.remove_reaction("👀", client.user)  # type: ignore[arg-type]
        await with_file.delete()
        await place.typing()
        assert guild.said(ANN) == ["done"] and guild.last(ANN).edits == ["yes or no"]
        assert guild.typing == [place.id] and guild.last(ANN).reactions == {"👀": []}
        named = await place.send("<@77> @everyone", allowed_mentions=discord.AllowedMentions.none())
        assert named.mentions == [] and not named.mention_everyone
        old = [each.content async for each in place.history(limit=10, after=asked)]
        assert old == ["done", "<@77> @everyone"]


async def test_discord_py_and_presses(server: DiscordServer) -> None:
    """`interaction.response` has a way of its own to the network, past `HTTPClient.request`."""
    guild = server.guild
    async with running(server) as client:
        place = await (await client.fetch_user(ANN)).create_dm()
        view = discord.ui.View(timeout=None)
        view.add_item(discord.ui.Button(label="yes", custom_id="a:1"))
        await place.send("yes or no", view=view)
        client._connection._view_store._views.clear()

        async def answered(body: dict[str, Any]) -> str:
            pressed = guild.presses(ANN, guild.last(ANN), "a:1")
            await until(lambda: client.seen and client.seen[-1][0] == "press")
            _, interaction = client.seen.pop()
            assert interaction.data["custom_id"] == "a:1" and interaction.user.id == ANN
            path = "/interactions/{id}/{token}/callback"
            route = Route("POST", path, id=interaction.id, token=interaction.token)
            await client.http.request(route, json=body)
            with pytest.raises(discord.HTTPException) as caught:
                await client.http.request(
                    Route("POST", path, id=interaction.id, token=interaction.token), json=body
                )
            assert caught.value.code == 40060
            return pressed

        pressed = await answered({"type": 6})
        assert guild.answers[pressed] == {"type": 6}
        await answered({"type": 4, "data": {"content": "psst", "flags": 64}})
        assert guild.whispers == [(ANN, "psst")]
        await answered({"type": 7, "data": {"content": "it is yes", "components": []}})
        assert guild.said(ANN) == ["it is yes"] and guild.last(ANN).buttons == []
        with pytest.raises(LookupError):
            guild.presses(ANN, guild.last(ANN), "a:1")
        late = guild.forges(ANN, guild.last(ANN), "b")
        guild.expires(late)
        with pytest.raises(discord.NotFound) as caught:
            path = f"/interactions/{late}/interaction-token-{late}/callback"
            await client.http.request(Route("POST", path), json={"type": 6})
        assert caught.value.code == 10062


async def test_discord_py_and_refusals(server: DiscordServer) -> None:
    guild = server.guild
    guild.channel(950, "secret")
    guild.channel(951, "read only")
    guild.forbidden.add(950)
    guild.muted.add(951)
    theirs = guild.says(ANN, "mine")
    async with running(server) as client:
        direct = client.get_partial_messageable(theirs.channel)

        async def refused(what: Awaitable[object], status: int, code: int) -> str:
            with pytest.raises(discord.HTTPException) as caught:
                await what
            assert (caught.value.status, caught.value.code) == (status, code)
            return str(caught.value)

        assert "2000" in await refused(direct.send("x" * 2001), 400, 50035)
        await refused(direct.send(""), 400, 50006)
        await refused(client.get_partial_messageable(1).send("x"), 404, 10003)
        await refused(client.get_partial_messageable(950).send("x"), 403, 50001)
        await refused(client.get_partial_messageable(951).send("x"), 403, 50013)
        await refused(direct.get_partial_message(5).edit(content="x"), 404, 10008)
        await refused(direct.get_partial_message(theirs.id).edit(content="x"), 403, 50005)
        await refused(direct.get_partial_message(theirs.id).delete(), 403, 50003)
        await refused(direct.get_partial_message(theirs.id).add_reaction("nope"), 400, 10014)
        nowhere = discord.MessageReference(message_id=5, channel_id=theirs.channel)
        assert "Unknown" in await refused(direct.send("x", reference=nowhere), 400, 50035)
        guild.closed.add(ANN)
        await refused(direct.send("x"), 403, 50007)
        guild.closed.clear()
        big = discord.File(io.BytesIO(b"x" * (10 * 2**20 + 1)), "big")
        await refused(direct.send(file=big), 413, 40005)


async def test_discord_py_and_voice_messages(server: DiscordServer) -> None:
    guild = server.guild
    async with running(server) as client:
        guild.speaks(ANN, b"OggS", seconds=2.5)
        await until(lambda: client.seen)
        _, message = client.seen.pop()
        assert message.flags.voice and message.attachments[0].is_voice_message()
        assert message.attachments[0].duration == 2.5
        place = await (await client.fetch_user(ANN)).create_dm()
        assert await post_voice(server, place.id, VOICE) == 0
        sent = await place.fetch_message(guild.last(ANN).id)
        assert sent.attachments[0].is_voice_message() and sent.attachments[0].waveform == b"ab"
        with pytest.raises(discord.HTTPException) as caught:
            await sent.edit(content="what it says")
        assert caught.value.code == 50162


async def post_voice(
    server: DiscordServer, channel: int, about: dict[str, Any], files: int = 1, **more: Any
) -> int:
    """The code with which a voice message is refused; 0 where it is taken. No library sends any."""
    form = aiohttp.FormData()
    said = json.dumps({"flags": 1 << 13, "attachments": [about], **more})
    form.add_field("payload_json", said, content_type="application/json")
    for i in range(files):
        form.add_field(f"files[{i}]", b"OggS", filename=about["filename"])
    headers = {"Authorization": f"Bot {server.token}"}
    path = f"{server.api_url}/channels/{channel}/messages"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(path, data=form) as answer,
    ):
        return int((await answer.json()).get("code", 0))


VOICE: dict[str, Any] = {"id": "0", "filename": "v.ogg", "duration_secs": 1.5, "waveform": "YWI="}
NO_VOICE: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
    (50159, VOICE, {"content": "words"}),
    (50159, VOICE, {"embeds": [{"title": "words"}]}),
    (50160, VOICE, {"files": 2}),
    (50160, VOICE, {"files": 0}),
    (50160, {**VOICE, "filename": "a.txt"}, {}),
    (50161, {**VOICE, "waveform": ""}, {}),
    (50161, {**VOICE, "waveform": "a"}, {}),
    (50161, {"id": "0", "filename": "v.ogg", "waveform": "YWI="}, {}),
    (50035, {**VOICE, "waveform": "AAAA" * 86}, {}),
]


@pytest.mark.parametrize(("code", "about", "more"), NO_VOICE)
async def test_what_is_no_voice_message(
    code: int, about: dict[str, Any], more: dict[str, Any], server: DiscordServer
) -> None:
    place = server.guild.open_direct(ANN)
    assert await post_voice(server, place, about, **more) == code
    assert not server.guild.messages(ANN)
    server.guild.voiceless.add(place)
    assert await post_voice(server, place, VOICE) == 50173


async def test_a_nonce_is_taken_once(server: DiscordServer) -> None:
    """discord.py asks for `enforce_nonce` wherever there is a nonce."""
    where = server.guild.open_direct(ANN)
    async with running(server) as client:
        place = client.get_partial_messageable(where)
        sent = [await place.send(f"try {number}", nonce="k1") for number in range(2)]
        assert sent[0].id == sent[1].id and server.guild.said(ANN) == ["try 0"]
        server.lose("create_message")
        with pytest.raises(aiohttp.ClientError):
            await place.send("twice", nonce="k2")
        await place.send("twice", nonce="k2")
        assert server.guild.said(ANN) == ["try 0", "twice"]
        with pytest.raises(discord.HTTPException) as caught:
            await place.send("x", nonce="k" * 26)
        assert caught.value.code == 50035


async def test_discord_py_looks_back(server: DiscordServer) -> None:
    """The channels of its servers, and a thread from the message that it was made of."""
    guild = server.guild
    root = guild.says(ANN, "the root", GENERAL)
    thread = guild.thread(ANN, GENERAL, "about it", of=root)
    guild.says(BOB, "an answer", thread)
    guild.thread(ANN, GENERAL, "secret", private=True)
    async with running(server) as client:
        (found,) = [each async for each in client.fetch_guilds()]
        channels = await found.fetch_channels()
        assert [(each.id, each.name) for each in channels] == [(GENERAL, "general")]
        general = await client.fetch_channel(GENERAL)
        assert isinstance(general, discord.TextChannel)
        (first,) = [each async for each in general.history()]
        assert first.thread is not None and first.thread.id == thread and first.position is None
        place = await client.fetch_channel(thread)
        assert isinstance(place, discord.Thread) and place.parent_id == GENERAL
        answer, starter = [each async for each in place.history()]
        assert (starter.position, answer.position) == (0, 1)
        assert starter.type == discord.MessageType.thread_starter_message
        assert starter.reference is not None and starter.reference.message_id == root.id


async def test_discord_py_and_rate_limits(server: DiscordServer) -> None:
    where = server.guild.open_direct(ANN)
    async with running(server, max_ratelimit_timeout=30) as client:
        place = client.get_partial_messageable(where)
        server.flood("create_message", 0.05)
        server.flood("create_message", 0.05, scope="global")
        await place.send("one")
        assert [name for name, _ in server.calls].count("create_message") == 3
        server.flood("create_message", 31)
        with pytest.raises(discord.RateLimited) as caught:
            await place.send("two")
        assert caught.value.retry_after == 31
        server.flood("create_message", 5, scope="cloudflare")
        with pytest.raises(discord.HTTPException) as banned:
            await place.send("three")
        assert (banned.value.status, banned.value.code) == (429, 0)
    async with running(server) as client:
        server.limits["create_message"] = (2, 0.3)
        for number in range(5):
            await client.get_partial_messageable(where).send(f"m{number}")
        assert server.guild.said(ANN)[1:] == [f"m{number}" for number in range(5)]
        assert server.limited == [], "it keeps to what the headers say"


async def test_discord_py_comes_back(server: DiscordServer) -> None:
    guild = server.guild
    gateway = server.gateway
    async with running(server) as client:
        guild.says(ANN, "one")
        await until(lambda: client.texts() == ["one"])
        for number, lose in enumerate((gateway.ask_to_reconnect, gateway.drop), start=1):
            lose()
            guild.says(ANN, f"meanwhile {number}")
            await until(lambda: len(gateway.resumed) == number)  # noqa: B023
            await until(lambda: client.texts()[-1] == f"meanwhile {number}")  # noqa: B023
        assert "resume" in gateway.paths[-1] and "zlib-stream" in gateway.paths[-1]
        assert client.texts() == ["one", "meanwhile 1", "meanwhile 2"]
        gateway.invalidate()
        guild.says(ANN, "lost")
        await until(lambda: len(gateway.identified) == 2)
        guild.says(ANN, "back")
        await until(lambda: client.texts()[-1] == "back")
        assert "lost" not in client.texts() and len(gateway.sessions) == 1


async def test_discord_py_and_a_server_that_is_away(server: DiscordServer) -> None:
    async with running(server) as client:
        await server.stop()
        server.guild.says(ANN, "are you there?")
        with pytest.raises(aiohttp.ClientError):
            await client.get_partial_messageable(GENERAL).send("no")
        await server.start(server.port)
        await until(lambda: client.texts() == ["are you there?"])
        await client.get_partial_messageable(GENERAL).send("yes")
        assert server.guild.said(GENERAL) == ["yes"]


async def test_discord_py_and_silence(server: DiscordServer) -> None:
    """Where heartbeats are not acknowledged, it connects again."""
    server.gateway.heartbeat_s = 0.2
    async with running(server, heartbeat_timeout=0.5) as client:
        await until(lambda: server.gateway.heartbeats > 2)
        server.gateway.fall_silent()
        server.guild.says(ANN, "hello?")
        await until(lambda: client.texts() == ["hello?"])
        assert len(server.gateway.resumed) == 1


async def test_discord_py_and_the_door(server: DiscordServer) -> None:
    """Wrong tokens and intents that the app does not have."""
    client = LocalClient(server, intents())
    async with client:
        with pytest.raises(discord.LoginFailure):
            await client.login("wrong")
    server.gateway.approved = 0
    async with LocalClient(server, intents()) as client:
        await client.login(server.token)
        with anyio.fail_after(10), pytest.raises(discord.PrivilegedIntentsRequired):
            await client.connect()
    async with (
        LocalClient(server, intents(content=False)) as client,
        anyio.create_task_group() as g,
    ):
        await client.login(server.token)
        codes: list[int] = []

        async def connect() -> None:
            with pytest.raises(discord.ConnectionClosed) as caught:
                await client.connect()
            codes.append(caught.value.code)

        g.start_soon(connect)
        await client.wait_until_ready()
        server.guild.says(ANN, "not for you", GENERAL)
        server.guild.says(ANN, "<@4200> for you", GENERAL)
        server.guild.says(ANN, "between us")
        await until(lambda: len(client.texts()) == 3)
        assert client.texts() == ["", "<@4200> for you", "between us"]
        server.fail("create_message", 401)
        with pytest.raises(discord.HTTPException) as caught:
            await client.get_partial_messageable(GENERAL).send("no")
        assert caught.value.status == 401
        server.revoke()
        await until(lambda: codes == [4004] and client.is_closed())


async def test_hikari(server: DiscordServer) -> None:
    hikari = pytest.importorskip("hikari")
    guild = server.guild
    guild.forbidden.add(guild.channel(950, "secret"))
    bot = hikari.GatewayBot(
        server.token,
        rest_url=server.api_url,
        banner=None,
        logs=None,
        intents=hikari.Intents.ALL_UNPRIVILEGED | hikari.Intents.MESSAGE_CONTENT,
    )
    seen: list[Any] = []

    async def see(event: Any) -> None:
        seen.append(event)

    for kind in (
        hikari.MessageCreateEvent,
        hikari.MessageUpdateEvent,
        hikari.MessageDeleteEvent,
        hikari.ReactionAddEvent,
        hikari.InteractionCreateEvent,
        hikari.GuildThreadCreateEvent,
    ):
        bot.subscribe(kind, see)
    await bot.start(check_for_updates=False)
    try:
        await _hikari_works(hikari, server, bot, seen)
        await _hikari_comes_back(server, seen)
    finally:
        await bot.close()
    await until(lambda: server.gateway.sessions == {})


async def _hikari_works(hikari: Any, server: DiscordServer, bot: Any, seen: list[Any]) -> None:
    guild = server.guild
    asked = guild.says(ANN, "hello")
    guild.edits(asked, "hello again")
    guild.reacts(ANN, asked, "👍")
    guild.sends_file(ANN, PNG, "a.png")
    guild.forwards(ANN, "buy this")
    guild.thread(ANN, GENERAL, "plans")
    await until(lambda: len(seen) == 6)
    hello, edited, reaction, picture, forward, thread = seen
    assert (hello.message.content, hello.author.id, edited.message.content) == (
        "hello",
        ANN,
        "hello again",
    )
    assert reaction.emoji_name == "👍" and thread.thread.name == "plans"
    assert await picture.message.attachments[0].read() == PNG
    assert forward.message.message_snapshots[0].content == "buy this"
    place = await bot.rest.create_dm_channel(ANN)
    row = bot.rest.build_message_action_row()
    row.add_interactive_button(hikari.ButtonStyle.PRIMARY, "a:1", label="yes")
    sent = await bot.rest.create_message(
        place, "yes?", component=row, reply=asked.id, attachment=hikari.Bytes(b"x", "x.txt")
    )
    assert sent.referenced_message.id == asked.id and await sent.attachments[0].read() == b"x"
    guild.presses(ANN, guild.last(ANN), "a:1")
    await until(lambda: isinstance(seen[-1], hikari.InteractionCreateEvent))
    pressed = seen[-1].interaction
    assert (pressed.custom_id, pressed.user.id) == ("a:1", ANN)
    await pressed.create_initial_response(hikari.ResponseType.DEFERRED_MESSAGE_UPDATE)
    assert guild.answers[str(pressed.id)]["type"] == 6
    server.flood("edit_message", 0.05)
    await bot.rest.edit_message(place, sent, "yes!", components=[])
    assert guild.said(ANN) == ["yes!"] and guild.last(ANN).buttons == []
    await bot.rest.add_reaction(place, sent, "👀")
    await bot.rest.trigger_typing(place)
    await bot.rest.delete_message(place, sent)
    with pytest.raises(hikari.BadRequestError):
        await bot.rest.create_message(place, "x" * 2001)
    with pytest.raises(hikari.NotFoundError):
        await bot.rest.create_message(5, "x")
    with pytest.raises(hikari.ForbiddenError):
        await bot.rest.create_message(950, "x")
    newest = await bot.rest.fetch_messages(place, before=asked.id + 1).limit(5)
    assert [each.content for each in newest] == ["hello again"]


async def _hikari_comes_back(server: DiscordServer, seen: list[Any]) -> None:
    guild = server.guild
    server.gateway.drop(4000)
    guild.says(ANN, "meanwhile")
    await until(lambda: getattr(seen[-1], "content", "") == "meanwhile")
    server.gateway.ask_to_reconnect()
    guild.says(ANN, "and again")
    await until(lambda: getattr(seen[-1], "content", "") == "and again")
    assert len(server.gateway.resumed) == 2 and len(server.gateway.identified) == 1
