"""What platforms post: only what they have signed is taken, and confirmed when it is stored."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.channels.settings import ChannelConfig
from deskhand.channels.slack.channel import SlackChannel, open_slack
from deskhand.channels.slack.signature import verify_slack
from deskhand.channels.telegram.channel import TelegramChannel, open_telegram
from deskhand.channels.webhook import MAX_WAITING, PostedEvents
from deskhand.config.clock import SystemClock
from deskhand.testing.channel import MemoryContext
from deskhand.testing.channel_suite import take
from deskhand.testing.slack.server import SlackServer
from deskhand.testing.telegram.server import TelegramServer
from deskhand.types.errors import ChannelError, ConfigError, Refused
from deskhand.types.webhooks import LATER, TAKEN, WebhookRequest

PUBLIC = "https://desk.example.org/"
ANN = 77
SLACK_ANN = "U0ANN"
SECRET = "test-signing-secret"
UPDATE = {"update_id": 1, "message": {"message_id": 1, "date": 1, "text": "hi"}}


def telegram_request(secret: str | None, body: bytes = b"") -> WebhookRequest:
    headers = {"content-type": "application/json"}
    if secret is not None:
        headers["x-telegram-bot-api-secret-token"] = secret
    return WebhookRequest(headers, body or msgspec.json.encode(UPDATE))


def slack_request(body: bytes, *, secret: str = SECRET, at: float | None = None) -> WebhookRequest:
    """A request as Slack signs it."""
    when = str(int(SystemClock().now() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{when}:".encode() + body, "sha256").hexdigest()
    headers = {
        "content-type": "application/json",
        "x-slack-request-timestamp": when,
        "x-slack-signature": f"v0={digest}",
    }
    return WebhookRequest(headers, body)


# Telegram


@pytest.fixture
async def telegram(open_channel: Callable[..., TelegramChannel]) -> TelegramChannel:
    return open_channel(webhook=PUBLIC)


@pytest.mark.parametrize("secret", [None, "", "0" * 64, "é"])
async def test_telegram_takes_nothing_unsigned(
    telegram: TelegramChannel, secret: str | None
) -> None:
    with pytest.raises(Refused, match="not from Telegram"):
        await telegram.take_webhook(telegram_request(secret))


async def test_without_a_webhook_nothing_is_taken(
    open_channel: Callable[..., TelegramChannel],
) -> None:
    """Also nothing that is signed with what would be the secret."""
    polling = open_channel()
    for secret in ("", polling._webhook_secret):
        with pytest.raises(Refused):
            await polling.take_webhook(telegram_request(secret))


async def test_telegram_is_told_where_to_post_and_that_it_ends(
    open_channel: Callable[..., TelegramChannel], server: TelegramServer
) -> None:
    channel = open_channel(webhook=PUBLIC)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_first, channel)
        with anyio.fail_after(5):
            while not server.webhook:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    params = next(told for method, told in server.calls if method.lower() == "setwebhook")
    assert server.webhook == "https://desk.example.org/api/hooks/channels/telegram"
    assert int(params["max_connections"]) == 1 and len(server.webhook_secret) == 64
    assert server.token.partition(":")[2] not in server.webhook_secret
    server.chats.says(ANN, "kept")
    (inbound,) = await take(open_channel(), 1, confirm=True)
    assert server.webhook == "" and "kept" in str(inbound.body)


async def take_first(channel: TelegramChannel) -> None:
    await take(channel, 1, confirm=False)


async def test_another_program_that_takes_the_webhook_is_told(
    open_channel: Callable[..., TelegramChannel], server: TelegramServer
) -> None:
    channel = open_channel(webhook=PUBLIC)
    channel.webhook_check_s = 0.05

    async def steal() -> None:
        while not server.webhook:
            await anyio.sleep(0.01)
        server.webhook = "https://other.example.org"

    with pytest.raises(ExceptionGroup) as found:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steal)
            tasks.start_soon(take_first, channel)
    (error,) = found.value.exceptions
    assert isinstance(error, ChannelError) and "another program" in str(error)


async def test_what_telegram_cannot_reach_stands_in_the_health(
    open_channel: Callable[..., TelegramChannel], server: TelegramServer
) -> None:
    channel = open_channel(webhook=PUBLIC)
    channel.webhook_check_s = 0.05
    server.webhook_failed = "Connection refused"
    server.chats.says(ANN, "hello")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_first, channel)
        with anyio.fail_after(5):
            while "Connection refused" not in channel.health().error:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "address",
    [
        "http://desk.example.org",
        "desk.example.org",
        "https:/x",
        "https://",
        "https://[",
        "https://a@b.example",
        "https://a.example?b",
    ],
)
def test_an_address_that_no_platform_posts_to(tmp_path: Path, address: str) -> None:
    config = ChannelConfig(webhook=address)
    with pytest.raises(ConfigError, match="https://"):
        open_telegram(MemoryContext("telegram", config, tmp_path, "4200:test-token"))


# Slack


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackChannel]:
    async with SlackServer() as server:
        channel = open_slack(slack_context(tmp_path, server))
        yield channel
        await channel.close()


def slack_context(
    folder: Path, server: SlackServer, *, secret: str = SECRET, webhook: str = PUBLIC
) -> MemoryContext:
    config = ChannelConfig(base_url=server.base_url.removesuffix("/"), webhook=webhook)
    tokens = {
        "SLACK_BOT_TOKEN": server.token,
        "SLACK_APP_TOKEN": server.app_token,
        "SLACK_SIGNING_SECRET": secret,
    }
    return MemoryContext("slack", config, folder / "state", tokens=tokens)


BODY = b'{"type":"event_callback","event":{"type":"message"}}'


def changed(request: WebhookRequest, **headers: str | None) -> WebhookRequest:
    told: Mapping[str, str | None] = {
        **request.headers,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    kept = {name: value for name, value in told.items() if value is not None}
    return WebhookRequest(kept, request.body)


# Made when the test runs: each is fresh but for what its line says.
FORGED: list[Callable[[], WebhookRequest]] = [
    lambda: slack_request(BODY, secret="forged"),
    lambda: slack_request(BODY, secret=""),
    lambda: slack_request(BODY, at=SystemClock().now() - 301),
    lambda: slack_request(BODY, at=SystemClock().now() + 400),
    lambda: WebhookRequest(slack_request(BODY).headers, BODY + b" "),
    lambda: changed(slack_request(BODY), x_slack_signature=None),
    lambda: changed(slack_request(BODY), x_slack_signature=""),
    lambda: changed(slack_request(BODY), x_slack_signature="v0="),
    lambda: changed(slack_request(BODY), x_slack_signature="v0=é"),
    lambda: changed(slack_request(BODY), x_slack_request_timestamp=None),
    lambda: changed(slack_request(BODY), x_slack_request_timestamp="9" * 4000),
    lambda: changed(slack_request(BODY), x_slack_request_timestamp="-1"),
]


@pytest.mark.parametrize("forge", FORGED, ids=map(str, range(len(FORGED))))
async def test_slack_takes_nothing_unsigned(
    slack: SlackChannel, forge: Callable[[], WebhookRequest]
) -> None:
    with pytest.raises(Refused):
        await slack.take_webhook(forge())


@pytest.mark.parametrize("secret", ["", " "])
async def test_without_its_secret_it_does_not_start(tmp_path: Path, secret: str) -> None:
    async with SlackServer() as server:
        with pytest.raises(ConfigError, match="SLACK_SIGNING_SECRET is not set: put the Signing"):
            open_slack(slack_context(tmp_path, server, secret=secret))
    with pytest.raises(Refused):
        verify_slack("", slack_request(BODY, secret=""), SystemClock().now())


async def test_one_that_reads_a_socket_takes_nothing(tmp_path: Path) -> None:
    async with SlackServer() as server:
        channel = open_slack(slack_context(tmp_path, server, webhook=""))
        for secret in (SECRET, ""):
            with pytest.raises(Refused):
                await channel.take_webhook(slack_request(BODY, secret=secret))
        await channel.close()


async def test_slack_asks_whether_the_address_is_ours(slack: SlackChannel) -> None:
    asked = slack_request(b'{"type":"url_verification","challenge":"abc"}')
    answer = await slack.take_webhook(asked)
    assert answer.status == 200 and msgspec.json.decode(answer.body) == {"challenge": "abc"}


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b"\xff", b"[" * 100_000, b"payload=%7B", b"command=%2Fdesk"]
)
async def test_what_cannot_be_read_is_answered(slack: SlackChannel, body: bytes) -> None:
    for kind in ("application/json", "application/x-www-form-urlencoded"):
        request = changed(slack_request(body), content_type=kind)
        assert (await slack.take_webhook(request)).status == 400


# What is handed over


async def test_an_event_is_taken_once_the_next_is_asked_for() -> None:
    events = PostedEvents[int](5.0)
    assert await events.put(0) == LATER, "nobody reads"
    told: list[Any] = []

    async def put(number: int) -> None:
        told.append((number, (await events.put(number)).status))

    async with anyio.create_task_group() as tasks, aclosing(events.read(60)) as reading:
        tasks.start_soon(put, 1)
        tasks.start_soon(put, 2)
        assert await anext(reading) == 1
        await anyio.sleep(0.02)
        assert told == []
        assert await anext(reading) == 2
        await anyio.sleep(0.02)
        assert told == [(1, 200)]
        await reading.aclose()
        await anyio.sleep(0.02)
        assert told == [(1, 200), (2, 503)], "the second was not stored"


async def test_who_waits_too_long_is_told_to_come_again() -> None:
    events = PostedEvents[int](0.05)
    async with aclosing(events.read(0.01)) as reading, anyio.create_task_group() as tasks:
        assert await anext(reading) is None
        answers = []

        async def put() -> None:
            answers.append(await events.put(1))

        tasks.start_soon(put)
        while await anext(reading) is None:
            pass
        await anyio.sleep(0.1)
        assert answers == [LATER]


async def test_no_more_wait_than_fit() -> None:
    events = PostedEvents[int](1.0)
    answers = []

    async def put() -> None:
        answers.append(await events.put(1))

    async with anyio.create_task_group() as tasks, aclosing(events.read(0.01)) as reading:
        await anext(reading)
        for _ in range(MAX_WAITING + 5):
            tasks.start_soon(put)
        await anyio.sleep(0.05)
        assert answers == [LATER] * 5
        for _ in range(MAX_WAITING + 1):
            await anext(reading)
        await anyio.sleep(0.01)
        assert answers[5:] == [TAKEN] * MAX_WAITING
