"""The endpoints of browsers that are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.config.clock import SystemClock
from deskhand.testing.push_server import PushBrowser, PushServer, open_push_server
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.errors import ConfigError
from deskhand.web.agent_signatures import to_base64url

from .served import Served, serving


class Asked:
    def __init__(self, served: Served, service: PushServer) -> None:
        self.served, self.service = served, service


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    async with open_push_server(SystemClock().now) as service:
        web = {"push": {"services": [service.url.removeprefix("http://")]}}
        async with serving(tmp_path, ScriptedModel(), web=web) as served:
            await served.people.add_user("eve", "member")
            yield Asked(served, service)


async def test_a_browser_is_added_tried_and_removed(asked: Asked) -> None:
    _, owner = await asked.served.browser()
    _, eve = await asked.served.browser("eve")
    before = await owner.get("/api/push")
    assert len(before["public_key"]) == 87 and before["devices"] == [] and not before["problem"]
    browser = asked.service.subscribe()
    wanted = {**browser.subscription(), "label": "  Firefox on\nLinux "}
    status, made = await owner.ask("POST", "/api/push", wanted)
    assert status == 200 and made["label"] == "Firefox on Linux"
    assert (await owner.get("/api/push"))["devices"] == [made]
    assert (await owner.ask("POST", f"/api/push/{made['id']}/test")) == (200, {"status": "sent"})
    assert asked.service.pushed[-1].said["title"] == "Deskhand"

    for method, path in (
        ("POST", f"/api/push/{made['id']}/test"),
        ("DELETE", f"/api/push/{made['id']}"),
    ):
        assert (await eve.ask(method, path))[0] == 404, "not hers"
    assert (await owner.ask("DELETE", f"/api/push/{made['id']}"))[0] == 200
    assert (await owner.ask("DELETE", f"/api/push/{made['id']}"))[0] == 404
    assert (await owner.get("/api/push"))["devices"] == []


async def test_it_is_the_same_browser_however_often_it_is_added(asked: Asked) -> None:
    _, owner = await asked.served.browser()
    browser = asked.service.subscribe()
    made = [await owner.ask("POST", "/api/push", browser.subscription()) for _ in range(3)]
    assert made == [made[0]] * 3 and made[0][0] == 200
    assert (await owner.get("/api/push"))["devices"] == [made[0][1]]
    audit = await asked.served.people.list_audit_notes()
    assert [each.what for each in audit].count("notifications on") == 1
    for _ in range(25):
        other = asked.service.subscribe().subscription()
        assert (await owner.ask("POST", "/api/push", other))[0] == 200
    assert len((await owner.get("/api/push"))["devices"]) == 20


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("https://evil.example/x", "deskhand config set web.push.services"),
        ("http://fcm.googleapis.com/x", "is not known"),
        ("https://fcm.googleapis.com.evil.example/x", "is not known"),
        ("https://push.apple.com/x", "is not known"),
        ("https://127.0.0.1/x", "is not known"),
        ("https://fcm.googleapis.com:8443/x", "is not known"),
        ("ftp://fcm.googleapis.com/x", "has no address"),
        ("nonsense", "has no address"),
    ],
)
async def test_nobody_is_sent_to_who_is_no_push_service(
    asked: Asked, endpoint: str, told: str
) -> None:
    _, owner = await asked.served.browser()
    status, said = await owner.ask("POST", "/api/push", PushBrowser(endpoint).subscription())
    assert status == 403 and told in said["error"]["message"]
    assert (await owner.get("/api/push"))["devices"] == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://fcm.googleapis.com/fcm/send/abc",
        "https://updates.push.services.mozilla.com/wpush/v2/abc",
        "https://web.push.apple.com/abc",
        "https://wns2-par02p.notify.windows.com/w/?token=abc",
    ],
)
async def test_the_push_services_of_browsers_are_known(asked: Asked, endpoint: str) -> None:
    _, owner = await asked.served.browser()
    status, said = await owner.ask("POST", "/api/push", PushBrowser(endpoint).subscription())
    assert status == 200, said


async def test_bad_keys_and_programs_are_refused(asked: Asked) -> None:
    _, owner = await asked.served.browser()
    good = asked.service.subscribe().subscription()
    for keys in (
        {**good["keys"], "auth": to_base64url(b"short")},
        {**good["keys"], "p256dh": to_base64url(b"\x04" + bytes(64))},
    ):
        assert (await owner.ask("POST", "/api/push", {**good, "keys": keys}))[0] == 403
    status, said = await owner.ask(
        "POST", "/api/push", {**good, "keys": {**good["keys"], "auth": "ä"}}
    )
    assert (status, said["error"]["message"]) == (
        400,
        "The keys of the browser are not in base64url.",
    )
    status, said = await asked.served.owner.ask("POST", "/api/push", good)
    assert status == 403 and "this is an API token" in said["error"]["message"]


async def test_a_test_that_fails_says_why(asked: Asked) -> None:
    _, owner = await asked.served.browser()
    browser = asked.service.subscribe()
    _, made = await owner.ask("POST", "/api/push", browser.subscription())
    for answer, told in ((403, "answered 403"), (410, "taken its permission back"), (503, "later")):
        asked.service.answers.append((answer, {}))
        status, said = await owner.ask("POST", f"/api/push/{made['id']}/test")
        assert status == 502 and told in said["error"]["message"]


async def test_settings_that_are_none_are_told(tmp_path: Path) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"services": ["https://push.example"]}, "web.push.services"),
        ({"contact": "ann"}, "write mailto:you@example.org"),
    ]
    for push, told in bad:
        with pytest.raises(ConfigError, match=told):
            async with serving(tmp_path, ScriptedModel(), web={"push": push}):
                pass
