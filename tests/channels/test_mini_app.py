"""The page inside Telegram: only who Telegram says it is gets in, and not for long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import anyio
import pytest
from aiogram.utils.web_app import check_webapp_signature
from hypothesis import given
from hypothesis import strategies as st

from deskhand.channels.settings import ChannelConfig
from deskhand.channels.telegram.channel import TelegramChannel
from deskhand.channels.telegram.mini_app import make_page_address, read_person
from deskhand.testing.channel_suite import take
from deskhand.testing.telegram.mini_app import sign_init_data
from deskhand.testing.telegram.server import TelegramServer
from deskhand.types.errors import ConfigError, Refused

TOKEN = "123456:AAE-a-token-of-a-bot"
NOW = 1_700_000_000.0
PAGE = "https://desk.example.org"


def sign(token: str = TOKEN, at: float = NOW, **more: str) -> str:
    return sign_init_data(token, at, **more)


def test_who_telegram_has_signed_is_known() -> None:
    data = sign()
    assert check_webapp_signature(TOKEN, data), "as another program reads it"
    assert read_person(data, TOKEN, NOW) == "77"
    assert read_person(data, TOKEN, NOW + 299) == "77"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("", "not signed"),
        ("hash=", "not signed"),
        ("nonsense", "not signed"),
        (sign().replace("77", "78"), "not signed"),
        (sign("654321:AAE-another-bot-than-it"), "not signed"),
        (sign() + "&user=" + quote('{"id": 1}'), "not signed"),
        (sign() + "&more=1", "not signed"),
        (sign()[: sign().index("hash=")] + "hash=ä", "not signed"),
        (sign(padding="x" * 9000), "not signed"),
        (sign(at=NOW - 301), "too long ago"),
        (sign(at=NOW + 3600), "too long ago"),
        (sign(auth_date="soon"), "does not say when"),
        (sign(user="Ann"), "does not say who"),
        (sign(user='{"id": "77"}'), "does not say who"),
        (sign(user="[" * 1500), "does not say who"),
        (sign(user='{"id": 5, "is_bot": true}'), "by a bot"),
    ],
)
def test_nobody_else_is(data: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        read_person(data, TOKEN, NOW)


@given(st.text())
def test_no_text_gets_in(data: str) -> None:
    with pytest.raises(Refused):
        read_person(data, TOKEN, NOW)


@given(st.integers(0, len(sign()) - 1), st.sampled_from("0a%&="))
def test_one_letter_more_or_another_is_not_signed(at: int, letter: str) -> None:
    good = sign()
    for changed in (good[:at] + letter + good[at:], good[:at] + letter + good[at + 1 :]):
        if changed != good:
            try:
                assert read_person(changed, TOKEN, NOW) == "77", "only what means the same"
            except Refused:
                continue


async def test_the_button_opens_the_page(
    server: TelegramServer, open_channel: Callable[..., TelegramChannel]
) -> None:
    for page, button in (
        (
            PAGE,
            {"type": "web_app", "text": "Open", "web_app": {"url": f"{PAGE}/?channel=telegram"}},
        ),
        ("", {"type": "default"}),
    ):
        server.chats.menu_button = {}
        channel = open_channel(page=page)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(take, channel, 1, confirm=False))
            with anyio.fail_after(10):
                while not server.chats.menu_button:
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        assert server.chats.menu_button == button
        with pytest.raises(Refused, match="not signed" if page else "page is not set"):
            channel.identify("user=1")


@pytest.mark.parametrize("address", ["http://desk.example.org", "desk", "https://", "https://a@b"])
def test_what_telegram_cannot_open_is_told(address: str) -> None:
    with pytest.raises(ConfigError, match=r"channels\.telegram\.page has to be"):
        make_page_address("telegram", ChannelConfig(page=address))
