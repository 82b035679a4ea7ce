"""What people see who watch: pictures of pages and of the screen, which leave no trace in what an
agent does."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from PIL import Image

from deskhand.computer.browser.browsers import Browser, Browsers
from deskhand.computer.browser.tab import Tab
from deskhand.computer.desktop.host import DesktopConfig, DesktopHost
from deskhand.computer.live_views import MAX_WIDTH, REST_S, TIMEOUT_S, LiveView, LiveViews
from deskhand.tools.label_marks import OWNER_READERS
from deskhand.types.errors import ToolError
from deskhand.types.labels import LOCAL, Label

from .conftest import Surfer

RED = "<title>Red</title><body style='background:#f00'>"
WATCHED = """<title>Watched</title><input id=field><script>
window.seen = []
for (const kind of ['focus', 'blur', 'resize', 'scroll', 'visibilitychange', 'pagehide'])
  addEventListener(kind, () => seen.push(kind), true)
field.focus(); seen.length = 0</script>"""
STATE = "JSON.stringify([seen, document.activeElement.id, innerWidth, history.length])"
BUSY = "setTimeout(() => { for (let end = Date.now() + 4000; Date.now() < end;); }, 20)"
PASSWORD = """<title>Log in</title><label>Password <input id=p type=password value=tulip></label>
<button onclick="p.type = p.type == 'text' ? 'password' : 'text'">Show</button>"""


def watching(surfer: Surfer, timeout_s: float = TIMEOUT_S) -> LiveViews:
    return LiveViews(surfer.browsers, DesktopHost(DesktopConfig, dict), timeout_s=timeout_s)


def pixel(picture: bytes) -> tuple[int, ...]:
    """The colour of the middle of a picture."""
    image = Image.open(io.BytesIO(picture))
    assert image.format == "JPEG" and image.width <= MAX_WIDTH
    found = image.convert("RGB").getpixel((image.width // 2, image.height // 2))
    assert isinstance(found, tuple)
    return found


def is_red(picture: bytes) -> bool:
    red, green, blue = pixel(picture)
    return red > 200 and green < 60 and blue < 60


def browser_of(surfer: Surfer) -> Browser:
    browser = surfer.browsers.peek(surfer.hands.session)
    assert browser is not None
    return browser


def tab_of(surfer: Surfer) -> Tab:
    tab = browser_of(surfer).current
    assert tab is not None
    return tab


async def evaluate(tab: Tab, expression: str) -> Any:
    asked = {"expression": expression, "returnByValue": True}
    return (await tab.call("Runtime.evaluate", asked))["result"].get("value")


async def only_view(live: LiveViews, surfer: Surfer) -> LiveView:
    (view,) = live.list_views(surfer.hands.session)
    return view


async def test_nothing_is_opened_to_be_watched(surfer: Surfer) -> None:
    live = watching(surfer)
    assert live.list_views(surfer.hands.session) == []
    assert surfer.browsers.peek(surfer.hands.session) is None


async def test_a_page_is_seen_as_it_is_now(surfer: Surfer) -> None:
    await surfer.open(RED)
    live = watching(surfer)
    view = await only_view(live, surfer)
    assert (view.kind, view.title, view.url) == ("browser", "Red", surfer.site.url("/page"))
    assert is_red(await live.take_picture(view))
    await evaluate(tab_of(surfer), "document.body.style.background = '#00f'")
    await anyio.sleep(REST_S)
    assert pixel(await live.take_picture(view))[2] > 200
    assert live.list_views("default/web:owner:other") == [], "another conversation sees nothing"


async def test_a_picture_leaves_no_trace_in_the_page(surfer: Surfer) -> None:
    await surfer.open(WATCHED)
    tab = tab_of(surfer)
    live = watching(surfer)
    before = await evaluate(tab, STATE)
    lines = [each.text for each in tab.lines]
    for _ in range(3):
        await live.take_picture(await only_view(live, surfer))
        await anyio.sleep(REST_S)
    assert await evaluate(tab, STATE) == before and before.startswith("[[]")
    assert [each.text for each in tab.lines] == lines and browser_of(surfer).current is tab


async def test_all_who_ask_at_once_get_the_same_picture(surfer: Surfer) -> None:
    await surfer.open(RED)
    live = watching(surfer)
    view = await only_view(live, surfer)
    taken: list[bytes] = []

    async def ask() -> None:
        taken.append(await live.take_picture(view))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
    assert all(each is taken[0] for each in taken)
    await anyio.sleep(REST_S)
    assert await live.take_picture(view) is not taken[0]


async def test_the_tab_that_is_looked_at_comes_first(surfer: Surfer) -> None:
    await surfer.open(RED)
    surfer.site.page("/blue", "<title>Blue</title><body style='background:#00f'>")
    await surfer("tab", tab=0, url=surfer.site.url("/blue"))
    live = watching(surfer)
    views = live.list_views(surfer.hands.session)
    assert [each.title for each in views] == ["Blue", "Red"]
    for _ in range(2):
        assert pixel(await live.take_picture(views[0]))[2] > 200
        with pytest.raises(ToolError, match="looks at another tab"):
            await live.take_picture(views[1])
        await anyio.sleep(REST_S)
    assert tab_of(surfer).title == "Blue"
    assert await evaluate(tab_of(surfer), "document.visibilityState") == "visible"
    await surfer("tab", tab=1)
    assert is_red(await live.take_picture(live.list_views(surfer.hands.session)[0]))


async def test_while_the_page_asks_something_there_is_no_picture(surfer: Surfer) -> None:
    await surfer.open(RED + "<button onclick=\"alert('Sure?')\">Go</button>")
    live = watching(surfer)
    await surfer("click", ref=await surfer.ref("Go"))
    view = await only_view(live, surfer)
    begun = anyio.current_time()
    with pytest.raises(ToolError, match=r'the alert "Sure\?"'):
        await live.take_picture(view)
    assert anyio.current_time() - begun < TIMEOUT_S / 2
    await surfer("dialog")
    await anyio.sleep(REST_S)
    assert is_red(await live.take_picture(view))


async def test_a_busy_page_is_given_up_and_asked_once(surfer: Surfer) -> None:
    await surfer.open(RED)
    live = watching(surfer, timeout_s=1)
    view = await only_view(live, surfer)
    tab = tab_of(surfer)
    await evaluate(tab, BUSY)
    await anyio.sleep(0.2)
    for _ in range(2):
        asked = anyio.current_time()
        with pytest.raises(ToolError, match="no picture came in 1 s"):
            await live.take_picture(view)
        assert anyio.current_time() - asked < 2
        await anyio.sleep(REST_S)
    waiting = [each.method for each in tab._protocol._calls.values()]
    assert waiting == ["Page.captureScreenshot"], "not a second one"
    await anyio.sleep(1)
    assert is_red(await live.take_picture(view)), "it comes when the page has time again"
    assert not tab.is_over, "it stays open for the agent"


async def test_a_password_that_a_page_shows_is_not_seen(surfer: Surfer) -> None:
    await surfer.open(PASSWORD)
    live = watching(surfer)
    view = await only_view(live, surfer)
    assert await live.take_picture(view), "behind dots it may be seen"
    await surfer("click", ref=await surfer.ref("Show"))
    await anyio.sleep(REST_S)
    with pytest.raises(ToolError, match="while the page shows a password"):
        await live.take_picture(view)
    await surfer("click", ref=await surfer.ref("Show"))
    await anyio.sleep(REST_S)
    assert await live.take_picture(view)


async def test_a_picture_is_only_for_those_who_may_know_what_was_typed(surfer: Surfer) -> None:
    await surfer.open(RED)
    live = watching(surfer)
    assert (await only_view(live, surfer)).label == LOCAL
    browser_of(surfer).note_use(Label("owner", readers=("ann",)))
    assert (await only_view(live, surfer)).label.readers == ("ann",)


async def test_titles_are_from_outside(surfer: Surfer) -> None:
    await surfer.open("<title>pay \u202etxt.exe</title>")
    title = (await only_view(watching(surfer), surfer)).title
    assert "\u202e" not in title and title.startswith("pay ")


async def test_a_browser_that_ended_is_not_listed(surfer: Surfer) -> None:
    await surfer.open(RED)
    live = watching(surfer)
    view = await only_view(live, surfer)
    await live.take_picture(view)
    await surfer("close")
    assert live.list_views(surfer.hands.session) == []
    await surfer.open(RED)
    again = await only_view(live, surfer)
    assert again.id != view.id and is_red(await live.take_picture(again))


async def test_what_sub_agents_have_open_belongs_to_who_they_work_for(surfer: Surfer) -> None:
    await surfer.open(RED)
    people = "default/web:owner:one"
    roots = {surfer.hands.session: people}
    live = LiveViews(
        surfer.browsers, DesktopHost(DesktopConfig, dict), lambda each: roots.get(each, each)
    )
    assert [each.title for each in live.list_views(people)] == ["Red"]
    assert live.list_views("default/web:owner:two") == []


# The screen


async def test_the_screen_is_for_owners_and_at_most_so_wide(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    host = DesktopHost(lambda: DesktopConfig("virtual", "1600x900"), lambda: environment)
    live = LiveViews(Browsers(), host)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run)
        await anyio.sleep(0)
        desktop = await host.open()
        desktop.view_of("default/web:owner:asked")
        assert live.list_views("default/web:owner:asked") == [], "it was only asked about"

        await host.launch(["zenity", "--info", "--text=hello", "--title=Greeting"])
        with anyio.fail_after(30):
            while not await desktop.list_windows():
                await anyio.sleep(0.1)
        view = desktop.view_of("default/web:owner:one")
        await desktop.look(view, desktop.windows[0])
        view.note_use(LOCAL)
        before = await desktop._on_screen("find_active")

        (shown,) = live.list_views("default/web:owner:one")
        assert (shown.id, shown.kind, shown.program) == ("desktop", "desktop", "/usr/bin/zenity")
        assert "Greeting" in shown.title and shown.label.readers == OWNER_READERS
        picture = Image.open(io.BytesIO(await live.take_picture(shown)))
        assert (picture.format, picture.size) == ("JPEG", (1280, 720))
        colours = picture.convert("RGB").getcolors(maxcolors=1 << 24)
        assert colours is not None and len(colours) > 20, "the window is on it"
        assert await desktop._on_screen("find_active") == before
        assert live.list_views("default/web:owner:two") == []
        tasks.cancel_scope.cancel()
