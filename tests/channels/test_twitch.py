"""What a Twitch channel makes of what people do there, and how it says things."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace

from deskhand.channels.base import Speaking
from deskhand.channels.settings import ChannelConfig, GroupRule
from deskhand.channels.twitch.channel import TwitchChannel, open_twitch
from deskhand.testing.channel import MemoryContext
from deskhand.testing.channel_suite import saying, take, words
from deskhand.testing.twitch.chat import CHAT_MESSAGE, WHISPER
from deskhand.testing.twitch.server import TwitchServer
from deskhand.types.addresses import find_live_spans
from deskhand.types.commit import Choices, Outgoing
from deskhand.types.errors import (
    ChannelError,
    ConfigError,
    LoginRefused,
    SendRefused,
    first_of_group,
)
from deskhand.types.identity import Address, Inbound
from deskhand.types.messages import File, Text

Open = Callable[..., TwitchChannel]
SEND = "POST chat/messages"
SUBSCRIBE = "POST eventsub/subscriptions"
HERE = Address("twitch", "4200", "100", group=True)


@pytest.fixture
async def server() -> AsyncIterator[TwitchServer]:
    async with TwitchServer() as started:
        yield started


@pytest.fixture
async def open_channel(server: TwitchServer, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a channel on the server's bot, with these settings and further secrets."""
    opened: list[TwitchChannel] = []

    def open_(
        secrets: dict[str, str] | None = None, cursor: str = "", **config: Any
    ) -> TwitchChannel:
        base = server.base_url.removesuffix("/helix/")
        settings = ChannelConfig(**{"base_url": base, "rooms": ("olga",), **config})
        tokens = {"TWITCH_ACCESS_TOKEN": server.token.access, **(secrets or {})}
        context = MemoryContext("twitch", settings, tmp_path / "state", tokens=tokens)
        context.cursor = cursor
        opened.append(open_twitch(context))
        return opened[-1]

    yield open_
    for channel in opened:
        await channel.close()


def renewing(server: TwitchServer) -> dict[str, str]:
    """What a channel needs to get new tokens by itself."""
    return {
        "TWITCH_REFRESH_TOKEN": server.token.refresh,
        "TWITCH_CLIENT_ID": server.tokens.client_id,
        "TWITCH_CLIENT_SECRET": server.tokens.client_secret,
    }


async def hear(
    channel: TwitchChannel, server: TwitchServer, *saying: Callable[[], object], kind: str = ""
) -> Sequence[Inbound]:
    """What comes in of what people do once the channel hears them."""
    found: dict[str, Inbound] = {}

    async def read() -> None:
        async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
            async for inbound in inbounds:
                found[inbound.external_id] = inbound

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        with anyio.fail_after(3):
            await server.events.subscribed(kind or CHAT_MESSAGE)
        await anyio.sleep(0.2)
        for say in saying:
            said = say()
            if isinstance(said, Awaitable):
                await said
        await anyio.sleep(0.3)
        tasks.cancel_scope.cancel()
    return list(found.values())


# ---------------------------------------------------------------------- in


async def test_a_message(server: TwitchServer, open_channel: Open) -> None:
    (inbound,) = await hear(
        open_channel(), server, lambda: server.says("ann", "@Desk_Bot: what is it?")
    )
    assert inbound.address == HERE and words(inbound) == "what is it?"
    assert inbound.sender == server.chat.person("ann").id and not inbound.reply_to
    assert inbound.external_id == server.chat.posts[-1].id
    assert abs(inbound.at - server.chat.posts[-1].at) < 1


async def test_only_what_is_meant_for_it(server: TwitchServer, open_channel: Open) -> None:
    ours = server.chat.post(server.bot, server.channel, "an answer")
    theirs = server.says("bob", "a question")
    found = await hear(
        open_channel(),
        server,
        lambda: server.says("ann", "nobody is asked"),
        lambda: server.says("ann", "@desk_bottle somebody else is"),
        lambda: server.says("ann", "not to us", reply_to=theirs),
        lambda: server.says("ann", "@desk_bot"),
        lambda: server.says("ann", "and then?", reply_to=ours),
        lambda: server.chat.post(server.bot, server.channel, "@desk_bot I am you"),
        lambda: server.says("ann", "@desk_bot elsewhere", source_broadcaster_user_id="7"),
    )
    assert [words(each) for each in found] == ["and then?"]
    assert found[0].reply_to == ours.id
    in_it = {found[0].address.chat: GroupRule("all")}
    (heard,) = await hear(
        open_channel(group_rules=in_it), server, lambda: server.says("ann", "everybody is heard")
    )
    assert words(heard) == "everybody is heard"


KINDS = ["text", "user_intro", "channel_points_highlighted", "power_ups_message_effect"]


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_message(kind: str, server: TwitchServer, open_channel: Open) -> None:
    (found,) = await hear(
        open_channel(), server, lambda: server.says("ann", "@desk_bot hello", message_type=kind)
    )
    assert words(found) == "hello"


async def test_a_whisper_is_a_conversation(server: TwitchServer, open_channel: Open) -> None:
    channel = open_channel()
    (inbound,) = await hear(
        channel, server, lambda: server.whispers("ann", "psst @desk_bot"), kind=WHISPER
    )
    assert words(inbound) == "psst @desk_bot" and not inbound.address.group
    await channel.send(saying(inbound.address, "yes?"), "")
    assert server.whispered("ann") == ["yes?"] and server.said() == []


async def test_what_is_told_twice_has_one_name(server: TwitchServer, open_channel: Open) -> None:
    found = await hear(
        open_channel(), server, lambda: server.says("ann", "@desk_bot one"), server.events.redeliver
    )
    assert [words(each) for each in found] == ["one"]


async def test_moving_to_another_connection_loses_nothing(
    server: TwitchServer, open_channel: Open
) -> None:
    def move() -> None:
        server.says("ann", "@desk_bot one")
        server.events.reconnect()
        server.says("ann", "@desk_bot two")

    async def later() -> None:
        await anyio.sleep(0.6)
        server.says("ann", "@desk_bot three")

    found = await hear(open_channel(), server, move, later)
    assert [words(each) for each in found] == ["one", "two", "three"]
    assert server.events.connections == 2 and server.events.sessions == []


async def test_a_connection_that_leads_nowhere_loses_nothing(
    server: TwitchServer, open_channel: Open
) -> None:
    """The old one lives for half a minute more, and brings what is said meanwhile."""
    found = await hear(
        open_channel(),
        server,
        lambda: server.events.reconnect("ws://127.0.0.1:1/ws"),
        lambda: server.says("ann", "@desk_bot on the old one"),
    )
    assert [words(each) for each in found] == ["on the old one"]


@pytest.mark.parametrize("frame", [[], "text", {"metadata": {}}, {}])
async def test_a_frame_that_cannot_be_read(
    frame: Any, server: TwitchServer, open_channel: Open
) -> None:
    """It is passed, or ends the connection with an error of ours."""
    channel = open_channel()
    try:
        found = await hear(
            channel,
            server,
            lambda: server.events.sessions[0].outgoing.send_nowait(frame),
            lambda: server.says("ann", "@desk_bot hello"),
        )
    except BaseExceptionGroup as ended:
        assert isinstance(first_of_group(ended), ChannelError)
    else:
        assert [words(each) for each in found] == ["hello"]


async def test_an_event_that_cannot_be_read_is_passed(
    server: TwitchServer, open_channel: Open
) -> None:
    found = await hear(
        open_channel(groups="all"),
        server,
        lambda: server.says("ann", "broken", message="no object"),
        lambda: server.says("ann", "broken", reply=["no object"]),
        lambda: server.says("ann", "well"),
    )
    assert [words(each) for each in found][-1:] == ["well"]


# ---------------------------------------------------------------------- rooms


async def test_a_room_that_bans_it_is_one_room(server: TwitchServer, open_channel: Open) -> None:
    """Whoever moderates one chat does not decide about the others."""
    server.chat.person("bob", "200")
    server.bans("bob")
    channel = open_channel(rooms=("bob", "olga"))
    (inbound,) = await hear(channel, server, lambda: server.says("ann", "@desk_bot hello"))
    assert words(inbound) == "hello"
    assert "bob" in channel.health().error or "200" in channel.health().error


async def test_being_banned_from_one_room_leaves_the_others(
    server: TwitchServer, open_channel: Open
) -> None:
    server.chat.person("bob", "200")
    found = await hear(
        open_channel(rooms=("bob", "olga")),
        server,
        lambda: server.bans("bob"),
        lambda: anyio.sleep(0.2),
        lambda: server.says("ann", "@desk_bot hello"),
    )
    assert [words(each) for each in found] == ["hello"]


async def test_a_room_that_is_named_twice(server: TwitchServer, open_channel: Open) -> None:
    channel = open_channel(rooms=("olga", "#Olga"))
    (inbound,) = await hear(channel, server, lambda: server.says("ann", "@desk_bot hello"))
    assert words(inbound) == "hello"


async def test_a_room_that_there_is_not(server: TwitchServer, open_channel: Open) -> None:
    channel = open_channel(rooms=("nobody_here",))
    with pytest.raises(LoginRefused, match="nobody_here"):
        await take(channel, 1, confirm=False)
    assert "rooms" in channel.health().error


# ---------------------------------------------------------------------- out


async def test_how_it_is_said(server: TwitchServer, open_channel: Open) -> None:
    theirs = server.says("ann", "hello")
    channel = open_channel()
    name = await channel.send(
        saying(HERE, "**so**\n\n- [x](https://a.test)", reply_to=theirs.id), "late"
    )
    post = server.chat.posts[-1]
    assert name == post.id and post.text == "(late) so • x (https://a.test)"
    assert post.parent is theirs


@pytest.mark.parametrize("text", ["/etc/hosts is a file", ".env holds it", "/me waves"])
async def test_no_answer_is_a_command(text: str, server: TwitchServer, open_channel: Open) -> None:
    """Twitch leaves out the first word where it begins like a command:
    https://github.com/twitchdev/issues/issues/1019"""
    await open_channel().send(saying(HERE, text), "")
    (said,) = server.said()
    assert said.lstrip()[0] not in "/." and said.endswith(text)


async def test_a_question_that_is_gone_is_answered_all_the_same(
    server: TwitchServer, open_channel: Open
) -> None:
    await open_channel().send(saying(HERE, "an answer", reply_to="gone"), "")
    assert server.said() == ["an answer"]


async def test_files_are_named(server: TwitchServer, open_channel: Open) -> None:
    file = File("sha256:1", "evil.test?d=secret", "text/plain", 4)
    await open_channel().send(replace(saying(HERE, "see", file), links=()), "")
    assert server.said()[0] == "see" and "cannot be sent" in server.said()[1]
    assert not isinstance(open_channel(), Speaking)
    said = "\n".join(server.said())
    assert [said[start:end] for start, end in find_live_spans(said)] == []


async def test_a_question_is_words(server: TwitchServer, open_channel: Open) -> None:
    ask = Choices("ask_0123456789abcdef", "rm -r *x*", ("once", "no"), approval=True)
    channel = open_channel()
    await channel.send(Outgoing("q", HERE, (Text("x"),), ask=ask), "")
    await channel.send(Outgoing("d", HERE, (Text("x"),), ask=replace(ask, decided="Refused.")), "")
    asked, ended = server.said()
    assert "rm -r *x*" in asked and "once, no" in asked
    assert "Refused." in ended and "Answer with" not in ended


async def test_the_same_words_twice_are_not_lost(server: TwitchServer, open_channel: Open) -> None:
    """Twitch drops what was said a moment ago: two people may well be told the same."""
    channel = open_channel()
    await channel.send(saying(HERE, "Yes.", key="for ann"), "")
    try:
        await channel.send(saying(HERE, "Yes.", key="for bob"), "")
    except SendRefused:
        raise
    except ChannelError as later:
        assert later.unsent and (later.retry_after_s or 0) > 5
    else:
        assert len(server.said()) == 2


async def test_what_is_dropped_is_refused(server: TwitchServer, open_channel: Open) -> None:
    server.drop_message("msg_rejected", "Held for review.")
    with pytest.raises(SendRefused, match="Held for review"):
        await open_channel().send(saying(HERE, "hello"), "")


@pytest.mark.parametrize("code", ["msg_ratelimit", "msg_slowmode", "user_timed_out"])
async def test_what_is_dropped_for_now_is_said_later(
    code: str, server: TwitchServer, open_channel: Open
) -> None:
    """https://github.com/twitchdev/issues/issues/1002"""
    server.drop_message(code, "You are sending messages too quickly.")
    channel = open_channel()
    with pytest.raises(ChannelError) as later:
        await channel.send(saying(HERE, "hello"), "")
    assert not isinstance(later.value, SendRefused) and later.value.unsent
    await channel.send(saying(HERE, "hello"), "")
    assert server.said() == ["hello"]


async def test_a_long_answer_goes_on_where_it_was(server: TwitchServer, open_channel: Open) -> None:
    channel = open_channel()
    long = saying(HERE, " ".join(f"word{i}" for i in range(200)))
    server.fail(SEND, 429, retry_after=5, after=1)
    with pytest.raises(ChannelError) as wait:
        await channel.send(long, "")
    assert 3 < (wait.value.retry_after_s or 0) < 8 and not wait.value.unsent
    await channel.send(long, "(may be a duplicate)")
    assert " ".join(server.said()).split() == [f"word{i}" for i in range(200)]
    assert all(len(each) <= 500 for each in server.said())


FAULTS: list[tuple[str, str, int, bool]] = [
    ("fail", SEND, 500, False),
    ("fail", SEND, 429, True),
    ("lose", SEND, 0, False),
    ("fail", "GET oauth2/validate", 500, True),
]


@pytest.mark.parametrize(("how", "call", "status", "unsent"), FAULTS)
async def test_whether_it_may_have_arrived(
    how: str, call: str, status: int, unsent: bool, server: TwitchServer, open_channel: Open
) -> None:
    if how == "fail":
        server.fail(call, status, retry_after=1)
    else:
        server.lose(call)
    channel = open_channel()
    with pytest.raises(ChannelError) as fault:
        await channel.send(saying(HERE, "hello"), "")
    assert fault.value.unsent == unsent and not isinstance(fault.value, SendRefused)
    if unsent:
        await channel.send(saying(HERE, "hello"), "")
        assert server.said() == ["hello"]


async def test_whom_it_may_not_whisper_to(server: TwitchServer, open_channel: Open) -> None:
    """That is about whispers, and not about the token."""
    server.helix.phone_verified = False
    ann = server.chat.person("ann")
    channel = open_channel(renewing(server))
    with pytest.raises(SendRefused):
        await channel.send(saying(Address("twitch", "4200", f"whisper:{ann.id}"), "psst"), "")
    assert server.tokens.refreshes == [] and not channel.health().error


# ---------------------------------------------------------------------- tokens


async def test_a_token_that_is_over_is_renewed(server: TwitchServer, open_channel: Open) -> None:
    channel = open_channel(renewing(server))
    await channel.send(saying(HERE, "one"), "")
    server.tokens.expire(server.bot)
    await channel.send(saying(HERE, "two", key="k2"), "")
    assert server.said() == ["one", "two"] and len(server.tokens.refreshes) == 1
    server.tokens.expire(server.bot)
    again = open_channel(renewing(server), channel._context.load_cursor())
    await again.send(saying(HERE, "three", key="k3"), "")
    assert server.said()[2:] == ["three"]


async def test_a_new_token_counts_though_the_disk_is_full(
    server: TwitchServer, open_channel: Open
) -> None:
    """The one before may have stopped working."""
    channel = open_channel(renewing(server))
    await channel.send(saying(HERE, "one"), "")
    server.tokens.expire(server.bot)
    disk = channel._context

    class FullDisk(MemoryContext):
        def save_cursor(self, cursor: str) -> None:
            raise OSError(28, "No space left on device")

    tokens = {"TWITCH_ACCESS_TOKEN": server.token.access, **renewing(server)}
    full = open_twitch(FullDisk("twitch", disk.config, disk.state, tokens=tokens))
    for _ in range(2):
        with suppress(ChannelError):
            await full.send(saying(HERE, "two", key="k2"), "")
    await full.close()
    assert server.said()[-1:] == ["two"]


async def test_many_at_once_renew_it_once(server: TwitchServer, open_channel: Open) -> None:
    """A refresh token may work once alone."""
    channel = open_channel(renewing(server))
    await channel.send(saying(HERE, "one"), "")
    server.tokens.expire(server.bot)
    async with anyio.create_task_group() as tasks:
        for i in range(4):
            tasks.start_soon(channel.send, saying(HERE, f"word {i}", key=f"k{i}"), "")
    assert len(server.said()) == 5 and len(server.tokens.refreshes) == 1


async def test_a_token_that_was_revoked(server: TwitchServer, open_channel: Open) -> None:
    """What is to be said waits for a new one: it is not given up."""
    channel = open_channel(renewing(server))
    await channel.send(saying(HERE, "one"), "")
    server.tokens.revoke(server.bot)
    for _ in range(2):
        with pytest.raises(LoginRefused) as refused:
            await channel.send(saying(HERE, "two", key="k2"), "")
        assert refused.value.unsent
    assert "token" in channel.health().error
    with pytest.raises(LoginRefused):
        await take(open_channel(renewing(server)), 1, confirm=False)


async def test_a_new_refresh_token_counts(server: TwitchServer, open_channel: Open) -> None:
    """One that a person has put into .env, after what was kept here was revoked."""
    channel = open_channel(renewing(server))
    await channel.send(saying(HERE, "one"), "")
    server.tokens.expire(server.bot)
    await channel.send(saying(HERE, "two", key="k2"), "")
    kept = channel._context.load_cursor()
    server.tokens.revoke(server.bot)
    server.token = server.tokens.grant(server.bot)
    new = open_channel(renewing(server), kept)
    server.tokens.expire(server.bot)
    await new.send(saying(HERE, "three", key="k3"), "")
    assert server.said() == ["one", "two", "three"]


async def test_revoked_while_it_reads(server: TwitchServer, open_channel: Open) -> None:
    channel = open_channel()
    with pytest.raises(BaseExceptionGroup) as ended:
        await hear(channel, server, server.events.revoke)
    assert ended.group_contains(LoginRefused) and "token" in channel.health().error


async def test_a_token_without_a_scope(server: TwitchServer, open_channel: Open) -> None:
    less = server.tokens.grant(server.bot, ("user:read:chat",))
    with pytest.raises(LoginRefused, match="user:write:chat"):
        await open_channel({"TWITCH_ACCESS_TOKEN": less.access}).introduce()
    with pytest.raises(ConfigError, match="TWITCH_ACCESS_TOKEN"):
        open_channel({"TWITCH_ACCESS_TOKEN": ""})


@pytest.mark.parametrize("call", [SUBSCRIBE, "GET users", "GET ws"])
@pytest.mark.parametrize("status", [429, 500])
async def test_what_fails_at_the_start_is_tried_again(
    call: str, status: int, server: TwitchServer, open_channel: Open
) -> None:
    channel = open_channel()
    server.fail(call, status, retry_after=1)
    with pytest.raises(ChannelError) as fault:
        await take(channel, 1, confirm=False)
    assert not isinstance(fault.value, SendRefused) and channel.health().error
    (inbound,) = await hear(channel, server, lambda: server.says("ann", "@desk_bot hello"))
    assert words(inbound) == "hello"


@pytest.mark.parametrize("code", [0, 4000, 4004, 4007])
async def test_a_connection_that_ends(code: int, server: TwitchServer, open_channel: Open) -> None:
    channel = open_channel()
    with pytest.raises(BaseExceptionGroup) as ended:
        await hear(channel, server, lambda: server.events.close(code))
    assert ended.group_contains(ChannelError)
    (inbound,) = await hear(channel, server, lambda: server.says("ann", "@desk_bot hello"))
    assert words(inbound) == "hello"


async def test_two_readers_of_one_account(server: TwitchServer, open_channel: Open) -> None:
    async def other() -> None:
        with pytest.raises(ChannelError, match="same account"):
            await take(open_channel(), 1, confirm=False)

    await hear(open_channel(), server, other)
    assert server.events.connections == 1 and server.events.sessions == []
