"""Slack and Telegram post to the page's server: people are answered, and strangers leave no
trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.config.clock import SystemClock
from deskhand.testing.slack.server import SlackServer
from deskhand.testing.telegram.server import TelegramServer
from deskhand.types.people import Identity

from .served import Served, serving, until

PUBLIC = "https://desk.example.org"
HOOKS = "/api/hooks/channels/"
ANN = "U0ANN"
MESSAGE = {"type": "event_callback", "event": {"type": "message", "channel": "D1", "text": "hi"}}


class Desk:
    """A served Deskhand on both platforms, which post to it."""

    def __init__(self, served: Served, slack: SlackServer, telegram: TelegramServer) -> None:
        self.served = served
        self.slack = slack
        self.telegram = telegram
        self.statuses: list[int] = []

    async def post(self, name: str, headers: dict[str, str], body: bytes) -> int:
        """As a proxy with TLS passes it on."""
        told = {**headers, "Host": "desk.example.org"}
        url = f"{self.served.url}{HOOKS}{name}"
        async with self.served.http.post(url, data=BytesIO(body), headers=told) as answer:
            await answer.read()
            self.statuses.append(answer.status)
            return answer.status

    def count_rows(self) -> int:
        return len(self.served.app.store.query_sync("inbox_after", (0,)))


@asynccontextmanager
async def desk_at(home: Path, **more: Any) -> AsyncIterator[Desk]:
    async with SlackServer() as slack, TelegramServer() as telegram:
        channels = {
            "slack": {"base_url": slack.base_url.removesuffix("/"), "webhook": PUBLIC, **more},
            "telegram": {
                "base_url": telegram.base_url.removesuffix("/bot"),
                "webhook": PUBLIC,
            },
            "quiet": {
                "type": "telegram",
                "token_env": "OTHER_TOKEN",
                "base_url": telegram.base_url.removesuffix("/bot"),
                "enabled": False,
            },
        }
        environment = {
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "OTHER_TOKEN": "4300:other-token",
        }
        async with serving(
            home,
            environment=environment,
            with_platforms=True,
            channels=channels,
            web={"hosts": ["desk.example.org"]},
        ) as served:
            await served.people.add_user("ann", "member", Identity("slack", ANN))
            await served.people.link("ann", Identity("telegram", "77"))
            yield Desk(served, slack, telegram)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_at(tmp_path) as found:
        yield found


async def test_who_writes_on_slack_is_answered(desk: Desk) -> None:
    async with anyio.create_task_group() as tasks:

        async def post(headers: dict[str, str], body: bytes) -> int:
            return await desk.post("slack", headers, body)

        tasks.start_soon(desk.slack.post_events, post, SystemClock())
        desk.slack.workspace.says(ANN, "hello")
        await until(lambda: desk.slack.workspace.said(ANN) == ["You said: hello"])
        tasks.cancel_scope.cancel()
    assert not desk.slack.socket_mode.links


async def test_who_writes_on_telegram_is_answered_once(desk: Desk) -> None:
    """The platform posts each message twice, as it does when our answer was lost."""
    async with anyio.create_task_group() as tasks:

        async def post(headers: dict[str, str], body: bytes) -> int:
            await desk.post("telegram", headers, body)
            return await desk.post("telegram", headers, body)

        tasks.start_soon(desk.telegram.post_updates, post)
        for text in ("one", "two"):
            desk.telegram.chats.says(77, text)
        await until(lambda: len(desk.telegram.chats.said(77)) == 2)
        await anyio.sleep(0.2)
        tasks.cancel_scope.cancel()
    assert desk.telegram.chats.said(77) == ["You said: one", "You said: two"]
    assert desk.count_rows() == 2


async def test_strangers_leave_no_trace(desk: Desk) -> None:
    await until(lambda: bool(desk.telegram.webhook))
    signed, body = desk.slack.signed(MESSAGE, SystemClock())
    old, _ = desk.slack.signed(MESSAGE, SystemClock(), age_s=400)
    forged, _ = desk.slack.signed(MESSAGE, SystemClock(), secret="forged")
    for name, headers, status in (
        ("slack", {}, 401),
        ("slack", {**signed, "X-Slack-Signature": ""}, 401),
        ("slack", old, 401),
        ("slack", forged, 401),
        ("telegram", signed, 401),
        ("telegram", {"X-Telegram-Bot-Api-Secret-Token": ""}, 401),
        ("quiet", signed, 401),
        ("nobody", signed, 401),
    ):
        assert await desk.post(name, dict(headers), body) == status, (name, headers)
    assert await desk.post("slack", signed, body + b" " * 2**20) == 413
    assert (await desk.served.client().ask("GET", f"{HOOKS}slack"))[0] in (404, 405)
    evil = {**signed, "Origin": "https://evil.example"}
    assert await desk.post("slack", evil, body) == 403
    assert desk.count_rows() == 0


async def test_one_that_is_off_is_told_to_come_again(desk: Desk) -> None:
    await until(lambda: bool(desk.telegram.webhook))
    desk.telegram.chats.says(77, "hello")
    app = desk.served.app
    config = msgspec.json.decode(app.settings.file.read_bytes())
    config["channels"]["telegram"]["enabled"] = False
    app.settings.file.write_bytes(msgspec.json.encode(config))
    await app.current.reload()
    statuses: list[int] = []
    async with anyio.create_task_group() as tasks:

        async def post(headers: dict[str, str], body: bytes) -> int:
            statuses.append(await desk.post("telegram", headers, body))
            return statuses[-1]

        tasks.start_soon(desk.telegram.post_updates, post)
        await until(lambda: len(statuses) > 2)
        tasks.cancel_scope.cancel()
    assert set(statuses) == {503} and desk.count_rows() == 0
