"""Conversations that are given away: as files, and as links that end."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.models.base import Request
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types import events as e
from deskhand.types.commit import Change
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text
from deskhand.web.conversation_text import (
    STYLE,
    PageLook,
    Utterance,
    list_utterances,
    make_parser,
    render_page,
    render_text,
)

from .served import Served, serving

ATTACK = """# Hi <script>alert(1)</script>

[run](javascript:alert(1)) [file](file:///etc/passwd) [data](data:text/html,x) [ok](https://example.org/a)

![beacon](https://evil.example/?q=1) <img src=https://evil.example/2> <a href="https://evil.example/3">x</a>

| a | b |
|---|---|
| 1 | <svg onload=alert(1)> |
"""


def answer(request: Request) -> Message:
    text = request.messages[-1].message.text
    return say(ATTACK if text.endswith("attack") else f"You said: {text.rpartition('] ')[2]}")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, ScriptedModel(answer)) as found:
        yield found


async def talk(served: Served, name: str, text: str) -> None:
    status, _ = await served.owner.ask("POST", f"/api/chat/{name}", {"message": text})
    assert status == 200


async def share(served: Served, name: str, days: int = 7) -> dict[str, Any]:
    status, made = await served.owner.ask("POST", f"/api/sessions/{name}/shares", {"days": days})
    assert status == 201, made
    return dict(made)


def stranger(served: Served) -> Any:
    return served.client()


async def test_whoever_has_the_link_reads_what_was_said_until_then(served: Served) -> None:
    await talk(served, "talk", "the first words")
    made = await share(served, "talk")
    await talk(served, "talk", "the later words")
    status, page = await stranger(served).ask("GET", made["path"])
    assert status == 200
    assert "the first words" in page and "You said: the first words" in page
    assert "later" not in page
    (listed,) = await served.owner.get("/api/shares")
    assert (listed["id"], listed["title"], listed["path"]) == (made["id"], "the first words", "")
    assert round(listed["until"] - listed["at"]) == 7 * 24 * 3600
    assert made["path"].partition("/share/")[2] not in str(listed)


async def test_whoever_has_the_link_reads_it_in_their_language(served: Served) -> None:
    await talk(served, "talk", "hello")
    made = await share(served, "talk")
    german = {"accept-language": "de-AT,de;q=0.9,en;q=0.8"}
    _, page = await stranger(served).ask("GET", made["path"], headers=german)
    assert '<html lang="de" dir="ltr">' in page and "zum Lesen geteilt" in page
    assert "You said: hello" in page
    status, ended = await stranger(served).ask("GET", "/share/x", headers=german)
    assert status == 404 and "<h1>Dieser Link funktioniert nicht mehr</h1>" in ended
    _, english = await stranger(served).ask("GET", made["path"])
    assert '<html lang="en" dir="ltr">' in english and "shared to be read" in english


async def test_a_link_ends(served: Served) -> None:
    await talk(served, "talk", "hello")
    await talk(served, "other", "hello")
    revoked, erased = await share(served, "talk"), await share(served, "other")
    assert (await served.owner.ask("DELETE", f"/api/shares/{revoked['id']}"))[0] == 200
    assert (await served.owner.ask("DELETE", "/api/sessions/other"))[0] == 200
    for made in (revoked, erased, {"path": "/share/" + "x" * 43}, {"path": "/share/x"}):
        status, page = await stranger(served).ask("GET", made["path"])
        assert status == 404 and "This link does not work any more" in page
    assert await served.owner.get("/api/shares") == []
    for days in (0, 366, "x"):
        body = {"days": days}
        assert (await served.owner.ask("POST", "/api/sessions/talk/shares", body))[0] == 400


async def test_a_link_ends_with_its_day_and_its_maker(tmp_path: Path) -> None:
    clock = SetClock(1_800_000_000.0)
    async with serving(tmp_path, ScriptedModel(answer), clock=clock) as served:
        await talk(served, "talk", "hello")
        made = await share(served, "talk", 1)
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        assert (await eve.ask("POST", "/api/chat/hers", {"message": "hello"}))[0] == 200
        _, hers = await eve.ask("POST", "/api/sessions/hers/shares", {"days": 9})
        assert (await eve.ask("DELETE", f"/api/shares/{made['id']}"))[0] == 404
        assert (await stranger(served).ask("GET", hers["path"]))[0] == 200
        clock.advance(24 * 3600.0 + 1)
        assert (await stranger(served).ask("GET", made["path"]))[0] == 404
        assert (await stranger(served).ask("GET", hers["path"]))[0] == 200
        await served.people.remove_user("eve")
        assert (await stranger(served).ask("GET", hers["path"]))[0] == 404


async def test_a_link_ends_when_its_maker_takes_no_part_any_more(served: Served) -> None:
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    assert (await eve.ask("POST", "/api/chat/hers", {"message": "hello"}))[0] == 200
    _, made = await eve.ask("POST", "/api/sessions/hers/shares", {"days": 9})
    assert (await stranger(served).ask("GET", made["path"]))[0] == 200
    leave = Change("session_leave", ("default/web:eve:hers", "eve"))
    await served.app.store.change([leave])
    assert (await stranger(served).ask("GET", made["path"]))[0] == 404


async def test_nobody_shares_what_is_not_theirs(served: Served) -> None:
    await talk(served, "talk", "hello")
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    mine = "default~web:owner:talk"
    assert (await eve.ask("POST", f"/api/sessions/{mine}/shares", {"days": 7}))[0] == 404
    assert (await eve.ask("GET", f"/api/sessions/{mine}/export"))[0] == 404
    _, reader = await served.token("owner", ("read",))
    assert (await reader.ask("POST", "/api/sessions/talk/shares", {"days": 7}))[0] == 403


async def test_a_shared_page_runs_and_loads_nothing(served: Served) -> None:
    await talk(served, "talk", "attack")
    made = await share(served, "talk")
    async with served.owner.http.get(served.owner.url + made["path"]) as response:
        page = await response.text()
        policy = response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-store"
        assert "noindex" in response.headers["x-robots-tag"]
    assert "default-src 'none'" in policy and "script-src" not in policy
    body = page.partition("</style>")[2]
    assert not re.search(r"<(script|img|svg|iframe|form|link|meta|object)\b", body)
    assert set(re.findall(r'href="([^"]*)"', body)) == {
        "https://example.org/a",
        "https://evil.example/?q=1",
        made["path"].replace("/share/", "/#/continue/"),
    }, "links that a person may follow; nothing is loaded by itself"
    assert page.count("<style>") == 1 and STYLE in page


@pytest.mark.parametrize(
    ("form", "kind", "part"),
    [
        ("markdown", "text/markdown", "## Deskhand, "),
        ("html", "text/html", '<article class="agent">'),
        ("json", "application/json", '"type":"message_received"'),
    ],
)
async def test_a_conversation_is_saved_as_a_file(
    served: Served, form: str, kind: str, part: str
) -> None:
    await talk(served, "talk", "save/this: ünïcode")
    path = f"{served.owner.url}/api/sessions/talk/export?format={form}"
    async with served.owner.http.get(path, headers=served.owner.headers) as response:
        text = await response.text()
        assert response.status == 200 and response.content_type == kind
        disposition = response.headers["content-disposition"]
    assert disposition.startswith("attachment; filename*=utf-8''save%2Fthis%3A%20")
    assert "You said: save/this: ünïcode" in text and part in text


ANN = Principal("ann", ("owner",))


def recorded(*events: e.AnyEvent) -> list[e.Recorded]:
    return [e.Recorded(n, "a/web:ann:x", n, 1000.0 * n, each) for n, each in enumerate(events, 1)]


def said(text: str, external_id: str = "", who: Principal = ANN) -> e.MessageReceived:
    message = Message("user", (Text(text),))
    return e.MessageReceived(0, who, Address("web"), message, external_id)


def replied(text: str) -> e.ModelReplied:
    return e.ModelReplied(Message("assistant", (Text(text),)), "m")


def texts(log: list[e.Recorded], last_n: int | None = None) -> list[str]:
    return [utterance.text for utterance in list_utterances(log, lambda who: who.id, last_n)]


def test_what_holds_is_listed() -> None:
    log = recorded(
        said("one", "p1"),
        replied("two"),
        said("from a job", who=Principal("job:x", kind="clock")),
        replied("three"),
        e.Undone(0, ANN, 2),
        said("four", "p4"),
        e.MessageDeleted(0, ANN, "p4", "four"),
        said("five", "p5"),
        e.MessageEdited(0, "p5", Message("user", (Text("five, better"),))),
    )
    assert texts(log) == ["one", "two", "five, better"]
    assert texts(log, 2) == ["one", "two"]
    assert texts(log[:4]) == ["one", "two", "three"]
    assert fold(State("a/web:ann:x"), log).n == 9, "it is a log that could be"


def test_a_long_answer_is_shown_as_it_is() -> None:
    parser = make_parser()
    long = Utterance(1, 0.0, "", "*a* <b> " * 20_000)
    assert render_text(parser, long).startswith('<div class="plain">*a* &lt;b&gt; ')
    assert render_text(parser, Utterance(1, 0.0, "Ann", "*a*")) == '<div class="plain">*a*</div>'
    assert "Nothing was said here" in render_page("<T>", [], PageLook("x", None))
    assert "&lt;T&gt;" in render_page("<T>", [], PageLook("x", None))
