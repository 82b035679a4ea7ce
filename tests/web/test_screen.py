"""Who may watch what an agent sees, asked of a whole Deskhand with a real browser."""

from __future__ import annotations

from pathlib import Path

from deskhand.computer.browser.browsers import Browser
from deskhand.runtime.app import App
from deskhand.runtime.screen_api import ELSEWHERE, WITHHELD
from deskhand.types.labels import Label

from .calling import ALLOW, Caller
from .served import Client, Served, serving

SCREEN = "/api/sessions/one/screen"
OPEN_TAB = ("browser", {"action": "tab", "tab": 0})


async def member(served: Served) -> Client:
    await served.people.add_user("bob", "member")
    return (await served.token("bob"))[1]


def browser_of(served: Served) -> Browser:
    ((_, browser),) = served.app.features.browsers.list_open()
    return browser


async def picture(client: Client, path: str) -> tuple[int, bytes, dict[str, str]]:
    async with client.http.get(client.url + path, headers=client.headers) as answer:
        said = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, await answer.read(), said


async def test_a_conversation_is_watched_by_those_who_see_it(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        bob = await member(served)
        await caller.does(served.owner, "one")
        assert await served.owner.get(SCREEN) == {"views": [], "why_not": ""}
        assert served.app.features.browsers.list_open() == [], "nothing is opened by looking"

        await caller.does(served.owner, "one", OPEN_TAB)
        view, blank = (await served.owner.get(SCREEN))["views"]
        assert blank["id"] == "browser-1-1", "a browser begins with an empty tab"
        now = served.app.parts.clock.now()
        assert {**view, "at": 0} == {
            "id": "browser-1-2",
            "kind": "browser",
            "title": "about:blank",
            "url": "about:blank",
            "program": "",
            "at": 0,
        }
        assert now - 60 < view["at"] <= now

        status, data, headers = await picture(served.owner, f"{SCREEN}/{view['id']}")
        assert status == 200 and data.startswith(b"\xff\xd8\xff")
        assert headers["content-type"] == "image/jpeg" and headers["cache-control"] == "no-store"
        assert "sandbox" in headers["content-security-policy"]
        assert (await picture(served.owner, f"{SCREEN}/browser-1-9"))[0] == 404
        assert (await picture(served.owner, f"{SCREEN}/desktop"))[0] == 404

        for name in ("one", "default~web:owner:one"):
            path = f"/api/sessions/{name}/screen"
            status, _ = await bob.ask("GET", f"{path}/{view['id']}")
            assert status == 404, name
        assert (await bob.ask("GET", "/api/sessions/default~web:owner:one/screen"))[0] == 404

        await caller.does(bob, "one")
        assert await bob.get(SCREEN) == {"views": [], "why_not": ""}, "that is another one"
        assert (await bob.ask("GET", f"{SCREEN}/{view['id']}"))[0] == 404
        anonymous = served.client()
        assert (await anonymous.ask("GET", f"{SCREEN}/{view['id']}"))[0] == 401


async def test_what_is_not_for_all_readers_is_withheld(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        bob = await member(served)
        await caller.does(bob, "one", OPEN_TAB)
        view = (await bob.get(SCREEN))["views"][0]
        # An owner may see each conversation, and in it not what is for bob alone.
        theirs = "/api/sessions/default~web:bob:one/screen"
        assert len((await served.owner.get(theirs))["views"]) == 2
        browser_of(served).note_use(Label("member", readers=("bob",)))
        assert await served.owner.get(theirs) == {"views": [], "why_not": WITHHELD}
        assert (await served.owner.ask("GET", f"{theirs}/{view['id']}"))[0] == 404
        assert (await picture(bob, f"{SCREEN}/{view['id']}"))[0] == 200


async def test_what_goes_into_the_browser_says_who_may_watch_it(tmp_path: Path) -> None:
    """What an agent has read of its owner alone may be typed into a page."""
    caller = Caller()
    work = tmp_path / "agents/default/workspace"
    work.mkdir(parents=True)
    (work / "USER.md").write_text("likes tea\n")
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        await caller.does(served.owner, "one", ("read_file", {"path": "USER.md"}))
        await caller.does(served.owner, "one", OPEN_TAB)
        assert browser_of(served).label.readers == ("role:owner",)


async def test_while_there_is_no_picture_it_is_said_why(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        await caller.does(served.owner, "one", OPEN_TAB)
        tab = browser_of(served).current
        assert tab is not None
        await tab.call("Runtime.evaluate", {"expression": "setTimeout(() => alert('Sure?'), 10)"})
        while tab.dialog is None:
            await served.owner.get(SCREEN)
        status, said = await served.owner.ask("GET", f"{SCREEN}/browser-1-2")
        assert (status, said["error"]["code"]) == (503, "no_picture")
        assert said["error"]["message"] == 'The page shows the alert "Sure?", and nothing else now.'


async def test_what_another_process_drives_is_not_watched_here(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        await caller.does(served.owner, "one")

    async def serve_alone(app: App) -> None:
        assert app.parts.serve is not None
        await app.parts.serve(app)

    async with serving(tmp_path, caller.model, drive=serve_alone) as served:
        assert await served.owner.get(SCREEN) == {"views": [], "why_not": ELSEWHERE}
        assert (await served.owner.ask("GET", f"{SCREEN}/browser-1-1"))[0] == 404
