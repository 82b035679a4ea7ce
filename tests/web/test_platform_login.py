"""Telegram opens the page: its person is signed in there, with less than at the machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deskhand.config.clock import SystemClock
from deskhand.testing.telegram.mini_app import sign_init_data
from deskhand.testing.telegram.server import TelegramServer
from deskhand.types.people import Identity

from .served import PAGE, Served, serving

LOGIN = "/api/login/platform"
ANN = "77"


class Desk:
    def __init__(self, served: Served, token: str) -> None:
        self.served, self.token = served, token

    async def log_in(self, data: str, channel: str = "telegram") -> tuple[int, str]:
        """The status, and the cookie or what was said."""
        url, headers = self.served.url + LOGIN, {**PAGE, "origin": self.served.url}
        body = {"channel": channel, "data": data}
        async with self.served.http.post(url, json=body, headers=headers) as answer:
            cookie = answer.cookies.get("deskhand")
            if cookie is not None:
                assert cookie["httponly"] and cookie["samesite"] == "strict"
                return answer.status, cookie.value
            return answer.status, (await answer.json())["error"]["message"]

    def signed(self, age_s: float = 0.0, **more: str) -> str:
        return sign_init_data(self.token, SystemClock().now() - age_s, **more)


@asynccontextmanager
async def desk_at(home: Path, page: str) -> AsyncIterator[Desk]:
    async with TelegramServer() as telegram:
        channels = {"telegram": {"base_url": telegram.base_url.removesuffix("/bot"), "page": page}}
        async with serving(
            home,
            environment={"TELEGRAM_BOT_TOKEN": telegram.token},
            with_platforms=True,
            channels=channels,
        ) as served:
            yield Desk(served, telegram.token)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_at(tmp_path, "https://desk.example.org") as found:
        yield found


async def test_an_owner_is_signed_in_and_does_not_change_the_house(desk: Desk) -> None:
    await desk.served.people.link("owner", Identity("telegram", ANN))
    status, cookie = await desk.log_in(desk.signed())
    assert status == 204
    page = desk.served.client(cookie=f"deskhand={cookie}", origin=desk.served.url, **PAGE)
    me = await page.get("/api/auth/me")
    assert (me["user"], me["scopes"]) == ("owner", ["read", "chat", "approve"])
    assert (await page.ask("GET", "/api/setup"))[0] == 403
    assert (await page.ask("POST", "/api/tokens", {"name": "mine"}))[0] == 403
    tokens = await desk.served.owner.get("/api/tokens")
    (made,) = [each for each in tokens if each["name"] == "in telegram"]
    day = 24 * 3600
    assert day - 60 < made["expires_at"] - SystemClock().now() <= day
    assert (await page.ask("POST", "/api/logout"))[0] == 204
    assert (await page.ask("GET", "/api/auth/me"))[0] == 401


async def test_a_member_is_who_they_are_there(desk: Desk) -> None:
    bot = desk.token.partition(":")[0]
    await desk.served.people.add_user("ann", "member", Identity("telegram", ANN, bot))
    status, cookie = await desk.log_in(desk.signed())
    page = desk.served.client(cookie=f"deskhand={cookie}", origin=desk.served.url, **PAGE)
    assert status == 204 and (await page.get("/api/auth/me"))["user"] == "ann"


async def test_strangers_and_forgeries_stay_out(desk: Desk) -> None:
    assert (await desk.log_in(desk.signed()))[1].startswith("Nobody here is 77 on telegram")
    await desk.served.people.add_user("ann", "member", Identity("telegram", ANN, "1"))
    assert (await desk.log_in(desk.signed()))[0] == 401, "another bot knows her"
    bot = desk.token.partition(":")[0]
    await desk.served.people.link("owner", Identity("telegram", ANN, bot))
    for data, told in (
        (desk.signed(400.0), "too long ago"),
        (sign_init_data("1:another-token-than-it", SystemClock().now()), "not signed"),
        (desk.signed().replace("Ann", "Eve"), "not signed"),
    ):
        status, said = await desk.log_in(data)
        assert status == 401 and told in said
    assert (await desk.log_in(desk.signed(), channel="web"))[0] == 401
    assert (await desk.log_in(desk.signed(), channel="other"))[0] == 401


async def test_guesses_are_counted(desk: Desk) -> None:
    statuses = [(await desk.log_in("user=1&hash=0"))[0] for _ in range(60)]
    assert statuses[0] == 401 and statuses[-1] == 429


async def test_without_the_setting_nobody_gets_in(tmp_path: Path) -> None:
    async with desk_at(tmp_path, "") as desk:
        await desk.served.people.link("owner", Identity("telegram", ANN))
        status, said = await desk.log_in(desk.signed())
        assert status == 401 and "page is not set" in said
